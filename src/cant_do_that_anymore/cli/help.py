"""Commands whose help lists the options by heading, and the options for output."""

from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from ..task.option_info import LIMITS, MODEL, TASK

OUTPUT = "Output"
HEADINGS = (MODEL, TASK, LIMITS, OUTPUT)
WIDEST_NAME = 28
PATH = click.Path(path_type=Path)
AT_LEAST_1 = click.IntRange(1)


class Option(click.Option):
    """An option with its heading in the help; ``flags`` are separated by spaces."""

    def __init__(self, flags: str, heading: str, help: str, **attributes: Any) -> None:
        super().__init__(flags.split(), help=help, **attributes)
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


JSON = Option("--json as_json", OUTPUT, "Print JSON only.", is_flag=True)
QUIET = Option("--quiet", OUTPUT, "Show no progress.", is_flag=True)
# Formats of tables besides the terminal's: the option ``as_NAME`` by name of a module of `report`,
# which has the functions ``leaderboards`` and ``comparison``.
FORMATS = {
    "markdown": Option(
        "--markdown as_markdown", OUTPUT, "Print the table as Markdown, for GitHub.", is_flag=True
    ),
}


def chosen_format(options: dict[str, Any]) -> ModuleType | None:
    """Take the options of the formats out of all options, and return the module of the chosen."""
    chosen = [name for name in FORMATS if options.pop(f"as_{name}")]
    return import_module(f"...report.{chosen[0]}", __name__) if chosen else None


def out_option(default: str) -> Option:
    """Create ``--out`` for a folder of results, with a description of its default."""
    help_text = f"Folder for the results.  [default: {default}]"
    return Option("--out", OUTPUT, help_text, type=PATH, metavar="DIR")


def output_option(help_text: str) -> Option:
    """Create ``-o`` for the file that a command writes."""
    return Option("-o --output", OUTPUT, help_text, type=PATH, metavar="FILE")
