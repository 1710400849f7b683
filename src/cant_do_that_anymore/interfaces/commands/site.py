"""The command that makes a static site of experiments and runs: ``cdta site``."""

from pathlib import Path

import click

from ...errors import plain
from ...report.experiment_page import INDEX
from ...report.site import write_site
from ..options import Command
from ..outputs import output_option


@click.command(
    cls=Command,
    params=[
        output_option(
            "DIR",
            "Where to; a site that is there is made anew, and anything else is refused.",
            default=Path("public"),
            show_default=True,
        )
    ],
)
@click.argument("names", metavar="DIR...", nargs=-1, required=True)
def site(names: tuple[str, ...], output: Path) -> None:
    """Make a web site of experiments and runs.

    \b
    cdta site experiment latest -o public
    cdta view public

    DIR is the folder of an experiment, or a run or folder of runs as other commands take them. The
    site is a folder of plain files for any web host: an index, all pages, and the data behind them.
    It needs no network and no program.
    """
    for problem in write_site(names, output):
        click.echo(plain(f"cdta: left out: {problem}"), err=True)
    click.echo(output / INDEX)
