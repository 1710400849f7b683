"""How users meet an option of a run: heading, name of its value, help and parser."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

MODEL, TASK, LIMITS = "Model", "What is asked", "Limits and cost"


@dataclass(frozen=True)
class OptionInfo:
    """The metadata of a field of `Spec` that is an option for users.

    Attributes:
        heading: its part of the help.
        metavar: the name of its value in the help; "" for a flag.
        help: its line in the help.
        parse: converts and checks a value, before its type and constraints are checked.
    """

    heading: str
    metavar: str
    help: str
    parse: Callable[[Any], Any] | None = None
