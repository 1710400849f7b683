"""The types of the task: condition, plan, scored answer, sample."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

from ..game.position import Position
from ..game.rules import Rules
from ..providers.base import Answer, Effort, Question, Settings
from .forms import Form
from .prompts import ANSWERS, LEGAL_MOVES, MOVE, Prompt, answers_for, choice_for

Eval = Literal["all", "all_small", "all_diagonal"]
Reading = Literal["lenient", "exact"]
MoveOutcome = Literal["special", "forbidden", "adapted", "legal", "illegal"]
YesNoOutcome = Literal["right", "wrong"]
Unusable = Literal["unreadable", "truncated", "refused", "error"]
Outcome = Literal[MoveOutcome, YesNoOutcome, Unusable]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
LEGAL_OUTCOMES: frozenset[Outcome] = frozenset(("adapted", "legal"))
MADE_ILLEGAL: frozenset[Outcome] = frozenset(("special", "forbidden"))
UNUSABLE_OUTCOMES: frozenset[Outcome] = frozenset(get_args(Unusable))

# The answers about one position, by condition.
Answers = Mapping[str, Answer]
# The two conditions of every run: standard rules, and one rule changed.
STANDARD_CONDITION, CHANGED_CONDITION = "standard", "changed"


@dataclass(frozen=True, slots=True)
class Score:
    """The outcome of an answer, and its move in UCI if one could be read."""

    outcome: Outcome
    move: str | None

    @property
    def usable(self) -> bool:
        """Whether the answer could be read."""
        return self.outcome not in UNUSABLE_OUTCOMES


Scorer = Callable[[Answer, Position, Rules, Reading], Score]
QueriedMove = Callable[[Position, Rules], str]


@dataclass(frozen=True)
class Condition:
    """A prompt for positions, with the rules in force and the scorer.

    Attributes:
        name: the key of its scored answers.
        rules: the rules in force.
        prompts: its texts, one per wording of the run.
        read: scores an answer.
        about: returns the move whose legality is asked; None if the model is to choose a move.
        form: how the position is shown.
        tokens: the token limit of its replies, if that is more than the run's.
        label: what it does, in sentences.
        asks: what it asks for, in the report.
    """

    name: str
    rules: Rules
    prompts: tuple[Prompt, ...]
    read: Scorer
    about: QueriedMove | None
    form: Form
    tokens: int = 0
    label: str = field(default="", compare=False)
    asks: str = field(default="", compare=False)

    def prompt(self, position: Position) -> Prompt:
        """Return the texts for a position, in the wording that it gets."""
        return self.prompts[choice_for(position, len(self.prompts))]

    def question(self, position: Position) -> Question:
        """Return the prompt for a position."""
        about = self.about(position, self.rules) if self.about else ""
        prompt = self.prompt(position)
        messages = prompt.messages(position, self.suffix(position), self.form)
        return Question(self.rules, position.moves, messages, about)

    def suffix(self, position: Position) -> str:
        """Return what the user's last turn ends with, after the move."""
        added = self.prompt(position).added
        if LEGAL_MOVES in added:
            legal = sorted(move.uci() for move in self.rules.legal_moves(position.board()))
            added = added.replace(LEGAL_MOVES, ", ".join(legal) or "none")
        if not self.about:
            return added
        move = self.about(position, self.rules)
        return added.replace(MOVE, move).replace(ANSWERS, answers_for(position))

    @property
    def outcomes(self) -> list[Outcome]:
        """The outcomes that an answer can have."""
        never = get_args(MoveOutcome if self.about else YesNoOutcome)
        return [outcome for outcome in OUTCOMES if outcome not in never]


# Marks fields that may differ between runs that are compared.
MAY_DIFFER = {"incidental": True}
# Marks fields that decide how replies are scored, and so which positions a dataset has.
SCORING = {"scoring": True}


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """The plain values of a plan, which ``run.json`` has under the same names.

    A value that `Spec` also has under its name is taken from there.

    Attributes:
        reading: how replies are read.
        wanted: how many positions.
        select_effort: the reasoning effort used when building the dataset.
    """

    eval: Eval
    reading: Reading = field(metadata=SCORING)
    settings: Settings
    select_effort: Effort | None
    wanted: int = field(metadata=MAY_DIFFER)

    @property
    def scoring(self) -> dict[str, Any]:
        """The values that decide how replies are scored, by name."""
        marked = (item.name for item in fields(self) if item.metadata.get("scoring"))
        return {name: getattr(self, name) for name in marked}


