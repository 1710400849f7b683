"""Ask the user to approve the cost of a run."""

import sys
from collections.abc import Callable
from typing import TypeVar

import click

from ..costs.approval import NeedsApproval

T = TypeVar("T")


def with_approval(above: float | None, work: Callable[[float | None], T]) -> T:
    """Run ``work``; if it would cost more than ``above`` dollars, ask the user and run it again.

    Without a terminal, the user is not asked.

    Raises:
        NeedsApproval: if it would cost more and the user does not approve.
    """
    try:
        return work(above)
    except NeedsApproval as forecast:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise
        if not click.confirm(f"{forecast}. Go on without a limit?", err=True):
            raise
    return work(None)
