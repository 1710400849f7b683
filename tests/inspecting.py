"""Evals of Inspect within this process, without what each of them would do over again."""

from functools import cache
from pathlib import Path
from typing import Any

from inspect_ai import eval as inspect_eval
from inspect_ai._util import package
from inspect_ai.log import EvalLog
from inspect_ai.model import Model, get_model

_LISTED = cache(package.packages_distributions)


def evaluated(folder: Path, task: Any, model: str | Model, **options: Any) -> EvalLog:
    """The log of one eval; a model that is named is a new one, since the next test has another."""
    if isinstance(model, str):
        model = get_model(model, memoize=False)
    # Inspect goes through all installed packages at every eval, which takes longer than the rest.
    package.packages_distributions = _LISTED
    fixed: dict[str, Any] = {"log_realtime": False, "display": "none"}
    (log,) = inspect_eval(task, model, log_dir=str(folder), **fixed, **options)
    return log
