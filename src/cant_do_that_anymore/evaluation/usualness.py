"""How usual a special move is among people: in per cent, as the embedded network finds it likely.

For the positions of the shipped pools that is known (`tools/make_usual.py`), so that a page of the
usual runs needs no network.
"""

from collections.abc import Sequence
from functools import cache

from ..game.position import DATA, Position, shipped_pool

Key = tuple[tuple[str, ...], tuple[str, ...]]

POOLS = ("pool", "diagonal")
KNOWN = "usual.bin"
"""A byte for each position of those pools, in their order."""


def usualness(positions: Sequence[Position]) -> list[int]:
    """The per cent of each position's special moves, rounded down.

    Raises:
        Problem: if the network is needed and cannot be read.
    """
    known = _known()
    unknown = [position for position in positions if _key(position) not in known]
    found = known | dict(zip(map(_key, unknown), read_usualness(unknown), strict=True))
    return [found[_key(position)] for position in positions]


def read_usualness(positions: Sequence[Position]) -> list[int]:
    """The same from the network itself."""
    if not positions:
        return []
    from ..models.pocket import likelihoods_of  # loads the network and its runtime

    return [
        int(100 * likely) for likely in likelihoods_of([_key(position) for position in positions])
    ]


@cache
def _known() -> dict[Key, int]:
    positions = (position for pool in POOLS for position in shipped_pool(pool))
    return dict(zip(map(_key, positions), (DATA / KNOWN).read_bytes(), strict=True))


def _key(position: Position) -> Key:
    return position.moves, position.special_moves
