"""What runs come to: their numbers, in a fresh home as well, and the answers that are on disk."""

import json
import shutil
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cant_do_that_anymore.client.store import intact_rows
from cant_do_that_anymore.runs.results import Run
from cant_do_that_anymore.runs.storage import CONTROLS, SAMPLES, facts_of, line_of

Numbers = dict[str, Any]

OF_THE_MOMENT = ("started_at", "seconds", "notes", "cost", "dataset", "temperature")


@dataclass(frozen=True)
class Ended:
    """How a run ended: its numbers, or a sentence; what it asked, and what it has kept."""

    numbers: Numbers | None
    sentence: str
    asked: int = 0
    keys: frozenset[str] = frozenset()


def numbers_of(run: Run) -> Numbers:
    """All that does not depend on the moment: metrics, samples, judged replies."""
    return _numbers(facts_of(run), map(line_of, (*run.samples, *run.controls)))


def numbers_in(folder: Path) -> Numbers:
    """The same of a run that was saved."""
    files = [folder / name for name in (SAMPLES, CONTROLS) if (folder / name).exists()]
    lines = chain(*(file.read_text().splitlines() for file in files))
    return _numbers(json.loads((folder / "run.json").read_text()), lines)


def _numbers(facts: dict[str, Any], lines: Iterable[str]) -> Numbers:
    samples = [json.loads(line) for line in lines]
    for sample in samples:
        for reply in sample["replies"].values():
            del reply["conceded"]  # a form that was learnt may be learnt before the first question
    chosen = {key: facts["dataset"][key] for key in ("version", "origin", "pool", "pool_name")}
    kept = {key: value for key, value in facts.items() if key not in OF_THE_MOMENT}
    return json.loads(json.dumps(kept | {"samples": samples, "dataset": chosen}))  # type: ignore[no-any-return]


def bytes_in(folder: Path) -> str:
    """A digest of the files of a run."""
    files = (path.read_bytes() for path in sorted(folder.glob("*.json*")))
    return sha256(b"".join(files)).hexdigest()


def keys_in(store: Path) -> frozenset[str]:
    """Of the whole answers in a store; looked up in a copy, so that nothing is mended by that."""
    if not store.exists():
        return frozenset()
    with TemporaryDirectory() as folder:
        copy = Path(folder) / store.name
        for suffix in ("", "-wal"):
            with suppress(FileNotFoundError):
                shutil.copyfile(f"{store}{suffix}", f"{copy}{suffix}")
        return frozenset(key for kind, key, *_ in intact_rows(copy) if kind == "answer")


def difference(ours: Any, theirs: Any, at: str = "") -> str:
    """The first place where two values differ."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in ours.keys() | theirs.keys():
            if ours.get(key) != theirs.get(key):
                return difference(ours.get(key), theirs.get(key), f"{at}.{key}")
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for place, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            if one != other:
                return difference(one, other, f"{at}[{place}]")
    return f"{at} is {ours!r:.300} and not {theirs!r:.300}"
