"""The command that measures many models many times: ``cdta experiment``."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...errors import BadInput, Problem, Stopped, Unfinished, unknown
from ...evaluation.spec import DEFAULT_MODEL, DEFAULT_SEED, SAMPLES, Eval, Spec

if TYPE_CHECKING:
    from ...report.records import Trial


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH...]", type=click.Path(path_type=Path))
@click.option(
    "--model", "models", multiple=True, metavar="M", help="Whom to measure; give it repeatedly."
)
@click.option("--base-url", metavar="URL", help="An OpenAI-compatible server, with its /v1.")
@click.option("--runs", type=click.IntRange(1), default=3, show_default=True, help="Seeds a model.")
@click.option(
    "--eval",
    "evals",
    default="all,all_diagonal",
    show_default=True,
    metavar="E,E",
    help=f"Which of {', '.join(SAMPLES)}.",
)
@click.option("-n", type=click.IntRange(1), metavar="N", help="Samples a run.")
@click.option("--seed", type=int, default=DEFAULT_SEED, show_default=True, help="The first seed.")
@click.option("--wording", metavar="W", default="default", show_default=True)
@click.option(
    "--max-tokens", type=click.IntRange(1), metavar="K", help="Where replies are cut off."
)
@click.option("--max-connections", type=click.IntRange(1), metavar="C", help="Questions at once.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default="experiment",
    show_default=True,
    help="Where runs, results and plots go.",
)
@click.option(
    "--plots-only",
    is_flag=True,
    help="Measure nothing: results and plots of the runs, or the original's record files, at PATH.",
)
@click.option("--quiet", is_flag=True, help="No progress.")
def experiment(
    paths: tuple[Path, ...],
    plots_only: bool,
    out: Path,
    evals: str,
    runs: int,
    seed: int,
    **rest: Any,
) -> None:
    """Measure several models several times, and draw the results.

    \b
    cdta experiment --model openai/gpt-4o --model anthropic/claude-sonnet-4-5
    cdta experiment --plots-only RUN RUN record.jsonl

    Every run is a folder in --out; those that are there already are not measured again, so an
    experiment that was stopped goes on when it is started again. Writes results.csv (mean and
    standard error over the runs) and plots as PNG and SVG.
    """
    from ...report.records import trials_in

    if plots_only != bool(paths):
        raise BadInput("PATH goes with --plots-only: give both to draw what is there, or neither")
    if plots_only:
        _show(trials_in(paths), out)
        return
    trials, failures = _measured(out, _evals(evals), range(seed, seed + runs), **rest)
    if trials:
        _show(trials, out)
    if failures:
        reasons = "; ".join(f"{model}: {problem}" for model, problem in failures.items())
        raise Unfinished(f"not everything could be measured: {reasons}")


def _evals(names: str) -> list[Eval]:
    wanted = names.split(",")
    for name in wanted:
        if name not in SAMPLES:
            raise unknown("eval", name, SAMPLES)
    return [eval_ for eval_ in SAMPLES if eval_ in wanted]


def _measured(
    out: Path, evals: list[Eval], seeds: range, *, models: tuple[str, ...], quiet: bool, **spec: Any
) -> tuple[list["Trial"], dict[str, Problem]]:
    """All trials, and by model why some are missing; no model that fails stops the others."""
    from ...report.experiment import finished_run
    from ...report.records import trial_of

    trials, failures = [], {}
    for model in models or ((None,) if spec["base_url"] else (DEFAULT_MODEL,)):
        try:
            for eval_ in evals:
                for seed in seeds:
                    wanted = Spec(model=model, eval=eval_, seed=seed, **spec)
                    trials.append(trial_of(finished_run(wanted, out, quiet=quiet)))
        except Stopped:
            raise
        except Problem as problem:
            failures[model or spec["base_url"]] = problem
    return trials, failures


def _show(trials: list["Trial"], out: Path) -> None:
    from ...report.experiment import as_csv, draw, results

    found = results(trials)
    table = as_csv(found)
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / "results.csv").write_text(table, encoding="utf-8")
    except OSError as problem:
        raise Problem(f"cannot write to {str(out)!r} ({problem.strerror})") from None
    click.echo(table, nl=False)
    for file in (out / "results.csv", *draw(trials, out)):
        click.echo(str(file), err=True)
