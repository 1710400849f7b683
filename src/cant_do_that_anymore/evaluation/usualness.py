"""How usual a special move is among people: in per cent, as the embedded network finds it likely.

For the positions of the shipped pools that is known (`tools/make_usual.py`), so that a page of the
usual runs needs no network.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from struct import Struct

from ..game.position import DATA, Position

KNOWN = "usual.bin"
"""For each position of those pools the bytes of its id, and one for the per cent."""
_ENTRY = Struct("6sB")


def usualness(positions: Sequence[Position]) -> list[int]:
    """The per cent of each position's special moves, rounded down.

    Raises:
        UserError: if the network is needed and cannot be read.
    """
    known = _known()
    unknown = {each.id: each for each in positions if each.id not in known}
    found = known | dict(zip(unknown, read_usualness(unknown.values()), strict=True))
    return [found[position.id] for position in positions]


def read_usualness(positions: Iterable[Position]) -> list[int]:
    """The same from the network itself."""
    games = [(position.moves, position.special_moves) for position in positions]
    if not games:
        return []
    from ..providers.pocket import likelihoods_of  # loads the network and its runtime

    return [int(100 * likely) for likely in likelihoods_of(games)]


def packed(known: dict[str, int]) -> bytes:
    """The per cent by id as the shipped file holds them."""
    return b"".join(_ENTRY.pack(bytes.fromhex(id_), known[id_]) for id_ in sorted(known))


@cache
def _known() -> dict[str, int]:
    entries = _ENTRY.iter_unpack((DATA / KNOWN).read_bytes())
    return {id_.hex(): per_cent for id_, per_cent in entries}
