"""The command ``cdta export``: write results in a schema that others read."""

from pathlib import Path

import click

from ...api.functions import load
from ...api.results import Experiment
from ...formatting import visible
from ...runs.lookup import newest_runs
from ..help import OUTPUT, PATH, Command, Option


@click.command(
    "export",
    cls=Command,
    params=[
        Option(
            "--format schema F",
            OUTPUT,
            "eee (Every Eval Ever) or hub (model pages of the Hugging Face Hub).",
            default="eee",
        ),
        Option("--organization NAME", OUTPUT, "Who ran the evaluation.", default=""),
        Option("-o --out DIR", OUTPUT, "Folder for the files.", type=PATH, default=Path()),
    ],
)
@click.argument("names", metavar="RUN...", nargs=-1, required=True)
def export_command(names: tuple[str, ...], schema: str, organization: str, out: Path) -> None:
    """Export runs in a schema that others read.

    For Every Eval Ever, it writes two files per run: all measures, and every sample with prompt and
    reply. For the Hub, it writes one file with the rule uptake, for the folder .eval_results of the
    model's repository. Folders of this machine and addresses of servers are left out. RUN is a
    folder of one or more runs, part of a folder's name, a model's name, a tag, or latest. A name
    stands for its newest run.
    """
    experiment = Experiment([load(folder) for folder in newest_runs(names)])
    for run in experiment.runs:
        click.echo(visible(f"run: {run.folder}"), err=True)
    for path in experiment.export(out, organization, schema):
        click.echo(path)
