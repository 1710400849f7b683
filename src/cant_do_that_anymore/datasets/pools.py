"""Pools of candidate positions: shipped, mined or from a file; and the union of datasets."""

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

from ..errors import InvalidInput
from ..files import OWNER_ONLY, atomic_write, file_errors, home
from ..formatting import pluralize
from ..game.position import (
    Position,
    checked,
    position_lines,
    shipped_pool,
    trusted_positions,
)
from ..game.rule_pool import GAME_LENGTH, POOL_SIZE, POOL_VERSION, positions_in_games
from ..game.rules import BISHOPS_AS_KNIGHTS, PieceSwap, Rules, identity_of
from ..progress import progress
from ..task.option_info import COMMON, GAMES
from ..task.spec import SHIPPED, Spec
from .storage import Dataset, common_positions, dataset_named, positions_in

log = logging.getLogger(__name__)

DIAGONAL = "diagonal"
# Length of the digests that identify pools.
DIGEST_LENGTH = 12
# The pool's order is the same for all models and runs, so that datasets can only grow.
ORDER_SEED = 20_220_722
# The original eval's seed, so that runs with the same limit measure the same samples.
CUT_SEED = 123


@dataclass(frozen=True)
class Pool:
    """Positions to choose from.

    Attributes:
        shuffled: whether they are in random order already.
        user_chosen: whether the user named this pool, so that no other positions will do.
    """

    name: str
    positions: Sequence[Position]
    shuffled: bool = False
    user_chosen: bool = False

    @cached_property
    def digest(self) -> str:
        """Digest of the positions."""
        return _digest(" ".join(p.id for p in self.positions).encode())

    @cached_property
    def in_seeded_order(self) -> Sequence[Position]:
        """The positions in the order in which they are asked about."""
        if self.shuffled:
            return self.positions
        return Random(ORDER_SEED).sample(self.positions, len(self.positions))

    def display_name(self, rules: Rules) -> str:
        """Return the name for reports; "" for the default pool of these rules."""
        of_ours = self.name in (SHIPPED, GAMES, COMMON)
        name = self.name if of_ours else f"{Path(self.name).name} {self.digest}"
        return "" if name == (SHIPPED if rules == BISHOPS_AS_KNIGHTS else GAMES) else name


def positions_for(spec: Spec, *, quiet: bool = False) -> Dataset | Pool:
    """Return the dataset of a run that needs no selection, or else the pool to select from.

    A pool that is used for the first time is mined, which takes seconds.
    """
    if spec.dataset:
        return given_dataset(spec.dataset, spec.change)
    pool = _pool_for(spec, quiet=quiet)
    if spec.eval != "all_diagonal":
        return pool
    return Dataset("", pool.name, list(pool.positions))


def _pool_for(spec: Spec, *, quiet: bool) -> Pool:
    """Return the pool: from a file, the original's, or that of the bundled games."""
    change, of_games = spec.change, str(spec.pool) == GAMES
    if str(spec.pool) == COMMON:
        return Pool(COMMON, common_positions(), user_chosen=True)
    if spec.pool and not of_games:
        path = Path(spec.pool)
        return Pool(str(path), positions_in(path), user_chosen=True)
    if change == BISHOPS_AS_KNIGHTS and not of_games:
        return _shipped(DIAGONAL if spec.eval == "all_diagonal" else "pool")
    if spec.eval == "all_diagonal":
        raise InvalidInput(_no_engine_games(change))
    return Pool(GAMES, _mined_pool(change, quiet=quiet), shuffled=True, user_chosen=of_games)


@cache
def _shipped(name: str) -> Pool:
    """Return a shipped pool, always the same object: its digest and order take 15 ms."""
    return Pool(SHIPPED, shipped_pool(name))


def _no_engine_games(change: Rules) -> str:
    """Explain why there are no games played under the rules, and what to do."""
    reason = "all_diagonal needs games played under the changed rules"
    if not isinstance(change, PieceSwap):
        return f"{reason}, and no standard engine plays {change.key}; use --eval all"
    return f"{reason}; pass positions of such games with --pool FILE, or use --eval all"


def _mined_pool(rules: Rules, *, quiet: bool) -> list[Position]:
    """Return the pool for these rules from the bundled games, mined once and then cached.

    Raises:
        InvalidInput: if the rules forbid no move of any game.
        UserError: if the pool cannot be saved.
    """
    folder, key = home() / "pools", f"{identity_of(rules)}.{POOL_VERSION}"
    if positions := _cached_pool(folder, key):
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
    path = folder / f"{key}.{_digest(lines)}.jsonl"
    with file_errors("save the pool in", path):
        folder.mkdir(OWNER_ONLY, exist_ok=True)
        with atomic_write(path) as file:
            file.write(lines)
    return positions


