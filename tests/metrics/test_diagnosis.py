"""Why a habit stays, in planted models with known numbers."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.habits.chess.rules import (
    BISHOPS_AS_KNIGHTS,
    board_after,
)
from cant_do_that_anymore.metrics.diagnosis import KNOWS_FROM, answer_to
from cant_do_that_anymore.metrics.estimates import Estimate
from cant_do_that_anymore.report.sentences import explanation, finding_sentence
from cant_do_that_anymore.runs.cost import estimate
from cant_do_that_anymore.runs.identity import PROBES
from cant_do_that_anymore.runs.run import Run
from cant_do_that_anymore.runs.storage import load_run, save_run
from cant_do_that_anymore.task.conditions import CONTROL_CONDITIONS
from loopback import queried_move
from planted_models import (
    CANNOT_STOP,
    HALF_UNREADABLE,
    IGNORES_RULE,
    NEEDS_REMINDER,
    PERFECT,
    SAYS_NO,
    SAYS_YES,
    UPSET_BY_ANY_CHANGE,
    illegal_when_reminded,
    primed,
    states_rules,
)
from testing import (
    USUAL,
    Body,
    Spec,
    checksum,
    evaluate,
    habit,
    legal_under_both,
    measure,
    moves_in,
    positions_of,
    serving_in_process,
)

N = 40
CLAIMS = re.compile(r"reacts|better than|worse than|raises|lowers|lower under|higher under")
"""What a sentence says only of an effect that is not 0."""


def diagnose(respond: Callable[[Body], str], n: int = N, **options: Any) -> Run:
    return measure(respond, **{"diagnose": True, "temperature": 0.0, "n": n} | options)


def answers_in(run: Run) -> str:
    """The answers to all questions, by initial, after checking that none claims too much."""
    for name, finding in run.results.diagnosis.items():
        estimate, sentence = finding.estimate, finding_sentence(run, name)
        claims = bool(CLAIMS.search(sentence))
        assert claims == bool(estimate and estimate.sign), sentence
        assert finding.answer == "Can't tell" or claims
        assert sentence in explanation(run)
    assert "{" not in explanation(run)
    return "".join(finding.answer[0] for finding in run.results.diagnosis.values())


def values_in(run: Run) -> list[float]:
    estimates = (finding.estimate for finding in run.results.diagnosis.values())
    return [estimate.value for estimate in estimates if estimate]


def silent_when_asked(request: Body) -> str:
    """Says nothing readable unless it is asked to move under the standard rules."""
    return "Hm." if states_rules(request) or queried_move(request) else habit(request)


@pytest.fixture(scope="module")
def upset_run() -> Run:
    return diagnose(UPSET_BY_ANY_CHANGE)


@pytest.mark.parametrize(
    ("respond", "answers", "values"),
    [
        (SAYS_YES, "CYCC", [0, 1, 0, 0]),  # the same answer to every question is no knowledge
        (SAYS_NO, "CYCC", [0, 1, 0, 0]),
        (PERFECT, "YYCC", [1, 1, 0, 0]),
        (IGNORES_RULE, "NCCC", [-1, 0, 0, 0]),
        (CANNOT_STOP, "YCCC", [1, 0, 0, 0]),
        (NEEDS_REMINDER, "YCYC", [1, 0, 1, 0]),
        (illegal_when_reminded, "YCCC", [1, 0, 0, 0]),  # illegal replies are no help
    ],
    ids=["says yes", "says no", "perfect", "ignores", "cannot stop", "forgetful", "illegal"],
)
def test_a_planted_model_gets_the_right_answers(
    respond: Callable[[Body], str], answers: str, values: list[float]
) -> None:
    run = diagnose(respond, n=24)
    assert (answers_in(run), values_in(run)) == (answers, values)


def test_a_model_upset_by_any_change_does_not_seem_to_follow_the_rule(upset_run: Run) -> None:
    """The prompt change alone makes it drop habits, forbidden or not."""
    share = mean(bool(checksum(p.moves) // 2 % 4) for p in positions_of(upset_run.controls))
    assert answers_in(upset_run) == "NCCY"
    assert values_in(upset_run) == pytest.approx([-1, 0, 0, -share])
    assert upset_run["rule_uptake"].sign > 0
    assert "Other habits suffer, too: where the usual move stays legal" in explanation(upset_run)


def test_nothing_is_said_of_replies_that_cannot_be_read() -> None:
    run = diagnose(silent_when_asked)
    assert answers_in(run) == "CCCC"
    assert explanation(run).count("cannot be judged: 100% of the replies are unusable.") == 3
    half = diagnose(HALF_UNREADABLE)
    readable = half.results.outcomes["knows_allowed"]["right"]
    assert 0 < readable < N and answers_in(half) == "CCCC"
    estimate = half.results.diagnosis["knowledge"].estimate
    assert estimate and estimate.value == readable / N
    assert estimate.low is not None and estimate.low < 2 * estimate.value - 1
    assert estimate.high == 1


def test_the_rule_gets_no_credit_for_habits_that_only_the_placebo_adds() -> None:
    run = diagnose(primed, n=100, temperature=1.0)
    effect = run.results.diagnosis["rule_effect"].estimate
    assert run["delta"].value == 0 and effect and effect.sign > 0
    assert run.results.diagnosis["rule_effect"].answer == "Can't tell"
    assert explanation(run).startswith("Its share of usual moves is")
    assert "reacts" not in explanation(run)


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


def test_a_diagnosis_sends_only_missing_requests(upset_run: Run, home: Path) -> None:
    with serving_in_process(UPSET_BY_ANY_CHANGE) as server:
        plain_spec = Spec("m", server.url, n=N, temperature=0.0, wording="plain")
        spec = replace(plain_spec, diagnose=True)
        plain = evaluate(plain_spec, quiet=True).results
        assert plain.estimates == upset_run.results.estimates  # a diagnosis changes none
        before = len(server.requests)
        assert estimate(spec).requests == 6 * N
        evaluate(spec, quiet=True)
        assert len(server.requests) - before == PROBES + 6 * N
        assert estimate(spec).requests == 0
        for file in home.glob("answers.sqlite*"):
            file.unlink()
        run = evaluate(spec, quiet=True)
    assert [c.item for c in run.controls] == [c.item for c in upset_run.controls]


def test_lost_controls_are_refused(upset_run: Run, tmp_path: Path) -> None:
    save_run(upset_run, tmp_path / "run")
    file = tmp_path / "run" / "controls.jsonl"
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(InvalidInput, match=rf"controls.jsonl' \(it has {N - 1} of {N}"):
        load_run(tmp_path / "run")
