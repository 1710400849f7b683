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

cached_packages = cache(packages_distributions)
"""Inspect lists all installed packages at every eval, which takes a third of a second."""


@contextmanager
def without_overhead() -> Iterator[None]:
    """Cache the package list, and skip the layout of result tables that are not shown."""
    with (
        patch("inspect_ai._util.package.packages_distributions", cached_packages),
        patch("rich.live.Live.refresh", lambda _: None),
    ):
        yield


def run_eval(folder: Path, task: Any, model: str | Model, **options: Any) -> EvalLog:
    """Run one eval and return its log; a model name creates a new model, not a memoized one."""
    if isinstance(model, str):
        model = get_model(model, memoize=False)
    fixed: dict[str, Any] = {"log_realtime": False, "display": "none"}
    with without_overhead():
        (log,) = inspect_eval(task, model, log_dir=str(folder), **fixed, **options)
    return log


def logged_metrics(log: EvalLog) -> dict[str, float]:
    """The metrics of a log."""
    assert log.results
    return {name: metric.value for name, metric in log.results.scores[0].metrics.items()}
