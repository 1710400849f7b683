"""Pools of candidate positions: shipped, mined or from a file; and the union of datasets."""

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

from ..errors import InvalidInput, UserError, pluralize, unknown_value
from ..files import FOR_THE_USER, atomic_write, home
from ..game.position import (
    Position,
    checked,
    parse_positions,
    position_lines,
    shipped_pool,
    trusted_positions,
)
from ..game.rule_pool import POOL_SIZE, POOL_VERSION, positions_in_games
from ..game.rules import BISHOPS_AS_KNIGHTS, PieceSwap, Rules, identity_of
from ..progress import progress
from ..task.spec import COMMON, GAMES, SHIPPED, Spec
from ..task.types import Plan
from .storage import Dataset, common_positions, dataset_named

log = logging.getLogger(__name__)

DIAGONAL = "diagonal"
DIGITS = 12
"""So many of a digest tell pools apart."""
CUT_SEED = 123
"""The original's: runs with the same limit measure the same samples there and here."""


@dataclass(frozen=True)
class Pool:
    """Positions to choose from.

    Attributes:
        mixed: whether they are in random order already.
        given: whether the user named this pool, so that no other positions will do.
    """

    name: str
    positions: Sequence[Position]
    mixed: bool = False
    given: bool = False

    @cached_property
    def digest(self) -> str:
        """Differs whenever the positions differ."""
        return _digest(" ".join(p.id for p in self.positions).encode())

    def told_under(self, rules: Rules) -> str:
        """What readers call it; "" for the pool that these rules have by default."""
        if self.name == (SHIPPED if rules == BISHOPS_AS_KNIGHTS else GAMES):
            return ""
        of_ours = self.name in (GAMES, COMMON)
        return self.name if of_ours else f"{Path(self.name).name} {self.digest}"


def positions_for(spec: Spec, *, quiet: bool = False) -> Dataset | Pool:
    """The dataset of a run that needs no selection, or else the pool to select one from.

    A pool that was never wanted before is mined, which takes seconds.
    """
    if spec.dataset:
        return given_dataset(spec.dataset, spec.change)
    pool = _pool_for(spec, quiet=quiet)
    return Dataset("", pool.name, list(pool.positions)) if spec.eval == "all_diagonal" else pool


def _pool_for(spec: Spec, *, quiet: bool) -> Pool:
    """The positions to choose from: a file, the original's, or those of the shipped games."""
    change, of_games = spec.change, str(spec.pool) == GAMES
    if str(spec.pool) == COMMON:
        return Pool(COMMON, common_positions(), given=True)
    if spec.pool and not of_games:
        path = Path(spec.pool)
        if not path.suffix and not path.exists():
            raise unknown_value("pool", str(path), [COMMON, GAMES])
        return Pool(str(path), positions_in(path), given=True)
    if change == BISHOPS_AS_KNIGHTS and not of_games:
        return Pool(SHIPPED, shipped_pool(DIAGONAL if spec.eval == "all_diagonal" else "pool"))
    if spec.eval == "all_diagonal":
        raise InvalidInput(_no_engine_games(change))
    return Pool(GAMES, _mined_pool(change, quiet=quiet), mixed=True, given=of_games)


def _no_engine_games(change: Rules) -> str:
    """Why there are no games played under the rules, and what to do."""
    told = "all_diagonal asks about games played under the changed rules"
    if not isinstance(change, PieceSwap):
        return f"{told}, and no plain engine plays {change.key}: measure with --eval all"
    command = f"cdta selfplay --rules {change.key} -o FILE"
    return f"{told}: let an engine play some with `{command}`, and give them with --pool FILE"


