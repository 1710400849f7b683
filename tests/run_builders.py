"""Build runs from given answers or outcomes, without a model."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from cant_do_that_anymore import Answer, Position, Rules, Spec, shipped_pool
from cant_do_that_anymore.datasets.storage import Dataset
from cant_do_that_anymore.habits.base import Change, Item
from cant_do_that_anymore.habits.chess.rules import BISHOPS_AS_KNIGHTS, STANDARD
from cant_do_that_anymore.metrics.compute import compute
from cant_do_that_anymore.metrics.notes import notes_on
from cant_do_that_anymore.providers.base import REPLY_TOKENS, Settings, StopReason
from cant_do_that_anymore.providers.bundled import RandomModel
from cant_do_that_anymore.runs.run import Run
from cant_do_that_anymore.task.plan import plan_for
from cant_do_that_anymore.task.samples import score_answer, with_draws
from cant_do_that_anymore.task.scorer import outcome
from cant_do_that_anymore.task.types import Outcome, Plan, Sample

AnswerOrOutcome = Answer | Outcome
"""An answer to be scored, or just its outcome."""
PositionAnswers = tuple[Position, Mapping[str, AnswerOrOutcome]]
"""A position with an answer for each condition."""
OutcomeFunction = Callable[[int], Outcome]
Outcomes = Outcome | Sequence[Outcome] | OutcomeFunction
"""One outcome for all positions, one for each, or a function of a position's number."""

POOL = shipped_pool("pool")


def plan_of(
    wanted: int = 1000,
    names: Sequence[str] = ("standard", "changed"),
    change: Rules = BISHOPS_AS_KNIGHTS,
    **fields: Any,
) -> Plan:
    """A plan with the default wording, and with other fields if given."""
    spec = Spec(conditions=tuple(names), rules=change, wording="plain", seed=0)
    return replace(plan_for(spec, RandomModel.info), wanted=wanted, **fields)


def samples_of(answers: Sequence[PositionAnswers], plan: Plan) -> list[Sample]:
    """Samples with these answers, scored under the conditions of the plan."""
    samples = []
    drawn = with_draws(position for position, _ in answers)
    for (item, draw), (position, given) in zip(drawn, answers, strict=True):
        conditions = [condition for condition in plan.conditions if condition.name in given]
        by_condition = {c.name: _answer(given[c.name], position, plan.change) for c in conditions}
        replies = {
            c.name: _scored(by_condition[c.name], position, c, plan.reading, plan.change)
            for c in conditions
        }
        samples.append(Sample(item, draw, replies, by_condition))
    return samples


def run_from_answers(
    answers: Sequence[PositionAnswers],
    plan: Plan | None = None,
    controls: Sequence[PositionAnswers] = (),
    **fields: Any,
) -> Run:
    """A run with these answers, and with other fields if given."""
    plan = plan or plan_of(len(answers))
    samples, control_samples = samples_of(answers, plan), samples_of(controls, plan)
    results = compute(samples, control_samples, plan)
    defaults: dict[str, Any] = {
        "model": "some/model",
        "version": "model-1",
        "endpoint": "",
        "identity": {"name": "some/model"},
        "options": {},
        "dataset": Dataset("model-1", "shipped"),
        "notes": notes_on(samples, control_samples, results, plan),
        "started_at": "2026-01-01T00:00:00Z",
        "seconds": 1.0,
    }
    computed = {"samples": samples, "controls": control_samples, "results": results}
    return Run(plan=plan, **defaults | computed | fields)


def run_with_outcomes(
    model: str = "some/model",
    changed: Outcomes = "usual",
    standard: Outcomes = "usual",
    positions: Sequence[Position] = POOL[:200],
    *,
    settings: Settings | None = None,
    plan: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Run:
    """A run of a model with these outcomes under the changed and the standard rules.

    There is a sample for each outcome in a list, otherwise for each position. ``plan`` has other
    fields of the plan, ``fields`` those of the run.
    """
    sizes = [len(each) for each in (changed, standard) if isinstance(each, list | tuple)]
    answers: list[PositionAnswers] = [
        (position, {"standard": _outcome(standard, number), "changed": _outcome(changed, number)})
        for number, position in enumerate(positions[: min(sizes, default=None)])
    ]
    plan_fields = {"settings": settings or Settings()} | dict(plan or {})
    defaults = {"model": model, "version": model, "identity": {"name": model}}
    return run_from_answers(answers, plan_of(len(answers), **plan_fields), **defaults | fields)


@cache  # so that equal runs are made once
def keeps_habit_in(percent: int, otherwise: Outcome = "adapted", first: int = 0) -> OutcomeFunction:
    """The habit in this percentage of positions, counted from the number ``first``."""
    return lambda number: "usual" if (number - first) % 100 < percent else otherwise


def _outcome(outcomes: Outcomes, number: int) -> Outcome:
    if callable(outcomes):
        return outcomes(number)
    return outcomes if isinstance(outcomes, str) else outcomes[number]


_scored: Any = cache(score_answer)  # many tests use the same positions


def _answer(given: AnswerOrOutcome, item: Item, change: Change) -> Answer:
    """The answer itself, or one that has this outcome, at least under the changed rules."""
    if isinstance(given, Answer):
        return given
    if given in _WITHOUT_MOVE:
        return Answer("", _WITHOUT_MOVE[given], version="model-1", limit=REPLY_TOKENS)
    assert isinstance(item, Position) and isinstance(change, Rules)
    return Answer(_move(given, item, change), version="model-1", limit=REPLY_TOKENS)


@cache
def _move(wanted: Outcome, position: Position, change: Rules) -> str:
    board = position.board()
    legal = dict.fromkeys((*STANDARD.legal_moves(board), *change.legal_moves(board)))
    moves = [*position.usual, *(move.uci() for move in legal), "a1h7"]  # no piece makes the last
    return next(move for move in moves if outcome(move, position, change) == wanted)


_WITHOUT_MOVE: dict[Outcome, StopReason] = {
    "unreadable": "stop",
    "truncated": "length",
    "refused": "refused",
    "error": "error",
}
