"""The file of an experiment: a TOML table with values of the command's options."""

import tomllib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from ..comparison.experiment import DIMENSIONS, as_list
from ..comparison.naming import ModelFields
from ..errors import InvalidInput, unknown_value
from ..files import file_errors
from ..task.option_info import MODEL
from ..task.spec import OPTIONS, validate_option
from ..validation import check

OF_A_MODEL = {
    **{name: name for name, info in OPTIONS.items() if info.heading == MODEL},
    **{"price": "price", "max_connections": "max_connections"},
    **{"name": "model", "url": "base_url"},
    "reasoning_effort": DIMENSIONS["reasoning_effort"].plural,
}
"""The fields of a table for one model, by their keys."""


def options_in(path: Path, command: click.Command) -> dict[str, Any]:
    """Return the values in a file by the parameters of the command, which validate them.

    Raises:
        InvalidInput: if the file cannot be read, or has an unknown key or an empty value.
    """
    caught = (OSError, ValueError)  # of TOML or UTF-8
    with file_errors("read the TOML file", path, error=InvalidInput, caught=caught):
        content = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    options = {
        max(option.opts, key=len).lstrip("-").replace("-", "_"): option
        for option in command.params
        if isinstance(option, click.Option) and option.expose_value
    }
    return {
        str(options[key].name): _value(key, value, options[key])
        for key, value in _items(content, options, f"key in {path}")
    }


def _items(
    table: Mapping[str, Any], valid: Collection[str], kind: str
) -> Iterator[tuple[str, Any]]:
    """Yield the keys and values of a table; all keys must be valid, and no value empty."""
    for key, value in table.items():
        if key not in valid:
            raise unknown_value(kind, key, valid)
        if value in ([], ""):
            raise InvalidInput(f"{key!r} is empty; give a value or leave it out")
        yield key, value


def _value(key: str, value: Any, option: click.Option) -> Any:
    """Return a value as the command line would give it."""
    if key == "model":
        return list(map(_model, as_list(value)))
    if option.is_flag:
        return check(bool, value, key)
    if value is True and key in OPTIONS:
        value = OPTIONS[key].without_value or value
    if option.multiple:
        return as_list(value)
    return value if key in OPTIONS else str(value)


def _model(entry: Any) -> str | ModelFields:
    """Return a model: its name, or the fields of its own table."""
    if not isinstance(entry, Mapping):
        return str(entry)
    own: ModelFields = {}
    for key, value in _items(entry, OF_A_MODEL, "key of a model"):
        name = OF_A_MODEL[key]
        own[name] = validate_option(name, value) if name in OPTIONS else value
    return own
