"""A dataset that is fair to several models: the positions of all their datasets, each once."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from random import Random

from ..errors import pluralize
from ..game.position import Position, checked
from ..game.rules import Rules
from .pools import given_dataset

SEED = 0


@dataclass(frozen=True)
class Union:
    """Positions of several sources.

    Attributes:
        positions: each once, in an order that depends on them alone.
        given: how many positions each source holds.
        shared: how many are in more than one source.
    """

    positions: list[Position]
    given: dict[str, int]
    shared: int

    @property
    def sentence(self) -> str:
        """How many came from where."""
        sources = ", ".join(f"{number:,} of {name}" for name, number in self.given.items())
        return (
            f"{pluralize(len(self.positions), 'position')}: {sources}; "
            f"{self.shared:,} of them in more than one"
        )


def union(names: Sequence[str], rules: Rules) -> Union:
    """The positions of datasets or files, checked under the rules.

    They are sorted by id and shuffled with a fixed seed: the same sources give the same positions
    in the same order however they are named, and no source comes first.

    Raises:
        InvalidInput: if a source is unknown, of other rules, empty or damaged.
    """
    sources = {
        name: _by_id(checked(each, rules) for each in given_dataset(name, rules).positions)
        for name in names
    }
    found: dict[str, Position] = {}
    for _, positions in sorted(sources.items()):
        new = [position for key, position in positions.items() if key not in found]
        found |= _by_id(_games_apart(new, found.values()))
    times = Counter(key for positions in sources.values() for key in positions)
    ordered = [found[key] for key in sorted(found)]
    Random(SEED).shuffle(ordered)
    given = {name: len(positions) for name, positions in sources.items()}
    return Union(ordered, given, sum(number > 1 for number in times.values()))


def _by_id(positions: Iterable[Position]) -> dict[str, Position]:
    return {position.id: position for position in positions}


def _games_apart(new: Sequence[Position], known: Iterable[Position]) -> list[Position]:
    """The new positions, whose games get other numbers where theirs mean other games already.

    Positions of one game extend each other; files of different origin may number from 0 alike.
    """
    longest: dict[int, tuple[str, ...]] = {}
    for position in known:
        longest[position.game] = max(longest.get(position.game, ()), position.moves, key=len)
    free = max((abs(game) for game in (*longest, *(p.game for p in new))), default=0) + 1
    numbers: dict[int, int] = {}
    for position in new:
        both = sorted((longest.get(position.game, ()), position.moves), key=len)
        if both[1][: len(both[0])] != both[0]:
            numbers.setdefault(position.game, free + len(numbers))
    return [replace(p, game=numbers.get(p.game, p.game)) for p in new]
