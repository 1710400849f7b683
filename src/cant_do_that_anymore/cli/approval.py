"""Ask the user to approve the cost of a run."""

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import click

from ..errors import NeedsApproval, Stopped
from ..formatting import dollars
from ..task.spec import Spec

T = TypeVar("T")


def with_approval(
    above: float | None, work: Callable[[float | None], T], *, cached: bool = True
) -> T:
    """Run ``work``; if it may cost more than ``above`` dollars, ask the user and run it again.

    Without a terminal, the user is not asked.

    Raises:
        NeedsApproval: if it may cost more and there is no terminal.
        Stopped: if the user does not approve.
    """
    while True:
        try:
            return work(above)
        except NeedsApproval as needed:
            if not (sys.stdin.isatty() and sys.stderr.isatty()):
                raise
            above = needed.approve
            question = f"{needed.why}. Spend up to {dollars(above)}?"
        if not click.confirm(question, err=True):
            raise Stopped("stopped because you did not approve the cost", cached=cached)


def with_approval_of(spec: Spec, work: Callable[[Spec], T]) -> T:
    """Run ``work`` on a spec, with the user's approval of its cost, as `with_approval` does."""
    return with_approval(
        spec.ask_above, lambda above: work(replace(spec, ask_above=above)), cached=not spec.fresh
    )
