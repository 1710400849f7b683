"""Pools of positions: the original's, those of the bundled games, and those of the datasets."""

import json
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

from ...errors import InvalidInput, unknown_value
from ...files import DATA, OWNER_ONLY, atomic_write, file_errors, home
from ...progress import progress
from ..base import DIGEST_LENGTH, Pool, digest_of_pool
from .position import Position, position_lines, shipped_pool, trusted_positions
from .rule_pool import GAME_LENGTH, POOL_SIZE, POOL_VERSION, positions_in_games
from .rules import BISHOPS_AS_KNIGHTS, PieceSwap, Rules

log = logging.getLogger(__name__)

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
    if name == DIAGONAL and not has_shipped:
        raise InvalidInput(_no_engine_games(rules))
    if name == DIAGONAL or (has_shipped and not name):
        return _shipped(name or "pool")
    if name == COMMON:
        if not has_shipped:
            raise InvalidInput(
                f"the pool {COMMON!r} is for {BISHOPS_AS_KNIGHTS.key}, not for {rules.key}; leave "
                "out --pool"
            )
        return Pool(COMMON, common_positions(), user_chosen=True, label=COMMON)
    if name not in ("", GAMES):
        raise unknown_value("pool", name, [COMMON, GAMES])
    label = GAMES if has_shipped else ""
    return Pool(GAMES, _mined(rules, quiet=quiet), True, user_chosen=bool(name), label=label)


@cache
def _shipped(name: str) -> Pool:
    """Return a shipped pool, always the same object: its digest and order take 15 ms."""
    return Pool(SHIPPED, shipped_pool(name))


def shipped_games() -> dict[str, list[int]]:
    """Return the games of the shipped datasets, by model version."""
    games: dict[str, list[int]] = json.loads((DATA / "datasets.json").read_text(encoding="utf-8"))
    return games


def common_positions() -> list[Position]:
    """Return the shipped pool's positions that at least one of the shipped datasets holds."""
    games = set().union(*shipped_games().values())
    return [position for position in shipped_pool("pool") if position.game in games]


def _no_engine_games(rules: Rules) -> str:
    """Explain why there are no games played under the rules, and what to do."""
    reason = "all_diagonal needs games played under the changed rules"
    if not isinstance(rules, PieceSwap):
        return f"{reason}, and no standard engine plays {rules.key}; use --eval all"
    return f"{reason}; pass positions of such games with --pool FILE, or use --eval all"


def _mined(rules: Rules, *, quiet: bool) -> Sequence[Position]:
    """Return the pool for these rules from the bundled games, mined once and then cached.

    Raises:
        InvalidInput: if the rules forbid no move of any game.
        UserError: if the pool cannot be saved.
    """
    folder, key = home() / "pools", f"{rules.identity}.{POOL_VERSION}"
    if positions := _cached(folder, key):
        return positions
    with progress(f"mining a pool for {rules.key}", POOL_SIZE, quiet=quiet) as advance:
        for position in positions_in_games(rules):
            positions.append(position)
            advance()
    if not positions:
        raise InvalidInput(
            f"{rules.key} forbids no move of the bundled games, which have up to "
            f"{GAME_LENGTH} plies; give another --pool"
        )
    lines = b"".join(position_lines(positions))
    path = folder / f"{key}.{digest_of_pool(lines)}.jsonl"
    with file_errors("save the pool in", path):
        folder.mkdir(OWNER_ONLY, exist_ok=True)
        with atomic_write(path) as file:
            file.write(lines)
    return positions


def _cached(folder: Path, key: str) -> list[Position]:
    """Return the cached pool if it is intact: its file name ends in its digest."""
    files = list(folder.glob(f"{key}.{'?' * DIGEST_LENGTH}.jsonl"))
    for path in files:
        with suppress(OSError, KeyError, ValueError):
            lines = path.read_bytes()
            if path.stem.endswith(digest_of_pool(lines)):
                return trusted_positions(lines)
    if files:
        log.warning("the pool %s is damaged and is mined again", files[0])
    return []


def renumbered(new: Sequence[Position], existing: Sequence[Position]) -> list[Position]:
    """Give new positions other game numbers where theirs already mean another game.

    Positions of one game extend each other. Files of different origin may both number from 0.
    """
    longest: dict[int, tuple[str, ...]] = {}
    for position in existing:
        longest[position.game] = max(longest.get(position.game, ()), position.moves, key=len)
    free = max((abs(game) for game in (*longest, *(p.game for p in new))), default=0) + 1
    numbers: dict[int, int] = {}
    for position in new:
        by_length = sorted((longest.get(position.game, ()), position.moves), key=len)
        if by_length[1][: len(by_length[0])] != by_length[0]:
            numbers.setdefault(position.game, free + len(numbers))
    return [replace(p, game=numbers.get(p.game, p.game)) for p in new]
