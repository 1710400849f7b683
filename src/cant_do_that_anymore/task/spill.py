"""Keep long answers in temporary files instead of memory."""

import os
import pickle
import sys
from collections.abc import Mapping
from tempfile import TemporaryFile
from threading import Lock
from typing import IO
from weakref import WeakSet

from ..providers.base import Answer

MAX_ANSWERS_IN_MEMORY, MAX_LETTERS_IN_MEMORY = 10_000, 200
"""So many answers of no more letters stay in memory: the usual run, which needs no disk."""
MOST_FILES = 16
"""Systems let a process open a few hundred, and users load as many runs."""

Answers = Mapping[str, Answer]
"""What was said about one position, by condition."""


class SpillFile:
    """A place for answers: a file without a name, which is gone with the last of them."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._one_at_a_time = Lock()
        self._process = os.getpid()
        self._in_memory = 0
        self._last: tuple[int, Answers] = -1, {}

    def spill(self, answers: Answers) -> "Answers | Spilled":
        """The answers where they are from now on: mostly on disk, unless there is no room.

        A process that was forked has the file in common with its parent, and does not write to it.
        """
        texts = (text for each in answers.values() for text in (each.text, each.reasoning))
        if self._in_memory < MAX_ANSWERS_IN_MEMORY and all(
            len(text) <= MAX_LETTERS_IN_MEMORY for text in texts
        ):
            self._in_memory += len(answers)
            return answers
        if os.getpid() != self._process:
            return answers
        packed = pickle.dumps(answers)
        try:
            with self._one_at_a_time:
                if not self._file:
                    self._file = TemporaryFile(buffering=0)  # noqa: SIM115
                start, size = self._file.seek(0, os.SEEK_END), self._file.write(packed)
        except OSError:
            return answers
        return Spilled(self, start, size) if size == len(packed) else answers

    def read(self, start: int, size: int) -> Answers:
        """What was laid there; who looks at one sample several times has it read once."""
        last, answers = self._last
        if last == start:
            return answers
        assert self._file
        if sys.platform != "win32":  # processes fork, and to seek would move the others' place
            packed = os.pread(self._file.fileno(), size, start)
        else:
            with self._one_at_a_time:
                self._file.seek(start)
                packed = self._file.read(size)
        answers = dict(pickle.loads(packed))
        self._last = start, answers
        return answers


_one_at_a_time = Lock()


def spill_file() -> SpillFile:
    """A new one, or, where there are many, one of those whose answers are still in use."""
    with _one_at_a_time:
        places = list(_places)
        if len(places) < MOST_FILES:
            places.insert(0, SpillFile())
            _places.add(places[0])
        return places[0]


class Spilled:
    """Answers that are laid aside; a copy of them, for another process, say, is the answers."""

    __slots__ = ("_place", "_size", "_start")

    def __init__(self, place: SpillFile, start: int, size: int) -> None:
        self._place, self._start, self._size = place, start, size

    def read(self) -> Answers:
        """What was said."""
        return self._place.read(self._start, self._size)

    def __repr__(self) -> str:
        return repr(self.read())

    def __eq__(self, other: object) -> bool:
        return self.read() == other

    def __reduce__(self) -> tuple[type[dict[str, Answer]], tuple[Answers]]:
        return dict, (self.read(),)


_places: WeakSet[SpillFile] = WeakSet()
