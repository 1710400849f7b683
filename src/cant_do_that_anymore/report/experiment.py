"""The results of an experiment, as a table for other programs and as pictures."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from pathlib import Path

from ..evaluation.experiment import METRICS, Result, pooled
from ..evaluation.trials import Trial
from .plots import bar_chart, line_chart

Row = dict[str, str | int | float | None]


def as_rows(found: Sequence[Result]) -> list[Row]:
    """The results as plain values by name, each metric with its mean and its standard error."""
    return [
        {
            "model": result.model,
            "eval": result.eval,
            "runs": result.runs,
            "samples": result.samples,
            **{
                f"{metric}_{kind}": numbers[metric]
                for metric in METRICS
                for kind, numbers in (("mean", result.means), ("sem", result.errors))
            },
        }
        for result in found
    ]


def as_csv(found: Sequence[Result]) -> str:
    """The results as a table for other programs."""
    text = StringIO()
    rows = as_rows(found)
    table = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    table.writeheader()
    table.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


def _cell(value: str | int | float | None) -> str:
    return f"{value:.6f}" if isinstance(value, float) else "" if value is None else str(value)


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
