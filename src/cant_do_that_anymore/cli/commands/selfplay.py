"""The command ``cdta selfplay``: make a pool from games of an engine."""

import json
import logging
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

import click

from ...errors import Incomplete, InvalidInput
from ...files import check_new_dir, file_errors
from ...formatting import pluralize
from ...game.position import Position, write_positions
from ...game.rules import Rules, rules_named
from ...game.selfplay import POOL_PLAY, find_engine, open_engine, play_positions
from ...progress import progress
from ...task.option_info import TASK
from ..help import AT_LEAST_1, PATH, Command, Option, output_option
from ..options import CLICK_OPTIONS


@click.command(
    "selfplay",
    cls=Command,
    params=[
        CLICK_OPTIONS["rules"],
        Option("--positions count N", TASK, "At most two per game.", type=AT_LEAST_1, default=2250),
        Option("--seed S", TASK, "The same seed plays the same games.", default=0),
        Option("--engine path PATH", TASK, "A UCI engine.  [default: stockfish]", type=PATH),
        output_option("File for the positions; .gz compresses it.", required=True),
    ],
)
def selfplay_command(rules: str, count: int, seed: int, path: Path | None, output: Path) -> None:
    """Create a pool from engine games under the changed rules.

    Each position has a move that only the rule change makes illegal. The positions are spread
    evenly over the number of earlier moves of the changed piece: 0 to 7, and 8 or more. The command
    prints how the pool was made, as JSON. The defaults make the bundled `diagonal` pool.
    """
    for library in ("asyncio", "chess.engine"):  # our message about a broken engine is enough
        logging.getLogger(library).setLevel(logging.CRITICAL)
    change = rules_named(rules)
    with file_errors("write", output, error=InvalidInput):
        check_new_dir(output)
    positions: list[Position] = []
    try:
        with (
            open_engine(path or find_engine()) as engine,
            progress("positions", count, quiet=False) as advance,
        ):
            engine_name = engine.id.get("name", "")
            for position in play_positions(engine, change, count, seed):
                positions.append(position)
                advance()
    except KeyboardInterrupt:
        raise Incomplete(f"interrupted before all {count} positions were found") from None
    finally:
        if positions:
            write_positions(output, positions)
            click.echo(f"{output}: {pluralize(len(positions), 'position')}", err=True)
    click.echo(json.dumps(_record(positions, change, seed, engine_name), indent=2))


def _record(positions: list[Position], rules: Rules, seed: int, engine: str) -> dict[str, object]:
    """Return what is needed to reproduce the positions."""
    return {
        "command": f"cdta selfplay --rules {rules.key} --positions {len(positions)} --seed {seed}",
        "version": version("cant-do-that-anymore"),
        "rules": rules.key,
        "seed": seed,
        "engine": engine,
        "play": asdict(POOL_PLAY),
        "positions": len(positions),
        "games": len({position.game for position in positions}),
    }
