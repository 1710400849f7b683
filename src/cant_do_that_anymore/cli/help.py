"""Commands whose help lists the options by heading, and the options for output."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import click
from annotated_types import Ge, Le

from ..task.option_info import LIMITS, MODEL, TASK
from ..validation import check

OUTPUT = "Output"
HEADINGS = (MODEL, TASK, LIMITS, OUTPUT)
WIDEST_NAME = 28
# Key of a context's meta: whether help lists all options, not only the common ones.
ALL_OPTIONS = f"{__name__}.all_options"
PATH = click.Path(path_type=Path)


class Parsed(click.ParamType):  # type: ignore[type-arg]
    """A value that a function parses, given the option."""

    name = "value"

    def __init__(self, parse: Callable[[click.Parameter, Any], Any]) -> None:
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse a value; the default is not checked, since that would load pydantic."""
        return value if param is None or value is param.default else self._parse(param, value)


def _checked(hint: Any) -> Parsed:
    """Return the type of values that fit a type hint with its constraints."""
    return Parsed(lambda option, value: check(hint, value, option.opts[-1].lstrip("-"), text=True))


AT_LEAST_1 = _checked(Annotated[int, Ge(1)])
PERCENTAGE = _checked(Annotated[float, Ge(0), Le(100)])


class Option(click.Option):
    """An option with its heading in the help, where it shows its default.

    ``usage`` has its flags, the name of its value in capitals, and its parameter's name if it is
    not the flag's: ``--json as_json``, ``-n N``. A rare option is listed by ``--help-all`` alone.
    """

    def __init__(
        self, usage: str, heading: str, help: str, *, is_rare: bool = False, **attributes: Any
    ) -> None:
        words = usage.split()
        names = [word for word in words if word.startswith("-") or word.islower()]
        default = attributes.get("default")
        shown = not isinstance(default, bool) and default not in (None, "", ())
        metavar = next((word for word in words if word not in names), None)
        attributes = {"metavar": metavar, "show_default": shown} | attributes
        super().__init__(names, help=help, **attributes)
        self.heading = heading
        self.is_rare = is_rare


class Command(click.Command):
    """A command whose help lists the options by heading."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by heading, in aligned columns."""
        rows: dict[str, list[tuple[str, str]]] = {heading: [] for heading in HEADINGS}
        for parameter in self.get_params(ctx):
            if getattr(parameter, "is_rare", False) and ALL_OPTIONS not in ctx.meta:
                continue
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
VERBOSE = Option(
    "--verbose", OUTPUT, "Print the numbers of the original eval, too.", is_flag=True, is_rare=True
)
QUIET = Option("--quiet", OUTPUT, "Show no progress.", is_flag=True, is_rare=True)
MARKDOWN = Option(
    "--markdown as_markdown", OUTPUT, "Print Markdown tables, as for GitHub.", is_flag=True
)


def _print_help(ctx: click.Context, option: click.Parameter, is_given: bool) -> None:
    if is_given:
        ctx.meta[ALL_OPTIONS] = True
        click.echo(ctx.get_help())
        ctx.exit()


HELP_ALL = Option(
    "--help-all",
    OUTPUT,
    "Show all options.",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_help,
)


def out_option(default: str) -> Option:
    """Create ``--out`` for a folder of results, with a description of its default."""
    return Option(
        "-o --out DIR", OUTPUT, f"Folder for the results.  [default: {default}]", type=PATH
    )


def output_option(help: str, *, required: bool = False) -> Option:
    """Create ``--out`` for the file that a command writes, as the parameter ``output``."""
    kind = click.Path(dir_okay=False, path_type=Path)
    return Option("-o --out output FILE", OUTPUT, help, type=kind, required=required)
