"""Read ``experiment.toml``, a file with options of ``cdta experiment``."""

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import click

from ..comparison.naming import ModelFields
from ..errors import InvalidInput, unknown_value
from ..files import atomic_write_text, file_errors
from ..providers.access import ENV_PREFIX
from ..task.option_info import MODEL
from ..task.spec import OPTIONS, validate_option
from ..validation import check

NAME = "experiment.toml"
NOT_IN_FILES = ("init", "plots_only", "help")
# Keys of a model's own table, besides the options under the heading "Model".
OF_ONE_MODEL = ("price", "max_connections", "batch")


def write_example(path: Path) -> None:
    """Write an example file that runs as it is, with comments on the other keys.

    Raises:
        InvalidInput: if the file exists already or cannot be written.
    """
    if path.exists():
        raise InvalidInput(f"{str(path)!r} already exists; give --init another name")
    example = files("cant_do_that_anymore") / "data" / NAME
    with file_errors("write", path, error=InvalidInput):
        atomic_write_text(path, example.read_text(encoding="utf-8"))


def file_in(paths: tuple[Path, ...]) -> Path | None:
    """Return the TOML file among the arguments, if it is the only one."""
    return paths[0] if len(paths) == 1 and paths[0].suffix == ".toml" else None


def take_defaults(
    ctx: click.Context, argument: click.Parameter, paths: tuple[Path, ...]
) -> tuple[Path, ...]:
    """Use the values of a TOML file as defaults of the options.

    Raises:
        InvalidInput: if the file cannot be read or has an unknown key.
    """
    if path := file_in(paths):
        ctx.default_map = _defaults_in(path, ctx)
    return paths


def _defaults_in(path: Path, ctx: click.Context) -> dict[str, Any]:
    with file_errors("read", path, "`cdta experiment --init` writes one", error=InvalidInput):
        text = path.read_bytes()
    try:
        content = tomllib.loads(text.decode("utf-8-sig"))
    except ValueError as problem:  # invalid TOML or UTF-8
        raise InvalidInput(f"{path} is not valid TOML: {problem}") from None
    options = {
        max(option.opts, key=len).lstrip("-").replace("-", "_"): option
        for option in ctx.command.params
        if isinstance(option, click.Option) and option.name not in NOT_IN_FILES
    }
    try:
        for key in content.keys() - options.keys():
            raise unknown_value("key", key, options)
        return {
            str(options[key].name): _parsed(key, value, options[key])
            for key, value in content.items()
        }
    except InvalidInput as problem:
        raise InvalidInput(f"{path}: {problem}") from None


def _parsed(key: str, value: Any, option: click.Option) -> Any:
    if key == "model":
        return [_model_in(model) for model in _given(key, _as_list(value))]
    if option.multiple:
        alone = OPTIONS[key].without_value if key in OPTIONS else None
        return _texts(key, alone if alone and value is True else value)
    if key in OPTIONS:
        return validate_option(key, _given(key, value))
    return check(bool, value, key) if option.is_flag else str(check(str | int, value, key))


def _model_in(entry: Any) -> str | ModelFields:
    if not isinstance(entry, Mapping):
        return str(check(str, _given("model", entry), "model"))
    keys = {"name": "model", "url": "base_url"} | {
        key: key
        for key, info in OPTIONS.items()
        if key in OF_ONE_MODEL or (info.heading == MODEL and key not in ("model", "base_url"))
    }
    if not {"name", "url"} & entry.keys():
        raise InvalidInput(f"a model needs a name or a url: {entry}")
    for key in entry.keys() - keys.keys():
        raise unknown_value("key of a model", key, keys)
    settings = {
        keys[key]: _texts(key, value)
        if key in ("header", "reasoning_effort")
        else validate_option(keys[key], _given(key, value))
        for key, value in entry.items()
    }
    if efforts := settings.pop("reasoning_effort", None):
        settings["efforts"] = tuple(",".join(efforts).split(","))
    return settings


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _given(key: str, value: Any) -> Any:
    """Reject an empty value, which would mean the default."""
    if value in ([], ""):
        raise InvalidInput(f"{key!r} is empty; give a value or leave it out")
    return value


def _texts(key: str, value: Any) -> tuple[str, ...]:
    """Return one or several texts; values of headers must come from the environment.

    The file is copied to the results, so it may hold no secret.
    """
    is_header = key == "header"
    texts: tuple[str, ...] = check(
        tuple[str, ...], _as_list(_given(key, value)), key, secret=is_header
    )
    if is_header and not all(text.partition("=")[2].startswith(ENV_PREFIX) for text in texts):
        raise InvalidInput(f"a header in a file must be given as NAME={ENV_PREFIX}VARIABLE")
    return texts
