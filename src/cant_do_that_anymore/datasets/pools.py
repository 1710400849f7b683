"""The items that a run may use: a pool to select from, or a dataset."""

from dataclasses import replace
from pathlib import Path
from random import Random

from ..errors import InvalidInput, unknown_value
from ..habits.base import Change, Item, Pool
from ..task.spec import Spec
from .storage import Dataset, dataset_named, items_in

DIAGONAL = "diagonal"
# The original eval's seed, so that runs with the same limit measure the same samples.
CUT_SEED = 123


def source_for(spec: Spec, *, quiet: bool = False) -> Dataset | Pool:
    """Return the dataset of a run that needs no selection, or else the pool to select from.

    A pool that is used for the first time is mined, which takes seconds.
    """
    if spec.dataset:
        return given_dataset(spec.dataset, spec.change)
    pool = _pool_for(spec, quiet=quiet)
    if spec.eval != "all_diagonal":
        return pool
    return Dataset("", pool.name, list(pool.items))


def _pool_for(spec: Spec, *, quiet: bool) -> Pool:
    """Return the pool: one of the habit, or from a file."""
    change, is_diagonal = spec.change, spec.eval == "all_diagonal"
    habit = change.its_habit
    if spec.pool is None:
        return habit.pool(change, DIAGONAL if is_diagonal else "", quiet=quiet)
    name = str(spec.pool)
    if name in habit.pools and is_diagonal:
        raise InvalidInput(
            f"all_diagonal has its own positions; leave out --pool {name}, or use --pool FILE"
        )
    if name in habit.pools:
        return habit.pool(change, name, quiet=quiet)
    path = Path(name)
    if not path.suffix and not path.exists():
        raise unknown_value("pool", name, habit.pools or ["FILE.jsonl"])
    pool = Pool(name, items_in(path, habit))
    return replace(pool, label=f"{path.name} {pool.digest}")


def given_dataset(name: Path | str, change: Change) -> Dataset:
    """Return the items of a file, or a dataset by its name or its model's."""
    path = Path(name)
    if path.is_file() or path.suffix in (".jsonl", ".gz"):
        return Dataset("", str(name), items_in(path, change.its_habit))
    return replace(dataset_named(str(name), change.identity), asked=None)


def drawn(dataset: Dataset, spec: Spec) -> dict[int, Item]:
    """Return the items to measure in their order, by their numbers among those drawn.

    ``n`` are drawn without replacement, or all in seeded order if there are fewer. At most
    ``max_samples`` of them remain. The same seed draws the same items as the original eval.

    Raises:
        InvalidInput: if an item is invalid under the rules.
    """
    items, change = dataset.items, spec.change
    chosen = Random(spec.seed).sample(items, min(spec.n_items, len(items)))
    numbers = list(range(len(chosen)))
    if spec.max_samples:
        Random(CUT_SEED).shuffle(numbers)
        numbers = numbers[: spec.max_samples]
    return {number: change.checked(chosen[number]) for number in numbers}
