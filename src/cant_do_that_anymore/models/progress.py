"""Progress for the person who waits: a bar in a terminal, plain lines elsewhere, or nothing."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

PLAIN_LINE_SECONDS = 15.0


class Advance(Protocol):
    """Called after each step, with a remark on how it goes."""

    def __call__(self, *, remark: str = "") -> None:
        """Count one step."""


@contextmanager
def progress(what: str, total: int, *, quiet: bool) -> Iterator[Advance]:
    """Show on standard error how far ``what`` has come, while the body runs."""
    if quiet:
        yield _silent
    elif sys.stderr.isatty():
        with _bar(what, total) as advance:
            yield advance
    else:
        yield _PlainLines(what, total)


def _silent(*, remark: str = "") -> None:
    pass


@contextmanager
def _bar(what: str, total: int) -> Iterator[Advance]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]:.0f}/s {task.fields[remark]}"),
        TimeRemainingColumn(compact=True),
        TextColumn("left"),
    )
    started = time.monotonic()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(what, total=total, rate=0.0, remark="")

        def advance(*, remark: str = "") -> None:
            rate = (bars.tasks[0].completed + 1) / (time.monotonic() - started)
            bars.update(task, advance=1, rate=rate, remark=remark)

        yield advance


class _PlainLines:
    """A line now and then, for logs."""

    def __init__(self, what: str, total: int) -> None:
        self._what, self._total = what, total
        self._done = 0
        self._started = self._last = time.monotonic()

    def __call__(self, *, remark: str = "") -> None:
        self._done += 1
        now = time.monotonic()
        if now - self._last < PLAIN_LINE_SECONDS and self._done < self._total:
            return
        self._last = now
        rate = self._done / max(now - self._started, 1e-9)
        parts = [f"{self._done}/{self._total}", f"{rate:.0f}/s", remark]
        parts.append(f"{(self._total - self._done) / rate:.0f} s left")
        print(f"{self._what}:", ", ".join(filter(None, parts)), file=sys.stderr, flush=True)
