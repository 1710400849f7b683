"""From positions to questions, and from answers to samples."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..game.position import Position
from ..models.asking import Ask
from ..models.model import Answer
from .vocabulary import Condition, Plan, Reading, Reply, Sample


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
        self, answers: Iterable[Answer], conditions: Iterable[Condition], reading: Reading
    ) -> Sample:
        """What the answers make of it, one for each condition."""
        replies = {
            condition.name: Reply(
                answer, condition.read(answer, self.position, condition.rules, reading)
            )
            for condition, answer in zip(conditions, answers, strict=True)
        }
        return Sample(self.position, self.number, replies)


def draws_of(positions: Iterable[Position]) -> Iterator[Draw]:
    """The positions in their order, counting those that make the same questions.

    Positions with the same moves do, whatever their special moves are.
    """
    seen: Counter[tuple[str, ...]] = Counter()
    for position in positions:
        yield Draw(position, seen[position.moves])
        seen[position.moves] += 1


def reread(samples: Sequence[Sample], plan: Plan, reading: Reading) -> list[Sample]:
    """The same answers, read in another way."""
    return [
        Draw(sample.position, sample.draw).sample(
            (sample.replies[condition.name].answer for condition in plan.conditions),
            plan.conditions,
            reading,
        )
        for sample in samples
    ]
