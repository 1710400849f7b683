"""Export results as the files that show them on model pages of the Hugging Face Hub.

A model's repository has them in ``.eval_results/``, one file per result.
"""

from collections.abc import Iterable

import yaml

from ..comparison.entries import Entry
from ..errors import InvalidInput
from ..files import safe_name
from ..metrics.estimates import Estimate
from .every_eval_ever import BENCHMARK, LIBRARY

PROJECT_URL = f"https://github.com/{LIBRARY}/{LIBRARY}"
DATASET = f"{LIBRARY}/{LIBRARY}"  # the benchmark's dataset, with the tasks in its eval.yaml


def export(entries: Iterable[Entry], organization: str = "") -> dict[str, str]:
    """Return the exported texts by file name, one file for each run.

    Raises:
        InvalidInput: if a run has no rule uptake.
    """
    files: dict[str, str] = {}
    for entry in entries:
        uptake = entry.results.uptake
        if not uptake:
            raise InvalidInput(f"{entry.label} has no rule uptake to share: it shows no habit")
        result = _result(entry, uptake, organization)
        name = f"{safe_name(entry.label)}/.eval_results/{BENCHMARK}.{_task_id(entry)}.yaml"
        files[name] = yaml.safe_dump([result], sort_keys=False, allow_unicode=True)
    return files


def _task_id(entry: Entry) -> str:
    """Return the task of the benchmark: the eval and the change, such as ``all.base-9``."""
    return f"{entry.run.plan.eval}.{entry.change.key}"


def _result(entry: Entry, uptake: Estimate, organization: str) -> dict[str, object]:
    run, percent = entry.run, round(100 * uptake.value, 1)
    source = {"url": PROJECT_URL, "name": LIBRARY}
    notes = [
        f"rule uptake in percent, {uptake.as_share}",
        f"n = {uptake.n}",
        f"wordings: {', '.join(run.plan.wordings)}",
        *entry.details,
    ]
    return {
        "dataset": {"id": DATASET, "task_id": _task_id(entry)},
        "value": percent,
        "date": run.started_at,
        "source": source | ({"org": organization} if organization else {}),
        "notes": "; ".join(notes),
    }
