"""The terminal as commands write to it."""

from rich.console import Console


def console(width: int | None = None) -> Console:
    """Shows every text as it is: what a user or a model calls something is no markup."""
    return Console(width=width, markup=False, emoji=False)
