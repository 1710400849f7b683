"""Read ``experiment.toml``, a file with options of ``cdta experiment``.

Every value becomes the text of the command line, so that the options validate it as usual.
"""

import json
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import click

from ..comparison.naming import Entrant
from ..errors import InvalidInput, unknown_value
from ..files import atomic_write_text
from ..providers.access import ENV_PREFIX
from .help import MODEL
from .options import OPTIONS, several

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
        raise InvalidInput(f"{str(path)!r} is there already; give --init another name")
    example = files("cant_do_that_anymore") / "data" / NAME
    try:
        atomic_write_text(path, example.read_text(encoding="utf-8"))
    except OSError as problem:
        raise InvalidInput(f"cannot write {str(path)!r} ({problem.strerror})") from None


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
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as problem:
        raise InvalidInput(
            f"cannot read {str(path)!r} ({problem.strerror}); `cdta experiment --init` writes one"
        ) from None
    except ValueError as problem:  # invalid TOML or UTF-8
        raise InvalidInput(f"{path} is no TOML: {problem}") from None
    options = {
        _key(option): option
        for option in ctx.command.params
        if isinstance(option, click.Option) and option.name not in NOT_IN_FILES
    }
    defaults: dict[str, Any] = {}
    for key, value in content.items():
        if key not in options:
            raise unknown_value(f"key in {path}", key, options)
        option = options[key]
        if key == "model":
            models = value if isinstance(value, list) and value else [value]
            defaults[str(option.name)] = [_model_in(model, path, ctx) for model in models]
        elif key == "header":
            defaults[str(option.name)] = _headers(value, path)
        else:
            text = _as_text(option, value, path)
            defaults[str(option.name)] = [text] if option.multiple else text
    return defaults


def _key(option: click.Option) -> str:
    return max(option.opts, key=len).lstrip("-").replace("-", "_")


def _as_text(option: click.Option, value: Any, path: Path) -> str | bool:
    """Return a value as the text of the command line.

    Raises:
        InvalidInput: if the value is empty or not of the type of the option.
    """
    if value in ([], ""):
        raise InvalidInput(
            f"{path} gives nothing for {_key(option)!r}; leave it out, or say something"
        )
    metavar = option.metavar or ""
    if isinstance(value, bool) and option.is_flag:
        return value
    if isinstance(value, list) and "," in metavar:
        return ",".join(str(_as_text(option, item, path)) for item in value)
    if isinstance(value, dict) and metavar == "JSON":
        return json.dumps(value, default=str)
    if isinstance(value, bool | list | dict) or option.is_flag:
        wanted = metavar or "true or false"
        raise InvalidInput(f"{path} gives {value!r:.60} for {_key(option)!r}, which takes {wanted}")
    return str(value)


def _model_in(entry: Any, path: Path, ctx: click.Context) -> str | Entrant:
    if not isinstance(entry, Mapping):
        return str(_as_text(OPTIONS["model"], entry, path))
    keys = {
        "name": "model",
        "url": "base_url",
        **{
            key: key
            for key, option in OPTIONS.items()
            if key in OF_ONE_MODEL or (option.heading == MODEL and key not in ("model", "base_url"))
        },
    }
    if not {"name", "url"} & entry.keys():
        raise InvalidInput(f"{path} has a model with neither name nor url: {entry}")
    settings: dict[str, Any] = {}
    for key, value in entry.items():
        if key not in keys:
            raise unknown_value(f"key of a model in {path}", key, keys)
        if key == "header":
            settings[key] = _headers(value, path)
            continue
        if key == "reasoning_effort":
            text = _as_text(several(key, "efforts"), value, path)
            settings["efforts"] = tuple(str(text).split(","))
            continue
        text = _as_text(OPTIONS[keys[key]], value, path)
        settings[keys[key]] = (
            text if key == "name" else OPTIONS[keys[key]].type_cast_value(ctx, text)
        )
    return settings


def _headers(value: Any, path: Path) -> tuple[str, ...]:
    """Return headers; their values must come from the environment, since the file is copied."""
    headers = tuple(map(str, value if isinstance(value, list) else [value]))
    if not all(header.partition("=")[2].startswith(ENV_PREFIX) for header in headers):
        raise InvalidInput(f"{path} may hold headers only as NAME={ENV_PREFIX}VARIABLE")
    return headers
