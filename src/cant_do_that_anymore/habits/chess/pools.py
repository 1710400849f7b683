"""Pools of positions: the original's, those of the bundled games, and those of the datasets."""

import json
from collections.abc import Sequence
from contextlib import suppress

from ...errors import InvalidInput
from ...files import DATA, file_errors, home
from ...progress import progress
from ..base import Pool
from .position import Position, shipped_pool, trusted_positions, write_positions
from .rule_pool import POOL_SIZE, POOL_VERSION, positions_in_games
from .rules import BISHOPS_AS_KNIGHTS, Rules

SHIPPED = "shipped"  # the original's pool
# The positions that at least one of the shipped datasets holds, those of the bundled games, and
# those of games played under the changed rules.
COMMON, GAMES, DIAGONAL = "common", "games", "diagonal"

# How often each model of a shipped dataset plays the usual move: in the shipped pool, and in the
# positions that the datasets of the other three hold, which its habits did not choose.
RATES_ON_ALL = (1000 / 19_841, 1320 / 19_841, 1666 / 19_841, 3114 / 19_841)
RATES_ON_COMMON = (802 / 3775, 1071 / 3724, 1385 / 3692, 1731 / 2590)


def pool_named(rules: Rules, name: str, *, quiet: bool) -> Pool:
    """Return a pool by name; "" for the default of the rules. A new one is mined, in seconds.

    Raises:
        InvalidInput: if there is none of that name for these rules.
    """
    has_shipped = rules == BISHOPS_AS_KNIGHTS
    if name in (COMMON, DIAGONAL) and not has_shipped:
        raise InvalidInput(
            f"the {name} positions are for {BISHOPS_AS_KNIGHTS.key}, not for {rules.key}; use "
            "--eval all without --pool, or pass positions of such games with --pool FILE"
        )
    if name == COMMON:
        games = set().union(*shipped_games().values())
        positions = [position for position in shipped_pool("pool") if position.game in games]
        return Pool(COMMON, positions, label=COMMON)
    if name == DIAGONAL or (has_shipped and not name):
        return Pool(SHIPPED, shipped_pool(name or "pool"))
    label = GAMES if has_shipped else ""
    return Pool(GAMES, _mined(rules, quiet=quiet), shuffled=True, label=label)


def shipped_games() -> dict[str, list[int]]:
    """Return the games of the shipped datasets, by model version."""
    games: dict[str, list[int]] = json.loads((DATA / "datasets.json").read_text(encoding="utf-8"))
    return games


def _mined(rules: Rules, *, quiet: bool) -> Sequence[Position]:
    """Return the pool for these rules from the bundled games, mined once and then cached.

    Raises:
        InvalidInput: if the rules forbid no move of any game.
        UserError: if the pool cannot be saved.
    """
    path = home() / "pools" / f"{rules.identity}.{POOL_VERSION}.jsonl"
    with suppress(InvalidInput):  # not there, or damaged
        return trusted_positions(path)
    positions = []
    with progress(f"mining a pool for {rules.key}", POOL_SIZE, quiet=quiet) as advance:
        for position in positions_in_games(rules):
            positions.append(position)
            advance()
    if not positions:
        raise InvalidInput(
            f"{rules.key} forbids no move of the bundled games; give positions with --pool FILE"
        )
    with file_errors("save the pool in", path):
        write_positions(path, positions)
    return positions
