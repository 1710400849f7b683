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
RATE_WINDOW_SECONDS, RATE_WINDOW_STEPS = 30.0, 20
"""The pace is that of the last seconds, or of as many steps if those took longer."""


class Show(Protocol):
    """Called now and then with the share that is done, if known, and how it goes."""

    def __call__(self, share: float | None, remark: str) -> None:
        """Show that."""


class Advance(Protocol):
    """Called now and then with the steps done since, and what remarks on how it goes.

    While others decide how long it takes, there is no pace.
    """

    def __call__(
        self, steps: int = 1, *, remark: Callable[[], str] = str, paced: bool = True
    ) -> None:
        """Count the steps."""


def status_callback(advance: Advance) -> Callable[[str], None]:
    """Takes remarks on how it goes while others decide how long it takes."""
    return lambda remark: advance(0, remark=lambda: remark, paced=False)


def duration(seconds: float) -> str:
    """A time in the unit that suits it.

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
    what: str, total: int, *, quiet: bool, to: Callable[[str], None] | None = None
) -> Iterator[Advance]:
    """Show on standard error how many steps of ``what`` are done, while the body runs.

    Whoever takes the steps in person is told instead, of each.
    """
    if to and not quiet:
        yield _telling(what, total, to)
        return
    done, lately = 0, _RateEstimator()
    with progress_display(what, quiet=quiet) as show:

        def advance(steps: int = 1, *, remark: Callable[[], str] = str, paced: bool = True) -> None:
            nonlocal done
            if quiet:
                return
            done += steps
            rate = lately.rate(done)
            pace = f"{rate:.0f}/s" if rate >= 1 else f"{duration(1 / rate)} each" if rate else ""
            parts = (f"{done}/{total}", pace if paced else "", remark())
            show(done / total if paced else None, ", ".join(filter(None, parts)))

        yield advance


def _telling(what: str, total: int, to: Callable[[str], None]) -> Advance:
    done = 0

    def advance(steps: int = 1, *, remark: Callable[[], str] = str, paced: bool = True) -> None:
        nonlocal done
        done += steps
        to(f"{what}: {done} of {total}")

    advance(0)
    return advance


@contextmanager
def progress_display(what: str, *, quiet: bool, plain: bool = False) -> Iterator[Show]:
    """Show on standard error how far ``what`` has come, while the body runs.

    Args:
        what: what is being done.
        quiet: show nothing.
        plain: show lines in a terminal too, because something else is written there.
    """
    if quiet:
        yield _silent
        return
    what = visible(what)
    with _plain_lines(what) if plain or not sys.stderr.isatty() else _bar(what) as show:
        yield lambda share, remark: show(share, visible(remark))


def _silent(share: float | None, remark: str) -> None:
    pass


class _RateEstimator:
    """How quickly it goes by now: what is kept from before comes at once, and the rest does not."""

    def __init__(self) -> None:
        self._seen = deque([(time.monotonic(), 0.0)])

    def rate(self, done: float) -> float:
        """So much a second, now that so much is done."""
        now = time.monotonic()
        if done > self._seen[-1][1]:
            self._seen.append((now, done))
        while len(self._seen) > RATE_WINDOW_STEPS and self._seen[0][0] < now - RATE_WINDOW_SECONDS:
            self._seen.popleft()
        then, before = self._seen[0]
        return (done - before) / max(now - then, 1e-9)

    def left(self, share: float | None) -> float | None:
        """The seconds that are left, if that can be said."""
        rate = self.rate(share) if share else 0.0
        return (1 - share) / rate if share and rate else None


@dataclass(frozen=True)
class _Part:
    """One of several works, begun at some time, with the seconds of those before it."""

    title: str
    ahead: int
    took: Sequence[float]
    began: float

    def left(self, seconds: float | None) -> str:
        """How long it takes until all are done if this one takes so long, as end of a sentence."""
        if seconds is None:
            return ""
        each = fmean(self.took) if self.took else time.monotonic() - self.began + seconds
        return f", {duration(seconds + self.ahead * each)} left of all"


_PART: ContextVar[_Part | None] = ContextVar("part", default=None)


@contextmanager
def overall_progress(title: str, ahead: int, took: list[float]) -> Iterator[None]:
    """Whatever is shown while the body runs is shown as belonging to one of several works.

    Args:
        title: which of them it is.
        ahead: how many come after it.
        took: the seconds that others took, to which those of this one are added.
    """
    part = _Part(title, ahead, tuple(took), time.monotonic())
    token = _PART.set(part)
    try:
        yield
    finally:
        _PART.reset(token)
        took.append(time.monotonic() - part.began)


def _in_words(left: float | None) -> str:
    return "" if left is None else f", {duration(left)} left"


@contextmanager
def _bar(what: str) -> Iterator[Show]:
    from rich.console import Console, RenderableType
    from rich.progress import BarColumn, Progress, TextColumn
    from rich.text import Text

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[remark]}", markup=False),
    )
    lately, last, part = _RateEstimator(), -BAR_SECONDS, _PART.get()
    above = Text(part.title if part else "")

    class Bars(Progress):
        def get_renderables(self) -> Iterator[RenderableType]:
            if part:
                yield above
            yield from super().get_renderables()

    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(what, total=None, remark="")

        def show(share: float | None, remark: str) -> None:
            nonlocal last
            now, left = time.monotonic(), lately.left(share)
            if now - last < BAR_SECONDS and share != 1:
                return
            last = now
            total = None if share is None else 1.0
            if part:
                above.plain = part.title + part.left(left)
            remark += _in_words(left)
            bars.update(task, completed=share or 0.0, total=total, remark=remark)

        yield show


@contextmanager
def _plain_lines(what: str) -> Iterator[Show]:
    """A line now and then, for logs, and one at the end; one that says so while nothing is done."""
    lately, last, part = _RateEstimator(), time.monotonic(), _PART.get()
    what = f"{part.title}: {what}" if part else what

    def say(remark: str) -> None:
        with suppress(OSError):  # nobody is told, and the work goes on
            print(f"{what}: {remark}", file=sys.stderr, flush=True)

    def show(share: float | None, remark: str) -> None:
        nonlocal last
        waiting.cancel()
        now, left = time.monotonic(), lately.left(share)
        if now - last >= PLAIN_LINE_SECONDS or share == 1:
            last = now
            say(remark + _in_words(left) + (part.left(left) if part else ""))

    waiting = Timer(PLAIN_LINE_SECONDS, say, ["nothing yet"])
    waiting.daemon = True
    waiting.start()
    try:
        yield show
    finally:
        waiting.cancel()
