"""Trials to requests, and answers to samples."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import chess

from ..game.position import Position
from ..game.rules import Rules
from ..providers.base import Answer, Request
from .conditions import ASKED_OF_CONTROLS
from .scorer import names_special, outcome_of
from .spill import Answers
from .types import CHANGED_CONDITION, Condition, Plan, Reading, Sample, ScoredAnswer

interned = cache(ScoredAnswer)
"""One of each kind: there are few, for many answers."""


@dataclass(frozen=True)
class Trial:
    """A position to be asked; ``number`` tells repeated askings of the same questions apart."""

    position: Position
    number: int

    def asks(self, conditions: Iterable[Condition]) -> Iterator[Request]:
        """The position under every condition."""
        for condition in conditions:
            question = condition.question(self.position)
            yield Request(question, "measuring", condition.name, self.number)

    def sample(
        self, answers: Iterable[Answer], conditions: Sequence[Condition], reading: Reading
    ) -> Sample:
        """What the answers make of it, one for each condition."""
        names = (condition.name for condition in conditions)
        said = dict(zip(names, answers, strict=True))
        replies = _replies_of(said, self.position, conditions, reading)
        return Sample(self.position, self.number, replies, said)


def _replies_of(
    said: Answers, position: Position, conditions: Sequence[Condition], reading: Reading
) -> dict[str, ScoredAnswer]:
    change = {condition.name: condition.rules for condition in conditions}[CHANGED_CONDITION]
    return {
        condition.name: reply_of(said[condition.name], position, condition, reading, change)
        for condition in conditions
    }


def reply_of(
    answer: Answer, position: Position, condition: Condition, reading: Reading, change: Rules
) -> ScoredAnswer:
    """The answer, judged under its condition and as if given under the changed rules."""
    judgement = condition.read(answer, position, condition.rules, reading)
    under_change = judgement.outcome
    if judgement.move is not None and condition.rules != change:
        under_change = outcome_of(chess.Move.from_uci(judgement.move), position, change)
    tempted = names_special(answer.reasoning, position)
    return interned(judgement.outcome, judgement.move, under_change, tempted)


def trials_of(positions: Iterable[Position]) -> Iterator[Trial]:
    """The positions in their order, counting those that make the same questions.

    Positions with the same moves do, whatever their special moves are.
    """
    seen: Counter[tuple[str, ...]] = Counter()
    for position in positions:
        yield Trial(position, seen[position.moves])
        seen[position.moves] += 1


def trials_for(
    positions: Sequence[Position], controls: Sequence[Position], plan: Plan
) -> list[tuple[Trial, Sequence[Condition]]]:
    """Every position with all conditions of the plan, then every control with its few."""
    draws = trials_of([*positions, *controls])
    few = [each for each in plan.conditions if each.name in ASKED_OF_CONTROLS]
    conditions = [plan.conditions] * len(positions) + [tuple(few)] * len(controls)
    return list(zip(draws, conditions, strict=True))


def rescore(samples: Sequence[Sample], plan: Plan, reading: Reading) -> list[Sample]:
    """The same answers, read in another way."""
    return [
        replace(sample, replies=_replies_of(sample.answers, sample.position, conditions, reading))
        for sample in samples
        for conditions in [[each for each in plan.conditions if each.name in sample.replies]]
    ]
