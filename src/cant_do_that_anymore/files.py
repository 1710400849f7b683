"""Atomic writes of files and folders, and the location of the package's own files."""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO
from uuid import uuid4

import platformdirs

from .errors import UserError, error_reason

# The data that come with the package.
DATA = files("cant_do_that_anymore") / "data"

# Names of files and folders that are not complete begin with this.
PARTIAL = ".part-"


@contextmanager
def file_errors(
    action: str,
    path: Path | str,
    advice: str = "",
    *,
    error: Callable[[str], UserError] = UserError,
    caught: tuple[type[Exception], ...] = (OSError,),
) -> Iterator[None]:
    """Report an exception of the block as one sentence.

    The sentence is "cannot ACTION PATH (REASON)", and the advice if there is any.
    """
    try:
        yield
    except caught as problem:
        hint = f"; {advice}" if advice else ""
        raise error(f"cannot {action} {str(path)!r} ({error_reason(problem)}){hint}") from None


@contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """Yield a temporary file that replaces ``path`` if the body ends without an exception.

    A symbolic link stays, and its target is replaced. A device or a pipe is written directly.

    Raises:
        OSError: if the file cannot be written.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    target = Path(os.path.realpath(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = _temporary_path(target)
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def atomic_write_text(path: Path, text: str) -> None:
    """Write a text file atomically, in UTF-8."""
    with atomic_write(path) as file:
        file.write(text.encode())


@contextmanager
def atomic_dir(path: Path, *, replace: bool = False) -> Iterator[Path]:
    """Yield a temporary folder that becomes ``path`` if the body ends without an exception.

    Raises:
        OSError: if it cannot be created, or a folder with contents is there that may not be
            replaced.
    """
    target = Path(os.path.realpath(path))
    temporary, replaced = _temporary_path(target), _temporary_path(target)
    temporary.mkdir(parents=True)
    try:
        yield temporary
        if replace:
            with suppress(FileNotFoundError):
                target.rename(replaced)
        with suppress(OSError):  # Windows cannot rename onto an empty folder
            target.rmdir()
        temporary.rename(target)
    finally:
        for folder in (temporary, replaced):
            shutil.rmtree(folder, ignore_errors=True)


def check_new_dir(path: Path) -> None:
    """Check that a file or folder can be created at ``path``, and leave nothing behind.

    Raises:
        OSError: if it cannot be created.
    """
    parent = next(folder for folder in Path(os.path.realpath(path)).parents if folder.exists())
    with TemporaryDirectory(prefix=PARTIAL, dir=parent):
        pass


def _temporary_path(path: Path) -> Path:
    """Return a temporary name in the same folder, different for each writer."""
    return path.with_name(f"{PARTIAL}{uuid4().hex}")


def home(inside: str = "") -> Path:
    """Create and return ``CDTA_HOME`` (by default the user data folder), or a folder in it.

    Raises:
        UserError: if the folder cannot be created.
    """
    configured = os.environ.get("CDTA_HOME")
    path = Path(configured or platformdirs.user_data_dir("cdta", appauthor=False))
    advice = "set CDTA_HOME to a folder you can write to"
    with file_errors("use the folder", path, advice, caught=(OSError, RuntimeError)):
        path = path.expanduser()
        for folder in (path, path / inside):
            # Only the owner reads answers, and what a server repeats in them.
            folder.mkdir(0o700, parents=True, exist_ok=True)
    return path / inside


def safe_name(name: str) -> str:
    """Turn any text into a file name: readable, never a path, unique for each text.

    >>> safe_name("gpt-4-0314")
    'gpt-4-0314'
    >>> safe_name("a/../../b")
    'a_.._.._b-feddf167'
    """
    readable = readable_name(name)
    if readable and readable == name:
        return name
    return f"{readable}-{sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def readable_name(text: str) -> str:
    """Return the characters of a text that suit the name of a file; several texts may share it."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", text)[:80].lstrip(".")
