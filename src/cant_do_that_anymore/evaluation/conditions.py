"""The ways of asking about a position: one entry each.

A run asks every position under the conditions that its plan lists. The first is the baseline, under
which a model shows its habits.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

from ..errors import BadInput, unknown
from ..game.position import Position
from ..game.rules import STANDARD, Rules
from ..models.model import Message, Role
from .judging import judge
from .vocabulary import AFTER, BEFORE, Condition, Read, Show
from .wordings import Wording


def as_turns(position: Position, text: str) -> tuple[Message, ...]:
    """The task, then the moves so far turn by turn.

    The side to move is the assistant and the other side the user, so the last turn is the user's.
    """
    roles: tuple[Role, Role] = ("assistant", "user")
    to_move = len(position.moves) % 2
    turns = (_turn(roles[(ply - to_move) % 2], move) for ply, move in enumerate(position.moves))
    return (_turn("system", text), *turns)


@lru_cache(maxsize=8192)
def _turn(role: Role, content: str) -> Message:
    """The same moves come in many positions."""
    return Message(role, content)


@dataclass(frozen=True)
class Kind:
    """How a condition is made for a change of the rules.

    Attributes:
        rules: the rules in force, by the change.
        text: the task, by the wording and the change.
        show: how the position is shown.
        read: how the reply is read.
    """

    rules: Callable[[Rules], Rules]
    text: Callable[[Wording, Rules], str]
    show: Show = as_turns
    read: Read = judge


CONDITIONS: dict[str, Kind] = {
    BEFORE: Kind(lambda _: STANDARD, lambda wording, _: wording.standard),
    AFTER: Kind(lambda change: change, lambda wording, change: wording.stating(change)),
}


def conditions_for(names: Iterable[str], change: Rules, wording: Wording) -> tuple[Condition, ...]:
    """The conditions of those names.

    Raises:
        BadInput: if one is unknown, or the wording does not fit it.
    """
    return tuple(
        condition_named(name, _kind(name).rules(change), _kind(name).text(wording, change))
        for name in names
    )


def condition_named(name: str, rules: Rules, text: str) -> Condition:
    """The condition of that name with these rules and this text."""
    kind = _kind(name)
    return Condition(name, rules, text, kind.show, kind.read)


def _kind(name: str) -> Kind:
    if name not in CONDITIONS:
        raise unknown("condition", name, CONDITIONS)
    return CONDITIONS[name]


def check(names: tuple[str, ...]) -> None:
    """Refuse conditions that make no run.

    Raises:
        BadInput: if they do not begin with the standard and the changed one, or repeat.
    """
    if names[:2] != (BEFORE, AFTER) or len(set(names)) < len(names):
        raise BadInput(
            f"the conditions of a run are {BEFORE!r}, {AFTER!r} and others, not {names!r}"
        )
