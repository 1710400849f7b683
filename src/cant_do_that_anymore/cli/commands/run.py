"""The command ``cdta run``."""

import json
from pathlib import Path
from typing import Any

import click

from ...task.spec import Spec
from ..console import console
from ..help import HELP_ALL, JSON, OUTPUT, PATH, QUIET, VERBOSE, Command, Option
from ..options import spec_options

OUT = Option(
    "-o --out DIR", OUTPUT, "Folder for the results.  [default: under CDTA_HOME]", type=PATH
)


@click.command("run", cls=Command, params=[*spec_options(), OUT, JSON, VERBOSE, QUIET, HELP_ALL])
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

    Answers are cached: the same command resumes an interrupted run.
    """
    from ...api.functions import evaluate  # loads all that a run needs
    from ...api.results import save_with_page
    from ...report.tables import summary
    from ...runs.lookup import check_writable, new_run_dir
    from ...runs.storage import run_json

    spec = Spec(**options)
    check_writable(out)
    run = evaluate(spec, quiet=quiet)
    folder = out or new_run_dir(run)
    save_with_page(run, folder)  # its error says that the answers are saved
    if as_json:
        click.echo(json.dumps(run_json(run) | {"folder": str(folder)}))
        return
    terminal = console()
    terminal.print(summary(run, verbose=verbose))
    line = f"run: {folder} (cdta view opens its report)"
    terminal.print(line, style="dim", soft_wrap=True)
