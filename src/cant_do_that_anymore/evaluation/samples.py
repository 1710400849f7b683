"""From positions to questions, and from answers to samples."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import chess

from ..game.position import Position
from ..game.rules import Rules
from ..models.asks import Ask
from ..models.model import Answer
from .diagnosis import ASKED_OF_CONTROLS
from .judging import names_special, outcome_of
from .vocabulary import AFTER, Condition, Plan, Reading, Reply, Sample


@dataclass(frozen=True)
class Draw:
    """A position to be asked; ``number`` tells repeated askings of the same questions apart."""

    position: Position
    number: int

    def asks(self, conditions: Iterable[Condition]) -> Iterator[Ask]:
        """The position under every condition."""
        for condition in conditions:
            question = condition.question(self.position)
            yield Ask(question, "measuring", condition.name, self.number)

    def sample(
        self, answers: Iterable[Answer], conditions: Sequence[Condition], reading: Reading
    ) -> Sample:
        """What the answers make of it, one for each condition."""
        change = {condition.name: condition.rules for condition in conditions}[AFTER]
        replies = {
            condition.name: reply_of(answer, self.position, condition, reading, change)
            for condition, answer in zip(conditions, answers, strict=True)
        }
        return Sample(self.position, self.number, replies)


def reply_of(
    answer: Answer, position: Position, condition: Condition, reading: Reading, change: Rules
) -> Reply:
    """The answer, judged under its condition and as if given under the changed rules."""
    judgement = condition.read(answer, position, condition.rules, reading)
    under_change = judgement.outcome
    if judgement.move is not None and condition.rules != change:
        under_change = outcome_of(chess.Move.from_uci(judgement.move), position, change)
    return Reply(answer, judgement, under_change, names_special(answer.reasoning, position))


def draws_of(positions: Iterable[Position]) -> Iterator[Draw]:
    """The positions in their order, counting those that make the same questions.

    Positions with the same moves do, whatever their special moves are.
    """
    seen: Counter[tuple[str, ...]] = Counter()
    for position in positions:
        yield Draw(position, seen[position.moves])
        seen[position.moves] += 1


def asked_of(
    positions: Sequence[Position], controls: Sequence[Position], plan: Plan
) -> list[tuple[Draw, Sequence[Condition]]]:
    """Every position with all conditions of the plan, then every control with its few."""
    draws = draws_of([*positions, *controls])
    few = [each for each in plan.conditions if each.name in ASKED_OF_CONTROLS]
    conditions = [plan.conditions] * len(positions) + [tuple(few)] * len(controls)
    return list(zip(draws, conditions, strict=True))


def reread(samples: Sequence[Sample], plan: Plan, reading: Reading) -> list[Sample]:
    """The same answers, read in another way."""
    return [
        Draw(sample.position, sample.draw).sample(
            (sample.replies[condition.name].answer for condition in conditions), conditions, reading
        )
        for sample in samples
        for conditions in [[each for each in plan.conditions if each.name in sample.replies]]
    ]
