"""The types of the task: condition, plan, scored answer, sample."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from ..habits.base import AnswerOutcome, Change, Form, Item
from ..providers.base import Answer, Effort, Question, Settings
from .prompts import ANSWERS, LEGAL_MOVES, QUERIED, Prompt, answers_for, choice_for

Eval = Literal["all", "all_small", "all_diagonal"]
Reading = Literal["lenient", "exact"]
YesNoOutcome = Literal["right", "wrong"]
Unusable = Literal["unreadable", "truncated", "refused", "error"]
Outcome = Literal[AnswerOutcome, YesNoOutcome, Unusable]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
LEGAL_OUTCOMES: frozenset[Outcome] = frozenset(("adapted", "legal"))
UNUSABLE_OUTCOMES: frozenset[Outcome] = frozenset(get_args(Unusable))

# The two conditions of every run: standard rules, and one rule changed.
STANDARD_CONDITION, CHANGED_CONDITION = "standard", "changed"


@dataclass(frozen=True, slots=True)
class Score:
    """The outcome of a reply, and the answer that it gives if one could be read."""

    outcome: Outcome
    answer: str | None

    @property
    def usable(self) -> bool:
        """Whether the answer could be read."""
        return self.outcome not in UNUSABLE_OUTCOMES


Scorer = Callable[[Answer, Item, Change, Reading], Score]
QueriedAnswer = Callable[[Item, Change], str]


@dataclass(frozen=True)
class Condition:
    """A prompt for items, with the rules in force and the scorer.

    Attributes:
        name: the key of its scored answers.
        rules: the rules in force.
        prompts: its texts, one per wording of the run.
        read: scores an answer.
        about: returns the answer that is in question; None if the model is to answer itself.
        form: how the item is shown.
        tokens: the token limit of its replies, if that is more than the run's.
        label: what it does, in sentences.
        asks: what it asks for, in the report.
    """

    name: str
    rules: Change
    prompts: tuple[Prompt, ...]
    read: Scorer
    about: QueriedAnswer | None
    form: Form
    tokens: int = 0
    label: str = field(default="", compare=False)
    asks: str = field(default="", compare=False)

    def prompt(self, item: Item) -> Prompt:
        """Return the texts for an item, in the wording that it gets."""
        return self.prompts[choice_for(item, len(self.prompts))]

    def question(self, item: Item) -> Question:
        """Return the prompt for an item."""
        about = self.about(item, self.rules) if self.about else ""
        messages = self.prompt(item).messages(item, self.suffix(item), self.form)
        return Question(self.rules, item, messages, about)

    def suffix(self, item: Item) -> str:
        """Return what the user's last turn ends with, after the item."""
        added = self.prompt(item).added
        if LEGAL_MOVES in added:
            added = added.replace(LEGAL_MOVES, ", ".join(self.rules.guesses(item)) or "none")
        if not self.about:
            return added
        about = self.about(item, self.rules)
        for placeholder in QUERIED:
            added = added.replace(placeholder, about)
        return added.replace(ANSWERS, answers_for(item))

    @property
    def outcomes(self) -> list[Outcome]:
        """The outcomes that an answer can have; none comes from a change that is not made."""
        never = get_args(AnswerOutcome if self.about else YesNoOutcome)
        if self.rules == self.rules.standard:
            never += ("forbidden", "adapted")
        return [outcome for outcome in OUTCOMES if outcome not in never]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Everything that decides whether scores are comparable.

    Attributes:
        reading: how replies are read.
        select_effort: the reasoning effort used when building the dataset.
        wanted: how many items.
        change: the changed rules.
        wordings: the names of the prompt texts; each item gets one of them, by its id.
        conditions: the conditions of every item.
        interventions: the names of those of them that are interventions.
        selection: the condition that selects items, if it is not the first of these.
    """

    eval: Eval
    reading: Reading
    settings: Settings
    select_effort: Effort | None
    wanted: int
    change: Change
    wordings: tuple[str, ...]
    conditions: tuple[Condition, ...]
    interventions: tuple[str, ...] = ()
    selection: Condition | None = field(default=None, compare=False)

    @property
    def baseline(self) -> Condition:
        """The condition under which the model shows its habits."""
        return self.selection or self.conditions[0]

    @property
    def form(self) -> Form:
        """How items are shown."""
        return self.conditions[0].form

    @property
    def has_default_form(self) -> bool:
        """Whether items are shown in the default form of their habit."""
        return self.form is self.change.its_habit.form

    def wording_of(self, item: Item) -> str:
        """Return the name of the wording that an item gets."""
        return self.wordings[choice_for(item, len(self.wordings))]


@dataclass(frozen=True, slots=True)
class ScoredAnswer(Score):
    """An answer's score under its condition and under the changed rules.

    ``under_change`` is the outcome of the same answer under the changed rules.
    """

    under_change: Outcome


@dataclass(frozen=True, slots=True)
class Sample:
    """An item and its scored answers, one per condition.

    ``draw`` numbers samples that repeat the same questions. ``answers`` are the model's, also one
    per condition.
    """

    item: Item
    draw: int
    replies: Mapping[str, ScoredAnswer]
    answers: Mapping[str, Answer]

    @property
    def answered(self) -> bool:
        """Whether every request got an answer; only such samples enter the metrics."""
        return all(reply.outcome != "error" for reply in self.replies.values())

    @property
    def had_habit(self) -> bool:
        """Whether the model gave the usual answer under the standard rules."""
        return self.replies[STANDARD_CONDITION].outcome == "usual"

    @property
    def kept_habit(self) -> bool:
        """Whether the model gave the usual answer under the changed rules."""
        return self.replies[CHANGED_CONDITION].outcome == "usual"


Samples = Sequence[Sample]


def answers_of(samples: Iterable[Sample]) -> Iterator[Answer]:
    """Yield all answers of the samples."""
    return (answer for sample in samples for answer in sample.answers.values())
