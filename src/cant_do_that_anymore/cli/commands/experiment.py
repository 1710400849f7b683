"""The command ``cdta experiment``: evaluate several models several times.

Its options may be in a file, ``experiment.toml``.
"""

import json
from pathlib import Path
from typing import Any

import click

from ...api.functions import experiment as evaluate_all
from ...api.functions import failed, load
from ...api.results import PLOTS_NEEDED, Experiment
from ...comparison.experiment import DIMENSIONS
from ...comparison.naming import ModelFields
from ...formatting import pluralize
from ...report.formats import markdown
from ...report.pages import DOCUMENT
from ...report.tables import experiment_table
from ...runs.lookup import find_runs
from ..console import console
from ..experiment_file import options_in
from ..help import HELP_ALL, JSON, MARKDOWN, OUTPUT, PATH, QUIET, Command, Option
from ..options import MODELS, several, spec_options

SEVERAL = {name: several(name, each.plural, each.default) for name, each in DIMENSIONS.items()}
OUT = Option(
    "-o --out DIR", OUTPUT, "Folder for the results.", type=PATH, default=Path("experiment")
)
TITLE = Option("--title TEXT", OUTPUT, "Title of the report.", default="")


def take_defaults(
    ctx: click.Context, argument: click.Parameter, paths: tuple[Path, ...]
) -> tuple[Path, ...]:
    """Use the values of a TOML file as defaults of the options; return the paths of runs.

    Raises:
        InvalidInput: if the file cannot be read or has an unknown key.
    """
    if len(paths) == 1 and paths[0].suffix == ".toml":
        ctx.default_map = options_in(paths[0], ctx.command)
        return ()
    return paths


@click.command(
    "experiment",
    cls=Command,
    params=[
        *spec_options(model=MODELS, **SEVERAL),
        *(OUT, TITLE, MARKDOWN, JSON, QUIET, HELP_ALL),
    ],
)
@click.argument(
    "runs",
    nargs=-1,
    metavar="[FILE.toml | RUN...]",
    type=PATH,
    is_eager=True,  # its values are the defaults of the options
    callback=take_defaults,
)
def experiment_command(
    runs: tuple[Path, ...],
    models: tuple[str | ModelFields, ...],
    out: Path,
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
    cdta experiment FILE.toml               options from a file
    cdta experiment RUN RUN                 tables and plots of existing runs

    Several efforts share the positions selected at the lowest one. Every run is a folder in --out;
    existing runs are not repeated, so the same command resumes an experiment. The command prints
    which model adapts best and whether that is significant. It writes results.csv, results.json,
    plots (PNG and SVG) and a report, index.html. --max-cost is one limit for all runs together.
    """
    if runs:
        experiment = Experiment([load(folder) for folder in find_runs(runs)])
    else:
        experiment = evaluate_all(models, out=out, quiet=quiet, **rest)
    files = list(map(str, experiment.save(out, title)))
    document = json.loads((out / DOCUMENT).read_bytes())
    if as_json:
        click.echo(json.dumps({**document, "files": files}))
    elif as_markdown:
        click.echo(markdown.leaderboards(experiment.rankings))
    else:
        console().print(experiment_table(experiment.rankings, document))
    if not any(file.endswith(".png") for file in files):
        click.echo(PLOTS_NEEDED, err=True)
    others = pluralize(len(files) - 1, "file")
    click.echo(f"report: {files[-1]} (with {others} beside it)", err=True)
    if experiment.failures:
        raise failed(experiment.failures)
