"""The diagnosis of a kept habit in the summary, the terminal and the report."""

from collections.abc import Callable, Sequence
from pathlib import Path

from markupsafe import escape

from browser import Opener, check_accessible, check_fits, save_report
from cant_do_that_anymore import Answer, Position
from cant_do_that_anymore.report.run_page import page
from cant_do_that_anymore.report.sentences import explanation, findings
from cant_do_that_anymore.report.tables import summary
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
"""Number of samples by whether the model knows the rule and whether it keeps the habit."""
COUNTS: Counts = {(True, False): 40, (True, True): 18, (False, False): 1, (False, True): 4}
SOME_UNREADABLE: Counts = {(True, True): 10, (False, True): 5, (None, True): 4, (None, False): 2}
KEEPS: tuple[Outcome, ...] = ("usual",)
DROPS: tuple[Outcome, ...] = ("legal",)


def diagnosed_sample(
    position: Position, knows: bool | None, keeps: bool, placebo: Outcome = "usual"
) -> PositionAnswers:
    """A sample with the habit. Its answers about the rule are unreadable if `knows` is None."""
    texts = {True: ("no", "yes"), False: ("yes", "yes"), None: ("perhaps", "perhaps")}[knows]
    changed: Outcome = "usual" if keeps else "legal"
    outcomes: list[Answer | Outcome] = [Answer(position.usual[0]), changed, placebo, "legal"]
    replies = [*outcomes, *map(Answer, texts)]
    return position, dict(zip(DIAGNOSIS_CONDITIONS, replies, strict=True))


def run_with_counts(
    counts: Counts, controls: Sequence[Outcome] = KEEPS * 8, placebo: Outcome = "usual"
) -> Run:
    """A run with this many samples of each kind, and these outcomes at controls."""
    kinds = [kind for kind, count in counts.items() for _ in range(count)]
    samples = [diagnosed_sample(p, *kind, placebo) for p, kind in zip(POOL, kinds, strict=False)]
    control_samples: list[PositionAnswers] = [
        (position, {"standard": "usual", "changed": outcome, "placebo": placebo})
        for position, outcome in zip(POOL[500:], controls, strict=False)
    ]
    return run_from_answers(samples, plan_of(len(samples), DIAGNOSIS_CONDITIONS), control_samples)


def run_without_habit() -> Run:
    position, replies = diagnosed_sample(POOL[0], True, True)
    answers = [(position, {**replies, "standard": "legal"})]
    return run_from_answers(answers, plan_of(1, DIAGNOSIS_CONDITIONS))


SCENARIOS: dict[str, Callable[[], Run]] = {
    "knowing helps": lambda: run_with_counts(COUNTS, KEEPS * 6 + DROPS * 2),
    "guesses": lambda: run_with_counts({(True, True): 1, (False, True): 30}),
    "few readable": lambda: run_with_counts({(True, True): 10, (None, True): 30}),
    "no effect, no controls": lambda: run_with_counts({(True, True): 40}, ()),
    "other play changes": lambda: run_with_counts(COUNTS, DROPS * 30 + KEEPS * 10),
    "the placebo drops the habit": lambda: run_with_counts(
        {(True, True): 40}, KEEPS * 30, placebo="legal"
    ),
    "no habit": run_without_habit,
    "no diagnosis": lambda: run_with_outcomes(positions=POOL[:1]),
}


def test_summary_and_report_give_the_same_diagnosis() -> None:
    outputs = []
    for name, make_run in SCENARIOS.items():
        run = make_run()
        report, output = (" ".join(text.split()) for text in (page(run), printed(summary(run))))
        assert bool(explanation(run)) == (name != "no diagnosis")
        assert str(escape(explanation(run))) in report and explanation(run) in output
        rows = [f"{question} {finding.answer}" for question, finding in findings(run)]
        assert all(row.partition("?")[0] in report for row in rows)
        outputs += [f"# {name}", explanation(run), *rows, ""]
    snapshot("diagnosis", "\n".join(outputs))


def test_the_report_shows_all_replies_and_questions_and_the_controls(
    tmp_path: Path, open_page: Opener
) -> None:
    run = SCENARIOS["knowing helps"]()
    opened = open_page(save_report(run, tmp_path))
    sample = run.samples[0]
    for condition in run.plan.conditions:
        panel = f"article[data-condition={condition.name}]"
        assert opened.text(f"{panel} pre") == sample.answers[condition.name].text
        question = condition.question(sample.item)
        if question.about:
            assert f"is {question.about} a legal move" in opened.text(f"{panel} .asked q")
    assert "Remember the rules" in opened.text("article[data-condition=reminded] .asked")
    assert opened.page.locator("article[data-condition=placebo] q").is_hidden()
    assert "{move}" in opened.text("#made")
    opened.page.select_option("[name=group]", "control")
    opened.expect_current_sample("1 of 8")
    assert "which stays legal" in opened.text(".legend .usual b")
    panels = opened.page.locator("article:visible").all()
    names = [panel.get_attribute("data-condition") for panel in panels]
    assert names == ["standard", "changed", "placebo"]
    linked = open_page(tmp_path / "report.html", f"#sample={run.controls[3].item.id}")
    assert linked.current_sample == "4 of 8"


def test_diagnosis_report_is_accessible(tmp_path: Path, open_page: Opener) -> None:
    report = open_page(save_report(run_with_counts(SOME_UNREADABLE), tmp_path)).page
    for folded in report.locator("#made summary").all():
        folded.click()
    check_fits(report, tables_from=390)
    check_accessible(report)
