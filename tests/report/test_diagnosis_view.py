"""Why the habit stays: the sentence, the lines in the terminal, the picture and its samples."""

import re
from collections.abc import Callable, Sequence
from io import StringIO
from pathlib import Path

import pytest
from markupsafe import escape
from rich.console import Console

from browser import Opener, saved
from cant_do_that_anymore.comparison.entries import entries_of
from cant_do_that_anymore.comparison.leaderboard import rankings
from cant_do_that_anymore.formatting import brief, rounded
from cant_do_that_anymore.game.position import Position, shipped_pool
from cant_do_that_anymore.metrics.diagnosis import range_of
from cant_do_that_anymore.metrics.groups import by_usualness, read_usualness, usualness
from cant_do_that_anymore.providers import pocket
from cant_do_that_anymore.providers.base import Answer
from cant_do_that_anymore.report.columns import as_rows
from cant_do_that_anymore.report.document import build_document
from cant_do_that_anymore.report.pages import experiment_page
from cant_do_that_anymore.report.run_page import page
from cant_do_that_anymore.report.sentences import diagnosis_answers, headline
from cant_do_that_anymore.report.tables import experiment_table, summary
from cant_do_that_anymore.runs.results import Run
from cant_do_that_anymore.task.conditions import OF_DIAGNOSIS
from cant_do_that_anymore.task.types import Outcome
from testing import POOL, Asked, plan_of, played, run_of

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
    told: dict[str, Answer | Outcome] = dict(zip(OF_DIAGNOSIS, moves, strict=False))  # type: ignore[arg-type]
    told |= {name: Answer(text) for name, text in zip(OF_DIAGNOSIS[4:], said, strict=True)}
    told["standard"] = Answer(special)
    return position, told


def control(position: Position, changed: Outcome) -> Asked:
    return position, {"standard": "special", "changed": changed, "placebo": "special"}


def diagnosed(counts: Counts, controls: Sequence[Outcome] = ("special",) * 8) -> Run:
    kinds = [kind for kind, count in counts.items() for _ in range(count)]
    samples = [asked(p, *kind) for p, kind in zip(POOL, kinds, strict=False)]
    others = [control(p, said) for p, said in zip(POOL[500:], controls, strict=False)]
    return run_of(samples, plan_of(len(samples), OF_DIAGNOSIS), others)


@pytest.fixture(scope="module")
def typical() -> Run:
    return diagnosed(COUNTS, [*(["special"] * 6), "legal", "legal"])  # type: ignore[list-item]


def printed(run: Run, *, verbose: bool = False) -> str:
    console = Console(width=80, record=True, file=StringIO())
    console.print(summary(run, verbose=verbose))
    return console.export_text()


GUESSING = "(0 = guessing, 1 = always right)."
QUESTIONS = (
    "Does it know the rule?",
    "Does it stop?",
    "Is it the rule, or any change to the prompt?",
    "Is it this habit, or all play?",
)


def answers(run: Run) -> list[str]:
    """The answers to the four questions, which page and terminal both show."""
    found = diagnosis_answers(run)
    assert tuple(found) == QUESTIONS
    shown, told = (" ".join(text.split()) for text in (page(run), printed(run)))
    for question, answer in found.items():
        assert f"<dt>{question}</dt><dd>{escape(answer)}</dd>" in shown
        assert f"{question} {answer}" in told
    return list(found.values())


