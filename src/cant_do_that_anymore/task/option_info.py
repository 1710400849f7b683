"""Metadata of the options of a run (heading, value name, help, parser), and some parsers."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import partial
from math import inf
from reprlib import repr as shortened
from typing import Any

from ..errors import InvalidInput
from ..providers.access import resolve_headers
from ..providers.base import Settings

MODEL, TASK, LIMITS = "Model", "Task", "Limits and cost"


@dataclass(frozen=True)
class OptionInfo:
    """The metadata of a field of `Spec` that is an option for users.

    Attributes:
        heading: its part of the help.
        metavar: the name of its value in the help; "" for a flag.
        help: its line in the help.
        parse: converts and checks a value, before its type and constraints are checked.
        without_value: the value of the option if it is given without one.
        secret: whether its value is shown nowhere.
    """

    heading: str
    metavar: str
    help: str
    parse: Callable[[Any], Any] | None = None
    without_value: str | None = None
    secret: bool = False


def _option(heading: str, default: Any, metavar: str, help: str, **more: Any) -> Any:
    """Return a field of `Spec` that users can set, with ``more`` fields of its metadata."""
    info = OptionInfo(heading, metavar, help, **more)
    return field(default=default, repr=not info.secret, metadata={"option": info})


model_option, task_option, limit_option = (
    partial(_option, heading) for heading in (MODEL, TASK, LIMITS)
)


# Fields of a request body that the client sets itself, or that must be absent. The settings are
# among them, but a seed of one's own may be sent.
RESERVED_FIELDS = {
    *("model", "messages", "prompt", "stop", "stream", "n", "max_completion_tokens"),
    *(item.name for item in fields(Settings) if item.name != "seed"),
}


def parse_headers(value: Any) -> Any:
    """Return headers as a list of texts, validated."""
    headers = (value,) if isinstance(value, str) else value
    if isinstance(headers, list | tuple) and all(isinstance(header, str) for header in headers):
        resolve_headers(headers)
        return tuple(headers)
    return headers


def parse_body(value: Any) -> str:
    """Return the extra body as canonical JSON."""
    body = None
    with suppress(ValueError):
        body = json.loads(value or "{}") if isinstance(value, str) else value
    if not isinstance(body, Mapping):
        shown = shortened(value)
        raise InvalidInput(f'extra_body must be a JSON object such as {{"top_k": 20}}, not {shown}')
    for name in RESERVED_FIELDS & body.keys():
        if name != "stream" or body[name] is not False:  # some servers stream by default
            raise InvalidInput(f"extra_body may not contain {name!r}, which other options set")
    return json.dumps(dict(body), sort_keys=True) if body else ""


def parse_price(value: Any) -> tuple[float, float] | None:
    """Return the prices of input and output tokens."""
    if value is None:
        return None
    prices = value.strip("[]").split(",") if isinstance(value, str) else value
    with suppress(TypeError, ValueError):
        given, written = map(float, prices)
        if 0 <= given < inf and 0 <= written < inf:
            return given, written
    raise InvalidInput(
        f"price must be IN,OUT in US dollars per million tokens, such as 2.5,10, not {value!r}"
    )
