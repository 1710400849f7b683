"""The diagnosis of a kept habit in the summary, the terminal and the report."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType

import pytest
from markupsafe import escape

from browser import Opener, check_accessible, check_fits, save_report
from cant_do_that_anymore import Answer, Position
from cant_do_that_anymore.comparison.entries import entries_of
from cant_do_that_anymore.comparison.leaderboard import rankings
from cant_do_that_anymore.providers.base import Usage
from cant_do_that_anymore.report.pages import experiment_page
from cant_do_that_anymore.report.rows import build_document
from cant_do_that_anymore.report.run_page import page
from cant_do_that_anymore.report.sentences import explanation, findings
from cant_do_that_anymore.report.tables import experiment_table, summary
from cant_do_that_anymore.runs.run import Run
from cant_do_that_anymore.task.conditions import DIAGNOSIS_CONDITIONS
from cant_do_that_anymore.task.types import Outcome
from testing import (
    POOL,
    PositionAnswers,
    plan_of,
    printed,
    run_from_answers,
    run_with_outcomes,
    snapshot,
)

Counts = dict[tuple[bool | None, bool], int]
COUNTS: Counts = {
    (True, False): 40,
    (True, True): 18,
    (False, False): 1,
    (False, True): 4,
}
"""Number of samples by whether the model knows the rule and whether it keeps the habit."""


def diagnosed_sample(position: Position, knows: bool | None, keeps: bool) -> PositionAnswers:
    """A sample with the habit. Its answers about the rule are unreadable if `knows` is None."""
    texts = {True: ("no", "yes"), False: ("yes", "yes"), None: ("perhaps", "perhaps")}[knows]
    outcomes = ("usual", "usual" if keeps else "legal", "usual", "legal")
    replies: dict[str, Answer | Outcome] = dict(zip(DIAGNOSIS_CONDITIONS, outcomes, strict=False))  # type: ignore[arg-type]
    knowledge = zip(DIAGNOSIS_CONDITIONS[4:], texts, strict=True)
    replies |= {condition: Answer(text) for condition, text in knowledge}
    replies["standard"] = Answer(position.usual[0])
    return position, replies


def run_with_counts(
    counts: Counts,
    controls: Sequence[Outcome] = ("usual",) * 8,
    first: Mapping[str, Answer] = MappingProxyType({}),
) -> Run:
    """A run with this many samples of each kind. `first` replaces answers of the first sample."""
    kinds = [kind for kind, count in counts.items() for _ in range(count)]
    samples = [diagnosed_sample(p, *kind) for p, kind in zip(POOL, kinds, strict=False)]
    samples[:1] = [(p, {**replies, **first}) for p, replies in samples[:1]]
    control_samples: list[PositionAnswers] = [
        (p, {"standard": "usual", "changed": outcome, "placebo": "usual"})
        for p, outcome in zip(POOL[500:], controls, strict=False)
    ]
    return run_from_answers(samples, plan_of(len(samples), DIAGNOSIS_CONDITIONS), control_samples)


def run_with_placebo(placebo: Callable[[int], Outcome], at_controls: Mapping[str, Outcome]) -> Run:
    """A run that ignores the rule, with these outcomes under the placebo."""
    samples = [diagnosed_sample(p, knows=True, keeps=True) for p in POOL[:40]]
    return run_from_answers(
        [(p, {**replies, "placebo": placebo(n)}) for n, (p, replies) in enumerate(samples)],
        plan_of(40, DIAGNOSIS_CONDITIONS),
        [(p, {"standard": "usual", **at_controls}) for p in POOL[500:530]],
    )


def run_moved_by_placebo() -> Run:
    """A run in which the placebo alone changes the habit."""
    at_controls: dict[str, Outcome] = {"changed": "usual", "placebo": "usual"}
    return run_with_placebo(lambda n: "legal" if n % 2 else "usual", at_controls)


def run_without_habit() -> Run:
    position, replies = diagnosed_sample(POOL[0], True, True)
    return run_from_answers(
        [(position, {**replies, "standard": "legal"})], plan_of(1, DIAGNOSIS_CONDITIONS)
    )


SOME_UNREADABLE: Counts = {(True, True): 10, (False, True): 5, (None, True): 4, (None, False): 2}
SCENARIOS: dict[str, Callable[[], Run]] = {
    "knowing helps": lambda: run_with_counts(COUNTS, [*["usual"] * 6, "legal", "legal"]),  # type: ignore[list-item]
    "always knows": lambda: run_with_counts({(True, True): 10, (True, False): 30}),
    "guesses": lambda: run_with_counts({(True, True): 1, (False, True): 30}),
    "few readable": lambda: run_with_counts({(True, True): 10, (None, True): 30}),
    "none readable": lambda: run_with_counts({(None, True): 30}),
    "some unreadable": lambda: run_with_counts(SOME_UNREADABLE),
    "no effect, no controls": lambda: run_with_counts({(True, True): 40}, ()),
    "other play changes": lambda: run_with_counts(COUNTS, ["legal"] * 30 + ["usual"] * 10),  # type: ignore[arg-type]
    "the placebo moves the habit": run_moved_by_placebo,
    "the placebo changes as much at controls": lambda: run_with_placebo(
        lambda _: "usual", {"changed": "legal", "placebo": "legal"}
    ),
    "no habit": run_without_habit,
    "no diagnosis": lambda: run_with_outcomes(positions=POOL[:1]),
}


@cache
def scenario(name: str) -> Run:
    return SCENARIOS[name]()


@pytest.fixture
def typical() -> Run:
    return scenario("knowing helps")


def test_summary_and_report_give_the_same_diagnosis() -> None:
    outputs = []
    for name in SCENARIOS:
        run = scenario(name)
        report, output = (" ".join(text.split()) for text in (page(run), printed(summary(run))))
        assert bool(explanation(run)) == (name != "no diagnosis")
        assert str(escape(explanation(run))) in report and explanation(run) in output
        rows = [f"{question} {finding.answer}" for question, finding in findings(run)]
        assert all(row.partition("?")[0] in report for row in rows)
        outputs += [f"# {name}", explanation(run), *rows, ""]
    snapshot("diagnosis", "\n".join(outputs))


@pytest.fixture(scope="module")
def typical_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_report(scenario("knowing helps"), tmp_path_factory.mktemp("typical"))


def test_controls_are_shown_separately_with_their_conditions(
    typical: Run, typical_page: Path, open_page: Opener
) -> None:
    opened = open_page(typical_page)
    opened.expect_current_sample(f"1 of {len(typical.samples)}")
    opened.page.select_option("[name=knowing]", "control")
    opened.expect_current_sample("1 of 8")
    assert "which stays legal" in opened.text(".legend .usual b")
    panels = opened.page.locator("article:visible").all()
    names = [panel.get_attribute("data-condition") for panel in panels]
    assert names == ["standard", "changed", "placebo"]
    linked = open_page(typical_page, f"#sample={typical.controls[3].item.id}")
    assert linked.current_sample == "4 of 8"


def test_a_sample_shows_all_replies_and_questions(
    typical: Run, typical_page: Path, open_page: Opener
) -> None:
    opened = open_page(typical_page)
    sample = typical.samples[0]
    for condition in typical.plan.conditions:
        panel = f"article[data-condition={condition.name}]"
        assert opened.text(f"{panel} pre") == sample.answers[condition.name].text
        question = condition.question(sample.item)
        if question.about:
            assert f"is {question.about} a legal move" in opened.text(f"{panel} .asked q")
    assert "Remember the rules" in opened.text("article[data-condition=reminded] .asked")
    assert opened.page.locator("article[data-condition=placebo] q").is_hidden()
    assert "{move}" in opened.text("#made")


def test_diagnosis_report_is_accessible(tmp_path: Path, open_page: Opener) -> None:
    """The run has a diagnosis, reasoning and failures, so that its report has every section."""
    counts = {(True, False): 3, (True, True): 2, (None, True): 1, (False, True): 1}
    answer = Answer("no idea", reasoning=f"{POOL[0].usual[0]}?", usage=Usage(1, 72, 70))
    run = run_with_counts(counts, ["usual", "legal"], {"changed": answer})
    opened = open_page(save_report(run, tmp_path))
    report = opened.page
    assert report.locator(".failures li").count() > 1
    assert opened.text("article.changed summary").startswith("Reasoning: 70 tokens")
    for folded in report.locator("#made summary").all():
        folded.click()
    check_fits(report, tables_from=390)
    check_accessible(report)


def test_experiment_reports_show_the_diagnosis(typical: Run) -> None:
    ranked = rankings(entries_of([typical]))
    document = build_document(ranked, Path())
    estimate = typical.results.diagnosis["knowledge"].estimate
    assert estimate
    for text in (
        printed(experiment_table(ranked, document), 100),
        experiment_page(ranked, document),
    ):
        assert "why the habit stays" in text and estimate.as_difference in text
