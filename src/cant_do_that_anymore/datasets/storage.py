"""Datasets: positions where one model has the habit, shipped or built."""

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import InvalidInput, error_reason, unknown_value
from ..files import atomic_dir, atomic_write_text, file_errors, home, safe_name
from ..formatting import pluralize
from ..habits.base import Habit, Item
from ..habits.catalog import KINDS
from ..habits.chess.pools import shipped_games
from ..habits.chess.position import shipped_pool
from ..habits.chess.rules import BISHOPS_AS_KNIGHTS
from ..validation import parse

log = logging.getLogger(__name__)

ITEMS_FILE = "items.jsonl"


def _folder(version: str, digest: str) -> Path:
    return home("datasets") / f"{safe_name(version)}.{digest}"


@dataclass(frozen=True)
class Dataset:
    """The items of a pool to which one model gives the usual answer, and how they were found.

    Attributes:
        version: the model version they belong to, as the API names it.
        origin: "shipped", "built", or the file they were read from.
        items: in the order they were found.
        rules: the changed rules that it was made for, if it is known.
        asked: how many requests the search of this model took; None if it did not choose the items.
        failed: how many of those have no answer.
        pool_ended: whether the pool holds no more for this model.
        cost: what the requests to find them cost in US dollars; None if unknown.
        pool_name: the name of that pool, unless it is the default pool of the rules.
    """

    version: str
    origin: str
    items: list[Any] = field(repr=False, default_factory=list)
    rules: str = ""
    asked: int | None = None
    failed: int = 0
    pool_ended: bool = True
    cost: float | None = None
    pool_name: str = ""

    @property
    def provenance(self) -> str:
        """Describes where the dataset came from."""
        if not self.asked:
            return f"{self.origin} for {self.version}" if self.version else self.origin
        of = f" of the pool {self.pool_name}" if self.pool_name else ""
        missing = f", {self.failed:,} of them without an answer" if self.failed else ""
        return f"built from {pluralize(self.asked, 'request')}{of}{missing}"

    @property
    def chosen_from(self) -> str:
        """The pool that its positions were selected from, as far as known."""
        if not self.asked and self.origin != "shipped":
            return ""
        return f"the pool {self.pool_name}" if self.pool_name else "the default pool"


def shipped_datasets() -> dict[str, Dataset]:
    """Return the original eval's datasets by model version, in its order."""
    by_game = {position.game: position for position in shipped_pool("pool")}
    items = {name: [by_game[game] for game in games] for name, games in shipped_games().items()}
    return {name: Dataset(name, "shipped", items[name], BISHOPS_AS_KNIGHTS.key) for name in items}


def saved_dataset(version: str, digest: str) -> Dataset | None:
    """Return the dataset of a model version, by the digest of its config."""
    return _load(_folder(version, digest))


def save_dataset(dataset: Dataset, digest: str, facts: Mapping[str, object], habit: Habit) -> None:
    """Save a dataset; it replaces an older one only once it is complete.

    Raises:
        UserError: if it cannot be written.
    """
    folder = _folder(dataset.version, digest)
    metadata = vars(dataset) | {"items": len(dataset.items)}
    metadata |= {"kind": habit.folder, **facts}
    lines = "".join(f"{json.dumps(item.to_json())}\n" for item in dataset.items)
    advice = "no answer is lost. Free some space and run the same command again"
    with (
        file_errors("save the dataset in", folder, advice),
        atomic_dir(folder, replace=True) as temporary,
    ):
        atomic_write_text(temporary / ITEMS_FILE, lines)
        atomic_write_text(temporary / "dataset.json", json.dumps(metadata, indent=2) + "\n")


def items_in(path: Path, habit: Habit) -> list[Item]:
    """Read a file with at least one item; whether they fit the change is not checked yet."""
    items = habit.items_in(path)
    if not items:
        raise InvalidInput(f"{path} contains no {habit.words.items}")
    return items


def all_datasets() -> dict[str, Dataset]:
    """Return every dataset by name."""
    datasets = shipped_datasets()
    for folder in sorted(home("datasets").glob("[!.]*")):  # incomplete ones begin with a dot
        if dataset := _load(folder):
            datasets[folder.name] = dataset
    return datasets


def dataset_named(name: str, rules: str) -> Dataset:
    """Return a dataset by its name in the list, or else the largest of a model for these rules.

    Raises:
        InvalidInput: if there is none for these rules.
    """
    datasets = {key: each for key, each in all_datasets().items() if each.rules == rules}
    if name in datasets:
        return datasets[name]
    of_model = [dataset for dataset in datasets.values() if dataset.version == name]
    if not of_model:
        raise unknown_value(f"dataset for {rules}", name, [*datasets, "FILE.jsonl"])
    return max(of_model, key=lambda dataset: len(dataset.items))


def _load(folder: Path) -> Dataset | None:
    """Return the dataset in a folder, if there is one.

    One that is damaged does not count: its answers are cached, so it can be built again.
    """
    if not folder.exists():
        return None
    try:
        facts = json.loads((folder / "dataset.json").read_text(encoding="utf-8"))
        items = KINDS[facts["kind"]].items_in(folder / ITEMS_FILE)
        dataset = parse(Dataset, facts | {"items": []}, "dataset.json")
        if len(items) != facts["items"]:
            raise ValueError(f"it has {len(items)} of {facts['items']} items")
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = error_reason(error)
        log.warning("the dataset in %r is damaged (%s); it is built again", str(folder), reason)
        return None
    return replace(dataset, items=items)
