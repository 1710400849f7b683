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

from .formatting import duration, visible

PLAIN_LINE_SECONDS = 15.0
BAR_SECONDS = 0.1
# The rate is measured over the last 30 seconds, or over the last 20 steps if those took longer.
RATE_WINDOW_SECONDS, RATE_WINDOW_STEPS = 30.0, 20


# Displays the share done, if known, and a remark.
Show = Callable[[float | None, str], None]


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
    done, rates = 0, _RateEstimator()
    with progress_display(work, quiet=quiet or to is not None) as show:

        def advance(steps: int = 1, *, remark: Callable[[], str] = str, paced: bool = True) -> None:
            nonlocal done
            done += steps
            if quiet:
                return
            if to:
                to(f"{work}: {done} of {total}")
                return
            rate = rates.rate(done)
            pace = f"{rate:.0f}/s" if rate >= 1 else f"{duration(1 / rate)} each" if rate else ""
            parts = (f"{done}/{total}", pace if paced else "", remark())
            show(done / total if paced else None, ", ".join(filter(None, parts)))

        if to:
            advance(0)
        yield advance


@contextmanager
def progress_display(work: str, *, quiet: bool, plain: bool = False) -> Iterator[Show]:
    """Display on standard error how much of ``work`` is done, while the body runs.

    Args:
        work: the name of the work.
        quiet: display nothing.
        plain: print lines in a terminal too, because something else is written there.
    """
    if quiet:
        yield lambda share, remark: None
        return
    lines = plain or not sys.stderr.isatty()
    every = PLAIN_LINE_SECONDS if lines else BAR_SECONDS
    rates, part = _RateEstimator(), _PART.get()
    last = time.monotonic() - (0.0 if lines else every)  # the bar is drawn at once
    with (_plain_lines if lines else _bar)(visible(work), part.title if part else "") as draw:

        def show(share: float | None, remark: str) -> None:
            nonlocal last
            nothing_yet.cancel()
            now, left = time.monotonic(), rates.left(share)
            if now - last >= every or share == 1:
                last = now
                own = "" if left is None else f", {duration(left)} left"
                draw(share, visible(remark) + own, part.left(left) if part else "")

        nothing_yet = Timer(every, draw, (None, "nothing yet", ""))
        nothing_yet.daemon = True
        if lines:
            nothing_yet.start()
        try:
            yield show
        finally:
            nothing_yet.cancel()


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


# Draws the share done, a remark, and the time left of all runs.
_Draw = Callable[[float | None, str, str], None]


@contextmanager
def _bar(work: str, title: str) -> Iterator[_Draw]:
    """Draw a bar, below the title of a run of several."""
    from rich.console import Console, RenderableType
    from rich.progress import BarColumn, Progress, TextColumn
    from rich.text import Text

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[remark]}", markup=False),
    )
    overall = Text(title)

    class Bars(Progress):
        def get_renderables(self) -> Iterator[RenderableType]:
            if title:
                yield overall
            yield from super().get_renderables()

    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(work, total=None, remark="")

        def draw(share: float | None, remark: str, left_of_all: str) -> None:
            overall.plain = title + left_of_all
            total = None if share is None else 1.0
            bars.update(task, completed=share or 0.0, total=total, remark=remark)

        yield draw


@contextmanager
def _plain_lines(work: str, title: str) -> Iterator[_Draw]:
    """Print lines, for logs: every 15 seconds and at the end, also if no step is done yet."""

    def draw(_: float | None, remark: str, left_of_all: str) -> None:
        with suppress(OSError):  # standard error is closed; the work goes on
            line = f"{work}: {remark}{left_of_all}"
            print(f"{title}: {line}" if title else line, file=sys.stderr, flush=True)

    yield draw
