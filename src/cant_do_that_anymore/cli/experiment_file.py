"""The file of an experiment: a TOML table with values of the command's options."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from ..comparison.experiment import as_list
from ..comparison.naming import ModelFields
from ..errors import InvalidInput, unknown_value
from ..files import file_errors
from ..providers.access import ENV_PREFIX
from ..task.option_info import MODEL
from ..task.spec import OPTIONS, SECRET, validate_option
from ..validation import check
from .options import several_values

# What a table for one model names otherwise than the options do.
OF_A_MODEL = {
    "name": "model",
    "url": "base_url",
    "price": "price",
    "max_connections": "max_connections",
}
EFFORT = "reasoning_effort"


def options_in(path: Path, command: click.Command) -> dict[str, Any]:
    """Return the values in a file by the parameters of the command.

    Raises:
        InvalidInput: if the file cannot be read, or has an unknown key or an invalid value.
    """
    with file_errors("read", path, error=InvalidInput):
        text = path.read_bytes()
    try:
        content = tomllib.loads(text.decode("utf-8-sig"))
    except ValueError as problem:  # invalid TOML or UTF-8
        raise InvalidInput(f"{path} is not valid TOML: {problem}") from None
    options = {
        max(option.opts, key=len).lstrip("-").replace("-", "_"): option
        for option in command.params
        if isinstance(option, click.Option) and option.expose_value
    }
    values = {}
    try:
        for key, value in content.items():
            if key not in options:
                raise unknown_value("key", key, options)
            values[str(options[key].name)] = _value(key, value, options[key])
    except InvalidInput as problem:
        raise InvalidInput(f"{path}: {problem}") from None
    return values


def _value(key: str, value: Any, option: click.Option) -> Any:
    _check(key, value)
    if key == "model":
        return [_model(entry) for entry in as_list(value)]
    if option.multiple:
        without_value = OPTIONS[key].without_value
        return _texts(key, without_value if without_value and value is True else value)
    if key in OPTIONS:
        return validate_option(key, value)
    return check(bool, value, key) if option.is_flag else str(check(str | int, value, key))


def _model(entry: Any) -> str | ModelFields:
    """Return a model: its name, or the fields of its own table."""
    if not isinstance(entry, Mapping):
        return str(check(str, entry, "model"))
    settings = {name: name for name, info in OPTIONS.items() if info.heading == MODEL}
    names = OF_A_MODEL | {name: name for name in settings if name not in ("model", "base_url")}
    if not {"name", "url"} & entry.keys():
        raise InvalidInput(f"a model needs a name or a url: {entry}")
    own: ModelFields = {}
    for key, value in entry.items():
        if key not in names:
            raise unknown_value("key of a model", key, names)
        _check(key, value)
        if key == EFFORT:
            own["efforts"] = several_values(key, _texts(key, value))
        else:
            own[names[key]] = validate_option(names[key], value)
    return own


def _texts(key: str, value: Any) -> tuple[str, ...]:
    """Return one or several texts of an option that can be repeated."""
    values = check(tuple[str | int | float, ...], as_list(value), key, secret=key in SECRET)
    return tuple(map(str, values))


def _check(key: str, value: Any) -> None:
    """Refuse empty values, and headers that do not refer to a variable.

    The file is copied to the results, so it may hold no secret.
    """
    if value in ([], ""):
        raise InvalidInput(f"{key!r} is empty; give a value or leave it out")
    headers = map(str, as_list(value)) if key == "header" else []
    if not all(text.partition("=")[2].startswith(ENV_PREFIX) for text in headers):
        raise InvalidInput(f"a header in a file must be given as NAME={ENV_PREFIX}VARIABLE")
