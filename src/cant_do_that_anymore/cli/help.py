"""Commands whose help lists the options by heading, and the options for output."""

from pathlib import Path
from typing import Any

import click

from ..task.option_info import LIMITS, MODEL, TASK

OUTPUT = "Output"
HEADINGS = (MODEL, TASK, LIMITS, OUTPUT)
# Key of a context's meta: whether help lists all options, not only the common ones.
ALL_OPTIONS = f"{__name__}.all_options"
PATH = click.Path(path_type=Path)
AT_LEAST_1 = click.IntRange(min=1)


class Option(click.Option):
    """An option with its heading in the help, where it shows its default.

    ``usage`` has its names, the name of its value in capitals unless it is a flag, and its
    parameter's name if that is another one: ``-n N``, ``--json as_json``. A rare option is listed
    by ``--help-all`` alone.
    """

    def __init__(
        self, usage: str, heading: str, help: str, *, is_rare: bool = False, **attributes: Any
    ) -> None:
        words = usage.split()
        names = [word for word in words if word.startswith("-") or word.islower()]
        metavar = next((word for word in words if word not in names), None)
        attributes |= {"metavar": metavar, "is_flag": metavar is None}
        shown = attributes.get("default") != ""
        super().__init__(names, help=help, show_default=shown, **attributes)
        self.heading = heading
        self.is_rare = is_rare


class Command(click.Command):
    """A command whose help lists the options by heading."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by heading, in aligned columns."""
        rows: dict[str, list[tuple[str, str]]] = {heading: [] for heading in HEADINGS}
        for parameter in self.get_params(ctx):
            is_listed = ALL_OPTIONS in ctx.meta or not getattr(parameter, "is_rare", False)
            record = parameter.get_help_record(ctx)
            if is_listed and record and isinstance(parameter, click.Option):
                rows[getattr(parameter, "heading", OUTPUT)].append(record)
        width = max(len(name) for group in rows.values() for name, _ in group)
        for heading, group in rows.items():
            if group:
                with formatter.section(heading):
                    formatter.write_dl([(name.ljust(width), text) for name, text in group])


JSON = Option("--json as_json", OUTPUT, "Print JSON only.")
VERBOSE = Option("--verbose", OUTPUT, "Print the numbers of the original eval, too.", is_rare=True)
QUIET = Option("--quiet", OUTPUT, "Show no progress.", is_rare=True)
MARKDOWN = Option("--markdown as_markdown", OUTPUT, "Print Markdown tables, as for GitHub.")


def _print_help(ctx: click.Context, option: click.Parameter, is_given: bool) -> None:
    if is_given:
        ctx.meta[ALL_OPTIONS] = True
        click.echo(ctx.get_help())
        ctx.exit()


HELP_ALL = Option(
    "--help-all",
    OUTPUT,
    "Show all options.",
    is_eager=True,
    expose_value=False,
    callback=_print_help,
)


def output_option(help: str) -> Option:
    """Create ``--out`` for the file that a command writes, as the parameter ``output``."""
    kind = click.Path(dir_okay=False, path_type=Path)
    return Option("-o --out output FILE", OUTPUT, help, type=kind)
