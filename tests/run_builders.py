"""Build runs from given answers or outcomes, without a model."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice
from typing import Any

import chess

from cant_do_that_anymore import Answer, Position, Rules, shipped_pool
from cant_do_that_anymore.comparison.entries import pool_runs
from cant_do_that_anymore.comparison.pairwise import PairComparison, check_comparable, compared
from cant_do_that_anymore.datasets.storage import Dataset
from cant_do_that_anymore.game.rules import BISHOPS_AS_KNIGHTS, STANDARD
from cant_do_that_anymore.metrics.compute import compute
from cant_do_that_anymore.metrics.notes import notes_on
from cant_do_that_anymore.providers.base import Settings, StopReason
from cant_do_that_anymore.runs.results import Run
from cant_do_that_anymore.task.conditions import conditions_for
from cant_do_that_anymore.task.prompts import DEFAULT
from cant_do_that_anymore.task.samples import score_answer, trials_of
from cant_do_that_anymore.task.scorer import outcome_of
from cant_do_that_anymore.task.types import (
    CHANGED_CONDITION,
    STANDARD_CONDITION,
    Outcome,
    Plan,
    Sample,
)

Said = Answer | Outcome
"""An answer that is to be judged, or the outcome alone."""
Asked = tuple[Position, Mapping[str, Said]]
"""A position, and what was said under each condition."""
Play = Outcome | Sequence[Outcome] | Callable[[int], Outcome]
"""An outcome for every position, one for each, or a function of its number."""

POOL = shipped_pool("pool")


def plan_of(
    wanted: int = 1000,
    names: Sequence[str] = (STANDARD_CONDITION, CHANGED_CONDITION),
    change: Rules = BISHOPS_AS_KNIGHTS,
    **fields: Any,
) -> Plan:
    """A plan under the default wording, with other fields where they are given."""
    plan = Plan(
        eval="all",
        change=change,
        wordings=(DEFAULT.name,),
        conditions=conditions_for(names, change, DEFAULT),
        reading="lenient",
        settings=Settings(),
        select_effort=None,
        wanted=wanted,
    )
    return replace(plan, **fields)


def with_other_forbidden_moves(n: int) -> list[Position]:
    """The first positions of the pool where the change forbids more than the special move."""
    return list(islice((p for p in POOL if _others(p)), n))


def _others(position: Position) -> bool:
    board = position.board()
    forbids = (BISHOPS_AS_KNIGHTS.forbids(board, move) for move in board.legal_moves)
    return sum(forbids) > 1


def samples_of(asked: Sequence[Asked], plan: Plan) -> list[Sample]:
    """What was said about the positions, judged as the conditions of the plan are."""
    draws = trials_of(position for position, _ in asked)
    conditions = {condition.name: condition for condition in plan.conditions}
    return [
        Sample(
            draw.position,
            draw.number,
            {
                name: _reply(answer, draw.position, conditions[name], plan.reading, plan.change)
                for name, answer in answers.items()
            },
            answers,
        )
        for draw, (_, said) in zip(draws, asked, strict=True)
        for answers in [_answers(said, draw.position, list(conditions), plan.change)]
    ]


def run_of(
    asked: Sequence[Asked],
    plan: Plan | None = None,
    of_controls: Sequence[Asked] = (),
    **fields: Any,
) -> Run:
    """A run of a model that said this; other fields where they are given."""
    plan = plan or plan_of(len(asked))
    samples, controls = samples_of(asked, plan), samples_of(of_controls, plan)
    results = compute(samples, plan, controls)
    usual: dict[str, Any] = {
        "model": "some/model",
        "version": "model-1",
        "endpoint": "",
        "identity": {"name": "some/model"},
        "dataset": Dataset("model-1", "shipped"),
        "notes": notes_on(samples, results, plan, controls),
        "started_at": "2026-01-01T00:00:00Z",
        "seconds": 1.0,
        "seconds_now": 1.0,
    }
    told = {"samples": samples, "controls": controls, "results": results}
    return Run(plan=plan, **usual | told | fields)


def played(
    model: str = "some/model",
    after: Play = "special",
    before: Play = "special",
    positions: Sequence[Position] = POOL[:200],
    *,
    settings: Settings | None = None,
    plan: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Run:
    """A run of a model with these outcomes under the changed and the standard rules.

    There are as many samples as outcomes where these are listed, else as many as positions.
    ``plan`` has other fields of the plan, ``fields`` those of the run.
    """
    listed = [len(play) for play in (after, before) if isinstance(play, list | tuple)]
    asked = [
        (
            position,
            {
                STANDARD_CONDITION: _outcome(before, number),
                CHANGED_CONDITION: _outcome(after, number),
            },
        )
        for number, position in enumerate(positions[: min(listed, default=None)])
    ]
    given = {"settings": settings or Settings()} | dict(plan or {})
    usual = {"model": model, "version": model, "identity": {"name": model}}
    return run_of(asked, plan_of(len(asked), **given), **usual | fields)


@cache  # so that equal runs are made once
def keeps(percent: int, otherwise: Outcome = "adapted", first: int = 0) -> Callable[[int], Outcome]:
    """The habit in so many of a hundred positions, counted from the first one given."""
    return lambda number: "special" if (number - first) % 100 < percent else otherwise


def _outcome(play: Play, number: int) -> Outcome:
    if callable(play):
        return play(number)
    return play if isinstance(play, str) else play[number]


def comparisons_of(runs: Sequence[Run]) -> list[PairComparison]:
    """Every pair of models in every measure, in the order of the runs."""
    check_comparable(runs)
    [comparisons] = compared([pool_runs(runs)])
    return comparisons


_reply = cache(score_answer)  # many tests ask about the same positions


def _answers(
    said: Mapping[str, Said], position: Position, names: Sequence[str], change: Rules
) -> dict[str, Answer]:
    told = {name: said[name] for name in names if name in said}
    return {
        name: each if isinstance(each, Answer) else _answer(each, position, change)
        for name, each in told.items()
    }


@cache
def _answer(outcome: Outcome, position: Position, change: Rules) -> Answer:
    """One that is judged so, under the changed rules at least."""
    if outcome in _WITHOUT_MOVE:
        return Answer("", _WITHOUT_MOVE[outcome], version="model-1")
    board = position.board()
    legal = dict.fromkeys((*STANDARD.legal_moves(board), *change.legal_moves(board)))
    moves = [chess.Move.from_uci(uci) for uci in position.special_moves]
    moves += [*legal, chess.Move.from_uci("a1h7")]  # which no piece can play
    named = next(move for move in moves if outcome_of(move, position, change) == outcome)
    return Answer(named.uci(), version="model-1")


_WITHOUT_MOVE: dict[Outcome, StopReason] = {
    "unreadable": "stop",
    "truncated": "length",
    "refused": "refused",
    "error": "error",
}
