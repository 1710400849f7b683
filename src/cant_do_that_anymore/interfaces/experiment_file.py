"""``experiment.toml``: the options of ``cdta experiment`` in a file, checked as when typed.

Every value becomes the text that would be typed, so that whatever says what can work says it here.
"""

import json
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import click

from ..errors import BadInput, unknown
from ..evaluation.entrants import Entrant
from ..files import replacing_text
from ..models.access import FROM_ENVIRONMENT
from .options import MODEL, OPTIONS

NAME = "experiment.toml"
NOT_IN_FILES = ("init", "plots_only", "help")
OF_ONE_MODEL = ("price", "max_connections", "batch")
"""What can be set for one model alone, beside all that is about the model."""


def write_example(path: Path) -> None:
    """Write an experiment that runs as it is, with words on what else there is.

    Raises:
        BadInput: if there is something already, or it cannot be written.
    """
    if path.exists():
        raise BadInput(f"{str(path)!r} is there already; give --init another name")
    example = files("cant_do_that_anymore") / "data" / NAME
    try:
        replacing_text(path, example.read_text(encoding="utf-8"))
    except OSError as problem:
        raise BadInput(f"cannot write {str(path)!r} ({problem.strerror})") from None


def file_in(paths: tuple[Path, ...]) -> Path | None:
    """The file that says what to measure, if that is what was given."""
    return paths[0] if len(paths) == 1 and paths[0].suffix == ".toml" else None


def take_defaults(
    ctx: click.Context, argument: click.Parameter, paths: tuple[Path, ...]
) -> tuple[Path, ...]:
    """Let a file say what the command line does not.

    Raises:
        BadInput: if it cannot be read, or says something that is no option.
    """
    if path := file_in(paths):
        ctx.default_map = _defaults_in(path, ctx)
    return paths


def _defaults_in(path: Path, ctx: click.Context) -> dict[str, Any]:
    try:
        told = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise BadInput(
            f"cannot read {str(path)!r} ({problem.strerror}); `cdta experiment --init` writes one"
        ) from None
    except ValueError as problem:  # no TOML, or no UTF-8
        raise BadInput(f"{path} is no TOML: {problem}") from None
    options = {_key(option): option for option in ctx.command.params if _may_stand_there(option)}
    found: dict[str, Any] = {}
    for key, value in told.items():
        if key not in options:
            raise unknown(f"key in {path}", key, options)
        if value in ([], ""):
            raise BadInput(f"{path} gives nothing for {key!r}; leave it out, or name something")
        option = options[key]
        if key == "model":
            models = value if isinstance(value, list) else [value]
            found[str(option.name)] = [_model_in(one, path, ctx) for one in models]
        else:
            text = _typed(value)
            found[str(option.name)] = [text] if getattr(option, "multiple", False) else text
    return found


def _may_stand_there(option: click.Parameter) -> bool:
    return isinstance(option, click.Option) and option.name not in NOT_IN_FILES


def _key(option: click.Parameter) -> str:
    return max(option.opts, key=len).lstrip("-").replace("-", "_")


def _typed(value: Any) -> str | bool:
    """A value as it would be typed; a flag is there or not."""
    if isinstance(value, bool):
        return value
    if isinstance(value, list):
        return ",".join(str(_typed(each)) for each in value)
    return json.dumps(value) if isinstance(value, dict) else str(value)


def _model_in(told: Any, path: Path, ctx: click.Context) -> str | Entrant:
    if not isinstance(told, Mapping):
        return str(told)
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
        raise BadInput(f"{path} has a model with neither name nor url: {json.dumps(told)}")
    found: dict[str, Any] = {}
    for key, value in told.items():
        if key not in own:
            raise unknown(f"key of a model in {path}", key, own)
        text = _typed(value)
        if key == "header":
            found[key] = _headers(value, path)
        elif key == "reasoning_effort":
            found["efforts"] = tuple(str(text).split(","))
        elif key in ("name", "url"):
            found[own[key]] = str(text)
        else:
            found[key] = OPTIONS[key].type_cast_value(ctx, text)
    return found


def _headers(value: Any, path: Path) -> tuple[str, ...]:
    """Headers of a model; the file is copied beside what comes of it, so it may hold no secret."""
    given = tuple(map(str, value if isinstance(value, list) else [value]))
    if not all(each.partition("=")[2].startswith(FROM_ENVIRONMENT) for each in given):
        raise BadInput(f"{path} may hold headers only as NAME={FROM_ENVIRONMENT}VARIABLE")
    return given
