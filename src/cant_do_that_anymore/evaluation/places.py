"""Where a run is written: a folder that is nobody else's."""

from itertools import count
from pathlib import Path

from ..errors import BadInput, Problem
from ..home import home, safe_name
from .results import Run


def free_folder(run: Run) -> Path:
    """A place for the run among the others under ``CDTA_HOME``, as an empty folder.

    Raises:
        Problem: if it cannot be made.
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
            raise unwritable(folder, problem) from None
        return folder
    raise AssertionError("numbers do not end")


def check_free(folder: Path) -> None:
    """Refuse a folder that holds anything already, before anything is spent.

    Raises:
        BadInput: if it does.
    """
    if folder.resolve() == Path.cwd():
        raise BadInput(f"{str(folder)!r} is the folder you are in; name a new one")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(f"{str(folder)!r} is not empty; name a new folder")


def unwritable(folder: Path, problem: OSError) -> Problem:
    """What to say of a folder that takes no run."""
    return Problem(
        f"cannot write the run to {str(folder)!r} ({problem.strerror}); its answers are saved, "
        "run the same command again with another --out"
    )
