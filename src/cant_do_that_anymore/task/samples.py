"""Turn positions into requests and answers into samples; stop if too many are unusable."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import log

import chess

from ..errors import Incomplete
from ..game.position import Position
from ..game.rules import Rules
from ..providers.base import Answer, Request, Settings
from ..providers.request_variants import limit_of
from .conditions import control_conditions
from .scorer import names_special, outcome_of
from .types import CHANGED_CONDITION, Answers, Condition, Plan, Reading, Sample, ScoredAnswer


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


def rescore(samples: Sequence[Sample], plan: Plan, reading: Reading) -> list[Sample]:
    """Score the same answers again with another reading."""
    rescored = []
    for sample in samples:
        conditions = [c for c in plan.conditions if c.name in sample.replies]
        replies = _score_answers(sample.answers, sample.position, conditions, reading)
        rescored.append(replace(sample, replies=replies))
    return rescored


MIN_ANSWERS_TO_JUDGE = 20
# A sequential probability ratio test, which allows for a look after every reply: a run with up to
# a fifth of its replies spoiled is stopped with a chance of at most 1%.
MAX_SPOILED, CLEARLY_SPOILED, MAX_FALSE_STOPS = 0.2, 0.3, 0.01
MAX_UNREADABLE = 0.8


class QualityGuard:
    """Counts answers that are cut off, empty or unreadable.

    Empty and unreadable answers count only under the baseline condition. So a model that falls
    silent when the rules change does not stop the run: that is a result.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._seen = self._cut_off = self._empty = self._standard = self._unreadable = 0
        self._cut_off_text = ""

    def observe(self, answer: Answer, *, usable: bool, baseline: bool) -> None:
        """Count one answer, and whether it was usable.

        Raises:
            Incomplete: if too many of the answers so far are unusable.
        """
        cut_off = answer.stop_reason == "length" and not usable
        empty = answer.stop_reason == "stop" and not answer.text.strip() and baseline
        self._seen += 1
        self._cut_off += cut_off
        if cut_off:
            self._cut_off_text = answer.text
        self._empty += empty
        if baseline and answer.stop_reason != "error":
            self._standard += 1
            self._unreadable += not usable
        spoiled = self._cut_off + self._empty
        if self._seen >= MIN_ANSWERS_TO_JUDGE and _too_many(spoiled, self._seen):
            raise Incomplete(f"{spoiled} of the first {self._seen} replies {self._why(answer)}")
        enough = self._standard >= 2 * MIN_ANSWERS_TO_JUDGE
        if enough and self._unreadable > MAX_UNREADABLE * self._standard:
            raise Incomplete(
                f"{self._unreadable} of the first {self._standard} replies under the standard "
                f"rules contain no move; the last one was {answer.text[:80]!r}"
            )

    def _why(self, answer: Answer) -> str:
        """Describe what is wrong with the answers, and what to do about it."""
        if not self._cut_off:
            reasoning = "" if answer.text.strip() else answer.reasoning
            example = f"; the last one was reasoning only: {reasoning[:80]!r}" if reasoning else ""
            return f"were empty without reaching a token limit{example}"
        state = f"empty ({self._empty}) or cut off" if self._empty else "cut off"
        limit = self._limit_to_raise(answer)
        if not self._cut_off_text.strip():
            return f"were {state} before a move; raise {limit}"
        return (
            f"were {state} and begin without a move, such as {self._cut_off_text[:80]!r}; try "
            f"another --wording, or raise {limit} if a move would follow"
        )

    def _limit_to_raise(self, answer: Answer) -> str:
        """Return the option whose limit cuts such answers off."""
        limit = limit_of(answer.conceded, self._settings)
        if limit > self._settings.max_tokens:
            return f"--reasoning-tokens (now {limit - self._settings.max_tokens:,})"
        return f"--max-tokens (now {self._settings.max_tokens})"


def _too_many(spoiled: int, seen: int) -> bool:
    """Whether clearly more than `MAX_SPOILED` of the replies are spoiled."""
    evidence = spoiled * log(CLEARLY_SPOILED / MAX_SPOILED)
    evidence += (seen - spoiled) * log((1 - CLEARLY_SPOILED) / (1 - MAX_SPOILED))
    return evidence > -log(MAX_FALSE_STOPS)
