"""Progress display: a bar in a terminal, plain lines elsewhere, or nothing."""

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from threading import Timer
from typing import Protocol, TextIO

from .formatting import duration, visible

PLAIN_LINE_SECONDS = 15.0
BAR_SECONDS = 0.1
# The rate is measured over the last 30 seconds, or over the last 20 steps if those took longer.
RATE_WINDOW_SECONDS, RATE_WINDOW_STEPS = 30.0, 20
LINE_WIDTH, BAR_WIDTH = 79, 20  # columns
SHORTEST_WORK = 12  # characters

# Displays the share done, if known, and facts. The time left comes second.
Show = Callable[[float | None, Sequence[str]], None]


class Advance(Protocol):
    """Callback that counts the steps done since the last call and displays facts."""

    def __call__(self, steps: int = 1, facts: Sequence[str] = ()) -> None:
        """Count the steps."""


@contextmanager
def progress(work: str, total: int, *, quiet: bool) -> Iterator[Advance]:
    """Display on standard error how many steps of ``work`` are done, while the body runs.

    Args:
        work: the name of the work.
        total: the number of steps.
        quiet: display nothing.
    """
    done = 0
    with progress_display(work, quiet=quiet) as show:

        def advance(steps: int = 1, facts: Sequence[str] = ()) -> None:
            nonlocal done
            done += steps
            show(done / total, [f"{done}/{total}", *facts])

        yield advance


@contextmanager
def progress_display(work: str, *, quiet: bool) -> Iterator[Show]:
    """Display on standard error how much of ``work`` is done, while the body runs."""
    if quiet:
        yield lambda share, facts: None
        return
    stream = _stream()
    is_bar = stream.isatty()
    every = BAR_SECONDS if is_bar else PLAIN_LINE_SECONDS
    width = LINE_WIDTH - BAR_WIDTH - 1 if is_bar else LINE_WIDTH
    last = time.monotonic() - (every if is_bar else 0.0)  # the bar is drawn at once
    time_left = _TimeLeft()
    with _bar(stream) if is_bar else nullcontext(partial(_print, stream)) as draw:

        def show(share: float | None, facts: Sequence[str]) -> None:
            nonlocal last
            nothing_yet.cancel()
            now, left = time.monotonic(), time_left.after(share)
            if now - last >= every or share == 1:
                last = now
                first, *others = facts
                then = [] if left is None else [f"{duration(left)} left"]
                draw(_line(work, [first, *then, *others], width), share)

        nothing_yet = Timer(every, draw, [_line(work, ["starting"], width)])
        nothing_yet.daemon = True
        nothing_yet.start()
        try:
            yield show
        finally:
            nothing_yet.cancel()


def _line(work: str, facts: Sequence[str], width: int) -> str:
    """Return a line of this width: a long name of the work is cut off."""
    text = ", ".join(filter(None, facts))
    room = max(width - len(text) - 2, SHORTEST_WORK)
    name = work if len(work) <= room else f"{work[: room - 1]}…"
    return visible(f"{name}: {text}")


class _TimeLeft:
    """The time left at the rate of a moving window: cached answers come at once, others do not."""

    def __init__(self) -> None:
        self._seen = deque([(time.monotonic(), 0.0)])

    def after(self, share: float | None) -> float | None:
        """Record the share that is done and return the seconds left, or None if unknown."""
        now = time.monotonic()
        if share and share > self._seen[-1][1]:
            self._seen.append((now, share))
        while len(self._seen) > RATE_WINDOW_STEPS and self._seen[0][0] < now - RATE_WINDOW_SECONDS:
            self._seen.popleft()
        start, share_then = self._seen[0]
        if not share or share == share_then:
            return None
        return (1 - share) * (now - start) / (share - share_then)


@contextmanager
def _bar(stream: TextIO) -> Iterator[Callable[..., None]]:
    """Draw a bar with one line of text, which the terminal's width cuts off."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn
    from rich.table import Column

    one_line = Column(no_wrap=True, overflow="ellipsis")
    text = TextColumn("{task.description}", markup=False, table_column=one_line)
    console = Console(file=stream)
    with Progress(BarColumn(bar_width=BAR_WIDTH), text, console=console, transient=True) as bars:
        task = bars.add_task("", total=None)

        def draw(line: str, share: float | None = None) -> None:
            total = None if share is None else 1.0
            bars.update(task, description=line, completed=share or 0.0, total=total)

        yield draw


def announce(title: str) -> None:
    """Print the title of one run of several, above its progress."""
    _print(_stream(), visible(title))


def _print(stream: TextIO, line: str, share: float | None = None) -> None:
    with suppress(OSError):  # the stream is closed; the work goes on
        print(line, file=stream, flush=True)


def _stream() -> TextIO:
    """Return where progress is displayed: notebooks show standard error in red."""
    in_notebook = type(sys.stderr).__module__.startswith("ipykernel")
    return sys.stdout if in_notebook else sys.stderr
