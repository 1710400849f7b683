"""Rules of chess: the standard ones, and a catalogue of changes, one entry each."""

from itertools import permutations

from ...errors import unknown
from .base import STANDARD, Rules, Standard, board_after, check_takes_away, copy_as
from .restrictions import KnightsCannotJump, NoCastling, PawnsOneStep
from .swaps import PLURALS, PieceSwap

__all__ = [
    "BISHOPS_AS_KNIGHTS",
    "CATALOGUE",
    "STANDARD",
    "PieceSwap",
    "Rules",
    "Standard",
    "board_after",
    "check_takes_away",
    "copy_as",
    "rules_named",
]

CATALOGUE: dict[str, Rules] = {
    rules.key: rules
    for rules in (
        STANDARD,
        *(PieceSwap(piece, like) for piece, like in permutations(PLURALS, 2)),
        NoCastling(),
        PawnsOneStep(),
        KnightsCannotJump(),
    )
}
BISHOPS_AS_KNIGHTS = CATALOGUE["bishops-as-knights"]


def rules_named(key: str) -> Rules:
    """Look up rules by key.

    Raises:
        BadInput: if the catalogue has no such key.
    """
    if key not in CATALOGUE:
        raise unknown("rules", key, CATALOGUE)
    return CATALOGUE[key]
