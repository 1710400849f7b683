"""Trials to requests, and answers to samples."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import chess

from ..game.position import Position
from ..game.rules import Rules
from ..providers.base import Answer, Request
from .conditions import control_conditions
from .scorer import names_special, outcome_of
from .spill import Answers
from .types import CHANGED_CONDITION, Condition, Plan, Reading, Sample, ScoredAnswer


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
        conditions = [each for each in plan.conditions if each.name in sample.replies]
        replies = _score_answers(sample.answers, sample.position, conditions, reading)
        rescored.append(replace(sample, replies=replies))
    return rescored
