"""``experiment.toml``: the options of ``cdta experiment`` in a file.

Every value becomes the text that would be typed, so that whatever says what can work says it here.
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
from ..providers.http import ENV_PREFIX
from .options import MODEL, OPTIONS, several

NAME = "experiment.toml"
NOT_IN_FILES = ("init", "plots_only", "help")
OF_ONE_MODEL = ("price", "max_connections", "batch")
"""What can be set for one model alone, beside all that is about the model."""


def write_example(path: Path) -> None:
    """Write an experiment that runs as it is, with words on what else there is.

    Raises:
        InvalidInput: if there is something already, or it cannot be written.
    """
    if path.exists():
        raise InvalidInput(f"{str(path)!r} is there already; give --init another name")
    example = files("cant_do_that_anymore") / "data" / NAME
    try:
        atomic_write_text(path, example.read_text(encoding="utf-8"))
    except OSError as problem:
        raise InvalidInput(f"cannot write {str(path)!r} ({problem.strerror})") from None


def file_in(paths: tuple[Path, ...]) -> Path | None:
    """The file that says what to measure, if that is what was given."""
    return paths[0] if len(paths) == 1 and paths[0].suffix == ".toml" else None


def take_defaults(
    ctx: click.Context, argument: click.Parameter, paths: tuple[Path, ...]
) -> tuple[Path, ...]:
    """Let a file say what the command line does not.

    Raises:
        InvalidInput: if it cannot be read, or says something that is no option.
    """
    if path := file_in(paths):
        ctx.default_map = _defaults_in(path, ctx)
    return paths


def _defaults_in(path: Path, ctx: click.Context) -> dict[str, Any]:
    try:
        told = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as problem:
        raise InvalidInput(
            f"cannot read {str(path)!r} ({problem.strerror}); `cdta experiment --init` writes one"
        ) from None
    except ValueError as problem:  # no TOML, or no UTF-8
        raise InvalidInput(f"{path} is no TOML: {problem}") from None
    options = {
        _key(option): option
        for option in ctx.command.params
        if isinstance(option, click.Option) and option.name not in NOT_IN_FILES
    }
    found: dict[str, Any] = {}
    for key, value in told.items():
        if key not in options:
            raise unknown_value(f"key in {path}", key, options)
        option = options[key]
        if key == "model":
            models = value if isinstance(value, list) and value else [value]
            found[str(option.name)] = [_model_in(one, path, ctx) for one in models]
        elif key == "header":
            found[str(option.name)] = _headers(value, path)
        else:
            text = _typed(option, value, path)
            found[str(option.name)] = [text] if option.multiple else text
    return found


def _key(option: click.Option) -> str:
    return max(option.opts, key=len).lstrip("-").replace("-", "_")


def _typed(option: click.Option, value: Any, path: Path) -> str | bool:
    """A value as it would be typed, of the kind that the help of the option shows.

    Raises:
        InvalidInput: if it is of another kind, or nothing.
    """
    if value in ([], ""):
        raise InvalidInput(
            f"{path} gives nothing for {_key(option)!r}; leave it out, or say something"
        )
    form = option.metavar or ""
    if isinstance(value, bool) and option.is_flag:
        return value
    if isinstance(value, list) and "," in form:
        return ",".join(str(_typed(option, each, path)) for each in value)
    if isinstance(value, dict) and form == "JSON":
        return json.dumps(value, default=str)
    if isinstance(value, bool | list | dict) or option.is_flag:
        wanted = form or "true or false"
        raise InvalidInput(f"{path} gives {value!r:.60} for {_key(option)!r}, which takes {wanted}")
    return str(value)


def _model_in(told: Any, path: Path, ctx: click.Context) -> str | Entrant:
    if not isinstance(told, Mapping):
        return str(_typed(OPTIONS["model"], told, path))
    own = {
        "name": "model",
        "url": "base_url",
        **{
            key: key
            for key, option in OPTIONS.items()
            if key in OF_ONE_MODEL or (option.heading == MODEL and key not in ("model", "base_url"))
        },
    }
    if not {"name", "url"} & told.keys():
        raise InvalidInput(f"{path} has a model with neither name nor url: {told}")
    found: dict[str, Any] = {}
    for key, value in told.items():
        if key not in own:
            raise unknown_value(f"key of a model in {path}", key, own)
        if key == "header":
            found[key] = _headers(value, path)
            continue
        if key == "reasoning_effort":
            text = _typed(several(key, "efforts"), value, path)
            found["efforts"] = tuple(str(text).split(","))
            continue
        text = _typed(OPTIONS[own[key]], value, path)
        found[own[key]] = text if key == "name" else OPTIONS[own[key]].type_cast_value(ctx, text)
    return found


def _headers(value: Any, path: Path) -> tuple[str, ...]:
    """Headers; the file is copied beside what comes of it, so it may hold no secret."""
    given = tuple(map(str, value if isinstance(value, list) else [value]))
    if not all(each.partition("=")[2].startswith(ENV_PREFIX) for each in given):
        raise InvalidInput(f"{path} may hold headers only as NAME={ENV_PREFIX}VARIABLE")
    return given