def _cached_pool(folder: Path, key: str) -> list[Position]:
    """Return the cached pool if it is intact: its file name ends in its digest."""
    files = list(folder.glob(f"{key}.{'?' * DIGEST_LENGTH}.jsonl"))
    for path in files:
        with suppress(OSError, KeyError, ValueError):
            lines = path.read_bytes()
            if path.stem.endswith(_digest(lines)):
                return trusted_positions(lines)
    if files:
        log.warning("the pool %s is damaged and is mined again", files[0])
    return []


def _digest(lines: bytes) -> str:
    return sha256(lines).hexdigest()[:DIGEST_LENGTH]


def given_dataset(name: Path | str, rules: Rules, *alternatives: str) -> Dataset:
    """Return the positions of a file, or a dataset by name; an error lists alternatives."""
    path = Path(name)
    if path.is_file() or path.suffix in (".jsonl", ".gz"):
        return Dataset("", str(name), positions_in(path))
    dataset, facts = dataset_named(str(name), *alternatives)
    identity = identity_of(rules)
    if facts["rules"] != identity:
        raise InvalidInput(f"the dataset {str(name)!r} is for {facts['rules']}, not for {identity}")
    return dataset


def positions_named(name: str, rules: Rules, *, any_rules: bool) -> Sequence[Position]:
    """Return the positions of a pool or a dataset, by name or from a file.

    Raises:
        InvalidInput: if there is none, or it is a dataset for other rules and ``any_rules`` is
            False.
    """
    pools: dict[str, dict[str, Any]] = {
        "pool": {},
        DIAGONAL: {"eval": "all_diagonal"},
        **{pool: {"pool": pool} for pool in (GAMES, COMMON)},
    }
    if name in pools:
        return positions_for(Spec(rules=rules, **pools[name])).positions
    if any_rules and not Path(name).exists():
        return dataset_named(name, *pools)[0].positions
    return [checked(position, rules) for position in given_dataset(name, rules, *pools).positions]


def drawn(dataset: Dataset, spec: Spec) -> list[tuple[int, Position]]:
    """Return the positions to measure, each with its number among those drawn.

    ``n`` are drawn without replacement, or all in seeded order if there are fewer. At most
    ``max_samples`` of them remain. The same seed draws the same positions as the original eval.

    Raises:
        InvalidInput: if a position is invalid under the rules.
    """
    positions = dataset.positions
    chosen = Random(spec.seed).sample(positions, min(spec.n_positions, len(positions)))
    numbers = list(range(len(chosen)))
    if spec.max_samples:
        Random(CUT_SEED).shuffle(numbers)
        numbers = numbers[: spec.max_samples]
    return [(number, checked(chosen[number], spec.change, positions)) for number in numbers]


def positions_drawn(dataset: Dataset, spec: Spec) -> list[Position]:
    """Return the positions of a run, in their order."""
    return [position for _, position in drawn(dataset, spec)]


UNION_SEED = 0


def union(names: Sequence[str], rules: Rules) -> tuple[list[Position], str]:
    """Return the union of datasets or files, checked under the rules, and what came from each.

    Positions are sorted by id and shuffled with a fixed seed. The same sources give the same
    positions in the same order, however they are named, and no source comes first.

    Raises:
        InvalidInput: if a source is unknown, for other rules, empty or damaged.
    """
    sources = {
        name: _by_id(checked(position, rules) for position in given_dataset(name, rules).positions)
        for name in names
    }
    positions_by_id: dict[str, Position] = {}
    for _, positions in sorted(sources.items()):
        new = [position for key, position in positions.items() if key not in positions_by_id]
        positions_by_id |= _by_id(_renumber_games(new, positions_by_id.values()))
    occurrences = Counter(key for positions in sources.values() for key in positions)
    ordered = [positions_by_id[key] for key in sorted(positions_by_id)]
    Random(UNION_SEED).shuffle(ordered)
    given = ", ".join(f"{len(positions):,} of {name}" for name, positions in sources.items())
    shared = sum(number > 1 for number in occurrences.values())
    in_all = pluralize(len(ordered), "position")
    return ordered, f"{in_all}: {given}; {shared:,} of them in more than one"


def _by_id(positions: Iterable[Position]) -> dict[str, Position]:
    return {position.id: position for position in positions}


def _renumber_games(new: Sequence[Position], existing: Iterable[Position]) -> list[Position]:
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
