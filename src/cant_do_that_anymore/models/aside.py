"""Long texts laid aside on disk, so that memory does not grow by what models say and think."""

import os
import sys
from tempfile import TemporaryFile
from threading import Lock
from typing import IO
from weakref import WeakSet

LONG = 200
"""In letters; what is longer is laid aside."""
MOST_FILES = 16
"""Systems let a process open a few hundred, and users load as many runs."""
_CODE = ("utf-8", "surrogatepass")  # servers send halves of characters


class Aside:
    """A place for long texts: a file without a name, which is gone with the last of them."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._one_at_a_time = Lock()
        self._process = os.getpid()

    def lay(self, text: str) -> "str | Lying":
        """The text where it is from now on: if it is long on disk, unless there is no room.

        Short ones are mostly moves, many times the same, and kept once. A process that was forked
        has the file in common with its parent, and does not write to it.
        """
        if len(text) <= LONG:
            return sys.intern(text)
        if os.getpid() != self._process:
            return text
        letters = text.encode(*_CODE)
        try:
            with self._one_at_a_time:
                if not self._file:
                    self._file = TemporaryFile(buffering=0)  # noqa: SIM115
                start, size = self._file.seek(0, os.SEEK_END), self._file.write(letters)
        except OSError:
            return text
        return Lying(self, start, size) if size == len(letters) else text

    def text(self, start: int, size: int) -> str:
        """What was laid there."""
        assert self._file
        if sys.platform != "win32":  # processes fork, and to seek would move the others' place
            return os.pread(self._file.fileno(), size, start).decode(*_CODE)
        with self._one_at_a_time:
            self._file.seek(start)
            return self._file.read(size).decode(*_CODE)


_places: WeakSet[Aside] = WeakSet()


def a_place() -> Aside:
    """A new one, or, where there are many, one of those whose texts are still in use."""
    places = list(_places)
    if len(places) < MOST_FILES:
        places.insert(0, Aside())
        _places.add(places[0])
    return places[0]


class Lying:
    """A text that is laid aside; a copy of it, for another process, say, is the text."""

    __slots__ = ("_place", "_size", "_start")

    def __init__(self, place: Aside, start: int, size: int) -> None:
        self._place, self._start, self._size = place, start, size

    def __str__(self) -> str:
        return self._place.text(self._start, self._size)

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)


class LongText:
    """A field for a text that may be laid aside, and then is read whenever it is looked at."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._held = f"_{name}"

    def __get__(self, holder: object, owner: type | None = None) -> str:
        return "" if holder is None else str(getattr(holder, self._held))

    def __set__(self, holder: object, text: str | Lying) -> None:
        object.__setattr__(holder, self._held, text)
