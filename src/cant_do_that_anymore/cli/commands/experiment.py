"""The command ``cdta experiment``: evaluate several models several times.

Its options may be in a file, ``experiment.toml``.
"""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from ...api.functions import experiment as evaluate_all
from ...api.functions import failed, load
from ...api.results import Experiment, create_folder
from ...comparison.experiment import DIMENSIONS, as_list
from ...comparison.naming import ModelFields, models_by_name
from ...errors import InvalidInput, unknown_value
from ...files import DATA, atomic_write_text, file_errors
from ...formatting import pluralize
from ...providers.access import ENV_PREFIX
from ...report.formats import markdown
from ...report.rows import build_document
from ...report.tables import experiment_table
from ...runs.lookup import find_runs
from ...task.option_info import MODEL
from ...task.spec import OPTIONS, SECRET, validate_option
from ...validation import check
from ..console import console
from ..help import (
    JSON,
    MARKDOWN,
    OUTPUT,
    PATH,
    QUIET,
    Command,
    Option,
    out_option,
)
from ..options import MODELS, several, several_values, spec_options

OUT = Path("experiment")
NAME = "experiment.toml"
NOT_IN_FILES = ("init", "plots_only", "help")
# Keys of a model's own table, besides the options under the heading "Model".
OF_ONE_MODEL = ("price", "max_connections")


def write_example(path: Path) -> None:
    """Write an example file that runs as it is, with comments on the other keys.

    Raises:
        InvalidInput: if the file exists already or cannot be written.
    """
    if path.exists():
        raise InvalidInput(f"{str(path)!r} already exists; give --init another name")
    with file_errors("write", path, error=InvalidInput):
        atomic_write_text(path, (DATA / NAME).read_text(encoding="utf-8"))


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
        return [_model_in(model) for model in _given(key, as_list(value))]
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
        key: DIMENSIONS[key].plural if key in DIMENSIONS else key
        for key, info in OPTIONS.items()
        if key in OF_ONE_MODEL or (info.heading == MODEL and key not in ("model", "base_url"))
    }
    if not {"name", "url"} & entry.keys():
        raise InvalidInput(f"a model needs a name or a url: {entry}")
    for key in entry.keys() - keys.keys():
        raise unknown_value("key of a model", key, keys)
    return {
        keys[key]: several_values(key, _texts(key, value))
        if key in DIMENSIONS
        else _texts(key, value)
        if key == "header"
        else validate_option(keys[key], _given(key, value))
        for key, value in entry.items()
    }


def _given(key: str, value: Any) -> Any:
    """Reject an empty value, which would mean the default."""
    if value in ([], ""):
        raise InvalidInput(f"{key!r} is empty; give a value or leave it out")
    return value


def _texts(key: str, value: Any) -> tuple[str, ...]:
    """Return one or several texts; values of headers must come from the environment.

    The file is copied to the results, so it may hold no secret.
    """
    kind = tuple[str | int | float, ...] if key in DIMENSIONS else tuple[str, ...]
    texts = tuple(map(str, check(kind, as_list(_given(key, value)), key, secret=key in SECRET)))
    if key == "header" and not all(t.partition("=")[2].startswith(ENV_PREFIX) for t in texts):
        raise InvalidInput(f"a header in a file must be given as NAME={ENV_PREFIX}VARIABLE")
    return texts


@click.command(
    "experiment",
    cls=Command,
    params=[
        *spec_options(
            model=MODELS,
            **{name: several(name, d.plural, d.default) for name, d in DIMENSIONS.items()},
        ),
        out_option(str(OUT)),
        Option("--title TEXT", OUTPUT, "Title of the report.", default=""),
        Option("--plots-only", OUTPUT, "Only plot the runs at PATH.", is_flag=True),
        Option(
            "--init [FILE]",
            OUTPUT,
            f"Write an example file.  [default: {NAME}]",
            is_flag=False,
            flag_value=NAME,
            type=PATH,
        ),
        MARKDOWN,
        JSON,
        QUIET,
    ],
)
@click.argument(
    "paths",
    nargs=-1,
    metavar="[FILE.toml | PATH...]",
    type=PATH,
    is_eager=True,  # its values are the defaults of the options
    callback=take_defaults,
)
def experiment_command(
    paths: tuple[Path, ...],
    plots_only: bool,
    init: Path | None,
    models: tuple[str | ModelFields, ...],
    out: Path | None,
    title: str,
    as_json: bool,
    as_markdown: bool,
    quiet: bool,
    **rest: Any,
) -> None:
    """Evaluate several models, rules, forms or efforts side by side.

    \b
    cdta experiment --model openai/gpt-4o --model anthropic/claude-sonnet-4-5
    cdta experiment --model openai/gpt-5.1 --reasoning-effort none,low,high
    cdta experiment --model openai/gpt-4o --rules all
    cdta experiment --model openai/gpt-4o --wording all --form moves,fen
    cdta experiment --model a@http://gpu1:8000/v1 --model b@http://gpu2:8000/v1
    cdta experiment FILE.toml               options from a file; --init writes one
    cdta experiment --plots-only RUN RUN

    Several efforts share the positions selected at the lowest one. Every run is a folder in --out;
    existing runs are not repeated, so the same command resumes an experiment. The command prints
    which model adapts best and whether that is significant. It writes results.csv, results.json,
    plots (PNG and SVG) and a report, index.html. --max-cost is one limit for all runs together.
    """
    if init:
        write_example(init)
        click.echo(f"wrote {init}; `cdta experiment {init}` runs it")
        return
    if plots_only and not paths:
        raise InvalidInput("--plots-only needs the runs to plot; see cdta runs")
    if paths and not plots_only and not file_in(paths):
        raise InvalidInput(
            "PATH needs --plots-only, which plots existing runs; to run an experiment, give one "
            "FILE.toml"
        )
    out = out or OUT
    if plots_only:
        experiment = Experiment([load(folder) for folder in find_runs(paths)])
    else:
        models_by_name(models or [None], rest["base_url"])  # rejects addresses with a secret
        if file := file_in(paths):
            create_folder(out)
            _copy(file, out)
        experiment = evaluate_all(models, out=out, quiet=quiet, **rest)
    _show(experiment, out, title, as_json=as_json, as_markdown=as_markdown)
    if experiment.failures:
        raise failed(experiment.failures)


def _copy(file: Path, out: Path) -> None:
    """Copy the experiment file into the folder of results."""
    copy = out / NAME
    if file.resolve() != copy.resolve():
        atomic_write_text(copy, file.read_text(encoding="utf-8"))


def _show(
    experiment: Experiment, out: Path, title: str, *, as_json: bool, as_markdown: bool
) -> None:
    files = [str(file) for file in experiment.save(out, title)]
    document = build_document(experiment.rankings, out, title)
    if as_json:
        click.echo(json.dumps({**document, "files": files}))
        return
    if as_markdown:
        click.echo(markdown.leaderboards(experiment.rankings))
    else:
        console().print(experiment_table(experiment.rankings, document))
    table, numbers, *plots, page = files
    plots_line = f"plus {pluralize(len(plots) // 2, 'plot')} (PNG and SVG)"
    for line in (table, numbers, plots_line, page):
        click.echo(line, err=True)
