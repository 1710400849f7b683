"""Writes docs/commands.md from the help of each command; a test checks that it is up to date.

python tools/commands.py
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from cant_do_that_anymore.cli.help import show_all
from cant_do_that_anymore.cli.main import cdta

DOCUMENT = Path(__file__).parents[1] / "docs" / "commands.md"
INTRODUCTION = """\
# Commands

The help of each command, written by `python tools/commands.py`. `cdta oaieval` is
also installed as `oaieval`.

"""


class MarkdownFormatter(click.HelpFormatter):
    """Formats help as Markdown, with a table for each section."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """Write the usage line."""
        self.write(f"## {prog}\n\n```text\n{prog} {args}\n```\n\n")

    def write_text(self, text: str) -> None:
        """Write paragraphs, and text that Click would not wrap as code."""
        for paragraph in text.split("\n\n"):
            unwrapped = paragraph.removeprefix("\b\n")
            is_code = unwrapped != paragraph
            self.write(f"```text\n{unwrapped}\n```\n\n" if is_code else f"{paragraph}\n\n")

    def write_paragraph(self) -> None:
        """Write nothing: blank lines already separate paragraphs."""

    def write_heading(self, heading: str) -> None:
        """Write the heading of a table."""
        self.write(f"| {heading} | |\n| --- | --- |\n")

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        """Write the rows of the table."""
        for name, text in rows:
            name = name.strip()
            has_bar = "|" in name  # it would end the cell
            code = f"<code>{name.replace('|', '&#124;')}</code>" if has_bar else f"`{name}`"
            self.write(f"| {code} | {text} |\n")
        self.write("\n")


def page() -> str:
    """Return the document."""
    context = cdta.make_context("cdta", [], resilient_parsing=True)
    return INTRODUCTION + "\n".join(format_help(cdta, context))


def format_help(command: click.Command, context: click.Context) -> Iterator[str]:
    """Yield the help of a command and of its subcommands."""
    formatter = MarkdownFormatter()
    show_all(context)
    command.format_help(context, formatter)
    yield formatter.getvalue().rstrip() + "\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            subcommand = command.get_command(context, name)
            assert subcommand
            subcontext = click.Context(subcommand, parent=context, info_name=name)
            yield from format_help(subcommand, subcontext)


if __name__ == "__main__":
    DOCUMENT.write_text(page(), encoding="utf-8")