@dataclass(frozen=True, kw_only=True)
class Plan(PlanOptions):
    """Everything that decides whether scores are comparable.

    Attributes:
        change: the changed rules.
        wordings: the names of the prompt texts; each position gets one of them, by its id.
        conditions: the conditions of every position.
        interventions: the names of those of them that are interventions.
        selection: the condition that selects positions, if it is not the first of these.
    """

    change: Rules
    wordings: tuple[str, ...]
    conditions: tuple[Condition, ...]
    selection: Condition | None = field(default=None, metadata=MAY_DIFFER)
    interventions: tuple[str, ...] = ()

    @property
    def baseline(self) -> Condition:
        """The condition under which the model shows its habits."""
        return self.selection or self.conditions[0]

    @property
    def wording(self) -> str:
        """The names of the wordings."""
        return ", ".join(self.wordings)

    @property
    def form(self) -> Form:
        """How positions are shown."""
        return self.conditions[0].form

    def wording_of(self, position: Position) -> str:
        """Return the name of the wording that a position gets."""
        return self.wordings[choice_for(position, len(self.wordings))]

    def differences(self, other: "Plan") -> list[str]:
        """Return the names of all fields that differ and could change scores."""
        return _differing_fields(self, other)


def _differing_fields(first: object, second: object) -> list[str]:
    names: list[str] = []
    for item in fields(first):  # type: ignore[arg-type]
        left, right = getattr(first, item.name), getattr(second, item.name)
        if left == right or item.metadata.get("incidental"):
            continue
        names += _differing_fields(left, right) if isinstance(left, Settings) else [item.name]
    return [name.replace("_", " ") for name in names]


@dataclass(frozen=True, slots=True)
class ScoredAnswer(Score):
    """An answer's score under its condition and under the changed rules.

    ``under_change`` is the outcome of the same move under the changed rules. ``thought_of_special``
    tells whether the reasoning names a special move.
    """

    under_change: Outcome
    thought_of_special: bool = False


@dataclass(frozen=True, slots=True)
class Sample:
    """A position and its scored answers, one per condition.

    ``draw`` numbers samples that repeat the same questions. ``answers`` are the model's.
    """

    position: Position
    draw: int
    replies: Mapping[str, ScoredAnswer]
    answers: Answers

    @property
    def answered(self) -> bool:
        """Whether every request got an answer; only such samples enter the metrics."""
        return all(reply.outcome != "error" for reply in self.replies.values())

    def plays_special(self, condition: str) -> bool:
        """Whether the model played the special move under that condition."""
        return self.replies[condition].outcome == "special"

    @property
    def had_habit(self) -> bool:
        """Whether the model played the special move under the standard rules."""
        return self.plays_special(STANDARD_CONDITION)

    @property
    def kept_habit(self) -> bool:
        """Whether the model played the special move under the changed rules."""
        return self.plays_special(CHANGED_CONDITION)

    @property
    def is_legal_under_change(self) -> bool:
        """Whether the answer under the changed rules was legal under them."""
        return self.replies[CHANGED_CONDITION].outcome in LEGAL_OUTCOMES

    def breaks_changed_rules(self, condition: str) -> bool:
        """Whether the answer under that condition is not a legal move under the changed rules."""
        return self.replies[condition].under_change not in LEGAL_OUTCOMES

    def plays_forbidden(self, condition: str) -> bool:
        """Whether the move is legal under the standard rules and not under the changed ones."""
        return self.replies[condition].under_change in MADE_ILLEGAL


Samples = Sequence[Sample]


def answers_of(samples: Iterable[Sample]) -> Iterator[Answer]:
    """Yield all answers of the samples."""
    return (answer for sample in samples for answer in sample.answers.values())