@pytest.mark.parametrize(
    ("counts", "knows", "stops"),
    [
        (
            COUNTS,
            "Yes, it can tell legal from illegal moves under the new rule: "
            f"J = 0.92 {{J}} {GUESSING}",
            "Where it knows the rule, it plays the forbidden move in 31% {known} of the "
            "positions. Where it does not, it does so in 80% {unknown}.",
        ),
        (
            {(True, True): 10, (True, False): 30},
            "Yes,",
            "Where it knows the rule, it plays the forbidden move in 25% {known} of the positions.",
        ),
        (
            {(True, True): 1, (False, True): 30},
            f"There is no evidence that it does: J = 0.03 {{J}} {GUESSING}",
            "",
        ),
        (
            {(True, True): 10, (None, True): 30},
            f"We cannot tell: too few of its yes/no answers could be read, J = {{J}} {GUESSING}",
            "",
        ),
        (
            {(None, True): 30},
            "We cannot tell: none of its yes/no answers could be read.",
            "We cannot tell: there was no habit to stop.",
        ),
    ],
    ids=["helps", "always", "guesses", "few readable", "none readable"],
)
def test_the_first_answers_say_whether_it_knows_and_whether_it_stops(
    counts: Counts, knows: str, stops: str
) -> None:
    run = diagnosed(counts)

    def around(name: str, form: Callable[[float], str]) -> str:
        ends = range_of(run.results, name)
        return f"[{form(ends[0])}, {form(ends[1])}]" if ends else ""

    places = {
        "J": around("rule_knowledge", brief),
        "known": around("knowing_doing_gap", rounded),
        "unknown": around("kept_without_knowing", rounded),
    }
    first, second, *_ = answers(run)
    assert first.startswith(knows.format(**places))
    assert second.startswith(stops.format(**places))
    if any(known is None for known, _ in counts):
        share = "100.0" if len(counts) == 1 else "75.0"
        assert f"{share}% about the forbidden move" in page(run)


def test_the_last_answers_say_whether_it_is_the_rule_and_this_habit(typical: Run) -> None:
    *_, rule, habit = answers(typical)
    assert rule.startswith("It is the rule: a placebo rule, which leaves the habit legal, changes ")
    assert (
        " it by 0% [" in rule
        and (". Compared with that, the new rule changes it by -65% [") in rule
    )
    at_controls = "at 8 control positions, where the usual move stays legal, it plays it in 100%"
    assert habit.startswith(f"No change in other play was found: {at_controls} under standard")
    assert habit.endswith(" and in 75% under the new rule.")
    *_, rule, habit = answers(diagnosed({(True, True): 40}, ()))
    assert rule.startswith("No effect of either was found: a placebo rule")
    assert habit.startswith("We cannot tell: this run has no control positions")
    upset = diagnosed(COUNTS, ["legal"] * 30 + ["special"] * 10)  # type: ignore[arg-type]
    assert answers(upset)[3].startswith("Other play changes, too: at 40 control positions")


def test_unreadable_yes_no_answers_have_a_bar_of_their_own(typical: Run) -> None:
    silent = diagnosed({(True, True): 10, (False, True): 5, (None, True): 4, (None, False): 2})
    assert "Yes/no answers unreadable <span>6 of 21 with the habit" in page(silent)
    assert page(silent).count('class="swatch is-unclear-') == 2
    assert "yes/no answers unreadable: 6" in printed(silent, verbose=True)
    assert "knowing=does+not+know+and+keeps" in page(silent)
    assert "answers unreadable" not in page(typical) + printed(typical, verbose=True)


def test_where_the_placebo_moved_the_habit_nothing_is_claimed_about_the_rule(typical: Run) -> None:
    samples = [asked(p, knows=True, keeps=True) for p in POOL[:40]]
    moved = run_of(
        [
            (p, {**told, "placebo": "legal" if n % 2 else "special"})
            for n, (p, told) in enumerate(samples)
        ],
        plan_of(40, OF_DIAGNOSIS),
        [control(p, "special") for p in POOL[500:508]],
    )
    warning = "Not the effect of the rule: the placebo alone changed the habit."
    assert page(moved).count(warning) == 2 and warning not in page(typical)
    assert "so the rule may not be the cause" in headline(moved)
    # What the placebo changes at controls counts, too, even if the rule adds nothing to it.
    all_upset = run_of(
        samples,
        plan_of(40, OF_DIAGNOSIS),
        [
            (p, {"standard": "special", "changed": "legal", "placebo": "legal"})
            for p in POOL[500:530]
        ],
    )
    assert answers(all_upset)[3].startswith("Other play changes, too: at 30 control positions")
    assert answers(moved)[2].startswith("We cannot tell: a placebo rule")
    lines = printed(moved, verbose=True).splitlines()
    (line,) = [line for line in lines if line.startswith("Corrected impact factor")]
    assert line.rstrip().endswith("see the note")
    assert "see the note" not in printed(typical, verbose=True)
    assert "specific</th>" in made_of(moved)
    assert ">–</td>" in made_of(moved).partition("why the habit stays</th>")[2]
    assert 'data-in="results.0.corrected_impact_factor"' not in made_of(moved)
    assert 'data-in="results.0.corrected_impact_factor"' in made_of(typical)


