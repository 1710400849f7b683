"""Progress display: a bar in a terminal, plain lines elsewhere, or nothing."""

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import Protocol, TextIO

from .formatting import duration, visible

PLAIN_LINE_SECONDS = 15.0
# The rate is measured over the last 20 steps, of which those within a second count as one.
RATE_STEPS, STEP_SECONDS = 20, 1.0
BAR_WIDTH = 20  # columns

# Draws the facts as one text, and the share done.
Draw = Callable[[str, float | None], None]


class Advance(Protocol):
    """Callback that counts the steps done since the last call and displays facts."""

    def __call__(self, steps: int = 1, facts: Sequence[str] = ()) -> None:
        """Count the steps."""


@contextmanager
def progress(work: str, total: int | None = None, *, quiet: bool) -> Iterator[Advance]:
    """Display on standard error how much of ``work`` is done, while the body runs.

    Args:
        work: the name of the work.
        total: the number of steps, if it is known.
        quiet: display nothing.
    """
    if quiet:
        yield lambda steps=1, facts=(): None
        return
    stream, time_left, done = _stream(), _TimeLeft(), 0
    shown = _bar(work, stream) if stream.isatty() else nullcontext(_plain_lines(work, stream))
    with shown as draw:

        def advance(steps: int = 1, facts: Sequence[str] = ()) -> None:
            nonlocal done
            done += steps
            share = done / total if total else None
            counted = [f"{done}/{total}", time_left.after(share)] if share is not None else []
            draw(", ".join(filter(None, [*counted, *facts])), share)

        yield advance


class _TimeLeft:
    """The time left at the rate of the last steps: cached answers come at once, others do not."""

    def __init__(self) -> None:
        self._steps = deque([(time.monotonic(), 0.0)], maxlen=RATE_STEPS)

    def after(self, share: float) -> str:
        """Record the share that is done, and return the time left, or "" if it is unknown."""
        now = time.monotonic()
        last, last_share = self._steps[-1]
        if share > last_share and now - last >= STEP_SECONDS:
            self._steps.append((now, share))
        start, share_then = self._steps[0]
        if share == share_then:
            return ""
        return f"{duration((1 - share) * (now - start) / (share - share_then))} left"


@contextmanager
def _bar(work: str, stream: TextIO) -> Iterator[Draw]:
    """Draw a bar with one line of text; what the terminal has no room for is cut off the name."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, RenderableColumn, TextColumn
    from rich.table import Column
    from rich.text import Text

    bar = BarColumn(bar_width=BAR_WIDTH)
    name = RenderableColumn(Text(visible(f"{work}:"), no_wrap=True, overflow="ellipsis"))
    facts = TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True))
    with Progress(bar, name, facts, console=Console(file=stream), transient=True) as bars:
        task = bars.add_task("starting", total=None)

        def draw(text: str, share: float | None) -> None:
            total = None if share is None else 1.0
            bars.update(task, description=visible(text), completed=share or 0.0, total=total)

        yield draw


def _plain_lines(work: str, stream: TextIO) -> Draw:
    """Print a line every 15 seconds, and the last one."""
    last = time.monotonic()

    def draw(text: str, share: float | None) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= PLAIN_LINE_SECONDS or share == 1:
            last = now
            _print(f"{work}: {text}", stream)

    return draw


def announce(title: str) -> None:
    """Print the title of one run of several, above its progress."""
    _print(title, _stream())


def _print(line: str, stream: TextIO) -> None:
    with suppress(OSError):  # the stream is closed; the work goes on
        print(visible(line), file=stream, flush=True)


def _stream() -> TextIO:
    """Return where progress is displayed: notebooks show standard error in red."""
    in_notebook = type(sys.stderr).__module__.startswith("ipykernel")
    return sys.stdout if in_notebook else sys.stderr
