"""The rules of chess: the standard rules and a catalog of changed ones."""

from itertools import permutations

from ....errors import InvalidInput, unknown_value
from .base import STANDARD as STANDARD
from .base import Rules as Rules
from .base import board_after as board_after
from .base import copy_as as copy_as
from .base import move_on as move_on
from .custom import check_rules
from .restrictions import KnightsCannotJump, NoCastling, PawnsOneStep
from .swaps import DIRECTIONS
from .swaps import PieceSwap as PieceSwap

CATALOG: dict[str, Rules] = {
    rules.key: rules
    for rules in (
        STANDARD,
        *(PieceSwap(piece, like) for piece, like in permutations(DIRECTIONS, 2)),
        NoCastling(),
        PawnsOneStep(),
        KnightsCannotJump(),
    )
}
BISHOPS_AS_KNIGHTS = CATALOG["bishops-as-knights"]


def rules_named(key: str) -> Rules:
    """Look up rules by key.

    Raises:
        InvalidInput: if no rules have that key.
    """
    if key not in CATALOG:
        changes = (rules.key for rules in CATALOG.values() if rules.forbids_something)
        raise unknown_value("rules", key, changes)
    return CATALOG[key]


def resolve_rules(rules: Rules | str) -> Rules:
    """Return rules given by key, or user-defined rules after a check.

    Raises:
        InvalidInput: if there are no rules of that key, or user-defined rules cannot work or have
            a key of the catalog.
    """
    if isinstance(rules, str):
        return rules_named(rules)
    if not isinstance(rules, Rules):
        raise InvalidInput(
            f"rules must be a key (see cdta rules) or an object such as MyRule(), not {rules!r}"
        )
    if rules in CATALOG.values():
        return rules
    check_rules(rules)
    if rules.key in CATALOG:
        raise InvalidInput(f"the key {rules.key!r} is in the catalog; give your rules another key")
    return rules
