"""Rules of chess: the standard ones, and a catalogue of changes, one entry each."""

from itertools import permutations

from ...errors import InvalidInput, unknown_value
from .base import STANDARD, Rules, Standard, board_after, check_forbids_something, copy_as, move_on
from .custom import check_key, digest_of
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
    "check_forbids_something",
    "copy_as",
    "given_rules",
    "identity_of",
    "move_on",
    "placebo_of",
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
        InvalidInput: if the catalogue has no such key.
    """
    if key not in CATALOGUE:
        raise unknown_value("rules", key, CATALOGUE)
    return CATALOGUE[key]


def given_rules(given: Rules | str) -> Rules:
    """Rules by key, or rules of one's own.

    Raises:
        InvalidInput: if there are none of that key, or those given cannot be told from others by
            it.
    """
    if isinstance(given, str):
        return rules_named(given)
    if not isinstance(given, Rules):
        raise InvalidInput(
            f"rules are a key (see cdta rules) or a value such as MyRule(), not {given!r}"
        )
    check_key(given)
    if CATALOGUE.get(given.key, given) != given:
        raise InvalidInput(
            f"the key {given.key!r} is one of the catalogue: give your rules another"
        )
    return given


def placebo_of(rules: Rules) -> Rules:
    """The change that a placebo states: that of the rules, or else that nobody castles.

    >>> placebo_of(BISHOPS_AS_KNIGHTS).statement[:43]
    'All rooks now move exactly as knights do. R'
    """
    return rules.placebo or NoCastling()


def identity_of(rules: Rules) -> str:
    """What answers, files and folders know rules by: the key, if they are in the catalogue.

    Rules of one's own may become others under the same key, so theirs goes with a digest of them.
    """
    known = CATALOGUE.get(rules.key) == rules
    return rules.key if known else f"{rules.key}-{digest_of(rules)}"