def test_a_diagnosis_is_shown_without_a_habit_and_nothing_without_a_diagnosis() -> None:
    plain = played(positions=POOL[:1])
    position, told = asked(POOL[0], True, True)
    habitless = run_of([(position, {**told, "standard": "legal"})], plan_of(1, OF_DIAGNOSIS))
    assert answers(habitless)[1] == "We cannot tell: there was no habit to stop."
    assert 'id="why"' in page(habitless)
    assert diagnosis_answers(plain) == {}
    assert 'id="why"' not in page(plain) and 'name="knowing"' not in page(plain)
    assert "<code>cdta run --model some/model ... --diagnose</code>" in page(plain)
    assert "with the habit" not in printed(plain, verbose=True)


def test_the_terminal_shows_the_tables_of_a_diagnosis_only_if_verbose(typical: Run) -> None:
    brief_lines, lines = (printed(typical, verbose=v).splitlines() for v in (False, True))
    (knows,) = [line for line in lines if line.startswith("knows the rule: 58")]
    assert knows.split()[4:] == ["40", "69.0%", "18", "31.0%"]
    assert "of 63 with the habit" in printed(typical, verbose=True)
    assert "habits at controls: 100.0% standard, 100.0% placebo, 75.0% changed" in lines
    for title in ("Knowledge of the rule (J)", "Effect of knowing", "Specific impact factor"):
        assert any(line.startswith(title) for line in lines)
        assert not any(line.startswith(title) for line in brief_lines)
    assert any(line.startswith("Rule uptake ") for line in brief_lines)
    assert not any("_impact_factor" in line for line in lines)
    headings = next(line for line in lines if line.startswith("outcome"))
    names = ["outcome", "standard", "changed", "placebo", "reminded", "forbidden", "allowed"]
    assert headings.split() == names
    assert max(map(len, lines)) <= 80


@pytest.fixture(scope="module")
def typical_page(typical: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(typical, tmp_path_factory.mktemp("typical"))


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
    for width in (320, 390):
        opened.page.set_viewport_size({"width": width, "height": 900})
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= width


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
    groups = by_usualness(run.answered, run.plan)
    assert sum(group.n for group in groups) == 80
    labels = [group.label for group in groups]
    assert len(groups) > 3 and labels == sorted(labels, key=lambda label: int(label.split()[0]))
    assert "By how common the move is in human games" in page(run)


def test_what_is_known_of_the_shipped_pools_is_what_the_network_says() -> None:
    """A network of other weights needs another table: `tools/make_usual.py`."""
    for positions in (shipped_pool("pool")[::331], shipped_pool("diagonal")[::151]):
        assert usualness(positions) == pytest.approx(read_usualness(positions), abs=1)


def test_without_the_network_the_page_comes_without_that_axis(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pocket, "DATA", tmp_path)
    pocket.load_network.cache_clear()
    unknown = Position(0, ("e2e4", "e7e5"), ("f1b5", "f1c4"))
    run = played(positions=[unknown])
    assert by_usualness(run.answered, run.plan) == []
    assert "how usual" not in page(run)
    assert "By opening" in page(run)


def test_an_experiment_tells_who_knows_the_rule(typical: Run) -> None:
    plain = played("model-2", positions=POOL[:1])
    rows = {str(row["model"]): row for row in as_rows(entries_of([typical, plain]))}
    assert [row["rule_knowledge"] for row in rows.values()].count(None) == 1
    assert "rule_knowledge" not in as_rows(entries_of([plain]))[0]
    console = Console(width=100, record=True, file=StringIO())
    ranked = rankings(entries_of([typical]))
    console.print(experiment_table(ranked, build_document(ranked, Path())))
    assert "why the habit stays J" in console.export_text()
    made = made_of(typical, plain)
    why, _, _ = made.partition('<th scope="col">why the habit stays</th>')[2].partition("</table>")
    shown = re.findall(r'data-in="results.0.(?:rule_knowledge|knowing_effect)">([−\d.]+)', why)
    assert shown == ["0.92", "−0.49"]
    assert "some/model" in why and "model-2" not in why
    assert "J: knowledge of the rule" in made
    assert "why the habit stays" not in made_of(plain)


def made_of(*runs: Run) -> str:
    ranked = rankings(entries_of(runs))
    return experiment_page(ranked, build_document(ranked, Path()))
