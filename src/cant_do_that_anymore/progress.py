"""Progress display: a bar in a terminal, plain lines elsewhere, or nothing."""

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from statistics import fmean
from threading import Timer
from typing import Protocol

from .errors import visible

PLAIN_LINE_SECONDS = 15.0
BAR_SECONDS = 0.1
# The rate is measured over the last 30 seconds, or over the last 20 steps if those took longer.
RATE_WINDOW_SECONDS, RATE_WINDOW_STEPS = 30.0, 20


class Show(Protocol):
    """Callback that displays the share done, if known, and a remark."""

    def __call__(self, share: float | None, remark: str) -> None:
        """Display both."""


class Advance(Protocol):
    """Callback that counts the steps done since the last call and displays a remark.

    With ``paced=False`` no rate is displayed: a server or a provider decides how long it takes.
    """

    def __call__(
        self, steps: int = 1, *, remark: Callable[[], str] = str, paced: bool = True
    ) -> None:
        """Count the steps."""


def status_callback(advance: Advance) -> Callable[[str], None]:
    """Return a callback that displays a status message without a rate."""
    return lambda remark: advance(0, remark=lambda: remark, paced=False)


def duration(seconds: float) -> str:
    """Format a duration in the unit that suits it.

    >>> duration(45), duration(300), duration(10_800), duration(250_000)
    ('45 s', '5 min', '3 h', '2.9 days')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    hours = seconds / 3600
    return f"{hours:.2g} h" if hours < 48 else f"{hours / 24:,.1f} days"


@contextmanager
def progress(
    work: str, total: int, *, quiet: bool, to: Callable[[str], None] | None = None
) -> Iterator[Advance]:
    """Display on standard error how many steps of ``work`` are done, while the body runs.

    Args:
        work: the name of the work.
        total: the number of steps.
        quiet: display nothing.
        to: prints a line for each step instead, for a person who answers at the terminal.
    """
    if to and not quiet:
        yield _line_per_step(work, total, to)
        return
    done, rates = 0, _RateEstimator()
    with progress_display(work, quiet=quiet) as show:

        def advance(steps: int = 1, *, remark: Callable[[], str] = str, paced: bool = True) -> None:
            nonlocal done
            if quiet:
                return
            done += steps
            rate = rates.rate(done)
            pace = f"{rate:.0f}/s" if rate >= 1 else f"{duration(1 / rate)} each" if rate else ""
            parts = (f"{done}/{total}", pace if paced else "", remark())
            show(done / total if paced else None, ", ".join(filter(None, parts)))

        yield advance


def _line_per_step(work: str, total: int, to: Callable[[str], None]) -> Advance:
    done = 0

    def advance(steps: int = 1, *, remark: Callable[[], str] = str, paced: bool = True) -> None:
        nonlocal done
        done += steps
        to(f"{work}: {done} of {total}")

    advance(0)
    return advance


@contextmanager
def progress_display(work: str, *, quiet: bool, plain: bool = False) -> Iterator[Show]:
    """Display on standard error how much of ``work`` is done, while the body runs.

    Args:
        work: the name of the work.
        quiet: display nothing.
        plain: print lines in a terminal too, because something else is written there.
    """
    if quiet:
        yield _silent
        return
    work = visible(work)
    with _plain_lines(work) if plain or not sys.stderr.isatty() else _bar(work) as show:
        yield lambda share, remark: show(share, visible(remark))


def _silent(share: float | None, remark: str) -> None:
    pass


class _RateEstimator:
    """Rate over a moving window, since cached answers come at once and the others do not."""

    def __init__(self) -> None:
        self._seen = deque([(time.monotonic(), 0.0)])

    def rate(self, done: float) -> float:
        """Record how much is done and return the rate per second."""
        now = time.monotonic()
        if done > self._seen[-1][1]:
            self._seen.append((now, done))
        while len(self._seen) > RATE_WINDOW_STEPS and self._seen[0][0] < now - RATE_WINDOW_SECONDS:
            self._seen.popleft()
        start, done_then = self._seen[0]
        return (done - done_then) / max(now - start, 1e-9)

    def left(self, share: float | None) -> float | None:
        """Return the seconds left, or None while there is no rate."""
        rate = self.rate(share) if share else 0.0
        return (1 - share) / rate if share and rate else None


@dataclass(frozen=True)
class _Part:
    """One run of several, with its start time and the durations of those before it."""

    title: str
    ahead: int
    took: Sequence[float]
    began: float

    def left(self, seconds: float | None) -> str:
        """Format the time until all runs are done, given the seconds left of this one."""
        if seconds is None:
            return ""
        mean_seconds = fmean(self.took) if self.took else time.monotonic() - self.began + seconds
        return f", {duration(seconds + self.ahead * mean_seconds)} left of all"


_PART: ContextVar[_Part | None] = ContextVar("part", default=None)


@contextmanager
def overall_progress(title: str, ahead: int, took: list[float]) -> Iterator[None]:
    """Display progress within the body as that of one run of several.

    Args:
        title: the title of this run.
        ahead: the number of runs after it.
        took: the durations of earlier runs in seconds; that of this run is appended.
    """
    part = _Part(title, ahead, tuple(took), time.monotonic())
    token = _PART.set(part)
    try:
        yield
    finally:
        _PART.reset(token)
        took.append(time.monotonic() - part.began)


def _time_left(left: float | None) -> str:
    return "" if left is None else f", {duration(left)} left"


@contextmanager
def _bar(work: str) -> Iterator[Show]:
    from rich.console import Console, RenderableType
    from rich.progress import BarColumn, Progress, TextColumn
    from rich.text import Text

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[remark]}", markup=False),
    )
    rates, last, part = _RateEstimator(), -BAR_SECONDS, _PART.get()
    overall = Text(part.title if part else "")

    class Bars(Progress):
        def get_renderables(self) -> Iterator[RenderableType]:
            if part:
                yield overall
            yield from super().get_renderables()

    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(work, total=None, remark="")

        def show(share: float | None, remark: str) -> None:
            nonlocal last
            now, left = time.monotonic(), rates.left(share)
            if now - last < BAR_SECONDS and share != 1:
                return
            last = now
            total = None if share is None else 1.0
            if part:
                overall.plain = part.title + part.left(left)
            remark += _time_left(left)
            bars.update(task, completed=share or 0.0, total=total, remark=remark)

        yield show


@contextmanager
def _plain_lines(work: str) -> Iterator[Show]:
    """Print a line every 15 seconds and at the end, for logs, also if no step is done yet."""
    rates, last, part = _RateEstimator(), time.monotonic(), _PART.get()
    work = f"{part.title}: {work}" if part else work

    def print_line(remark: str) -> None:
        with suppress(OSError):  # standard error is closed; the work goes on
            print(f"{work}: {remark}", file=sys.stderr, flush=True)

    def show(share: float | None, remark: str) -> None:
        nonlocal last
        first_line.cancel()
        now, left = time.monotonic(), rates.left(share)
        if now - last >= PLAIN_LINE_SECONDS or share == 1:
            last = now
            print_line(remark + _time_left(left) + (part.left(left) if part else ""))

    first_line = Timer(PLAIN_LINE_SECONDS, print_line, ["nothing yet"])
    first_line.daemon = True
    first_line.start()
    try:
        yield show
    finally:
        first_line.cancel()
