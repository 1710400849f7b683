"""Datasets: positions where one model has the habit, shipped or built."""

import json
import logging
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import InvalidInput, error_reason, unknown_value
from ..files import atomic_dir, atomic_write_text, file_errors, home, safe_name
from ..formatting import pluralize
from ..habits.base import Change, Habit, Item
from ..habits.catalog import KINDS
from ..habits.chess.pools import shipped_games
from ..habits.chess.position import shipped_pool
from ..habits.chess.rules import BISHOPS_AS_KNIGHTS
from ..validation import parse

log = logging.getLogger(__name__)

ITEMS_FILE = "items.jsonl"


def _home() -> Path:
    return home() / "datasets"


def _folder(version: str, kind: str) -> Path:
    return _home() / f"{safe_name(version)}.{kind}"


@dataclass(frozen=True)
class Dataset:
    """The items of a pool to which one model gives the usual answer, and how they were found.

    Attributes:
        version: the model version they belong to, as the API names it.
        origin: "shipped", "built", or the file they were read from.
        items: in the order they were found.
        asked: how many requests it took to find them, if known.
        failed: how many of those have no answer.
        pool_ended: whether the pool holds no more for this model.
        cost: what the requests to find them cost in US dollars; None if unknown.
        endpoint: the address of the model, if it has one.
        built_now: whether the current run built it.
        pool_name: the name of that pool, unless it is the default pool of the rules.
    """

    version: str
    origin: str
    items: list[Any] = field(repr=False, default_factory=list)
    asked: int | None = None
    failed: int = 0
    pool_ended: bool = True
    cost: float | None = None
    endpoint: str = ""
    built_now: bool = False
    pool_name: str = ""

    @property
    def provenance(self) -> str:
        """Describes where the dataset came from."""
        if not self.asked:
            return f"{self.origin} for {self.version}" if self.version else self.origin
        at = f" at {self.endpoint}" if self.endpoint else ""
        where = " now" if self.built_now else at
        of = f" of the pool {self.pool_name}" if self.pool_name else ""
        return f"built{where} from {pluralize(self.asked, 'request')}{of}"

    @property
    def chosen_from(self) -> str:
        """The pool that its positions were selected from, as far as known."""
        if not self.asked and self.origin != "shipped":
            return ""
        return f"the pool {self.pool_name}" if self.pool_name else "the default pool"


def shipped_datasets() -> dict[str, Dataset]:
    """Return the original eval's datasets by model version, in its order."""
    by_game = {position.game: position for position in shipped_pool("pool")}
    return {
        version: Dataset(version, "shipped", [by_game[game] for game in games])
        for version, games in shipped_games().items()
    }


def notes_on_dataset(dataset: Dataset) -> list[str]:
    """Return notes on the selection of the positions."""
    if not dataset.failed:
        return []
    return [
        f"{pluralize(dataset.failed, 'request')} to build the dataset had no answer; if they are "
        "answered next time, the same command may choose other positions"
    ]


def saved_dataset(version: str, digest: str, change: Change) -> Dataset | None:
    """Return the dataset of a model version for these rules, by the digest of its config.

    One that is damaged does not count: its answers are cached, so it can be built again.
    """
    folder = _folder(version, digest)
    if not folder.exists():
        return None
    try:
        dataset, _ = _load(folder)
        return replace(dataset, items=[change.checked(item) for item in dataset.items])
    except InvalidInput as error:
        log.warning("%s; it is built again", error)
        return None


def save_dataset(dataset: Dataset, kind: str, facts: Mapping[str, object], habit: Habit) -> None:
    """Save a dataset; it replaces an older one only once it is complete.

    Raises:
        UserError: if it cannot be written.
    """
    home("datasets")
    folder = _folder(dataset.version, kind)
    metadata = asdict(replace(dataset, items=[])) | {"items": len(dataset.items)}
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


def all_datasets() -> dict[str, tuple[Dataset, dict[str, Any]]]:
    """Return every dataset by name, with its metadata; log those that are damaged."""
    datasets: dict[str, tuple[Dataset, dict[str, Any]]] = {
        version: (dataset, {"rules": BISHOPS_AS_KNIGHTS.key})
        for version, dataset in shipped_datasets().items()
    }
    for file in sorted(_home().glob("[!.]*/dataset.json")):  # incomplete ones begin with a dot
        try:
            datasets[file.parent.name] = _load(file.parent)
        except InvalidInput as error:
            log.warning("%s", error)
    return datasets


def dataset_named(name: str, *alternatives: str, rules: str = "") -> tuple[Dataset, dict[str, Any]]:
    """Return a dataset by its name in the list, or else the largest of a model for these rules.

    Raises:
        InvalidInput: if there is none; the message suggests names, and the alternatives.
    """
    datasets = all_datasets()
    if name not in datasets:
        of_model = [
            (dataset, facts)
            for dataset, facts in datasets.values()
            if dataset.version == name and facts["rules"] == rules
        ]
        if of_model:
            return max(of_model, key=lambda found: len(found[0].items))
        raise unknown_value("dataset", name, [*datasets, *alternatives])
    return datasets[name]


def _load(folder: Path) -> tuple[Dataset, dict[str, Any]]:
    """Return the dataset in a folder, with its metadata."""
    try:
        facts = json.loads((folder / "dataset.json").read_text(encoding="utf-8"))
        items = KINDS[facts["kind"]].items_in(folder / ITEMS_FILE)
        dataset = parse(Dataset, facts | {"items": [], "built_now": False}, "dataset.json")
        if len(items) != facts["items"]:
            raise ValueError(f"it has {len(items)} of {facts['items']} items")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidInput(
            f"the dataset in {str(folder)!r} is damaged ({error_reason(error)})"
        ) from None
    return replace(dataset, items=items), facts


def belongs_to(dataset: Dataset, versions: Collection[str], endpoint: str) -> bool:
    """Whether a dataset belongs to the model that answers at the endpoint as these versions.

    A model with several versions may have had another one when its dataset was built, and one that
    gave no answer later has none.
    """
    built_there = bool(dataset.asked) and dataset.endpoint == endpoint
    return dataset.version in versions or (built_there and len(versions) != 1)
