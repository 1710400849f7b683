"""Turn items into requests and answers into samples; stop if too many are unusable."""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..errors import Unmeasurable
from ..habits.base import Change, Item
from ..providers.base import Answer, Request
from ..providers.request_fields import advice_on_limit
from .conditions import control_conditions
from .scorer import outcome
from .types import (
    CHANGED_CONDITION,
    STANDARD_CONDITION,
    Condition,
    Outcome,
    Plan,
    Reading,
    Sample,
    ScoredAnswer,
)


@dataclass(frozen=True)
class Trial:
    """An item to ask about under some conditions; ``number`` distinguishes repetitions."""

    item: Item
    number: int
    conditions: Sequence[Condition]

    def requests(self) -> Iterator[Request]:
        """Yield the requests about the item, one per condition."""
        for condition in self.conditions:
            question = condition.question(self.item)
            yield Request(question, "measuring", condition.name, self.number, condition.tokens)

    def sample(self, answers: Mapping[str, Answer], reading: Reading) -> Sample:
        """Score the answers, by condition."""
        change = next(c.rules for c in self.conditions if c.name == CHANGED_CONDITION)
        replies = {
            c.name: score_answer(answers[c.name], self.item, c, reading, change)
            for c in self.conditions
        }
        return Sample(self.item, self.number, replies, answers)


def score_answer(
    answer: Answer, item: Item, condition: Condition, reading: Reading, change: Change
) -> ScoredAnswer:
    """Score an answer under its condition, and as if it was given under the changed rules."""
    score = condition.read(answer, item, condition.rules, reading)
    under_change: Outcome = score.outcome
    if score.answer is not None and condition.rules != change:
        under_change = outcome(score.answer, item, change)
    return ScoredAnswer(score.outcome, score.answer, under_change)


def with_draws(items: Iterable[Item]) -> Iterator[tuple[Item, int]]:
    """Yield each item with the number of items before it that ask the same questions.

    Items with the same subject do, whatever their usual answers are.
    """
    seen: Counter[Hashable] = Counter()
    for item in items:
        yield item, seen[item.subject]
        seen[item.subject] += 1


def trials_for(items: Sequence[Item], controls: Sequence[Item], plan: Plan) -> list[Trial]:
    """Return a trial for every item, and then for every control under its conditions."""
    conditions = [plan.conditions] * len(items) + [control_conditions(plan)] * len(controls)
    drawn = with_draws([*items, *controls])
    return [Trial(*draw, each) for draw, each in zip(drawn, conditions, strict=True)]


# A run stops if more than so many of its first replies are cut off, or of its first replies under
# the standard rules unreadable. Each is checked once.
REPLIES_TO_JUDGE_CUTS, MAX_CUT_OFF = 50, 0.2
REPLIES_TO_JUDGE_READING, MAX_UNREADABLE = 40, 0.8


class FirstReplies:
    """Stops a run whose first replies are unusable, so that no more is spent on it.

    Unreadable replies count only under the standard rules. A model that falls silent when the rules
    change does not stop the run: that is a result. After the first error, all answers raise it,
    since Inspect goes on after a few samples with errors.
    """

    def __init__(self, plan: Plan) -> None:
        self._words = plan.change.its_habit.words
        self._seen = self._cut_off = self._standard = self._unreadable = 0
        self._verdict = self._last_unreadable = ""

    def observe(self, condition: Condition, answer: Answer, outcome: Outcome) -> None:
        """Count one answer, unless its condition has a token limit of its own.

        Raises:
            Unmeasurable: if too many of the first answers are unusable.
        """
        if condition.tokens:
            return
        self._seen += 1
        self._cut_off += outcome == "truncated"
        if condition.name == STANDARD_CONDITION and outcome != "error":
            self._standard += 1
            if outcome in ("unreadable", "refused"):
                self._unreadable += 1
                self._last_unreadable = answer.text[:80]
        if self._seen == REPLIES_TO_JUDGE_CUTS and self._cut_off > MAX_CUT_OFF * self._seen:
            self._verdict = (
                f"{self._cut_off} of the first {self._seen} replies were cut off before an answer "
                f"(the limit is {answer.limit:,} tokens); {advice_on_limit(answer.adjustments)}"
            )
        few_readable = self._unreadable > MAX_UNREADABLE * self._standard
        if self._standard == REPLIES_TO_JUDGE_READING and few_readable and not self._verdict:
            self._verdict = (
                f"{self._unreadable} of the first {self._standard} replies under the standard "
                f"rules contain no {self._words.answer}; the last of these was "
                f"{self._last_unreadable!r}. If its server is set up as it should be, "
                f"{self._words.hopeless}"
            )
        if self._verdict:
            raise Unmeasurable(self._verdict)

    def observe_sample(self, sample: Sample, conditions: Iterable[Condition]) -> None:
        """Count the answers of a sample."""
        for condition in conditions:
            outcome = sample.replies[condition.name].outcome
            self.observe(condition, sample.answers[condition.name], outcome)
