"""Why a habit stays, in planted models with known numbers."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cant_do_that_anymore import Answer
from cant_do_that_anymore.habits.chess.rules import BISHOPS_AS_KNIGHTS, board_after
from cant_do_that_anymore.metrics.diagnosis import KNOWS_FROM, answer_to
from cant_do_that_anymore.metrics.estimates import Estimate
from cant_do_that_anymore.report.rows import finding_table
from cant_do_that_anymore.report.run_page import page
from cant_do_that_anymore.report.sentences import explanation, uptake_sentence
from cant_do_that_anymore.report.tables import summary
from cant_do_that_anymore.runs.cost import estimate
from cant_do_that_anymore.runs.identity import PROBES
from cant_do_that_anymore.runs.run import Run
from cant_do_that_anymore.task.conditions import CONTROL_CONDITIONS, DIAGNOSIS_CONDITIONS
from loopback import is_placebo, queried_move
from planted_models import (
    CANNOT_STOP,
    HALF_UNREADABLE,
    IGNORES_RULE,
    NEEDS_REMINDER,
    PERFECT,
    SAYS_NO,
    SAYS_YES,
    UPSET_BY_ANY_CHANGE,
    correct,
    illegal_when_reminded,
    is_reminded,
    planted,
    primed,
    states_rules,
    when_forbidden,
)
from testing import (
    POOL,
    USUAL,
    Body,
    Spec,
    checksum,
    evaluate,
    habit,
    legal_under_both,
    measure,
    moves_in,
    plan_of,
    positions_of,
    printed,
    run_from_answers,
    serving_in_process,
    snapshot,
    text_of,
)

N = 24


def diagnose(respond: Callable[[Body], str], **options: Any) -> Run:
    return measure(respond, **{"diagnose": True, "temperature": 0.0, "n": N} | options)


def answers_in(run: Run) -> str:
    """The answers to all questions, by initial."""
    return "".join(finding.answer[0] for finding in run.results.diagnosis.values())


def silent_when_asked(request: Body) -> str:
    """Says nothing readable unless it is asked to move under the standard rules."""
    return "Hm." if states_rules(request) or queried_move(request) else habit(request)


HARMED_BY_REMINDER = planted(lambda r: when_forbidden(r) and not is_reminded(r), correct)
# Planted models, with the answers to the questions and their estimates.
PLANTED: dict[str, tuple[Callable[[Body], str], str, list[float]]] = {
    "says yes": (SAYS_YES, "CYCC", [0, 1, 0, 0]),  # the same answer to all is no knowledge
    "says no": (SAYS_NO, "CYCC", [0, 1, 0, 0]),
    "perfect": (PERFECT, "YYCC", [1, 1, 0, 0]),
    "ignores the rule": (IGNORES_RULE, "NCCC", [-1, 0, 0, 0]),
    "cannot stop": (CANNOT_STOP, "YCCC", [1, 0, 0, 0]),
    "needs a reminder": (NEEDS_REMINDER, "YCYC", [1, 0, 1, 0]),
    "harmed by a reminder": (HARMED_BY_REMINDER, "YYNC", [1, 1, -1, 0]),
    "illegal when reminded": (illegal_when_reminded, "YCCC", [1, 0, 0, 0]),
    "follows only the placebo": (planted(is_placebo, correct), "YNCC", [1, -1, 0, 0]),
    "silent when asked": (silent_when_asked, "CCCC", [0, 0, 0]),
    "half unreadable": (HALF_UNREADABLE, "CCCC", [0.5, 0, 0, 0]),
    "upset by any change": (UPSET_BY_ANY_CHANGE, "NCCY", [-1, 0, 0, -5 / 6]),  # by its checksums
}


def test_planted_models_get_the_right_answers_and_sentences() -> None:
    """The terminal and the report give the same diagnosis."""
    runs = {"no habit, no controls": run_without_habit()}
    for name, (respond, answers, values) in PLANTED.items():
        run = runs[name] = diagnose(respond)
        estimates = [finding.estimate for finding in run.results.diagnosis.values()]
        assert (answers_in(run), [e.value for e in estimates if e]) == (answers, values), name
    outputs = []
    for name, run in runs.items():
        report, output = text_of(page(run)), " ".join(printed(summary(run), width=100).split())
        rows = finding_table(run).rows
        lines = [explanation(run), *(" ".join(" ".join(row).split()) for row in rows)]
        assert all(line in report for line in lines) and explanation(run) in output
        assert all(" ".join([row[0].splitlines()[0], *row[1:]]) in output for row in rows)
        outputs += [f"# {name}", uptake_sentence(run), *lines, ""]
    snapshot("diagnosis", "\n".join(outputs))


def run_without_habit() -> Run:
    replies = dict.fromkeys(DIAGNOSIS_CONDITIONS[:4], "legal")
    knowledge = dict(zip(DIAGNOSIS_CONDITIONS[4:], (Answer("no"), Answer("yes")), strict=True))
    answers: Any = [(POOL[0], replies | knowledge)]
    return run_from_answers(answers, plan_of(1, DIAGNOSIS_CONDITIONS))


def test_the_rule_gets_no_credit_for_habits_that_only_the_placebo_adds() -> None:
    run = diagnose(primed, n=100, temperature=1.0)
    effect = run.results.diagnosis["rule_effect"].estimate
    assert run["delta"].value == 0 and effect and effect.sign > 0
    assert run.results.diagnosis["rule_effect"].answer == "Can't tell"
    assert "Its share of usual moves is" in explanation(run) and "reacts" not in explanation(run)


@pytest.mark.parametrize(
    ("low", "high", "answer"),
    [(0.1, 0.4, "No"), (0.0, 0.4, "Can't tell"), (0.3, 0.6, "Can't tell"), (0.6, 0.9, "Yes")],
)
def test_knowledge_needs_more_than_half_of_what_guessing_lacks(
    low: float, high: float, answer: str
) -> None:
    assert answer_to(Estimate((low + high) / 2, low, high, 9), KNOWS_FROM) == answer


def test_controls_are_other_positions_with_a_move_legal_under_all_rule_sets() -> None:
    """Habits: usual, forbidden by the change or the placebo, newly legal, always legal."""

    def respond(request: Body) -> str:
        moves = moves_in(request)
        board, always = board_after(moves), legal_under_both(moves)
        before = {move.uci() for move in board.legal_moves}
        after = {move.uci() for move in BISHOPS_AS_KNIGHTS.legal_moves(board)}
        standard = before - {*always, USUAL[moves]}
        habits = [{USUAL[moves]}, standard - after, standard & after, after - before]
        return ([*map(sorted, habits), always][checksum(moves) % 5] or always)[0]

    run = diagnose(respond, n=10)
    sampled = {sample.item.subject for sample in run.samples}
    controls = positions_of(run.controls)
    assert len({position.moves for position in controls} - sampled) == len(run.samples) == 10
    for sample, position in zip(run.controls, controls, strict=True):
        assert position.usual[0] in legal_under_both(position.moves)
        assert tuple(sample.replies) == CONTROL_CONDITIONS


def test_a_diagnosis_sends_only_missing_requests(home: Path) -> None:
    with serving_in_process(UPSET_BY_ANY_CHANGE) as server:
        plain_spec = Spec("m", server.url, n=N, temperature=0.0, wording="plain")
        spec = replace(plain_spec, diagnose=True)
        plain = evaluate(plain_spec, quiet=True)
        before = len(server.requests)
        assert estimate(spec).requests == 6 * N
        diagnosed = evaluate(spec, quiet=True)
        assert plain.results.estimates == diagnosed.results.estimates  # it changes none
        assert len(server.requests) - before == PROBES + 6 * N
        assert estimate(spec).requests == 0
        for file in home.glob("answers.sqlite*"):
            file.unlink()
        run = evaluate(spec, quiet=True)
    assert [c.item for c in run.controls] == [c.item for c in diagnosed.controls]
