"""The command ``cdta mine``: find positions in collections of games."""

import signal
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, cast

import click

from ...errors import Incomplete, InvalidInput
from ...files import atomic_write, file_errors
from ...formatting import pluralize
from ...habits.chess import mining
from ...habits.chess.position import gzip_if_named
from ...habits.chess.rules import BISHOPS_AS_KNIGHTS, rules_named
from ...progress import Advance, progress
from ...task.option_info import LIMITS, TASK
from ..help import AT_LEAST_1, Command, Option, output_option

MOST_REPORTS = 3  # damaged games that are reported one by one; all are counted


@click.command(
    "mine",
    cls=Command,
    params=[
        # Not the option of `Spec`, which loads everything that a run needs.
        Option("--rules KEY", TASK, "Rule change; see cdta rules.", default=BISHOPS_AS_KNIGHTS.key),
        Option("--every", TASK, "Every usual move of a game, not only the first."),
        Option("--duplicates", TASK, "Keep positions with the same moves."),
        Option("--limit N", LIMITS, "Stop after N positions.", type=AT_LEAST_1),
        Option("--jobs N", LIMITS, "Number of processes.", type=AT_LEAST_1, default=1),
        Option("--cluster ADDRESS", LIMITS, "Use a Ray cluster; auto for this machine's."),
        output_option("Output file; .gz compresses it.  [default: stdout]"),
    ],
)
@click.argument("inputs", nargs=-1, required=True, metavar="FILE...")
def mine_command(
    inputs: tuple[str, ...],
    rules: str,
    every: bool,
    duplicates: bool,
    limit: int | None,
    jobs: int,
    cluster: str | None,
    output: Path | None,
) -> None:
    """Find positions with a usual move in games.

    FILE is a PGN file, plain or compressed (.zst, .bz2, .gz), or - for standard input. Damaged
    games are skipped and reported. Ctrl-C keeps what was found.
    """
    if output and output.resolve() in {Path(name).resolve() for name in inputs}:
        raise InvalidInput(f"{output} is one of the inputs; give another file for the positions")
    wanted = mining.MiningCriteria(rules_named(rules), every, not duplicates)
    results = mining.mine(inputs, wanted, limit=limit, jobs=jobs, cluster=cluster)
    tally = _Tally()
    prints_positions = output is None and sys.stdout.isatty()
    with _output(output) as file:
        with progress("mining", quiet=prints_positions) as advance, closing(results):
            _write_positions(results, file, tally, advance)
        for damage in tally.damaged[:MOST_REPORTS]:
            click.echo(f"cdta: skipped a damaged game: {damage}", err=True)
        problem = Incomplete("; ".join(tally.problems)) if tally.problems else None
        if tally.games == len(tally.damaged):  # an older file stays
            nothing = InvalidInput(f"no readable game in {', '.join(inputs)}; give games in PGN")
            raise problem or nothing
    click.echo(tally.summary(), err=True)
    if problem:
        raise problem


def _write_positions(
    results: Iterable[mining.MiningResult], file: BinaryIO, tally: "_Tally", advance: Advance
) -> None:
    """Write positions until all games are read or an error stops it."""
    try:
        for mined in results:
            with _delay_ctrl_c():
                file.writelines(position.line.encode() + b"\n" for position in mined.found)
                tally.add(mined)
            advance(facts=[str(tally)])
    except KeyboardInterrupt:
        tally.problems.append("stopped by Ctrl-C; the positions found so far are complete")
    except Incomplete as problem:
        tally.problems.append(str(problem))


@dataclass
class _Tally:
    """What was found, skipped and damaged so far."""

    games: int = 0
    positions: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    damaged: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def add(self, mined: mining.MiningResult) -> None:
        self.games += mined.games
        self.positions += len(mined.found)
        self.skipped += mined.skipped
        self.damaged += mined.damaged
        self.problems += [mined.problem] if mined.problem else []

    def __str__(self) -> str:
        return f"{pluralize(self.positions, 'position')} in {pluralize(self.games, 'game')}"

    def summary(self) -> str:
        skipped = self.skipped + Counter(damaged=len(self.damaged))
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in skipped.items())
        return f"{self}; skipped: {reasons}" if reasons else str(self)


@contextmanager
def _output(output: Path | None) -> Iterator[BinaryIO]:
    """Yield the output; a file replaces an older one only if the body raises no exception."""
    if output is None:
        yield sys.stdout.buffer
        return
    with (
        file_errors("write", output, error=InvalidInput),
        atomic_write(output) as file,
        gzip_if_named(output, file) as out,
    ):
        yield cast(BinaryIO, out)


@contextmanager
def _delay_ctrl_c() -> Iterator[None]:
    """Delay Ctrl-C until the body is done, so that no line is half written."""
    pressed = []
    handler = signal.signal(signal.SIGINT, lambda *_: pressed.append(True))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if pressed:
        raise KeyboardInterrupt
