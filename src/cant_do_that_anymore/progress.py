"""Progress for the person who waits: a bar in a terminal, plain lines elsewhere, or nothing."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

PLAIN_LINE_SECONDS = 15.0


class Show(Protocol):
    """Called now and then with the share that is done, if known, and how it goes."""

    def __call__(self, share: float | None, remark: str) -> None:
        """Show that."""


class Advance(Protocol):
    """Called after each step, with a remark on how it goes."""

    def __call__(self, *, remark: str = "") -> None:
        """Count one step."""


@contextmanager
def progress(what: str, total: int, *, quiet: bool) -> Iterator[Advance]:
    """Show on standard error how many steps of ``what`` are done, while the body runs."""
    done, started = 0, time.monotonic()
    with shown(what, quiet=quiet) as show:

        def advance(*, remark: str = "") -> None:
            nonlocal done
            done += 1
            rate = done / max(time.monotonic() - started, 1e-9)
            pace = f"{rate:.0f}/s" if rate >= 1 else f"{1 / rate:.0f} s each"
            parts = (f"{done}/{total}", pace, remark)
            show(done / total, ", ".join(filter(None, parts)))

        yield advance


@contextmanager
def shown(what: str, *, quiet: bool, plain: bool = False) -> Iterator[Show]:
    """Show on standard error how far ``what`` has come, while the body runs.

    Args:
        what: what is being done.
        quiet: show nothing.
        plain: show lines in a terminal too, because something else is written there.
    """
    if quiet:
        yield _silent
    elif plain or not sys.stderr.isatty():
        yield _PlainLines(what)
    else:
        with _bar(what) as show:
            yield show


def _silent(share: float | None, remark: str) -> None:
    pass


@contextmanager
def _bar(what: str) -> Iterator[Show]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[remark]}", markup=False),
        TimeRemainingColumn(compact=True),
        TextColumn("left"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(what, total=None, remark="")

        def show(share: float | None, remark: str) -> None:
            total = None if share is None else 1.0
            bars.update(task, completed=share or 0.0, total=total, remark=remark)

        yield show


class _PlainLines:
    """A line now and then, for logs, and one at the end."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._started = self._last = time.monotonic()

    def __call__(self, share: float | None, remark: str) -> None:
        now = time.monotonic()
        is_done = share is not None and share >= 1
        if now - self._last < PLAIN_LINE_SECONDS and not is_done:
            return
        self._last = now
        left = f", {(now - self._started) * (1 - share) / share:.0f} s left" if share else ""
        print(f"{self._what}: {remark}{left}", file=sys.stderr, flush=True)
