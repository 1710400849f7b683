"""Validate data from outside with pydantic, and report what is wrong as one sentence.

pydantic is imported with the first value that is validated, so commands without one start quickly.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cache
from reprlib import repr as shortened
from typing import TYPE_CHECKING, Any, TypeVar, cast

from .errors import InvalidInput, UserError, unknown_value

if TYPE_CHECKING:
    from pydantic import ConfigDict, TypeAdapter
    from pydantic_core import ErrorDetails

T = TypeVar("T")

_SHOULD_BE = "Input should be "  # how pydantic says what it expected


def parse(kind: type[T], data: bytes | str | Mapping[str, Any], where: str) -> T:
    """Return a JSON text, or a mapping of JSON or TOML values, as an instance of a type.

    Unknown keys are ignored unless the type has ``__pydantic_config__ = {"extra": "forbid"}``.

    Raises:
        InvalidInput: if the data do not fit the type; ``where`` names their file in the message.
    """
    from pydantic import ValidationError

    try:
        values = json.loads(data) if isinstance(data, str | bytes) else data
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{where} is not JSON: {error}") from None
    try:
        return cast(T, _adapter(cast(Any, kind)).validate_python(values))
    except ValidationError as error:
        errors = error.errors(include_url=False)
    if errors[0]["type"] == "unexpected_keyword_argument":
        valid = (item.name for item in fields(cast(Any, kind)))
        raise unknown_value(f"key in {where}", str(errors[0]["loc"][-1]), valid)
    raise _error(errors, values, "", where)


def check(hint: Any, value: Any, name: str, *, secret: bool = False, text: bool = False) -> Any:
    """Return a Python value after checking it against a type hint and its constraints.

    A ``text`` that a user typed is parsed by the hint, such as "5" as a whole number.

    Raises:
        InvalidInput: if it does not fit; the message shows the value unless it is ``secret``.
    """
    from pydantic import ValidationError

    # Values of other types are checked by their class. Callers may give a list for a tuple.
    adapter = _adapter(hint, arbitrary_types_allowed=True, allow_inf_nan=False)
    given = tuple(value) if isinstance(value, list) else value
    try:
        return adapter.validate_python(given, strict=not text)
    except ValidationError as error:
        raise _error(error.errors(include_url=False), value, name, secret=secret) from None


@cache
def _adapter(hint: Any, **config: bool) -> "TypeAdapter[Any]":
    from pydantic import TypeAdapter

    return TypeAdapter(hint, config=cast("ConfigDict", config) if config else None)


def _error(
    errors: Sequence["ErrorDetails"], data: Any, name: str, where: str = "", secret: bool = False
) -> UserError:
    """Return pydantic's errors about one place, one for each type it could have, as one of ours."""
    first = errors[0]
    place, value = _find(first["loc"], data)
    name += place
    if where:
        name = f"{name!r} in {where}" if name else where
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, UserError):  # our own constructors say what is wrong themselves
        return cause
    if first["type"] == "missing":
        return InvalidInput(f"{name} is missing the key {first['loc'][-1]!r}")
    if first["type"] == "literal_error" and isinstance(value, str):
        valid = re.findall(r"'([^']*)'", first["ctx"]["expected"])
        return unknown_value(name.replace("_", " "), value, valid)
    expected = dict.fromkeys(
        error["msg"].removeprefix(_SHOULD_BE).split(", unable")[0]
        for error in errors
        if _find(error["loc"], data)[0] == place
    )
    given = "" if secret else f", not {shortened(value)}"
    return InvalidInput(f"{name} must be {' or '.join(expected)}{given}")


def _find(location: Sequence[int | str], data: Any) -> tuple[str, Any]:
    """Return a place in the data as text, and its value; names of union members are left out."""
    path = ""
    for step in location:
        if isinstance(step, int) and isinstance(data, list | tuple) and step < len(data):
            path, data = f"{path}[{step}]", data[step]
        elif isinstance(data, dict) and step in data:
            path, data = f"{path}.{step}".removeprefix("."), data[step]
    return path, data
