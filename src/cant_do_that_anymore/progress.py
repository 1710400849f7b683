"""Progress display: a bar in a terminal, plain lines elsewhere, or nothing."""

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Timer
from typing import Protocol, TextIO

from .formatting import duration, visible

PLAIN_LINE_SECONDS = 15.0
BAR_SECONDS = 0.1
# The rate is measured over the last 30 seconds, or over the last 20 steps if those took longer.
RATE_WINDOW_SECONDS, RATE_WINDOW_STEPS = 30.0, 20
BAR_WIDTH = 20  # columns
LONGEST_WORK = 45  # characters

Facts = Sequence[str]
# Displays the share done, if known, and facts. The time left comes second.
Show = Callable[[float | None, Facts], None]
# Draws the share done and a line of text.
_Draw = Callable[[float | None, str], None]


class Advance(Protocol):
    """Callback that counts the steps done since the last call and displays facts."""

    def __call__(self, steps: int = 1, *, facts: Callable[[], Facts] = tuple) -> None:
        """Count the steps."""


@contextmanager
def progress(work: str, total: int, *, quiet: bool) -> Iterator[Advance]:
    """Display on standard error how many steps of ``work`` are done, while the body runs.

    Args:
        work: the name of the work.
        total: the number of steps.
        quiet: display nothing.
    """
    done, rates = 0, _RateEstimator()
    with progress_display(work, quiet=quiet) as show:

        def advance(steps: int = 1, *, facts: Callable[[], Facts] = tuple) -> None:
            nonlocal done
            done += steps
            if quiet:
                return
            rate = rates.rate(done)
            pace = f"{rate:.0f}/s" if rate >= 1 else f"{duration(1 / rate)} each" if rate else ""
            parts = filter(None, [f"{done}/{total}", *facts(), pace])
            show(done / total, list(parts))

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
        yield lambda share, facts: None
        return
    stream = _stream()
    is_bar = stream.isatty() and not plain
    every = BAR_SECONDS if is_bar else PLAIN_LINE_SECONDS
    last = time.monotonic() - (every if is_bar else 0.0)  # the bar is drawn at once
    rates, title = _RateEstimator(), _shortened(visible(work))
    with (_bar if is_bar else _plain_lines)(stream) as draw:

        def show(share: float | None, facts: Facts) -> None:
            nonlocal last
            nothing_yet.cancel()
            now, left = time.monotonic(), rates.left(share)
            if now - last >= every or share == 1:
                last = now
                first, *others = map(visible, facts)
                time_left = [] if left is None else [f"{duration(left)} left"]
                draw(share, f"{title}: {', '.join([first, *time_left, *others])}")

        nothing_yet = Timer(every, draw, (None, f"{title}: starting"))
        nothing_yet.daemon = True
        nothing_yet.start()
        try:
            yield show
        finally:
            nothing_yet.cancel()


def _shortened(work: str) -> str:
    return work if len(work) <= LONGEST_WORK else f"{work[: LONGEST_WORK - 1]}…"


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


@contextmanager
def _bar(stream: TextIO) -> Iterator[_Draw]:
    """Draw a bar with one line of text, which the terminal's width cuts off."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn
    from rich.table import Column

    one_line = Column(no_wrap=True, overflow="ellipsis")
    text = TextColumn("{task.description}", markup=False, table_column=one_line)
    console = Console(file=stream)
    with Progress(BarColumn(bar_width=BAR_WIDTH), text, console=console, transient=True) as bars:
        task = bars.add_task("", total=None)

        def draw(share: float | None, line: str) -> None:
            total = None if share is None else 1.0
            bars.update(task, description=line, completed=share or 0.0, total=total)

        yield draw


@contextmanager
def _plain_lines(stream: TextIO) -> Iterator[_Draw]:
    """Print lines, for logs: every 15 seconds and at the end, also if no step is done yet."""

    def draw(_: float | None, line: str) -> None:
        with suppress(OSError):  # the stream is closed; the work goes on
            print(line, file=stream, flush=True)

    yield draw


def announce(title: str) -> None:
    """Print the title of one run of several, above its progress."""
    with suppress(OSError):
        print(visible(title), file=_stream(), flush=True)


def _stream() -> TextIO:
    """Return where progress is displayed: notebooks show standard error in red."""
    in_notebook = type(sys.stderr).__module__.startswith("ipykernel")
    return sys.stdout if in_notebook else sys.stderr
