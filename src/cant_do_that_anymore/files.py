"""Atomic writes, bounded reads, and where the package keeps its files."""

import errno
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from itertools import takewhile
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

import platformdirs

from .errors import UserError


@contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """A file to write that takes the place of ``path`` if the body ends without an exception.

    The target of a link is replaced, and the link stays; into a device or a pipe it is written
    at once.

    Raises:
        OSError: if it cannot be written.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    target = _resolved(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    half = _beside(target)
    try:
        with half.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, half)
        half.replace(target)
    finally:
        half.unlink(missing_ok=True)


def atomic_write_text(path: Path, text: str) -> None:
    """Write a text file in UTF-8, as ``atomic_write`` does."""
    with atomic_write(path) as file:
        file.write(text.encode())


@contextmanager
def atomic_new_dir(path: Path) -> Iterator[Path]:
    """A folder to fill that appears as ``path`` if the body ends without an exception.

    Raises:
        OSError: if it cannot be made, or something other than an empty folder is in its place.
    """
    target = _resolved(path)
    half = _beside(target)
    half.mkdir(parents=True)
    try:
        yield half
        with suppress(OSError):  # else it could not take the place of an empty one on Windows
            target.rmdir()
        half.rename(target)
    except BaseException:
        shutil.rmtree(half, ignore_errors=True)
        raise


def check_new_dir(path: Path) -> None:
    """Try whether a folder can be made in this place, and leave nothing behind.

    Raises:
        OSError: if it cannot.
    """
    half = _beside(_resolved(path))
    missing = list(takewhile(lambda folder: not folder.exists(), (half, *half.parents)))
    half.mkdir(parents=True)
    with suppress(OSError):  # somebody else has put something there meanwhile
        for folder in missing:
            folder.rmdir()


def _resolved(path: Path) -> Path:
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    return target


def _beside(path: Path) -> Path:
    """Whoever else writes the same file at the same time has another name."""
    return path.with_name(f".part-{uuid4().hex}")


@contextmanager
def atomic_replace_dir(path: Path) -> Iterator[Path]:
    """A folder to fill that takes the place of ``path`` if the body ends without an exception.

    Raises:
        OSError: if it cannot be made.
    """
    half = _beside(path)
    half.mkdir(parents=True)
    try:
        yield half
        while not _takes_place(half, path):
            with suppress(FileNotFoundError):  # somebody else was quicker
                path.rename(aside := _beside(path))
                shutil.rmtree(aside, ignore_errors=True)
    except BaseException:
        shutil.rmtree(half, ignore_errors=True)
        raise


def _takes_place(half: Path, path: Path) -> bool:
    """Give a folder its name, unless another one that is not empty has it."""
    try:
        half.rename(path)
    except OSError as problem:
        if problem.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        return False
    return True


FOR_THE_USER = 0o700
"""Who may enter what is made here: answers, and whatever a server repeats in them, are private."""


def home(inside: str = "") -> Path:
    """The folder ``CDTA_HOME``, by default the platform's user data folder, or one in it.

    Raises:
        UserError: if the folder cannot be made.
    """
    given = os.environ.get("CDTA_HOME")
    path = Path(given or platformdirs.user_data_dir("cdta", appauthor=False))
    try:
        for folder in (path, path / inside):
            folder.mkdir(FOR_THE_USER, parents=True, exist_ok=True)
    except OSError as problem:
        raise UserError(
            f"cannot use {str(path)!r} to keep answers ({problem.strerror}); "
            "set CDTA_HOME to a folder you can write to"
        ) from None
    return path / inside


def answers_file() -> Path:
    """Where every answer is kept."""
    return home() / "answers.sqlite"


def safe_name(name: str) -> str:
    """A file name for any text: readable, never a path, different for different texts.

    >>> safe_name("gpt-4-0314")
    'gpt-4-0314'
    >>> safe_name("a/../../b")
    'a_.._.._b-feddf167'
    """
    readable = re.sub(r"[^A-Za-z0-9._-]+", "_", name)[:80].lstrip(".")
    if readable and readable == name:
        return name
    return f"{readable}-{sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