def _mined_pool(rules: Rules, *, quiet: bool) -> list[Position]:
    """The positions for these rules in the shipped games: mined when first wanted, then kept.

    Raises:
        InvalidInput: if the rules forbid no move of any game.
        UserError: if they cannot be kept.
    """
    folder, known = home() / "pools", f"{identity_of(rules)}.{POOL_VERSION}"
    if found := _kept_pool(folder, known):
        return found
    with progress(f"mining a pool for {rules.key}", POOL_SIZE, quiet=quiet) as advance:
        for position in positions_in_games(rules):
            found.append(position)
            advance()
    if not found:
        raise InvalidInput(
            f"{rules.key} forbids no move of the games in this package: give a --pool"
        )
    lines = b"".join(position_lines(found))
    path = folder / f"{known}.{_digest(lines)}.jsonl"
    try:
        folder.mkdir(FOR_THE_USER, exist_ok=True)
        with atomic_write(path) as file:
            file.write(lines)
    except OSError as problem:
        raise UserError(f"cannot keep the pool in {str(path)!r} ({problem.strerror})") from None
    return found


def _kept_pool(folder: Path, known: str) -> list[Position]:
    """The pool that was kept, if it is as it was written: its name ends in a digest of it."""
    files = list(folder.glob(f"{known}.{'?' * DIGITS}.jsonl"))
    for path in files:
        with suppress(OSError, KeyError, ValueError):
            lines = path.read_bytes()
            if path.stem.endswith(_digest(lines)):
                return trusted_positions(lines)
    if files:
        log.warning("the pool %s is damaged; it is mined again", files[0])
    return []


def _digest(lines: bytes) -> str:
    return sha256(lines).hexdigest()[:DIGITS]


def given_dataset(given: Path | str, rules: Rules, *others: str) -> Dataset:
    """The positions of a file, or the dataset of that name, as they are; others may be meant."""
    path = Path(given)
    if path.is_file() or path.suffix in (".jsonl", ".gz"):
        return Dataset("", str(given), positions_in(path))
    found, facts = dataset_named(str(given), *others)
    known = identity_of(rules)
    if facts["rules"] != known:
        raise InvalidInput(f"the dataset {str(given)!r} is for {facts['rules']}, not for {known}")
    return found


def positions_named(name: str, rules: Rules, *, any_rules: bool) -> Sequence[Position]:
    """The positions of a pool or of a dataset, by name or in a file.

    Raises:
        InvalidInput: if there is none, or it is for other rules, where a dataset may not be for
            any.
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
    return [checked(each, rules) for each in given_dataset(name, rules, *pools).positions]


def positions_in(path: Path) -> list[Position]:
    """The positions of a file that holds at least one; their moves are still to be checked."""
    positions = parse_positions(path)
    if not positions:
        raise InvalidInput(f"{path} holds no positions")
    return positions


def drawn(dataset: Dataset, spec: Spec) -> list[tuple[int, Position]]:
    """The positions that are measured, each with its number among those drawn.

    ``n`` are drawn without replacement, or all in seeded order if there are fewer; of them at most
    ``max_samples`` are kept. The same seed draws the same from the same dataset as the original.

    Raises:
        InvalidInput: if one of them is no position under the rules.
    """
    positions = dataset.positions
    chosen = Random(spec.seed).sample(positions, min(spec.to_draw, len(positions)))
    numbers = list(range(len(chosen)))
    if spec.max_samples:
        Random(CUT_SEED).shuffle(numbers)
        numbers = numbers[: spec.max_samples]
    return [(number, checked(chosen[number], spec.change)) for number in numbers]


def positions_drawn(dataset: Dataset, spec: Spec, plan: Plan) -> list[Position]:
    """The positions of a run, in their order.

    Where the run stops by itself, fewer are always the beginning of more: a dataset that was found
    by asking is in random order already, any other is taken in seeded order.
    """
    if not plan.precision:
        return [position for _, position in drawn(dataset, spec)]
    order = dataset.positions
    if not dataset.asked:
        order = Random(spec.seed).sample(order, len(order))
    return [checked(position, spec.change) for position in order[: plan.wanted]]


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
