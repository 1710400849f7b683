"""The options that say where results go, and in what form."""

from pathlib import Path

import click

from .options import OUTPUT, Option

_PATH = click.Path(path_type=Path)


def out_option(default: str) -> Option:
    """``--out`` for a folder of results, and where to without the option."""
    told = f"Where the results go.  [default: {default}]"
    return Option(["--out"], heading=OUTPUT, type=_PATH, metavar="DIR", help=told)


def output_option(metavar: str, told: str) -> Option:
    """``-o`` for what a command writes, and what is told of it."""
    return Option(["-o", "--output"], heading=OUTPUT, type=_PATH, metavar=metavar, help=told)


def markdown_option() -> Option:
    """``--markdown`` where the results are a table."""
    told = "Print the table as Markdown, for GitHub."
    return Option(["--markdown", "as_markdown"], heading=OUTPUT, is_flag=True, help=told)
