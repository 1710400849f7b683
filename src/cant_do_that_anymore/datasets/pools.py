"""The items that a run may use: a pool to select from, a dataset, or a union of datasets."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

from ..errors import InvalidInput
from ..formatting import pluralize
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
    """Return the pool: from a file, or one of the habit."""
    change, name = spec.change, str(spec.pool or "")
    habit = change.its_habit
    if name and name not in habit.pools:
        items = items_in(Path(name), habit)
        pool = Pool(name, items, user_chosen=True)
        return replace(pool, label=f"{Path(name).name} {pool.digest}")
    return habit.pool(change, DIAGONAL if spec.eval == "all_diagonal" else name, quiet=quiet)


def given_dataset(name: Path | str, change: Change, *alternatives: str) -> Dataset:
    """Return the items of a file, or a dataset by name; an error lists alternatives."""
    path = Path(name)
    if path.is_file() or path.suffix in (".jsonl", ".gz"):
        return Dataset("", str(name), items_in(path, change.its_habit))
    dataset, facts = dataset_named(str(name), *alternatives)
    if facts["rules"] != change.identity:
        raise InvalidInput(
            f"the dataset {str(name)!r} is for {facts['rules']}, not for {change.identity}"
        )
    return dataset


def items_named(name: str, change: Change, *, any_rules: bool) -> Sequence[Item]:
    """Return the items of a pool or a dataset, by name or from a file.

    Raises:
        InvalidInput: if there is none, or it is a dataset for other rules and ``any_rules`` is
            False.
    """
    names_by_pool = {"pool": "", DIAGONAL: DIAGONAL} | {n: n for n in change.its_habit.pools}
    if name in names_by_pool:
        return change.its_habit.pool(change, names_by_pool[name], quiet=False).items
    if any_rules and not Path(name).exists():
        return dataset_named(name, *names_by_pool)[0].items
    return [change.checked(i) for i in given_dataset(name, change, *names_by_pool).items]


def drawn(dataset: Dataset, spec: Spec) -> list[tuple[int, Item]]:
    """Return the items to measure, each with its number among those drawn.

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
    return [(number, change.checked(chosen[number])) for number in numbers]


def items_drawn(dataset: Dataset, spec: Spec) -> list[Item]:
    """Return the items of a run, in their order."""
    return [item for _, item in drawn(dataset, spec)]


UNION_SEED = 0


def union(names: Sequence[str], change: Change) -> tuple[list[Item], str]:
    """Return the union of datasets or files, checked under the rules, and what came from each.

    Items are sorted by id and shuffled with a fixed seed. The same sources give the same items in
    the same order, however they are named, and no source comes first.

    Raises:
        InvalidInput: if a source is unknown, for other rules, empty or damaged.
    """
    habit = change.its_habit
    sources = {
        name: _by_id(change.checked(item) for item in given_dataset(name, change).items)
        for name in names
    }
    by_id: dict[str, Item] = {}
    for _, items in sorted(sources.items()):
        new = [item for key, item in items.items() if key not in by_id]
        by_id |= _by_id(habit.regrouped(new, list(by_id.values())))
    occurrences = Counter(key for items in sources.values() for key in items)
    ordered = [by_id[key] for key in sorted(by_id)]
    Random(UNION_SEED).shuffle(ordered)
    given = ", ".join(f"{len(items):,} of {name}" for name, items in sources.items())
    shared = sum(number > 1 for number in occurrences.values())
    in_all = pluralize(len(ordered), habit.words.item)
    return ordered, f"{in_all}: {given}; {shared:,} of them in more than one"


def _by_id(items: Iterable[Item]) -> dict[str, Item]:
    return {item.id: item for item in items}
