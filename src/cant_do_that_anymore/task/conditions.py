"""The table of conditions: how each one asks about a position.

A run asks every position under the conditions that its plan lists. The first is the baseline, under
which a model shows its habits.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache, partial

from ..errors import InvalidInput, unknown_value
from ..game.position import Position
from ..game.rules import STANDARD, Rules, placebo_of
from ..providers.base import Message, Question, Role
from ..providers.request_variants import with_user_turn
from .knowledge import ANSWERS, MOVE, allowed_move, answers_for, forbidden_move, judge_knowledge
from .prompts import DEFAULT, Wording
from .scorer import judge
from .types import (
    CHANGED_CONDITION,
    STANDARD_CONDITION,
    Condition,
    QueriedMove,
    Renderer,
    Scorer,
)

PLACEBO, REMINDED = "placebo", "reminded"
KNOWS_FORBIDDEN, KNOWS_ALLOWED = QUESTIONS = ("knows_forbidden", "knows_allowed")
"""Of knowledge: is a special move legal, and is one that the changed rules allow?"""
ASKED = (STANDARD_CONDITION, CHANGED_CONDITION, PLACEBO, REMINDED, *QUESTIONS)
"""What every position is asked under."""
ASKED_OF_CONTROLS = (STANDARD_CONDITION, CHANGED_CONDITION, PLACEBO)


def render_turns(condition: Condition, position: Position) -> tuple[Message, ...]:
    """The task, then the moves so far turn by turn, and what the condition adds to the last.

    The side to move is the assistant and the other side the user, so the last turn is the user's.
    """
    roles: tuple[Role, Role] = ("assistant", "user")
    to_move = len(position.moves) % 2
    turns = (_turn(roles[(ply - to_move) % 2], move) for ply, move in enumerate(position.moves))
    messages = (_turn("system", condition.text), *turns)
    return (
        with_user_turn(messages, added) if (added := suffix_for(position, condition)) else messages
    )


@lru_cache(maxsize=8192)
def _turn(role: Role, content: str) -> Message:
    """The same moves come in many positions."""
    return Message(role, content)


def suffix_for(position: Position, condition: Condition) -> str:
    """What the user's last turn ends with, beside the move."""
    if not condition.about:
        return condition.added
    about = condition.about(position, condition.rules)
    return condition.added.replace(MOVE, about).replace(ANSWERS, answers_for(position))


@dataclass(frozen=True)
class ConditionTemplate:
    """How a condition is made for a change of the rules.

    Attributes:
        rules: the rules in force, by the change.
        text: the task, by the wording and the change.
        added: what the user's last turn ends with, by both.
        about: the move whose legality is asked, if that is the question.
        show: how the position is shown.
        read: how the reply is read.
    """

    rules: Callable[[Rules], Rules]
    text: Callable[[Wording, Rules], str]
    added: Callable[[Wording, Rules], str] = lambda *_: ""
    about: QueriedMove | None = None
    show: Renderer = render_turns
    read: Scorer = judge


def _changed(change: Rules) -> Rules:
    return change


def _placebo_text(wording: Wording, change: Rules) -> str:
    return wording.changed_prompt(placebo_of(change), ", the placebo of a diagnosis")


def _asking(about: QueriedMove) -> ConditionTemplate:
    """The question whether a move is legal under the changed rules."""
    return ConditionTemplate(
        _changed,
        Wording.changed_prompt,
        added=lambda wording, _: wording.question,
        about=about,
        read=partial(judge_knowledge, about),
    )


CONDITIONS: dict[str, ConditionTemplate] = {
    STANDARD_CONDITION: ConditionTemplate(lambda _: STANDARD, lambda wording, _: wording.standard),
    CHANGED_CONDITION: ConditionTemplate(_changed, Wording.changed_prompt),
    PLACEBO: ConditionTemplate(placebo_of, _placebo_text),
    REMINDED: ConditionTemplate(_changed, Wording.changed_prompt, added=Wording.reminder_prompt),
    KNOWS_FORBIDDEN: _asking(forbidden_move),
    KNOWS_ALLOWED: _asking(allowed_move),
}


def conditions_for(names: Iterable[str], change: Rules, wording: Wording) -> tuple[Condition, ...]:
    """The conditions of those names.

    Raises:
        InvalidInput: if one is unknown, or the wording does not fit it.
    """
    return tuple(
        condition_named(
            name, kind.rules(change), kind.text(wording, change), kind.added(wording, change)
        )
        for name in names
        for kind in [_kind(name)]
    )


def question(
    position: Position, rules: Rules, condition: str = CHANGED_CONDITION, wording: Wording = DEFAULT
) -> Question:
    """The question about a position under a condition, as a run with these changed rules asks it.

    Raises:
        InvalidInput: as `conditions_for` does.
    """
    (found,) = conditions_for([condition], rules, wording)
    return found.question(position)


def condition_named(name: str, rules: Rules, text: str, added: str = "") -> Condition:
    """The condition of that name with these rules and these texts."""
    kind = _kind(name)
    return Condition(name, rules, text, kind.show, kind.read, added, kind.about)


def _kind(name: str) -> ConditionTemplate:
    if name not in CONDITIONS:
        raise unknown_value("condition", name, CONDITIONS)
    return CONDITIONS[name]


def check(names: tuple[str, ...]) -> None:
    """Refuse conditions that make no run.

    Raises:
        InvalidInput: if one is unknown, or they do not begin with the standard and the changed one,
            or repeat.
    """
    for name in names:
        _kind(name)
    if names[:2] != (STANDARD_CONDITION, CHANGED_CONDITION) or len(set(names)) < len(names):
        raise InvalidInput(
            f"the conditions of a run are {STANDARD_CONDITION!r}, {CHANGED_CONDITION!r} and "
            f"others, not {names!r}"
        )
