"""A static site of experiments and runs: an index, their pages and their data, for any web host."""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from ..errors import BadInput, Problem, counted
from ..evaluation.finding import FACTS, Listed, folders_in, listed, runs_at
from ..evaluation.folder import CONTROLS, SAMPLES, load_run
from ..files import replacing, replacing_text
from ..home import safe_name
from .experiment import TABLE
from .experiment_page import INDEX
from .page import PAGE_NAME, page
from .run_list import RUN_COLUMNS
from .templating import rendered

MARK = ".cdta-site.json"
"""Lies in every site, and names the files that were made there."""
RESULTS = "results.json"
_OF_RUN = (FACTS, SAMPLES, CONTROLS, PAGE_NAME)
_OF_EXPERIMENT = (INDEX, TABLE, RESULTS, "*.png", "*.svg")


@dataclass(frozen=True)
class Shown:
    """An experiment or a run on the site: where it lies there, and what is told of it."""

    at: str
    title: str
    data: Sequence[str]
    verdicts: Sequence[str] = ()
    run: Listed | None = None

    def link(self, name: str) -> str:
        """To one of its files."""
        return quote(f"{self.at}/{name}")


@dataclass
class _Site:
    """What is to lie where: files to copy, and texts to write."""

    copies: dict[str, Path] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)

    def place(self, room: str, name: str) -> str:
        """A folder of its own in a room; no two have one, also where case makes no difference."""
        wanted = at = f"{room}/{safe_name(name)}"
        number = 1
        while at.casefold() in self.taken:
            number += 1
            at = f"{wanted}-{number}"
        self.taken.add(at.casefold())
        return at

    def take(self, folder: Path, at: str, patterns: Iterable[str]) -> list[str]:
        """Those files of a folder that are of a kind, but no links."""
        found = [file for pattern in patterns for file in sorted(folder.glob(pattern))]
        names = [file.name for file in found if _is_plain(file)]
        self.copies |= {f"{at}/{name}": folder / name for name in names}
        return names

    def add_run(self, run: Listed, at: str) -> Shown:
        """Its page and its data; a page is made if it has none.

        Raises:
            BadInput: if none can be made.
        """
        if not _is_plain(run.folder / PAGE_NAME):
            self.texts[f"{at}/{PAGE_NAME}"] = page(load_run(run.folder))
        names = self.take(run.folder, at, _OF_RUN)
        return Shown(at, run.model, [name for name in names if name != PAGE_NAME], run=run)

    def add_experiment(self, folder: Path, at: str, runs: int) -> Shown:
        """Its page, its table and its pictures, as they are; its verdicts, if it has any."""
        names = self.take(folder, at, _OF_EXPERIMENT)
        data = [name for name in names if name in (TABLE, RESULTS)]
        verdicts = _verdicts_in(folder / RESULTS) or [counted(runs, "run")]
        return Shown(at, folder.resolve().name, data, verdicts)


def _is_plain(file: Path) -> bool:
    return file.is_file() and not file.is_symlink()


def write_site(names: Sequence[str | Path], out: Path) -> list[BadInput]:
    """Write the site anew, and say why some runs are not on it; what it no longer has is removed.

    Args:
        names: folders of experiments, or runs as `runs_at` takes them.
        out: a folder that is new, empty, or a site made before.

    Raises:
        BadInput: if a name stands for nothing, or the folder is somebody else's.
        Problem: if it cannot be written.
    """
    before = _files_before(out)
    experiments, alone = _found(names, out)
    site, places, shown = _Site(), dict[Path, str](), list[Shown]()
    for folder, of_experiment in experiments.items():
        at = site.place("experiments", folder.resolve().name)
        shown.append(site.add_experiment(folder, at, len(of_experiment)))
        places |= {run: f"{at}/{run.relative_to(folder).as_posix()}" for run in of_experiment}
    places |= {run: site.place("runs", run.resolve().name) for run in alone}
    found, damaged = listed(places)
    runs = []
    for run in found:
        try:
            runs.append(site.add_run(run, places[run.folder]))
        except BadInput as problem:
            damaged.append(problem)
    site.texts[INDEX] = rendered("site.html", experiments=shown, runs=runs, columns=RUN_COLUMNS)
    try:
        _write(site, out, before)
    except OSError as problem:
        raise Problem(f"cannot write to {str(out)!r} ({problem.strerror})") from None
    return damaged


def _found(names: Sequence[str | Path], out: Path) -> tuple[dict[Path, list[Path]], list[Path]]:
    """The experiments that were named with their runs, and runs alone; none of the site itself."""
    experiments: dict[Path, Path] = {}  # as they were named, by what that resolves to
    alone: dict[Path, Path] = {}
    for name in names:
        path = Path(name)
        if (path / MARK).exists():
            raise BadInput(f"{str(path)!r} is a site itself; name what it was made of")
        if (path / INDEX).is_file() and not (path / FACTS).exists():
            experiments[path.resolve()] = path
            continue
        for folder in _outside(out, runs_at([name])):
            if path in folder.parent.parents and (folder.parent / INDEX).is_file():
                experiments[folder.parent.resolve()] = folder.parent
            else:
                alone[folder.resolve()] = folder
    found = {folder: _outside(out, folders_in(folder)) for folder in experiments.values()}
    theirs = {run.resolve() for runs in found.values() for run in runs}
    return found, [folder for resolved, folder in alone.items() if resolved not in theirs]


def _outside(out: Path, folders: Iterable[Path]) -> list[Path]:
    return [each for each in folders if not each.resolve().is_relative_to(out.resolve())]


def _verdicts_in(path: Path) -> list[str]:
    """The sentences of an experiment's results, with eval and rules where there are several."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))["verdicts"]
        found = [(f"{one['eval']}, {one['rules']}: ", str(one["verdict"])) for one in told]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return [place + verdict if len(found) > 1 else verdict for place, verdict in found]


def _files_before(out: Path) -> list[str]:
    """The files of the site that is there, if there is one."""
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return []
    try:
        return [str(name) for name in json.loads((out / MARK).read_text(encoding="utf-8"))]
    except (OSError, ValueError):
        raise BadInput(
            f"{str(out)!r} is no site of cdta's ({MARK} is missing); give -o a new folder"
        ) from None


def _write(site: _Site, out: Path, before: Sequence[str]) -> None:
    """First the mark, so that whatever stops it, the next time knows what was made here."""
    made = [*site.copies, *site.texts]
    replacing_text(out / MARK, json.dumps(sorted({*made, *before}), indent=1) + "\n")
    for name, source in site.copies.items():
        with replacing(out / name) as file:
            file.write(source.read_bytes())
    for name, text in site.texts.items():
        replacing_text(out / name, text)
    for path in _gone(set(before) - set(made), out):
        path.unlink(missing_ok=True)
        for folder in path.parents:
            if folder == out:
                break
            with suppress(OSError):  # it holds something else
                folder.rmdir()
    replacing_text(out / MARK, json.dumps(sorted(made), indent=1) + "\n")


def _gone(names: Iterable[str], out: Path) -> Iterator[Path]:
    """Those of the site alone, whatever is in its mark."""
    for name in names:
        parts = PurePosixPath(name).parts
        if ".." not in parts and not PurePosixPath(name).is_absolute():
            yield out / name
