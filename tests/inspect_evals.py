"""Run Inspect evals in this process, without repeating their set-up."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any
from unittest.mock import patch

from inspect_ai import eval as inspect_eval
from inspect_ai.log import EvalLog
from inspect_ai.model import Model, get_model

LISTED = cache(packages_distributions)
"""Inspect goes through all installed packages at every eval, for a third of a second."""


@contextmanager
def quickly() -> Iterator[None]:
    """Inspect lays out its tables of results also if nobody is to see them; not in here."""
    with (
        patch("inspect_ai._util.package.packages_distributions", LISTED),
        patch("rich.live.Live.refresh", lambda _: None),
    ):
        yield


def evaluated(folder: Path, task: Any, model: str | Model, **options: Any) -> EvalLog:
    """The log of one eval; a model that is named is a new one, since the next test has another."""
    if isinstance(model, str):
        model = get_model(model, memoize=False)
    fixed: dict[str, Any] = {"log_realtime": False, "display": "none"}
    with quickly():
        (log,) = inspect_eval(task, model, log_dir=str(folder), **fixed, **options)
    return log


def numbers(log: EvalLog) -> dict[str, float]:
    """The metrics of a log."""
    assert log.results
    return {name: metric.value for name, metric in log.results.scores[0].metrics.items()}
