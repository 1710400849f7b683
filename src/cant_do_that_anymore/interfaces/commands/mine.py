"""The command that makes a pool from any collection of games."""

import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import click

from ...errors import BadInput, Unfinished
from ...game.position import packing
from ...game.rules import BISHOPS_AS_KNIGHTS, rules_named
from ...models.progress import PLAIN_LINE_SECONDS

if TYPE_CHECKING:
    from ...game.mining import Mined

MOST_REPORTS = 20
"""So many damaged games are reported one by one; all are counted."""


@click.command()
@click.argument("inputs", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--rules",
    "key",
    default=BISHOPS_AS_KNIGHTS.key,
    show_default=True,
    metavar="KEY",
    help="Rules that make moves special (see cdta rules).",
)
@click.option(
    "--first/--every",
    default=True,
    help="Take the first special move of a game (the default), or every one.",
)
@click.option(
    "--unique", is_flag=True, help="Only one position with the same moves in the same order."
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Stop after N positions.")
@click.option(
    "--min-elo",
    type=click.IntRange(min=0),
    default=0,
    metavar="E",
    help="Only games of two players rated E or higher.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="How many processes to use.",
)
@click.option(
    "--cluster",
    metavar="ADDRESS",
    help="Use the Ray cluster at ADDRESS, or auto for the one this machine is part of.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Where the positions go, compressed if it ends in .gz; by default to standard output.",
)
def mine(
    inputs: tuple[str, ...],
    key: str,
    first: bool,
    unique: bool,
    limit: int | None,
    min_elo: int,
    jobs: int,
    cluster: str | None,
    output: Path | None,
) -> None:
    """Find positions with a special move in games.

    FILE is a PGN file, plain or compressed (.zst, .bz2, .gz), - for standard input, or an
    https:// address, which is read as it arrives. A damaged game is skipped and reported.
    Ctrl-C keeps what was found.
    """
    # The libraries for the web and for processes take a while to load; only this command waits.
    from ...game import mining

    if output and output.resolve() in {Path(name).resolve() for name in inputs}:
        raise BadInput(f"{output} is one of the inputs: give another file for the positions")
    wanted = mining.Wanted(rules_named(key), not first, min_elo)
    results = mining.mine(inputs, wanted, unique=unique, limit=limit, jobs=jobs, cluster=cluster)
    tally = _Tally()
    with _written(output, tally) as file, _shown(tally, beside=output) as show, closing(results):
        try:
            for mined in results:
                with _no_ctrl_c():
                    file.writelines(found.line.encode() + b"\n" for found in mined.found)
                    tally.add(mined)
                show(mined.share)
        except KeyboardInterrupt:
            tally.problems.append("stopped by Ctrl-C, with what was found until then")
        except Unfinished as problem:
            tally.problems.append(str(problem))
    if tally.read:
        click.echo(tally.summary(), err=True)
    if tally.problems:
        raise Unfinished("; ".join(tally.problems))
    if not tally.read:
        raise BadInput(f"no readable game in {', '.join(inputs)}: give games in PGN")


@dataclass
class _Tally:
    """What came of the games so far."""

    games: int = 0
    positions: int = 0
    damaged: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)

    def add(self, mined: "Mined") -> None:
        self.games += mined.games
        self.positions += len(mined.found)
        self.skipped += mined.skipped
        self.problems += [mined.problem] if mined.problem else []
        for damage in mined.damaged:
            self.damaged += 1
            if self.damaged <= MOST_REPORTS:
                click.echo(f"cdta: skipped a damaged game: {damage}", err=True)
            elif self.damaged == MOST_REPORTS + 1:
                click.echo("cdta: further damaged games are only counted", err=True)

    @property
    def read(self) -> int:
        """How many games were not damaged."""
        return self.games - self.damaged

    def __str__(self) -> str:
        rate = self.games / max(time.monotonic() - self.started, 1e-9)
        return f"{self.positions:,} positions in {self.games:,} games, {rate:,.0f} games/s"

    def summary(self) -> str:
        skipped = {"damaged": self.damaged, **self.skipped}
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in skipped.items() if count)
        return f"{self}; skipped: {reasons}" if reasons else str(self)


@contextmanager
def _written(output: Path | None, tally: _Tally) -> Iterator[BinaryIO]:
    """The file of positions, which replaces the old one at the end if a game could be read."""
    if output is None:
        yield sys.stdout.buffer
        return
    if output.exists() and not output.is_file():  # a pipe or a device keeps its name
        with output.open("wb") as file:
            yield file
        return
    half = output.with_name(output.name + ".part")
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        file = half.open("wb")
    except OSError as problem:
        raise BadInput(f"cannot write {output}: {problem}") from None
    try:
        with file, packing(output, file) as out:
            yield cast(BinaryIO, out)
        if tally.read:
            half.replace(output)
    except OSError as problem:
        raise Unfinished(f"cannot write {output}: {problem}") from None
    finally:
        half.unlink(missing_ok=True)


@contextmanager
def _no_ctrl_c() -> Iterator[None]:
    """Hold Ctrl-C back until the body is done, so that no line is left half written."""
    pressed = []
    before = signal.signal(signal.SIGINT, lambda *_: pressed.append(True))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed:
        raise KeyboardInterrupt


@contextmanager
def _shown(tally: _Tally, beside: Path | None) -> Iterator[Callable[[float | None], None]]:
    """Progress on standard error: a bar in a terminal, a line now and then elsewhere."""
    lines_in_the_way = beside is None and sys.stdout.isatty()
    if lines_in_the_way or not sys.stderr.isatty():
        yield _PlainLines(tally)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(bar_width=24), TextColumn("{task.description}"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(str(tally), total=None)

        def show(share: float | None) -> None:
            total = None if share is None else 1.0
            bars.update(task, description=str(tally), completed=share or 0.0, total=total)

        yield show


class _PlainLines:
    def __init__(self, tally: _Tally) -> None:
        self._tally = tally
        self._last = time.monotonic()

    def __call__(self, share: float | None) -> None:
        if time.monotonic() - self._last >= PLAIN_LINE_SECONDS:
            self._last = time.monotonic()
            read = "" if share is None else f"{share:.0%} read: "
            click.echo(f"{read}{self._tally}", err=True)
