"""The one way to write files: whole or not at all, so that what was there before is never lost."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
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


def replacing_text(path: Path, text: str) -> None:
    """Write a text file in UTF-8, as ``replacing`` does."""
    with replacing(path) as file:
        file.write(text.encode())


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
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


def check_new_folder(path: Path) -> None:
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
def replacing_folder(path: Path) -> Iterator[Path]:
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
