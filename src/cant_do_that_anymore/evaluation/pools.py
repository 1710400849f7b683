"""Where the positions of a run come from when the model need not be asked for them."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from random import Random

from ..errors import BadInput
from ..game.position import Position, read_positions, shipped_pool
from ..game.rules import BISHOPS_AS_KNIGHTS, Rules
from .datasets import dataset_named
from .results import Dataset
from .spec import Spec

SHIPPED = "shipped"
CUT_SEED = 123
"""The original's: runs with the same limit measure the same samples there and here."""


@dataclass(frozen=True)
class Pool:
    """Positions to choose from."""

    name: str
    positions: Sequence[Position]

    @property
    def digest(self) -> str:
        """Differs whenever the positions differ."""
        return sha256(" ".join(p.id for p in self.positions).encode()).hexdigest()[:12]


def pool_for(spec: Spec) -> Pool:
    """The positions to choose from: the pool that the spec names, or the shipped one."""
    change = spec.change
    if spec.pool:
        return Pool(str(spec.pool), positions_in(spec.pool, change))
    if change != BISHOPS_AS_KNIGHTS:
        raise BadInput(
            f"no pool is shipped for {change.key}; make one with "
            f"`cdta mine --rules {change.key} GAMES.pgn -o pool.jsonl` and give it with --pool"
        )
    return Pool(SHIPPED, shipped_pool("diagonal" if spec.eval == "all_diagonal" else "pool"))


def dataset_at_hand(spec: Spec) -> Dataset | None:
    """The dataset of a run that needs no selection: one that was given, or positions for all."""
    if spec.dataset:
        return given_dataset(spec.dataset, spec.change)
    if spec.eval == "all_diagonal":
        pool = pool_for(spec)
        return Dataset("", pool.name, list(pool.positions))
    return None


def given_dataset(given: Path | str, rules: Rules) -> Dataset:
    """The positions of a file, or the dataset of that name, as they are."""
    path = Path(given)
    if path.is_file() or path.suffix in (".jsonl", ".gz"):
        return Dataset("", str(given), positions_in(path, rules))
    found, facts = dataset_named(str(given))
    if facts["rules"] != rules.key:
        raise BadInput(f"the dataset {str(given)!r} is for {facts['rules']}, not for {rules.key}")
    return found


def positions_in(path: Path, rules: Rules) -> list[Position]:
    """The positions of a file that holds at least one."""
    positions = read_positions(Path(path), rules)
    if not positions:
        raise BadInput(f"{path} holds no positions")
    return positions


def drawn(dataset: Dataset, spec: Spec) -> list[tuple[int, Position]]:
    """The positions that are measured, each with its number among those drawn.

    ``n`` are drawn without replacement, or all in seeded order if there are fewer; of them at most
    ``max_samples`` are kept. The same seed draws the same from the same dataset as the original.
    """
    positions = dataset.positions
    chosen = Random(spec.seed).sample(positions, min(spec.to_draw, len(positions)))
    numbers = list(range(len(chosen)))
    if spec.max_samples:
        Random(CUT_SEED).shuffle(numbers)
        numbers = numbers[: spec.max_samples]
    return [(number, chosen[number]) for number in numbers]
