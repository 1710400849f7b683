"""Progress display: a bar in a terminal, plain lines elsewhere, or nothing."""

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from threading import Timer
from typing import Protocol

from .formatting import duration, visible

PLAIN_LINE_SECONDS = 15.0
BAR_SECONDS = 0.1
# The rate is measured over the last 30 seconds, or over the last 20 steps if those took longer.
RATE_WINDOW_SECONDS, RATE_WINDOW_STEPS = 30.0, 20
# Width of the bar, in columns.
SHORTEST_BAR, LONGEST_BAR = 10, 24

Facts = Sequence[str]
# Displays the share done, if known, and facts. The time left comes second.
Show = Callable[[float | None, Facts], None]


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
    lines = plain or not sys.stderr.isatty()
    every = PLAIN_LINE_SECONDS if lines else BAR_SECONDS
    rates = _RateEstimator()
    last = time.monotonic() - (0.0 if lines else every)  # the bar is drawn at once
    with (_plain_lines if lines else _bar)(visible(work), _TITLE.get()) as draw:

        def show(share: float | None, facts: Facts) -> None:
            nonlocal last
            nothing_yet.cancel()
            now, left = time.monotonic(), rates.left(share)
            if now - last >= every or share == 1:
                last = now
                first, *others = map(visible, facts)
                time_left = [] if left is None else [f"{duration(left)} left"]
                draw(share, [first, *time_left, *others])

        nothing_yet = Timer(every, draw, (None, ["starting"]))
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


# The title of one run of several.
_TITLE: ContextVar[str] = ContextVar("title", default="")


@contextmanager
def progress_of(title: str) -> Iterator[None]:
    """Display progress within the body below the title of one run of several."""
    token = _TITLE.set(title)
    try:
        yield
    finally:
        _TITLE.reset(token)


# Draws the share done and facts.
_Draw = Callable[[float | None, Facts], None]


@contextmanager
def _bar(work: str, title: str) -> Iterator[_Draw]:
    """Draw a bar, below the title of a run of several.

    If the terminal is narrow, the last facts are left out, but not the first and the time left.
    """
    from rich.cells import cell_len
    from rich.console import Console, RenderableType
    from rich.progress import BarColumn, Progress, TextColumn
    from rich.text import Text

    bar = BarColumn(bar_width=LONGEST_BAR)
    text = "{task.description}", "{task.fields[facts]}"
    before, after = (TextColumn(template, markup=False) for template in text)

    class Bars(Progress):
        def get_renderables(self) -> Iterator[RenderableType]:
            if title:
                yield Text(title)
            yield from super().get_renderables()

    with Bars(before, bar, after, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(work, total=None, facts="")

        def draw(share: float | None, facts: Facts) -> None:
            room = bars.console.width - 2  # columns are a space apart
            name, fact_text = Text(work), ", ".join(facts)
            for n in range(len(facts), 2, -1):
                if name.cell_len + SHORTEST_BAR + cell_len(fact_text) <= room:
                    break
                fact_text = ", ".join(facts[: n - 1])
            name.truncate(max(1, room - SHORTEST_BAR - cell_len(fact_text)), overflow="ellipsis")
            bar.bar_width = min(LONGEST_BAR, room - name.cell_len - cell_len(fact_text))
            done, total = share or 0.0, None if share is None else 1.0
            bars.update(task, description=name.plain, completed=done, total=total, facts=fact_text)

        yield draw


@contextmanager
def _plain_lines(work: str, title: str) -> Iterator[_Draw]:
    """Print lines, for logs: every 15 seconds and at the end, also if no step is done yet."""

    def draw(_: float | None, facts: Facts) -> None:
        with suppress(OSError):  # standard error is closed; the work goes on
            line = f"{work}: {', '.join(facts)}"
            print(f"{title}: {line}" if title else line, file=sys.stderr, flush=True)

    yield draw
