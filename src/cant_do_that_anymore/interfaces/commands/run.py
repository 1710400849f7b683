"""Commands that measure: ``cdta run`` and ``cdta rescore``."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from ...evaluation.judging import Reading
from ...evaluation.spec import DEFAULT_MODEL, DEFAULT_SEED, SAMPLES, Spec
from ...game.rules import BISHOPS_AS_KNIGHTS

if TYPE_CHECKING:
    from ...evaluation.run import Run

_FILE = click.Path(dir_okay=False, path_type=Path)
_FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command("run")
@click.option("--model", metavar="M", help=f"Whom to measure.  [default: {DEFAULT_MODEL}]")
@click.option("--base-url", metavar="URL", help="An OpenAI-compatible server, with its /v1.")
@click.option("--eval", type=click.Choice(list(SAMPLES)), default="all", show_default=True)
@click.option("--pool", type=_FILE, help="Choose the positions from this file.")
@click.option(
    "--dataset", metavar="D", help="Take a file's positions as they are, or a dataset by name."
)
@click.option("--rules", metavar="KEY", default=BISHOPS_AS_KNIGHTS.key, show_default=True)
@click.option(
    "--wording",
    metavar="W",
    default="default",
    show_default=True,
    help="A TOML file, or openai-evals:FILE for the original's texts out of its wheel "
    "(pip download --no-deps evals).",
)
@click.option(
    "--reading",
    type=click.Choice(get_args(Reading)),
    default="lenient",
    show_default=True,
    help="How replies are read; exact is the original's way.",
)
@click.option("-n", type=int, metavar="N", help="Samples.  [default: 1000; all_small: 100]")
@click.option("--seed", type=int, default=DEFAULT_SEED, show_default=True)
@click.option("--temperature", type=float, default=1.0, show_default=True)
@click.option(
    "--max-tokens", type=click.IntRange(1), metavar="K", help="Where replies are cut off."
)
@click.option("--max-connections", type=click.IntRange(1), metavar="C", help="Questions at once.")
@click.option("--max-error-rate", type=click.FloatRange(0, 1), default=0.05, show_default=True)
@click.option("--max-cost", type=click.FloatRange(0), metavar="USD", help="Stop before passing it.")
@click.option("--out", type=_FOLDER, help="Where the run goes.  [default: under CDTA_HOME]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
@click.option("--quiet", is_flag=True, help="No progress.")
def run_command(out: Path | None, as_json: bool, quiet: bool, **options: Any) -> None:
    """Measure a model: does it drop a habit when the rules change?

    \b
    cdta run                                          the small model inside this package
    cdta run --model openai/gpt-4o                    needs OPENAI_API_KEY
    cdta run --model anthropic/claude-sonnet-4-5      any model that Inspect AI reaches
    cdta run --base-url http://localhost:8000/v1      vLLM, llama.cpp, Ollama, ...
    cdta run --base-url URL --model completions/M     a base model

    Answers are kept: a run that was stopped goes on when it is started again.
    """
    from ...evaluation.folder import check_free, new_folder
    from ...evaluation.run import evaluate
    from ...report.page import save_with_page

    if out:
        check_free(out)
    run = evaluate(Spec(**options), quiet=quiet or options["model"] == "human")
    folder = out or new_folder(run)
    save_with_page(run, folder)
    _show(run, folder, as_json=as_json)


@click.command()
@click.argument("folder", metavar="RUN", type=_FOLDER)
@click.option("--reading", type=click.Choice(get_args(Reading)), help="Read the replies this way.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def rescore(folder: Path, reading: Reading | None, as_json: bool) -> None:
    """Judge a run's answers again, without asking anything."""
    from ...evaluation.folder import rescore as rescored
    from ...report.page import PAGE_NAME, write_page

    run = rescored(folder, reading)
    write_page(run, folder / PAGE_NAME)
    _show(run, folder, as_json=as_json)


def _show(run: "Run", folder: Path, *, as_json: bool) -> None:
    if as_json:
        from ...evaluation.folder import facts_of

        facts = facts_of(run)
        click.echo(json.dumps({**facts.pop("metrics"), **facts, "folder": str(folder)}))
    else:
        from rich.console import Console

        from ...report.terminal import summary

        console = Console()
        console.print(summary(run))
        line = f"run: {folder} (cdta view opens its page)"
        console.print(line, style="dim", soft_wrap=True, highlight=False)
