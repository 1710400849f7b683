"""The types of the task: condition, plan, scored answer, sample."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Literal, get_args

from ..game.position import Position
from ..game.rules import Rules
from ..providers.base import Answer, Effort, Message, Question, Settings
from .spill import Answers, Spilled

Eval = Literal["all", "all_small", "all_diagonal"]
Reading = Literal["lenient", "exact"]
OfMove = Literal["special", "forbidden", "adapted", "legal", "illegal"]
OfKnowledge = Literal["right", "wrong"]
Unusable = Literal["unreadable", "truncated", "refused", "error"]
Outcome = Literal[OfMove, OfKnowledge, Unusable]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
LEGAL_OUTCOMES: frozenset[Outcome] = frozenset(("adapted", "legal"))
FORBIDDEN_OUTCOMES: frozenset[Outcome] = frozenset(("special", "forbidden"))
UNUSABLE_OUTCOMES: frozenset[Outcome] = frozenset(get_args(Unusable))

STANDARD_CONDITION, CHANGED_CONDITION = "standard", "changed"
"""The two conditions of every run: the rules as they always were, and with one change."""


@dataclass(frozen=True, slots=True)
class Score:
    """What an answer was: the outcome, and the move in UCI if one could be read."""

    outcome: Outcome
    move: str | None

    @property
    def usable(self) -> bool:
        """Whether it told what was asked for."""
        return self.outcome not in UNUSABLE_OUTCOMES


Renderer = Callable[["Condition", Position], tuple[Message, ...]]
Scorer = Callable[[Answer, Position, Rules, Reading], Score]
QueriedMove = Callable[[Position, Rules], str]


@dataclass(frozen=True)
class Condition:
    """One way of asking about a position.

    Attributes:
        name: what its replies go by.
        rules: the rules in force.
        text: the task, as the model is told it.
        show: from itself and a position to a conversation.
        read: from an answer to what it was.
        added: what the user's last turn ends with.
        about: by the position, the move whose legality is asked; None where a move is asked for.
    """

    name: str
    rules: Rules
    text: str
    show: Renderer
    read: Scorer
    added: str
    about: QueriedMove | None

    def question(self, position: Position) -> Question:
        """The position under this condition."""
        about = self.about(position, self.rules) if self.about else ""
        return Question(self.rules, position.moves, self.show(self, position), about)

    @property
    def outcomes(self) -> list[Outcome]:
        """What an answer can be."""
        never = get_args(OfMove if self.about else OfKnowledge)
        return [outcome for outcome in OUTCOMES if outcome not in never]


INCIDENTAL = {"incidental": True}
"""Marks what may differ between runs that are compared."""


@dataclass(frozen=True)
class Plan:
    """Everything that makes scores comparable or not.

    Attributes:
        change: the changed rules.
        wording: the name of the texts.
        conditions: what each position is asked under; the first is the baseline of selection.
        wanted: how many samples.
        select_effort: how much the model was asked to think when its habits were found.
        precision: how far the interval of the impact factor may reach from the value, either way;
            then the run stops, and ``wanted`` are the most. None for all that are wanted.
    """

    eval: Eval
    change: Rules
    wording: str
    conditions: tuple[Condition, ...]
    reading: Reading
    settings: Settings
    wanted: int = field(metadata=INCIDENTAL)
    select_effort: Effort | None = None
    precision: float | None = field(default=None, metadata=INCIDENTAL)

    @property
    def baseline(self) -> Condition:
        """The condition under which the model shows its habits."""
        return self.conditions[0]

    def differences(self, other: "Plan") -> list[str]:
        """The names of everything that differs and could make scores differ."""
        return _differing(self, other)


def _differing(one: object, other: object) -> list[str]:
    names: list[str] = []
    for each in fields(one):  # type: ignore[arg-type]
        mine, yours = getattr(one, each.name), getattr(other, each.name)
        if mine == yours or each.metadata.get("incidental"):
            continue
        names += _differing(mine, yours) if isinstance(mine, Settings) else [each.name]
    return [name.replace("_", " ") for name in names]


@dataclass(frozen=True, slots=True)
class ScoredAnswer(Score):
    """All that was made of an answer.

    ``under_change`` is what the same move would be under the changed rules, and
    ``thought_of_special`` whether the thoughts before it name a special move.
    """

    under_change: Outcome
    thought_of_special: bool = False


@dataclass(frozen=True, slots=True)
class Sample:
    """A position and its replies, one for each condition.

    ``draw`` tells samples apart that ask the same questions again; ``said`` are the answers, or
    where they lie.
    """

    position: Position
    draw: int
    replies: Mapping[str, ScoredAnswer]
    said: Answers | Spilled

    @property
    def answers(self) -> Answers:
        """What the model said, by condition."""
        return self.said.read() if isinstance(self.said, Spilled) else self.said

    @property
    def answered(self) -> bool:
        """Whether every question got an answer; only such samples enter the measures."""
        return all(reply.outcome != "error" for reply in self.replies.values())

    def plays_special(self, condition: str) -> bool:
        """Whether the special move was played under that condition."""
        return self.replies[condition].outcome == "special"

    @property
    def had_habit(self) -> bool:
        """Whether it was played under the standard rules."""
        return self.plays_special(STANDARD_CONDITION)

    @property
    def kept_habit(self) -> bool:
        """Whether it was played under the changed rules."""
        return self.plays_special(CHANGED_CONDITION)

    @property
    def adapted(self) -> bool:
        """Whether the answer under the changed rules was legal under them."""
        return self.replies[CHANGED_CONDITION].outcome in LEGAL_OUTCOMES

    def breaks(self, condition: str) -> bool:
        """Whether the answer under that condition is no legal move under the changed rules."""
        return self.replies[condition].under_change not in LEGAL_OUTCOMES

    def forbids(self, condition: str) -> bool:
        """Whether the changed rules forbid it, special or not, where the standard ones do not."""
        return self.replies[condition].under_change in FORBIDDEN_OUTCOMES


def answers_of(samples: Iterable[Sample]) -> Iterator[Answer]:
    """All that was said."""
    return (answer for sample in samples for answer in sample.answers.values())
