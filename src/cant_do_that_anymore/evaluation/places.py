"""Where a run is written: a folder that is nobody else's."""

from itertools import count
from pathlib import Path

from ..errors import Interrupted, InvalidInput, UserError
from ..files import check_new_dir, home, safe_name
from .results import Run


def free_folder(run: Run) -> Path:
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


def check_place(out: Path | None) -> None:
    """Refuse a folder that could take no run, before anything is spent; None is for `free_folder`.

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


def unwritable(run: Run, folder: Path, problem: OSError) -> UserError:
    """What to say of a folder that takes no run."""
    return Interrupted(
        f"cannot write the run to {str(folder)!r} ({problem.strerror})",
        "its answers are saved",
        "run the same command again with another --out",
        kept=run.kept,
    )
