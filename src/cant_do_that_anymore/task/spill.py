"""Keep long answers in temporary files instead of memory."""

import os
import pickle
from collections.abc import Mapping
from tempfile import TemporaryFile
from threading import Lock
from typing import IO
from weakref import WeakSet

from ..providers.base import Answer

# Up to so many answers of no more characters stay in memory, so a usual run needs no disk.
MAX_ANSWERS_IN_MEMORY, MAX_CHARACTERS_IN_MEMORY = 10_000, 200
# Systems allow a few hundred open files per process, and users may load as many runs.
MAX_FILES = 16

# The answers about one position, by condition.
Answers = Mapping[str, Answer]


class SpillFile:
    """An unnamed temporary file for answers, which is deleted with the last of them."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._lock = Lock()
        self._in_memory = 0
        self._last: tuple[int, Answers] = -1, {}

    def spill(self, answers: Answers) -> "Answers | Spilled":
        """Write the answers to disk, unless they are few and short or there is no room."""
        texts = (text for answer in answers.values() for text in (answer.text, answer.reasoning))
        if self._in_memory < MAX_ANSWERS_IN_MEMORY and all(
            len(text) <= MAX_CHARACTERS_IN_MEMORY for text in texts
        ):
            self._in_memory += len(answers)
            return answers
        packed = pickle.dumps(answers)
        try:
            with self._lock:
                if not self._file:
                    self._file = TemporaryFile(buffering=0)  # noqa: SIM115
                start, size = self._file.seek(0, os.SEEK_END), self._file.write(packed)
        except OSError:
            return answers
        return Spilled(self, start, size) if size == len(packed) else answers

    def read(self, start: int, size: int) -> Answers:
        """Read answers back; the last ones read are cached."""
        last, answers = self._last
        if last == start:
            return answers
        assert self._file
        with self._lock:
            self._file.seek(start)
            packed = self._file.read(size)
        answers = dict(pickle.loads(packed))
        self._last = start, answers
        return answers


_lock = Lock()


def spill_file() -> SpillFile:
    """Return a new spill file, or, if there are many, one that is in use."""
    with _lock:
        files = list(_files)
        if len(files) < MAX_FILES:
            files.insert(0, SpillFile())
            _files.add(files[0])
        return files[0]


class Spilled:
    """Answers in a spill file; a pickled copy, say for another process, holds the answers."""

    __slots__ = ("_size", "_spill_file", "_start")

    def __init__(self, spill_file: SpillFile, start: int, size: int) -> None:
        self._spill_file, self._start, self._size = spill_file, start, size

    def read(self) -> Answers:
        """Read the answers."""
        return self._spill_file.read(self._start, self._size)

    def __repr__(self) -> str:
        return repr(self.read())

    def __eq__(self, other: object) -> bool:
        return self.read() == other

    def __reduce__(self) -> tuple[type[dict[str, Answer]], tuple[Answers]]:
        return dict, (self.read(),)


_files: WeakSet[SpillFile] = WeakSet()
