"""Why the habit stays: the sentence, the lines in the terminal, the picture and its samples."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType

import pytest
from markupsafe import escape

from browser import Opener, check_accessible, check_fits, saved
from cant_do_that_anymore import Answer, Position, shipped_pool
from cant_do_that_anymore.comparison.entries import entries_of
from cant_do_that_anymore.comparison.leaderboard import rankings
from cant_do_that_anymore.metrics.groups import (
    by_human_frequency,
    compute_human_frequency,
    human_frequency,
)
from cant_do_that_anymore.providers import pocket
from cant_do_that_anymore.providers.base import Usage
from cant_do_that_anymore.report.columns import as_rows
from cant_do_that_anymore.report.document import build_document
from cant_do_that_anymore.report.pages import experiment_page
from cant_do_that_anymore.report.run_page import page
from cant_do_that_anymore.report.sentences import diagnosis_answers, headline
from cant_do_that_anymore.report.tables import experiment_table, summary
from cant_do_that_anymore.runs.results import Run
from cant_do_that_anymore.task.conditions import DIAGNOSIS_CONDITIONS
from cant_do_that_anymore.task.types import Outcome
from testing import POOL, Asked, plan_of, played, printed, run_of, snapshot, text_of, without_plots

Counts = dict[tuple[bool | None, bool], int]
COUNTS: Counts = {
    (True, False): 40,
    (True, True): 18,
    (False, False): 1,
    (False, True): 4,
}
"""Samples that know the rule, and of those that keep the habit."""


def asked(position: Position, knows: bool | None, keeps: bool) -> Asked:
    """A sample with the habit; one that neither knows nor not says neither yes nor no."""
    answers = ("no", "yes") if knows else ("yes", "yes")
    said = ("perhaps",) * 2 if knows is None else answers
    special = position.special_moves[0]
    moves = ("special", "special" if keeps else "legal", "special", "legal")
    told: dict[str, Answer | Outcome] = dict(zip(DIAGNOSIS_CONDITIONS, moves, strict=False))  # type: ignore[arg-type]
    told |= {name: Answer(text) for name, text in zip(DIAGNOSIS_CONDITIONS[4:], said, strict=True)}
    told["standard"] = Answer(special)
    return position, told


def diagnosed(
    counts: Counts,
    controls: Sequence[Outcome] = ("special",) * 8,
    first: Mapping[str, Answer] = MappingProxyType({}),
) -> Run:
    """A run with so many samples of each kind; some answers of the first may be given."""
    kinds = [kind for kind, count in counts.items() for _ in range(count)]
    samples = [asked(p, *kind) for p, kind in zip(POOL, kinds, strict=False)]
    samples[:1] = [(p, {**told, **first}) for p, told in samples[:1]]
    others: list[Asked] = [
        (p, {"standard": "special", "changed": said, "placebo": "special"})
        for p, said in zip(POOL[500:], controls, strict=False)
    ]
    return run_of(samples, plan_of(len(samples), DIAGNOSIS_CONDITIONS), others)


def of_placebo(placebo: Callable[[int], Outcome], at_controls: Mapping[str, Outcome]) -> Run:
    """A run that keeps its habit under the rule, and does this under the placebo."""
    samples = [asked(p, knows=True, keeps=True) for p in POOL[:40]]
    return run_of(
        [(p, {**told, "placebo": placebo(n)}) for n, (p, told) in enumerate(samples)],
        plan_of(40, DIAGNOSIS_CONDITIONS),
        [(p, {"standard": "special", **at_controls}) for p in POOL[500:530]],
    )


def moved() -> Run:
    """The placebo alone changes the habit."""
    unmoved: dict[str, Outcome] = {"changed": "special", "placebo": "special"}
    return of_placebo(lambda n: "legal" if n % 2 else "special", unmoved)


def habitless() -> Run:
    position, told = asked(POOL[0], True, True)
    return run_of([(position, {**told, "standard": "legal"})], plan_of(1, DIAGNOSIS_CONDITIONS))


SILENT: Counts = {(True, True): 10, (False, True): 5, (None, True): 4, (None, False): 2}
SCENARIOS: dict[str, Callable[[], Run]] = {
    "knowing helps": lambda: diagnosed(COUNTS, [*["special"] * 6, "legal", "legal"]),  # type: ignore[list-item]
    "always knows": lambda: diagnosed({(True, True): 10, (True, False): 30}),
    "guesses": lambda: diagnosed({(True, True): 1, (False, True): 30}),
    "few readable": lambda: diagnosed({(True, True): 10, (None, True): 30}),
    "none readable": lambda: diagnosed({(None, True): 30}),
    "some unreadable": lambda: diagnosed(SILENT),
    "no effect, no controls": lambda: diagnosed({(True, True): 40}, ()),
    "other play changes": lambda: diagnosed(COUNTS, ["legal"] * 30 + ["special"] * 10),  # type: ignore[arg-type]
    "the placebo moves the habit": moved,
    "the placebo changes as much at controls": lambda: of_placebo(
        lambda _: "special", {"changed": "legal", "placebo": "legal"}
    ),
    "no habit": habitless,
    "no diagnosis": lambda: played(positions=POOL[:1]),
}


@cache
def scenario(name: str) -> Run:
    return SCENARIOS[name]()


@pytest.fixture
def typical() -> Run:
    return scenario("knowing helps")


def test_the_terminal_answers_four_questions_and_the_page_says_the_same() -> None:
    told = []
    for name in SCENARIOS:
        run = scenario(name)
        lines = printed(summary(run, verbose=True))
        assert max(map(len, lines.splitlines())) <= 80
        told.append(f"# {name}\n{lines}")
        shown, brief = (" ".join(text.split()) for text in (page(run), printed(summary(run))))
        assert bool(diagnosis_answers(run)) == (name != "no diagnosis")
        for question, answer in diagnosis_answers(run).items():
            assert f"<dt>{question}</dt><dd>{escape(answer)}</dd>" in shown
            assert f"{question} {answer}" in brief
        assert "Knowledge of the rule (J)" not in brief and "Rule uptake " in brief
    snapshot("diagnosis", "\n".join(told))


def test_the_page_of_a_diagnosis_says_what_it_said(typical: Run) -> None:
    """Without what every report has: its prompts, its games and its settings."""
    unreadable, confounded = (
        scenario(name) for name in ("some unreadable", "the placebo moves the habit")
    )
    for name, run in (("typical", typical), ("unreadable", unreadable), ("moved", confounded)):
        made = page(run)
        why = made.partition('<section id="why"')[2].partition("</section>")[0]
        snapshot(f"diagnosis-{name}", text_of(f"<body><p {why}"))
        assert made.count('class="swatch is-unclear-') == 2 * (name == "unreadable")


def test_where_the_placebo_moved_the_habit_nothing_is_claimed_about_the_rule(typical: Run) -> None:
    warning = "Not the effect of the rule: the placebo alone changed the habit."
    run = scenario("the placebo moves the habit")
    assert page(run).count(warning) == 2 and warning not in page(typical)
    assert "so the rule may not be the cause" in headline(run)
    made = made_of(run)
    assert "specific</th>" in made
    assert ">–</td>" in made.partition("why the habit stays</th>")[2]
    assert 'data-in="results.0.corrected_impact_factor"' not in made
    assert 'data-in="results.0.corrected_impact_factor"' in made_of(typical)


def test_a_diagnosis_is_shown_without_a_habit_and_nothing_without_a_diagnosis() -> None:
    plain = page(scenario("no diagnosis"))
    assert 'id="why"' in page(scenario("no habit"))
    assert 'id="why"' not in plain and 'name="knowing"' not in plain
    assert "<code>cdta run --model some/model ... --diagnose</code>" in plain


@pytest.fixture(scope="module")
def typical_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(scenario("knowing helps"), tmp_path_factory.mktemp("typical"))


def test_every_group_links_to_its_samples(typical_page: Path, open_page: Opener) -> None:
    opened = open_page(typical_page)
    parts = opened.page.locator("#why .knowing li a")
    for number, count in enumerate(COUNTS.values()):
        parts.nth(number).click()
        opened.expect_place(f"1 of {count}")
    bars = opened.page.locator("#why .knowing svg a")
    assert bars.count() == 4
    bars.nth(1).press("Enter")
    opened.expect_place("1 of 18")
    assert opened.page.locator("[name=knowing]").input_value() == "knows and keeps"


def test_bars_are_as_wide_as_their_shares_and_factors_stand_on_one_axis(
    typical: Run, typical_page: Path, open_page: Opener
) -> None:
    opened = open_page(typical_page)
    widths = opened.page.locator("#why .knowing rect").evaluate_all(
        "all => all.map(one => one.getBoundingClientRect().width)"
    )
    shares = [count / 18 for count in COUNTS.values()]
    assert [width / widths[1] for width in widths] == pytest.approx(shares, rel=0.02)
    rows = opened.page.locator("#why .factors").last.locator("tbody tr")
    values = [text.replace("−", "-") for text in rows.locator("td:nth-child(2)").all_inner_texts()]
    factors = ("variant", "placebo", "corrected", "specific")
    metrics = typical.results.metrics
    assert values == [f"{metrics[f'{name}_impact_factor']:.3f}" for name in factors]
    assert rows.locator(".dot").count() == 4
    check_fits(opened.page, tables_from=390)


def test_controls_are_shown_apart_with_what_they_were_asked(
    typical: Run, typical_page: Path, open_page: Opener
) -> None:
    opened = open_page(typical_page)
    opened.expect_place(f"1 of {len(typical.samples)}")
    opened.page.locator("#why a", has_text="At control positions").click()
    opened.expect_place("1 of 8")
    assert "which stays legal" in opened.text(".legend .special b")
    shown = opened.page.locator("article:visible").all()
    names = [each.get_attribute("data-condition") for each in shown]
    assert names == ["standard", "changed", "placebo"]
    linked = open_page(typical_page, f"#sample={typical.controls[3].position.id}")
    assert linked.place == "4 of 8"


def test_a_sample_shows_all_replies_and_what_was_asked(
    typical: Run, typical_page: Path, open_page: Opener
) -> None:
    opened = open_page(typical_page)
    sample = typical.samples[0]
    for condition in typical.plan.conditions:
        panel = f"article[data-condition={condition.name}]"
        assert opened.text(f"{panel} pre") == sample.answers[condition.name].text
        question = condition.question(sample.position)
        if question.about:
            assert f"is {question.about} a legal move" in opened.text(f"{panel} .asked q")
    assert "Remember the rules" in opened.text("article[data-condition=reminded] .asked")
    assert opened.page.locator("article[data-condition=placebo] q").is_hidden()
    assert "{move}" in opened.text("#made")


def test_every_page_shows_the_habit_by_how_usual_the_move_is_among_people() -> None:
    run = played(positions=POOL[:80])
    groups = by_human_frequency(run.answered, run.plan)
    assert sum(group.uptake.n for group in groups) == 80
    labels = [group.label for group in groups]
    assert len(groups) > 3 and labels == sorted(labels, key=lambda label: int(label.split()[0]))
    assert "By how common the move is in human games" in page(run)


def test_the_page_is_accessible(tmp_path: Path, open_page: Opener) -> None:
    """A diagnosis with reasoning and failures, which has every part of a report."""
    few = {(True, False): 3, (True, True): 2, (None, True): 1, (False, True): 1}
    thought = Answer("no idea", reasoning=f"{POOL[0].special_moves[0]}?", usage=Usage(1, 72, 70))
    run = diagnosed(few, ["special", "legal"], {"changed": thought})
    opened = open_page(saved(run, tmp_path))
    shown = opened.page
    assert shown.locator(".failures li").count() > 1
    assert opened.text("article.changed summary").startswith("Reasoning: 70 tokens")
    for folded in shown.locator("#where summary, #made summary").all():
        folded.click()
    check_accessible(shown)


def test_what_is_known_of_the_shipped_pools_is_what_the_network_says() -> None:
    """A network of other weights needs another table: `tools/make_move_frequencies.py`."""
    for positions in (shipped_pool("pool")[::331], shipped_pool("diagonal")[::151]):
        assert human_frequency(positions) == pytest.approx(
            compute_human_frequency(positions), abs=1
        )


def test_without_the_network_the_page_comes_without_that_axis(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pocket, "DATA", tmp_path)
    pocket.load_network.cache_clear()
    unknown = Position(0, ("e2e4", "e7e5"), ("f1b5", "f1c4"))
    run = played(positions=[unknown])
    assert by_human_frequency(run.answered, run.plan) == []
    assert "how usual" not in page(run)
    assert "By opening" in page(run)


def test_an_experiment_tells_who_knows_the_rule(typical: Run) -> None:
    plain = played("model-2", positions=POOL[:1])
    rows = {str(row["model"]): row for row in as_rows(entries_of([typical, plain]))}
    assert [row["rule_knowledge"] for row in rows.values()].count(None) == 1
    assert "rule_knowledge" not in as_rows(entries_of([plain]))[0]
    ranked = rankings(entries_of([typical]))
    table = experiment_table(ranked, build_document(ranked, Path()))
    assert "why the habit stays J" in printed(table, 100)
    made = made_of(typical, plain)
    why, _, _ = made.partition('<th scope="col">why the habit stays</th>')[2].partition("</table>")
    shown = re.findall(r'data-in="results.0.(?:rule_knowledge|knowing_effect)">([−\d.]+)', why)
    assert shown == ["0.92", "−0.49"]
    assert "some/model" in why and "model-2" not in why
    assert "J: knowledge of the rule" in made
    assert "why the habit stays" not in made_of(plain)


def made_of(*runs: Run) -> str:
    ranked = rankings(entries_of(runs))
    with without_plots():
        return experiment_page(ranked, build_document(ranked, Path()))
