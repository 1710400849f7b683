"""How users meet an option of a run: heading, name of its value, help and parser."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

MODEL, TASK, LIMITS = "Model", "Task", "Limits and cost"


@dataclass(frozen=True)
class OptionInfo:
    """The metadata of a field of `Spec` that is an option for users.

    Attributes:
        heading: its part of the help.
        metavar: the name of its value in the help; "" for a flag.
        help: its line in the help.
        constraints: what a value must fulfil, such as ``Ge(1)`` of annotated_types.
        parse: converts and checks a value, before its type and constraints are checked.
        without_value: the value of the option if it is given without one.
    """

    heading: str
    metavar: str
    help: str
    constraints: tuple[Any, ...] = ()
    parse: Callable[[Any], Any] | None = None
    without_value: str | None = None


def option(
    default: Any,
    heading: str,
    metavar: str,
    help: str,
    *constraints: Any,
    parse: Callable[[Any], Any] | None = None,
    secret: bool = False,
    without_value: str | None = None,
) -> Any:
    """Return a field of `Spec` that users can set; a ``secret`` one is shown nowhere."""
    info = OptionInfo(heading, metavar, help, constraints, parse, without_value)
    return field(default=default, repr=not secret, metadata={"option": info})
