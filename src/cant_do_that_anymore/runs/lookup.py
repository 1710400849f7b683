"""Find runs by folder, name or model, and choose folders for new ones.

Runs are searched under ``CDTA_HOME``, where ``cdta run`` saves them, and in the current folder and
up to two levels below it, where ``cdta experiment`` saves them.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from glob import glob
from itertools import chain, count
from pathlib import Path

from ..errors import InvalidInput
from ..files import check_new_dir, file_errors, home, safe_name
from .run import Run
from .storage import RUN_JSON, RunFile, read_run_json, writing_run


def new_run_dir(run: Run) -> Path:
    """Create an empty folder for the run under ``CDTA_HOME``.

    Raises:
        UserError: if it cannot be created.
    """
    stamp = run.started_at.replace(":", "").removesuffix("Z")
    name = f"{stamp}-{safe_name(run.model)}-{run.plan.eval}"
    names = chain([name], (f"{name}-{number}" for number in count(2)))
    while True:
        folder = home("runs") / next(names)
        with writing_run(folder), suppress(FileExistsError):
            folder.mkdir()  # reserves the name
            return folder


def check_free(folder: Path) -> None:
    """Reject a folder that is the current one or not empty, before any request is sent.

    Raises:
        InvalidInput: if it is.
    """
    is_taken = folder.exists() and (not folder.is_dir() or any(folder.iterdir()))
    if is_taken or folder.resolve() == Path.cwd():
        raise InvalidInput(f"{str(folder)!r} is not a new folder; give another one")


def check_writable(out: Path | None) -> None:
    """Reject a folder that cannot be written, before any request is sent; None for the default.

    Raises:
        InvalidInput: if it cannot be written.
    """
    folder = out or home() / "runs" / "run"
    advice = "give --out another folder" if out else "set CDTA_HOME to one you can write to"
    with file_errors("write to", out or folder.parent, advice, error=InvalidInput):
        if out:
            check_free(out)
        check_new_dir(folder)


LATEST_RUN = "latest"
_NEARBY = (RUN_JSON, f"*/{RUN_JSON}", f"*/*/{RUN_JSON}")


def folders_in(place: Path) -> list[Path]:
    """Return the run folders at a place and up to two levels below it, but half-written ones."""
    # Unlike Path.glob, this one skips names that begin with a dot, and folders that vanish.
    files = (file for pattern in _NEARBY for file in sorted(glob(pattern, root_dir=place)))  # noqa: PTH207
    return [(place / file).parent for file in files]


def known_folders() -> list[Path]:
    """Return all run folders under ``CDTA_HOME`` and near the current folder, each once."""
    return _each_once([*folders_in(home() / "runs"), *folders_in(Path())])


def _each_once(folders: Iterable[Path]) -> list[Path]:
    return list({folder.resolve(): folder for folder in folders}.values())


def readable_runs(folders: Iterable[Path]) -> tuple[list[RunFile], list[Path]]:
    """Return what ``run.json`` says of runs, newest first, and the folders of damaged ones."""
    runs, damaged = [], []
    for folder in folders:
        try:
            runs.append(read_run_json(folder))
        except InvalidInput:
            damaged.append(folder)
    runs.sort(key=lambda run: (run.started_at, run.folder.name), reverse=True)
    return runs, damaged


def find_run(name: str | Path) -> Path:
    """Return the folder of the newest run that matches a name.

    Raises:
        InvalidInput: if none matches.
    """
    folders = find_runs([name])
    runs, _ = readable_runs(folders)
    return runs[0].folder if runs else folders[0]  # whoever loads it gets the reason


def name_of(folder: Path) -> str:
    """Return the shortest text that surely finds a run: its folder's name, or its path."""
    return folder.name if folder.parent == home() / "runs" else str(folder)


def find_runs(names: Iterable[str | Path]) -> list[Path]:
    """Return the folders of all runs that match any of these names, without duplicates.

    A folder of runs, or a model's name, matches all of its runs.

    Raises:
        InvalidInput: if a name matches none.
    """
    found = (_runs_at(name) or [run.folder for run in _runs_named(name)] for name in names)
    return _each_once(chain(*found))


def newest_runs(names: Iterable[str | Path]) -> list[Path]:
    """Return the folders of all runs of a folder, and of the newest run for any other name.

    Raises:
        InvalidInput: if a name matches none.
    """
    return _each_once(chain(*(_runs_at(name) or [find_run(name)] for name in names)))


def _runs_at(name: str | Path) -> list[Path]:
    """Return the runs in a folder; ``run.json`` stands for its run."""
    path = Path(name)
    return folders_in(path.parent if path.name == RUN_JSON else path)


def _runs_named(name: str | Path) -> list[RunFile]:
    """Return the runs with a name, with its end after a slash, or with a part; newest first.

    Raises:
        InvalidInput: if there is none.
    """
    runs, _ = readable_runs(known_folders())
    text, part = str(name), str(name).casefold()
    matches = runs[:1] if text == LATEST_RUN else [run for run in runs if text in run.names]
    matches = matches or [run for run in runs if run.model.endswith(f"/{text}")]
    matches = matches or [run for run in runs if part in " ".join(run.names).casefold()]
    if not matches:
        raise InvalidInput(
            f"no run matches {text!r}: give a part of a folder, model or tag (see `cdta runs`)"
        )
    return matches


# Options of a run that decide whether another one can be compared with it, besides the rules.
_TASK_OPTIONS = ("eval", "pool", "dataset", "wording", "form", "reading")


def runs_to_compare(names: Sequence[str | Path]) -> list[list[Path]]:
    """Return the runs that each name stands for.

    A folder stands for all of its runs, and so does a single name. Of several names, each stands
    for one run: the newest for which the other names have a run of the same task.

    Raises:
        InvalidInput: if a name matches none.
    """
    if len(names) == 1:
        return [find_runs(names)]
    choices = [_choices(name) for name in names]
    shared = [task for task in choices[0] if all(task in tasks for tasks in choices)]
    return [tasks[shared[0]] if shared else next(iter(tasks.values())) for tasks in choices]


def _choices(name: str | Path) -> dict[tuple[str, ...], list[Path]]:
    """Return the newest run for each task that a name matches; a folder is one choice."""
    if folders := _runs_at(name):
        return {_task(read_run_json(folders[0])): folders}
    tasks: dict[tuple[str, ...], list[Path]] = {}
    for run in _runs_named(name):
        tasks.setdefault(_task(run), [run.folder])
    return tasks


def _task(run: RunFile) -> tuple[str, ...]:
    return run.rules, *(str(run.options.get(name)) for name in _TASK_OPTIONS)
