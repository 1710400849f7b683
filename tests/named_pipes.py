"""Pipes with a name, as something that no writer of files may replace."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def open_pipe(path: Path) -> Iterator[Callable[[], bytes]]:
    """Make a pipe at ``path`` that somebody reads; it gives what was sent and must still be one."""
    os.mkfifo(path)
    end = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        yield lambda: os.read(end, 2**16)
    finally:
        os.close(end)
    assert path.is_fifo()
    assert [other for other in path.parent.iterdir() if other.name.startswith(".part-")] == []
