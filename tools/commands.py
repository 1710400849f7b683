"""Write docs/commands.md from the commands themselves; a test holds that it is up to date.

python tools/commands.py
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from cant_do_that_anymore.cli.main import cdta

DOCUMENT = Path(__file__).parents[1] / "docs" / "commands.md"
INTRODUCTION = """\
# Commands

The help of each command, written by `python tools/commands.py`. `cdta oaieval` is
also installed as `oaieval`.

"""


class Markdown(click.HelpFormatter):
    """Help as Markdown: a section is a table."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """The command as it is called."""
        self.write(f"## {prog}\n\n```text\n{prog} {args}\n```\n\n")

    def write_text(self, text: str) -> None:
        """Paragraphs; what Click would not wrap is shown as it is."""
        for paragraph in text.split("\n\n"):
            bare = paragraph.removeprefix("\b\n")
            self.write(f"{bare}\n\n" if bare == paragraph else f"```text\n{bare}\n```\n\n")

    def write_paragraph(self) -> None:
        """Nothing: paragraphs are apart already."""

    def write_heading(self, heading: str) -> None:
        """The head of the table that follows."""
        self.write(f"| {heading} | |\n| --- | --- |\n")

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        """The rows of the table."""
        for name, text in rows:
            name = name.strip()
            bar = "|" in name  # which would end the cell
            code = f"<code>{name.replace('|', '&#124;')}</code>" if bar else f"`{name}`"
            self.write(f"| {code} | {text} |\n")
        self.write("\n")


def page() -> str:
    """All of them, one after the other."""
    context = cdta.make_context("cdta", [], resilient_parsing=True)
    return INTRODUCTION + "\n".join(helps(cdta, context))


def helps(command: click.Command, context: click.Context) -> Iterator[str]:
    """The help of a command, and of those in it."""
    markdown = Markdown()
    command.format_help(context, markdown)
    yield markdown.getvalue().rstrip() + "\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner
            yield from helps(inner, click.Context(inner, parent=context, info_name=name))


if __name__ == "__main__":
    DOCUMENT.write_text(page(), encoding="utf-8")
