"""Turn positions into requests and answers into samples; stop if too many are unusable."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import chess

from ..errors import Incomplete
from ..game.position import Position
from ..game.rules import Rules
from ..providers.base import Answer, Request
from ..providers.request_fields import advice_on_limit
from .conditions import control_conditions
from .scorer import names_special, outcome_of
from .types import (
    CHANGED_CONDITION,
    STANDARD_CONDITION,
    Answers,
    Condition,
    Plan,
    Reading,
    Sample,
    ScoredAnswer,
)


@cache
def interned(reply: ScoredAnswer) -> ScoredAnswer:
    """Return the first of all equal scores: many answers have few distinct ones."""
    return reply


@dataclass(frozen=True)
class Trial:
    """A position to ask about; ``number`` distinguishes repetitions of the same questions."""

    position: Position
    number: int

    def requests(self, conditions: Iterable[Condition]) -> Iterator[Request]:
        """Yield the requests about the position, one per condition."""
        for condition in conditions:
            question = condition.question(self.position)
            yield Request(
                question, "measuring", condition.name, self.number, tokens=condition.tokens
            )

    def sample(
        self, answers: Iterable[Answer], conditions: Sequence[Condition], reading: Reading
    ) -> Sample:
        """Build the sample from the answers, one per condition."""
        names = (condition.name for condition in conditions)
        answers_by_name = dict(zip(names, answers, strict=True))
        replies = _score_answers(answers_by_name, self.position, conditions, reading)
        return Sample(self.position, self.number, replies, answers_by_name)


def _score_answers(
    answers: Answers, position: Position, conditions: Sequence[Condition], reading: Reading
) -> dict[str, ScoredAnswer]:
    change = {condition.name: condition.rules for condition in conditions}[CHANGED_CONDITION]
    return {
        condition.name: score_answer(answers[condition.name], position, condition, reading, change)
        for condition in conditions
    }


def score_answer(
    answer: Answer, position: Position, condition: Condition, reading: Reading, change: Rules
) -> ScoredAnswer:
    """Score an answer under its condition, and as if it was given under the changed rules."""
    score = condition.read(answer, position, condition.rules, reading)
    under_change = score.outcome
    if score.move is not None and condition.rules != change:
        under_change = outcome_of(chess.Move.from_uci(score.move), position, change)
    thought_of_special = names_special(answer.reasoning, position)
    return interned(ScoredAnswer(score.outcome, score.move, under_change, thought_of_special))


def trials_of(positions: Iterable[Position]) -> Iterator[Trial]:
    """Yield a trial per position, numbering those that ask the same questions.

    Positions with the same moves do, whatever their special moves are.
    """
    seen: Counter[tuple[str, ...]] = Counter()
    for position in positions:
        yield Trial(position, seen[position.moves])
        seen[position.moves] += 1


def trials_for(
    positions: Sequence[Position], controls: Sequence[Position], plan: Plan
) -> list[tuple[Trial, Sequence[Condition]]]:
    """Return every position with all conditions, then every control with its conditions."""
    trials = trials_of([*positions, *controls])
    conditions = [plan.conditions] * len(positions) + [control_conditions(plan)] * len(controls)
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

    def __init__(self) -> None:
        self._seen = self._cut_off = self._standard = self._unreadable = 0
        self._verdict = ""

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
        self._verdict = self._verdict or self._judge(answer, usable=usable, baseline=baseline)
        if self._verdict:
            raise Incomplete(self._verdict)

    def _judge(self, answer: Answer, *, usable: bool, baseline: bool) -> str:
        """Count one answer, and return why the run should stop, if it should."""
        is_cut_off = answer.stop_reason == "length" and not usable
        self._seen += 1
        self._cut_off += is_cut_off
        if self._seen == REPLIES_TO_JUDGE_CUTS and self._cut_off > MAX_CUT_OFF * self._seen:
            return (
                f"{self._cut_off} of the first {self._seen} replies were cut off before an answer "
                f"(the limit is {answer.limit:,} tokens); {advice_on_limit(answer.adjustments)}"
            )
        if not baseline or answer.error:
            return ""
        self._standard += 1
        self._unreadable += not usable and not is_cut_off
        is_last = self._standard == REPLIES_TO_JUDGE_READING
        if is_last and self._unreadable > MAX_UNREADABLE * self._standard:
            return (
                f"{self._unreadable} of the first {self._standard} replies under the standard "
                f"rules contain no move; the last one was {answer.text[:80]!r}"
            )
        return ""
