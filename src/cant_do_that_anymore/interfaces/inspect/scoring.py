"""How Inspect scores a sample."""

from typing import Any, get_args

from inspect_ai.scorer import Score, Scorer, Target, scorer
from inspect_ai.solver import TaskState

from ...errors import InvalidInput, UserError, unknown_value
from ...game.notation import written
from ...game.position import Position
from ...game.rules import rules_named
from ...metrics.measures import UNUSABLE
from ...metrics.thinking import TOKENS, tokens
from ...metrics.types import one_each
from ...providers.base import Answer
from ...task.conditions import conditions_for
from ...task.prompts import DEFAULT
from ...task.samples import Trial
from ...task.types import UNUSABLE_OUTCOMES, Reading, Sample
from .metrics import CONTROL, DRAW, FIRST, GAME, MEASURES, MOVES, habit_metrics, whole_of
from .models import one_sentence

ASKED_HOW = "asked_how"
"""Key of a sample's store: under which rules it was asked, and how replies are read."""
NEVER_ASKED = Answer("", stop_reason="error", error="never asked")


@scorer(metrics=[habit_metrics()])
def habit(rules: str | None = None, reading: Reading | None = None) -> Scorer:
    """Whether the special move was played, under the standard rules and under the changed ones.

    Args:
        rules: those that the answers were given under; any others are refused.
        reading: how replies are read; by default as when they were given.
    """
    if reading not in (None, *get_args(Reading)):
        with one_sentence():
            raise unknown_value("reading", str(reading), get_args(Reading))

    async def score(state: TaskState, target: Target) -> Score:
        with one_sentence():
            how = _asked_how(state, rules)
        change = rules_named(how["rules"])
        conditions = conditions_for(how["conditions"], change, DEFAULT)  # the wording is read over
        answers = [_answer_in(state.store.get(condition.name)) for condition in conditions]
        draw = Trial(position_in(state.metadata), state.metadata[DRAW])
        sample = draw.sample(answers, conditions, reading or how["reading"])
        if not sample.answered:
            error = next(answer.error for answer in answers if answer.stop_reason == "error")
            return Score.unscored(reason="no_response", explanation=error)
        said = _said(sample)
        return Score(
            value=_values(sample, control=CONTROL in state.metadata),
            answer=" / ".join(said.values()),
            explanation="\n\n".join(
                f"**{condition.rules.title if len(conditions) == 2 else condition.name}:** "
                f"{said[condition.name]} is {sample.replies[condition.name].outcome}"
                for condition in conditions
            ),
            metadata={
                **{f"{name}_outcome": reply.outcome for name, reply in sample.replies.items()},
                **_thinking_tokens(sample),
            },
        )

    return score


def _asked_how(state: TaskState, rules: str | None) -> dict[str, Any]:
    """How the sample was asked.

    Raises:
        InvalidInput: if its answers were given under other rules than these.
        UserError: if it was not asked by our solver.
    """
    how: dict[str, Any] | None = state.store.get(ASKED_HOW)
    if how is None:
        raise UserError(
            "nothing was asked under both rule sets: the scorer habit reads the answers that "
            "the solver every_condition gets, so leave out --solver"
        )
    if rules not in (None, how["rules"]):
        raise InvalidInput(
            f"these answers were given under {how['rules']}, so they cannot be scored under "
            f"{rules!r}: leave out -S rules"
        )
    return how


def position_in(metadata: dict[str, Any]) -> Position:
    """The position a sample is about."""
    moves, special_moves = tuple(metadata[MOVES]), tuple(metadata["special_moves"])
    return Position(metadata[GAME], moves, special_moves, metadata["source"])


def _answer_in(stored: dict[str, Any] | None) -> Answer:
    return Answer.from_json(stored) if stored else NEVER_ASKED


def _values(sample: Sample, *, control: bool) -> dict[str, str | int | float | bool | None]:
    """The part of every measure, and its whole where that is not every sample."""
    thinks = any(answer.is_thoughtful for answer in sample.answers.values())
    measures = [
        m
        for m in MEASURES.values()
        if m.of_controls == control
        and set(m.needs) <= sample.replies.keys()
        and (thinks or not m.optional)
    ]
    parts = {measure.name: int(measure.part(sample)) for measure in measures}
    wholes = {whole_of(m): int(m.whole(sample)) for m in measures if m.whole is not one_each}
    junk = (
        {}
        if control
        else {
            name: int(sample.replies[condition].outcome in UNUSABLE_OUTCOMES)
            for condition, name in UNUSABLE.items()
        }
    )
    first = {name: parts[name] for name in FIRST if name in parts}
    return {**first, **parts, **junk, **wholes}


def _thinking_tokens(sample: Sample) -> dict[str, int]:
    """How long it thought, by condition; nothing of a sample without thoughts."""
    found = {TOKENS[name]: tokens(name, sample) for name in TOKENS if name in sample.replies}
    return found if any(found.values()) else {}


def _said(sample: Sample) -> dict[str, str]:
    board = sample.position.board()
    return {
        name: written(board, reply.move) if reply.move else repr(sample.answers[name].text[:40])
        for name, reply in sample.replies.items()
    }
