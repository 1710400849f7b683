"""Datasets: positions where one model has the habit, shipped, imported or built."""

import json
import logging
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from ..errors import InvalidInput, UserError, error_reason, pluralize, unknown_value
from ..files import atomic_replace_dir, atomic_write_text, home, safe_name
from ..game.position import (
    DATA,
    Position,
    checked,
    parse_positions,
    read_positions,
    shipped_pool,
    write_positions,
)
from ..game.rules import BISHOPS_AS_KNIGHTS, Rules, identity_of
from ..providers.base import Usage
from ..task.spec import COMMON

log = logging.getLogger(__name__)

IMPORTED = "imported"


def _shipped_games() -> dict[str, list[int]]:
    games: dict[str, list[int]] = json.loads((DATA / "datasets.json").read_text(encoding="utf-8"))
    return games


def common_positions() -> list[Position]:
    """The positions of the pool that at least one of the shipped datasets holds, in its order."""
    pool = shipped_pool("pool")
    held = set().union(*_held_by(pool).values())
    return [position for position in pool if position.id in held]


def rates_on_all() -> list[float]:
    """The share of the pool whose special move each of the shipped models plays."""
    pool = shipped_pool("pool")
    return [len(held) / len(pool) for held in _held_by(pool).values()]


def rates_on_common() -> list[float]:
    """The same on the positions that the others hold: as of a model that those were not chosen by.

    >>> [round(rate, 2) for rate in rates_on_common()]
    [0.21, 0.29, 0.38, 0.67]
    """
    held_by = _held_by(shipped_pool("pool"))
    of_others = {
        version: set().union(*(held for other, held in held_by.items() if other != version))
        for version in held_by
    }
    return [len(held & of_others[one]) / len(of_others[one]) for one, held in held_by.items()]


def _held_by(pool: Sequence[Position]) -> dict[str, set[str]]:
    """The ids of the positions of each shipped dataset."""
    return {
        version: {position.id for position in dataset.positions}
        for version, dataset in shipped_datasets(pool).items()
    }


def imported_for(rules: Rules) -> str:
    """The kind of a dataset that the user brought for these rules."""
    return f"{IMPORTED}-{identity_of(rules)}"


def _put_aside(folder: Path) -> str:
    try:
        aside = home("damaged") / f"{folder.name}-{time.time_ns()}"
        folder.rename(aside)
    except (OSError, UserError):  # of no use, and in nobody's way
        return "it is built again"
    return f"it was moved to {aside}"


def _digest(positions: Sequence[Position]) -> str:
    """Differs whenever anything about the positions differs, however the file is written."""
    lines = (json.dumps(position.to_json(), sort_keys=True) for position in positions)
    return sha256("\n".join(lines).encode()).hexdigest()


def _home() -> Path:
    return home() / "datasets"


def _folder(version: str, kind: str) -> Path:
    return _home() / f"{safe_name(version)}.{kind}"


@dataclass(frozen=True)
class Dataset:
    """The positions of a pool whose special move one model plays, and how they were found.

    Attributes:
        version: the model they belong to, as the API names it.
        origin: "shipped", "imported", "built", or the file they were read from.
        positions: in the order they were found.
        asked: how many questions it took to find them, if known.
        failed: how many of those have no answer.
        pool_ended: whether the pool holds no more for this model.
        usage: the tokens of all questions asked to find them; none if some were not counted.
        endpoint: where the model was asked, if it has an address.
        saved_at: when it was kept.
        built_now: whether the run that uses it has built it.
        own_temperature: whether the model took no temperature, so that selection was at its own.
        pool: a digest of the positions it was chosen from, if it was built.
        pool_name: what that pool is called, unless it is the one that the rules have by default.
    """

    version: str
    origin: str
    positions: list[Position] = field(repr=False, default_factory=list)
    asked: int | None = None
    failed: int = 0
    pool_ended: bool = True
    usage: Usage = field(default_factory=Usage)
    endpoint: str = ""
    saved_at: str = ""
    built_now: bool = False
    own_temperature: bool = False
    pool: str = ""
    pool_name: str = ""

    @property
    def provenance(self) -> str:
        """Where it came from, in words."""
        on = f" on {self.saved_at[:10]}" if self.saved_at else ""
        if not self.asked:
            return f"{self.origin}{on} for {self.version}" if self.version else self.origin
        at = f" at {self.endpoint}" if self.endpoint else ""
        when = " now" if self.built_now else f"{on}{at}"
        drawn = f", {self.selection}" if self.own_temperature else ""
        of = f" of the pool {self.pool_name}" if self.pool_name else ""
        return f"built{when} from {pluralize(self.asked, 'question')}{of}{drawn}"

    @property
    def selection(self) -> str:
        """How its positions were selected, as far as that is known."""
        if self.own_temperature:
            return "by 2 of 3 draws at the provider's own temperature"
        return "at temperature 0" if self.asked or self.origin == "shipped" else ""

    @property
    def chosen_from(self) -> str:
        """The pool that its positions were chosen from, as far as that is known."""
        if not self.asked and self.origin != "shipped":
            return ""
        return f"the pool {self.pool_name}" if self.pool_name else "the default pool"


def shipped_datasets(pool: Sequence[Position]) -> dict[str, Dataset]:
    """The original's datasets by model version, in its order, as members of the shipped pool."""
    by_game = {position.game: position for position in pool}
    return {
        version: Dataset(version, "shipped", [by_game[game] for game in games])
        for version, games in _shipped_games().items()
    }


