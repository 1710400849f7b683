"""The commands ``cdta run``, ``cdta rescore`` and ``cdta import``."""

import json
from pathlib import Path
from typing import Any, get_args

import click

from ...api.functions import evaluate, load
from ...api.results import save_with_page
from ...report.tables import summary
from ...runs.lookup import check_writable, find_run, new_run_dir
from ...runs.records import import_records
from ...runs.results import Run
from ...runs.storage import rescored, run_json
from ...task.option_info import TASK
from ...task.spec import Spec
from ...task.types import Reading
from ..approval import with_approval_of
from ..console import console
from ..help import JSON, PATH, QUIET, VERBOSE, Command, Option, out_option
from ..options import spec_options


@click.command(
    "run",
    cls=Command,
    params=[*spec_options(), out_option("under CDTA_HOME"), JSON, VERBOSE, QUIET],
)
def run_command(
    out: Path | None, as_json: bool, verbose: bool, quiet: bool, **options: Any
) -> None:
    """Evaluate a model: does it drop a habit when the rules change?

    \b
    cdta run                                        the bundled model
    cdta run --model openai/gpt-4o                  needs OPENAI_API_KEY
    cdta run --model anthropic/claude-sonnet-4-5    any model of Inspect AI
    cdta run --base-url http://localhost:8000/v1    vLLM, llama.cpp, Ollama, ...
    cdta run --base-url URL --model completions/M   a base model
    cdta run --model human --pool common -n 5       you, at the terminal

    Answers are cached: the same command resumes an interrupted run.
    """
    spec = Spec(**options)
    check_writable(out)
    run = with_approval_of(spec, lambda spec: evaluate(spec, quiet=quiet))
    folder = out or new_run_dir(run)
    save_with_page(run, folder)  # its error says that the answers are saved
    _show(run, folder, as_json=as_json, verbose=verbose)


@click.command(
    "rescore",
    cls=Command,
    params=[
        Option(
            "--reading",
            TASK,
            "How to read replies.  [default: as in RUN]",
            type=click.Choice(get_args(Reading)),
        ),
        out_option("RUN-READING"),
        JSON,
        VERBOSE,
    ],
)
@click.argument("name", metavar="RUN")
def rescore_command(
    name: str, reading: Reading | None, out: Path | None, as_json: bool, verbose: bool
) -> None:
    """Score the replies of a run again, without sending requests.

    RUN is a folder, part of its name, a model's name, a tag, or latest. It is not changed.
    """
    folder = find_run(name)
    old = load(folder)
    run = rescored(old, reading or old.plan.reading)
    new = out or folder.with_name(f"{folder.name}-{run.plan.reading}")
    _show(run, run.save(new), as_json=as_json, verbose=verbose)


@click.command("import", cls=Command, params=[out_option("under CDTA_HOME"), JSON, VERBOSE])
@click.argument("records", metavar="RECORD...", nargs=-1, required=True, type=PATH)
def import_command(
    records: tuple[Path, ...], out: Path | None, as_json: bool, verbose: bool
) -> None:
    """Import record files of OpenAI Evals as runs.

    RECORD is a file that oaieval wrote (the original or ours). Its replies are scored again. Import
    all records of a model together, so that positions of one game are recognized. Several records
    become folders in --out, named after their files.
    """
    check_writable(out)
    for path, run in zip(records, import_records(records), strict=True):
        folder = (out / path.stem if len(records) > 1 else out) if out else new_run_dir(run)
        save_with_page(run, folder)
        _show(run, folder, as_json=as_json, verbose=verbose)


def _show(run: Run, folder: Path, *, as_json: bool, verbose: bool) -> None:
    if as_json:
        facts = run_json(run)
        click.echo(json.dumps({**facts.pop("metrics"), **facts, "folder": str(folder)}))
        return
    terminal = console()
    terminal.print(summary(run, verbose=verbose))
    line = f"run: {folder} (cdta view opens its report)"
    terminal.print(line, style="dim", soft_wrap=True, highlight=False)
