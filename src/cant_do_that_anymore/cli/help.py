"""Commands whose help lists the options by heading, and the options for output."""

from pathlib import Path
from typing import Any

import click

from ..task.option_info import LIMITS, MODEL, TASK

OUTPUT = "Output"
HEADINGS = (MODEL, TASK, LIMITS, OUTPUT)
WIDEST_NAME = 28
PATH = click.Path(path_type=Path)


class Option(click.Option):
    """An option with its heading in the help."""

    def __init__(self, *args: Any, heading: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.heading = heading


class Command(click.Command):
    """A command whose help lists the options by heading."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by heading, in aligned columns."""
        rows: dict[str, list[tuple[str, str]]] = {heading: [] for heading in HEADINGS}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record and isinstance(parameter, click.Option):
                rows[getattr(parameter, "heading", OUTPUT)].append(record)
        names = [name for group in rows.values() for name, _ in group]
        width = min(WIDEST_NAME, max(map(len, names)))
        for heading, group in rows.items():
            if group:
                with formatter.section(heading):
                    formatter.write_dl([(name.ljust(width), text) for name, text in group])


JSON = Option(
    ["--json", "as_json"], heading=OUTPUT, is_flag=True, help="Print JSON, and nothing else."
)
QUIET = Option(["--quiet"], heading=OUTPUT, is_flag=True, help="Show no progress.")
MARKDOWN = Option(
    ["--markdown", "as_markdown"],
    heading=OUTPUT,
    is_flag=True,
    help="Print the table as Markdown, for GitHub.",
)


def out_option(default: str) -> Option:
    """Create ``--out`` for a folder of results, with a description of its default."""
    help_text = f"Where the results go.  [default: {default}]"
    return Option(["--out"], heading=OUTPUT, type=PATH, metavar="DIR", help=help_text)


def output_option(help_text: str) -> Option:
    """Create ``-o`` for the file that a command writes."""
    return Option(["-o", "--output"], heading=OUTPUT, type=PATH, metavar="FILE", help=help_text)