def notes_on_dataset(dataset: Dataset) -> list[str]:
    """What to know of the choice of the positions.

    Some may have had no answer, and a pool may be chosen by the habits of the very model that is
    measured.
    """
    notes = []
    if dataset.failed:
        notes.append(
            f"{pluralize(dataset.failed, 'question')} to find the dataset had no answer: the same "
            "command may choose other positions once they have"
        )
    if dataset.pool_name == COMMON and dataset.version in _shipped_games():
        notes.append(
            f"{dataset.version} is one of the four models that the pool {COMMON} was chosen by: "
            "its dataset there holds all its habits, that of another model only those it shares "
            "with them"
        )
    return notes


def saved_dataset(version: str, kind: str, rules: Rules) -> Dataset | None:
    """The dataset of a model version that was kept as this kind for these rules.

    The kind is `imported_for` some rules, or the digest of the criteria it was built by. One that
    was built and is not as it was is moved aside: its answers are kept, so it can be built again.

    Raises:
        InvalidInput: if one that was imported is not as it was.
    """
    folder = _folder(version, kind)
    if not folder.exists():
        return None
    try:
        dataset, _ = _load(folder)
        return replace(dataset, positions=[checked(each, rules) for each in dataset.positions])
    except InvalidInput as problem:
        if kind.startswith(IMPORTED):
            raise InvalidInput(f"{problem}; import it again, or delete that folder") from None
        log.warning("%s; %s", problem, _put_aside(folder))
        return None


def save_dataset(dataset: Dataset, kind: str, facts: Mapping[str, object]) -> None:
    """Keep a dataset, replacing an older one only when the new one is whole.

    Raises:
        UserError: if it cannot be written.
    """
    home("datasets")
    folder = _folder(dataset.version, kind)
    told = asdict(dataset) | {"positions": len(dataset.positions), **facts}
    told |= {"digest": _digest(dataset.positions)}
    told |= {"saved_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
    try:
        with atomic_replace_dir(folder) as half:
            write_positions(half / "positions.jsonl", dataset.positions)
            atomic_write_text(half / "dataset.json", json.dumps(told, indent=2) + "\n")
    except OSError as problem:
        raise UserError(
            f"cannot keep the dataset in {str(folder)!r} ({problem.strerror}); no answer is lost, "
            "run the same command again when there is space"
        ) from None


def import_dataset(version: str, path: Path, rules: Rules) -> Dataset:
    """Keep the positions of a file as the dataset of a model version."""
    if not version:
        raise InvalidInput("an imported dataset needs the name of a model, as its API answers")
    dataset = Dataset(version, IMPORTED, read_positions(path, rules))
    if not dataset.positions:
        raise InvalidInput(f"{path} holds no positions")
    save_dataset(dataset, imported_for(rules), {"rules": identity_of(rules), "file": path.name})
    return dataset


def all_datasets() -> dict[str, tuple[Dataset, dict[str, Any]]]:
    """Every dataset by name, with what is known of it; the log names those that are damaged."""
    found: dict[str, tuple[Dataset, dict[str, Any]]] = {
        version: (dataset, {"rules": BISHOPS_AS_KNIGHTS.key})
        for version, dataset in shipped_datasets(shipped_pool("pool")).items()
    }
    for file in sorted(_home().glob("[!.]*/dataset.json")):  # a half-written one begins with a dot
        try:
            found[file.parent.name] = _load(file.parent)
        except InvalidInput as problem:
            log.warning("%s", problem)
    return found


def dataset_named(name: str, *others: str) -> tuple[Dataset, dict[str, Any]]:
    """A dataset by its name in the list, or by its model version if there is only one of it.

    Raises:
        InvalidInput: if there is none, or more than one; perhaps one of the others was meant.
    """
    datasets = all_datasets()
    if name in datasets:
        return datasets[name]
    of_version = [key for key, (dataset, _) in datasets.items() if dataset.version == name]
    if len(of_version) > 1:
        raise InvalidInput(f"{name!r} has several datasets: {', '.join(of_version)}")
    if not of_version:
        raise unknown_value("dataset", name, [*datasets, *others])
    return datasets[of_version[0]]


def _load(folder: Path) -> tuple[Dataset, dict[str, Any]]:
    try:
        facts = json.loads((folder / "dataset.json").read_text(encoding="utf-8"))
        positions = parse_positions(folder / "positions.jsonl")
        as_it_was = _digest(positions) == facts["digest"]
        told = {each.name: facts[each.name] for each in fields(Dataset)}
        told |= {"positions": positions, "usage": Usage(**facts["usage"]), "built_now": False}
        dataset = Dataset(**told)
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise InvalidInput(
            f"the dataset in {str(folder)!r} is damaged ({error_reason(problem)})"
        ) from None
    if not as_it_was:
        raise InvalidInput(
            f"the dataset in {str(folder)!r} was changed since it was {dataset.origin}; positions "
            "of your own go by --dataset FILE"
        )
    return dataset, facts


def is_own(dataset: Dataset, versions: Collection[str], endpoint: str) -> bool:
    """Whether a dataset is of the model that answers there by these names.

    A model of several names may have had another one when its dataset was found, and one that
    gave no answer later has no name.
    """
    found_there = bool(dataset.asked) and dataset.endpoint == endpoint
    return dataset.version in versions or (found_there and len(versions) != 1)
