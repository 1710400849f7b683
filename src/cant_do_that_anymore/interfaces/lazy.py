"""Groups of commands whose modules are imported only when the command is called."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

import click


class Entry(NamedTuple):
    """Where a command is, as ``module:name`` in this room, and its line in the help."""

    place: str
    line: str


class LazyGroup(click.Group):
    """A group that knows its commands by a table, by heading and by name."""

    def __init__(self, *args: Any, table: Mapping[str, Mapping[str, Entry]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the order of the table."""
        return [name for entries in self.table.values() for name in entries]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import the command of that name."""
        for entries in self.table.values():
            if name in entries:
                module, _, attribute = entries[name].place.partition(":")
                found: click.Command = getattr(import_module(f".{module}", __package__), attribute)
                return found
        return None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table, all of it in the same columns."""
        width = max(map(len, self.list_commands(ctx)))
        for heading, entries in self.table.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), e.line) for name, e in entries.items()])
