"""The command ``cdta experiment``: evaluate several models several times."""

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from ...api.functions import experiment as evaluate_all
from ...api.functions import failed, load
from ...api.results import Experiment, create_folder
from ...comparison.naming import ModelFields, models_by_name
from ...errors import InvalidInput
from ...files import atomic_write_text
from ...formatting import pluralize
from ...game.rules import BISHOPS_AS_KNIGHTS
from ...providers.base import Effort
from ...report.document import build_document
from ...report.tables import experiment_table
from ...runs.lookup import find_runs
from ...task.forms import MOVES
from ...task.option_info import TASK
from ...task.types import Eval
from ..approval import with_approval
from ..console import console
from ..experiment_toml import NAME, file_in, take_defaults, write_example
from ..help import (
    AT_LEAST_1,
    FORMATS,
    JSON,
    OUTPUT,
    PATH,
    QUIET,
    Command,
    Option,
    chosen_format,
    out_option,
)
from ..options import MODELS, several, spec_options

OUT = Path("experiment")


@click.command(
    "experiment",
    cls=Command,
    params=[
        *spec_options(
            model=MODELS,
            reasoning_effort=several("reasoning_effort", "efforts"),
            eval=several(
                "eval", "evals", default_text="all,all_diagonal; with --rules or --pool all"
            ),
            rules=several(
                "rules", "changes", default_text=f"{BISHOPS_AS_KNIGHTS.key}; all: every rule"
            ),
            form=several("form", "forms", MOVES.name),
        ),
        Option(
            "--runs N",
            TASK,
            "Runs per combination, with consecutive seeds.",
            type=AT_LEAST_1,
            default=3,
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
        *FORMATS.values(),
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
    evals: tuple[Eval | None, ...],
    changes: tuple[str | None, ...],
    efforts: tuple[Effort | None, ...],
    forms: tuple[str, ...],
    runs: int,
    seed: int,
    out: Path | None,
    title: str,
    as_json: bool,
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
    existing runs are not repeated, so the same command resumes an experiment. Runs that differ only
    in the seed are pooled. The command prints which model adapts best and whether that is
    significant. It writes results.csv, results.json, plots (PNG and SVG) and a report, index.html.
    --max-cost is one limit for all runs together.
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
    out, text_format = out or OUT, chosen_format(rest)
    if plots_only:
        found = Experiment([load(folder) for folder in find_runs(paths)])
    else:
        models_by_name(models or [None], rest["base_url"])  # rejects addresses with a secret
        if file := file_in(paths):
            create_folder(out)
            _copy(file, out)
        found = with_approval(
            rest["ask_above"],
            lambda above: evaluate_all(
                models,
                rules=[change for change in changes if change],
                evals=[eval_ for eval_ in evals if eval_],
                efforts=efforts,
                forms=forms,
                seeds=range(seed, seed + runs),
                out=out,
                quiet=quiet,
                **rest | {"ask_above": above},
            ),
            cached=not rest["fresh"],
        )
    _show(found, out, title, text_format, as_json=as_json)
    if found.failures:
        raise failed(found.failures)


def _copy(file: Path, out: Path) -> None:
    """Copy the experiment file into the folder of results."""
    copy = out / NAME
    if file.resolve() != copy.resolve():
        atomic_write_text(copy, file.read_text(encoding="utf-8"))


def _show(
    found: Experiment, out: Path, title: str, text_format: ModuleType | None, *, as_json: bool
) -> None:
    files = [str(file) for file in found.save(out, title)]
    document = build_document(found.rankings, out, title)
    if as_json:
        click.echo(json.dumps({**document, "files": files}))
        return
    if text_format:
        click.echo(text_format.leaderboards(found.rankings))
    else:
        console().print(experiment_table(found.rankings, document))
    table, numbers, *plots, page = files
    plots_line = f"plus {pluralize(len(plots) // 2, 'plot')} (PNG and SVG)"
    for line in (table, numbers, plots_line, page):
        click.echo(line, err=True)
