"""Turn items into requests and answers into samples; stop if too many are unusable."""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..errors import Incomplete
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
    """An item to ask about; ``number`` distinguishes repetitions of the same questions."""

    item: Item
    number: int

    def requests(self, conditions: Iterable[Condition]) -> Iterator[Request]:
        """Yield the requests about the item, one per condition."""
        for condition in conditions:
            question = condition.question(self.item)
            yield Request(
                question, "measuring", condition.name, self.number, tokens=condition.tokens
            )

    def sample(
        self, answers: Iterable[Answer], conditions: Sequence[Condition], reading: Reading
    ) -> Sample:
        """Build the sample from the answers, one per condition."""
        by_name = {c.name: answer for c, answer in zip(conditions, answers, strict=True)}
        change = next(c.rules for c in conditions if c.name == CHANGED_CONDITION)
        replies = {
            c.name: score_answer(by_name[c.name], self.item, c, reading, change) for c in conditions
        }
        return Sample(self.item, self.number, replies, by_name)


def score_answer(
    answer: Answer, item: Item, condition: Condition, reading: Reading, change: Change
) -> ScoredAnswer:
    """Score an answer under its condition, and as if it was given under the changed rules."""
    score = condition.read(answer, item, condition.rules, reading)
    under_change: Outcome = score.outcome
    if score.answer is not None and condition.rules != change:
        under_change = outcome(score.answer, item, change)
    return ScoredAnswer(score.outcome, score.answer, under_change)


def trials_of(items: Iterable[Item]) -> Iterator[Trial]:
    """Yield a trial per item, numbering those that ask the same questions.

    Items with the same subject do, whatever their usual answers are.
    """
    seen: Counter[Hashable] = Counter()
    for item in items:
        yield Trial(item, seen[item.subject])
        seen[item.subject] += 1


def trials_for(
    items: Sequence[Item], controls: Sequence[Item], plan: Plan
) -> list[tuple[Trial, Sequence[Condition]]]:
    """Return every item with all conditions, then every control with its conditions."""
    trials = trials_of([*items, *controls])
    conditions = [plan.conditions] * len(items) + [control_conditions(plan)] * len(controls)
    return list(zip(trials, conditions, strict=True))


# A run stops if more than so many of its first replies are cut off, or of its first replies under
# the standard rules unreadable. Each is checked once.
REPLIES_TO_JUDGE_CUTS, MAX_CUT_OFF = 50, 0.2
REPLIES_TO_JUDGE_READING, MAX_UNREADABLE = 40, 0.8


class FirstReplies:
    """Stops a run whose first replies are unusable, so that no more is spent on it.

    Unreadable replies count only under the baseline condition. A model that falls silent when the
    rules change does not stop the run: that is a result. After the first error, all answers raise
    it, since Inspect goes on after a few samples with errors.
    """

    def __init__(self, plan: Plan) -> None:
        self._words = plan.change.its_habit.words
        self._seen = self._cut_off = self._standard = self._unreadable = 0
        self._verdict = self._last_unreadable = ""

    def observe_sample(self, sample: Sample, conditions: Sequence[Condition]) -> None:
        """Count the answers of a sample, but those to requests with a token limit of their own.

        Raises:
            Incomplete: as `observe` does.
        """
        for condition in conditions:
            if not condition.tokens:
                usable = sample.replies[condition.name].usable
                is_baseline = condition.name == STANDARD_CONDITION
                self.observe(sample.answers[condition.name], usable=usable, baseline=is_baseline)

    def observe(self, answer: Answer, *, usable: bool, baseline: bool) -> None:
        """Count one answer, and whether it was usable.

        Raises:
            Incomplete: if too many of the first answers are unusable.
        """
        is_cut_off = answer.stop_reason == "length" and not usable
        self._seen += 1
        self._cut_off += is_cut_off
        if baseline and not answer.error:
            self._standard += 1
            if not usable and not is_cut_off:
                self._unreadable += 1
                self._last_unreadable = answer.text[:80]
        if self._seen == REPLIES_TO_JUDGE_CUTS and self._cut_off > MAX_CUT_OFF * self._seen:
            self._verdict = (
                f"{self._cut_off} of the first {self._seen} replies were cut off before an answer "
                f"(the limit is {answer.limit:,} tokens); {advice_on_limit(answer.adjustments)}"
            )
        is_last = self._standard == REPLIES_TO_JUDGE_READING and not self._verdict
        if is_last and self._unreadable > MAX_UNREADABLE * self._standard:
            self._verdict = (
                f"{self._unreadable} of the first {self._standard} replies under the standard "
                f"rules contain no {self._words.answer}; the last of these was "
                f"{self._last_unreadable!r}. "
                f"If its server is set up as it should be, {self._words.hopeless}"
            )
        if self._verdict:
            raise Incomplete(self._verdict)
