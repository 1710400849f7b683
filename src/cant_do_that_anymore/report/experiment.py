"""Experiments: several models, evals and seeds, and what they come to."""

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from math import sqrt
from pathlib import Path
from statistics import fmean, stdev

from ..errors import BadInput
from ..evaluation.folder import load_run
from ..evaluation.run import Run, evaluate
from ..evaluation.spec import Spec
from ..home import safe_name
from .page import save_with_page
from .plots import bar_chart, line_chart
from .records import Trial

METRICS: dict[str, Callable[[float, float], float | None]] = {
    "predicted_move_proportion": lambda p, v: p,
    "predicted_move_in_variant_proportion": lambda p, v: v,
    "delta": lambda p, v: v - p,
    "variant_impact_factor": lambda p, v: (v - p) / p if p else None,
}
"""What is averaged over runs, by the shares of special moves under the two rule sets."""


@dataclass(frozen=True)
class Result:
    """One model in one eval: over its runs, the mean and standard error of each metric.

    A metric is None where a run has none, and a standard error where there is only one run.
    """

    model: str
    eval: str
    runs: int
    samples: int
    means: dict[str, float | None]
    errors: dict[str, float | None]


def finished_run(spec: Spec, out: Path, *, quiet: bool) -> Run:
    """Measure as the spec says, into a folder of its own, or take the run that is there already.

    Raises:
        BadInput: if the run that is there is another than the spec asks for.
        Problem: as `evaluate` does.
    """
    folder = out / f"{safe_name(spec.model or 'served')}-{spec.eval}-{spec.seed}"
    if not folder.exists():
        run = evaluate(spec, quiet=quiet)
        save_with_page(run, folder)
        return run
    run = load_run(folder)
    settings = run.plan.settings
    address, tokens = (spec.base_url or run.endpoint).rstrip("/"), spec.max_tokens
    asked_for = (spec.to_draw, spec.wording, address, tokens or settings.max_tokens)
    if (run.plan.wanted, run.plan.wording.name, run.endpoint, settings.max_tokens) != asked_for:
        raise BadInput(
            f"{str(folder)!r} holds a run with other samples, wording, address or token limit; "
            "give --out a new folder"
        )
    return run


def results(trials: Iterable[Trial]) -> list[Result]:
    """What the trials come to, by model and eval."""
    return [_result(model, eval_, group) for (model, eval_), group in _grouped(trials).items()]


def as_csv(found: Sequence[Result]) -> str:
    """The results as a table for other programs."""
    text = StringIO()
    table = csv.writer(text, lineterminator="\n")
    columns = [f"{metric}_{kind}" for metric in METRICS for kind in ("mean", "sem")]
    table.writerow(["model", "eval", "runs", "samples", *columns])
    for result in found:
        numbers = [
            number for metric in METRICS for number in (result.means[metric], result.errors[metric])
        ]
        cells = ["" if number is None else f"{number:.6f}" for number in numbers]
        table.writerow([result.model, result.eval, result.runs, result.samples, *cells])
    return text.getvalue()


def draw(trials: Iterable[Trial], out: Path) -> list[Path]:
    """Draw the plots of an experiment and name the files.

    A bar chart for each eval; for positions with diagonal moves, also lines.
    """
    return list(_drawn(pooled(trials), out))


def _drawn(evals: dict[str, dict[str, Trial]], out: Path) -> Iterator[Path]:
    for eval_, by_model in evals.items():
        yield from bar_chart(by_model, f"Special moves ({eval_})", out / f"bars-{eval_}")
        if eval_ == "all_diagonal":
            title = "Diagonal bishop moves although bishops move as knights do"
            yield from line_chart(by_model, title, out / "diagonal")


def pooled(trials: Iterable[Trial]) -> dict[str, dict[str, Trial]]:
    """All runs of a model as one trial, by eval and model.

    Askings of one position in several runs stay samples of one game, so intervals do not shrink
    merely because the same was asked again.
    """
    evals: dict[str, dict[str, Trial]] = {}
    for (model, eval_), group in _grouped(trials).items():
        evals.setdefault(eval_, {})[model] = Trial(
            model=model,
            eval=eval_,
            games=[game for trial in group for game in trial.games],
            earlier=[count for trial in group for count in trial.earlier],
            before=[hit for trial in group for hit in trial.before],
            after=[hit for trial in group for hit in trial.after],
        )
    return evals


def _grouped(trials: Iterable[Trial]) -> dict[tuple[str, str], list[Trial]]:
    groups: dict[tuple[str, str], list[Trial]] = {}
    for trial in trials:
        groups.setdefault((trial.model, trial.eval), []).append(trial)
    return groups


def _result(model: str, eval_: str, trials: Sequence[Trial]) -> Result:
    shares = [(fmean(trial.before), fmean(trial.after)) for trial in trials]
    values = {name: [metric(p, v) for p, v in shares] for name, metric in METRICS.items()}
    return Result(
        model=model,
        eval=eval_,
        runs=len(trials),
        samples=sum(len(trial.games) for trial in trials),
        means={name: _mean(numbers) for name, numbers in values.items()},
        errors={name: _standard_error(numbers) for name, numbers in values.items()},
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if len(known) == len(values) else None


def _standard_error(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    if len(known) < len(values) or len(known) < 2:
        return None
    return stdev(known) / sqrt(len(known))
