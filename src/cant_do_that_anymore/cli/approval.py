"""Ask the user to approve the cost of a run."""

import sys
from collections.abc import Callable
from typing import TypeVar

import click

from ..costs.approval import NeedsApproval

T = TypeVar("T")


def with_approval(above: float | None, work: Callable[[float | None], T]) -> T:
    """Do the work, which stops if it costs more than so many dollars; go on if the user says so.

    Where nobody sits before a terminal, nobody is asked.

    Raises:
        NeedsApproval: if it costs more and nobody agrees.
    """
    try:
        return work(above)
    except NeedsApproval as bill:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise
        if not click.confirm(f"{bill}. Go on without a limit?", err=True):
            raise
    return work(None)
