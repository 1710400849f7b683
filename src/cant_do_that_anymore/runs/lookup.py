"""Find runs by folder, name or model, and choose folders for new ones.

They are looked for under ``CDTA_HOME``, where ``cdta run`` puts them, and in the current folder:
there, and in the folders in it and in those, as ``cdta experiment`` makes them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from glob import glob
from itertools import chain, count
from pathlib import Path
from typing import Any

from ..errors import InvalidInput
from ..files import check_new_dir, home, safe_name
from ..formatting import Number
from ..metrics.measures import IMPACT
from ..metrics.stats.intervals import Interval
from ..providers.base import Effort
from .results import Run
from .storage import DAMAGE, facts_in, unwritable


def new_run_dir(run: Run) -> Path:
    """A place for the run among the others under ``CDTA_HOME``, as an empty folder.

    Raises:
        UserError: if it cannot be made.
    """
    stamp = run.started_at.replace(":", "").removesuffix("Z")
    name = f"{stamp}-{safe_name(run.model)}-{run.plan.eval}"
    for number in count(1):
        folder = home("runs") / (name if number == 1 else f"{name}-{number}")
        try:
            folder.mkdir()  # so that nobody else takes it
        except FileExistsError:
            continue
        except OSError as problem:
            raise unwritable(run, folder, problem) from None
        return folder
    raise AssertionError("numbers do not end")


def check_free(folder: Path) -> None:
    """Refuse a folder that holds anything already, before anything is spent.

    Raises:
        InvalidInput: if it does.
    """
    if folder.resolve() == Path.cwd():
        raise InvalidInput(f"{str(folder)!r} is the folder you are in; name a new one")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidInput(f"{str(folder)!r} is not empty; name a new folder")


def check_writable(out: Path | None) -> None:
    """Refuse a folder that could take no run, before anything is spent; None is for `new_run_dir`.

    Raises:
        InvalidInput: if it could not.
    """
    place = out or home() / "runs" / "run"
    try:
        if out:
            check_free(out)
        check_new_dir(place)
    except OSError as problem:
        told = f"cannot write to {str(out or place.parent)!r} ({problem.strerror})"
        advice = "give --out another folder" if out else "set CDTA_HOME to one you can write to"
        raise InvalidInput(f"{told}; {advice}") from None


LATEST = "latest"
FACTS = "run.json"
_NEARBY = (FACTS, f"*/{FACTS}", f"*/*/{FACTS}")
_NAMED = 5
"""So many runs are named where one has to be chosen."""


@dataclass(frozen=True)
class RunSummary:
    """A run as its ``run.json`` tells of it, without its samples.

    Attributes:
        folder: where it lies.
        started_at: when it was measured.
        model: the name it was asked for by; ``version`` is what it calls itself.
        samples: how many enter the numbers.
        impact: the impact factor, and ``interval`` its 95 % interval.
        cost: of all its answers, in US dollars, if known.
    """

    folder: Path
    started_at: str
    model: str
    version: str
    endpoint: str
    rules: str
    eval: str
    effort: Effort | None
    samples: int
    impact: Number
    interval: Interval | None
    notes: list[str]
    cost: float | None

    def is_called(self, name: str) -> bool:
        """Whether that is the name of its folder, or that of its model, with or without address."""
        at = f"{self.model}@{self.endpoint}"
        return name in (self.folder.name, self.model, self.version, at)

    def is_like(self, name: str) -> bool:
        """Whether that is a part of one of these."""
        names = (self.folder.name, self.model, self.version)
        return any(name.casefold() in known.casefold() for known in names)


def find_run(name: str | Path) -> Path:
    """The folder of the one run that goes by a name.

    Raises:
        InvalidInput: if there is none, or more than one.
    """
    found = _called(name)
    if len(found) == 1:
        return found[0]
    shown = ", ".join(str(folder) for folder in found[:_NAMED])
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    raise InvalidInput(f"{str(name)!r} may be any of {len(found)} runs, name one: {shown}{more}")


def find_runs(names: Iterable[str | Path]) -> list[Path]:
    """The folders of all runs that go by these names, each once.

    A folder of runs, or the name of a model, stands for all of its runs.

    Raises:
        InvalidInput: if a name stands for none.
    """
    folders = chain(*map(_called, names))
    return list({folder.resolve(): folder for folder in folders}.values())


def folders_in(path: Path) -> list[Path]:
    """The folders of runs at a path or anywhere below, but no half-written ones."""
    files = [*path.glob(FACTS)] or sorted(path.rglob(FACTS))  # which pass over what is locked
    return [file.parent for file in files if not is_half_written(file)]


def is_half_written(file: Path) -> bool:
    """Whether it is in a folder that is not whole yet."""
    return any(part.startswith(".part-") for part in file.parts)


def known_folders() -> list[Path]:
    """The folders of all runs under ``CDTA_HOME`` and near the current folder, each once."""
    # Unlike that of a path, this glob minds no folder that vanishes meanwhile.
    nearby = (Path(file) for pattern in _NEARBY for file in sorted(glob(pattern)))  # noqa: PTH207
    files = chain(sorted((home() / "runs").glob(f"*/{FACTS}")), nearby)
    folders = (file.parent for file in files if not is_half_written(file))
    return list({folder.resolve(): folder for folder in folders}.values())


def listed(folders: Iterable[Path]) -> tuple[list[RunSummary], list[InvalidInput]]:
    """What is told of these runs, the newest first, and why some cannot be read."""
    found, damaged = [], []
    for folder in folders:
        try:
            found.append(_listed(folder, facts_in(folder)))
        except InvalidInput as problem:
            damaged.append(problem)
        except DAMAGE as problem:
            damaged.append(InvalidInput(f"{folder / FACTS} is damaged: {problem!r}"))
    found.sort(key=lambda run: (run.started_at, run.folder.name), reverse=True)
    return found, damaged


def _listed(folder: Path, facts: dict[str, Any]) -> RunSummary:
    interval = facts["intervals"].get(IMPACT)
    plain = ("started_at", "model", "version", "endpoint", "rules", "eval")
    return RunSummary(
        folder=folder,
        **{name: str(facts[name]) for name in plain},
        effort=facts["settings"].get("reasoning_effort"),
        samples=int(facts["metrics"]["n_samples"]),
        impact=_number(facts["metrics"][IMPACT]),
        interval=Interval(**interval | {end: float(interval[end]) for end in ("low", "high")})
        if interval
        else None,
        notes=list(facts["notes"]),
        cost=_number(facts["cost"]["measuring"]),
    )


def _number(told: object) -> float | None:
    if told is None or isinstance(told, int | float):
        return told
    raise TypeError(f"no number: {told!r}")


def _called(name: str | Path) -> Sequence[Path]:
    """Every run that goes by a name: as a path, else by its whole name, else by a part of it."""
    try:
        here = _lying_at(Path(name))
    except OSError:  # no path is that long
        here = []
    if here:
        return here
    runs, _ = listed(known_folders())
    wanted = str(name)
    if wanted == LATEST:
        found = runs[:1]
    else:
        called = [run for run in runs if run.is_called(wanted)]
        found = called or [run for run in runs if run.is_like(wanted)]
    if found:
        return [run.folder for run in found]
    told = f"the newest is {runs[0].folder.name}" if runs else "there are none yet"
    raise InvalidInput(
        f"{wanted!r} is no run folder, and no run goes by it; a part of a folder's name, a model's "
        f"name and {LATEST!r} work for those that `cdta runs` lists ({told})"
    )


def _lying_at(path: Path) -> list[Path]:
    """Those in a folder; a file of a run stands for the run."""
    if path.is_file() and (path.parent / FACTS).exists():
        return [path.parent]
    return folders_in(path) if path.is_dir() else []
