"""The command ``cdta export``: write results in a form that others read."""

from pathlib import Path

import click

from ...api.functions import load
from ...api.results import Experiment
from ...report.export import FORMATS
from ...runs.lookup import find_runs
from ..help import OUTPUT, PATH, Command, Option


@click.command(
    "export",
    cls=Command,
    params=[
        Option(
            "--format form F",
            OUTPUT,
            f"{', '.join(FORMATS)}.",
            type=click.Choice([*FORMATS]),
            default="markdown",
        ),
        Option("--organization NAME", OUTPUT, "Who ran the evaluation, for eee.", default=""),
        Option(
            "-o --out PATH",
            OUTPUT,
            "File, or folder for eee.  [default: stdout; eee: the current folder]",
            type=PATH,
        ),
    ],
)
@click.argument("names", metavar="RUN...", nargs=-1, required=True)
def export_command(names: tuple[str, ...], form: str, organization: str, out: Path | None) -> None:
    """Export runs as a table, or in the schema of Every Eval Ever.

    \b
    cdta export gpt-4o --format csv -o results.csv
    cdta export experiment --format eee -o shared     all runs of a folder

    csv, jsonl and markdown have one row per model, with the columns of `cdta experiment`. eee
    writes two files per model: all measures, and every sample with prompt and reply. Runs that
    differ only in the seed are pooled. Folders of this machine are left out, and in eee the
    addresses of servers. RUN is a folder, part of its name, a model's name, a tag, latest, or a
    folder of runs.
    """
    experiment = Experiment([load(folder) for folder in find_runs(names)])
    if form == "eee" or out:
        for path in experiment.export(form, out or Path(), organization):
            click.echo(path)
    else:
        for text in experiment.texts(form).values():
            click.echo(text, nl=False)
