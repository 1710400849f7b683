"""Export results in the schema of Every Eval Ever (EEE), or for the Hugging Face Hub.

EEE 0.3.0 has one JSON file per run with all its numbers, and beside it one with a line per sample
and condition. The Hub shows what a model's repository has in ``.eval_results/``, one file per
result. Nothing exported contains a server's address or names a folder of this machine.
"""

import json
import re
import time
from collections.abc import Iterable
from typing import Any
from uuid import uuid4

import yaml

from ..comparison.entries import Entry
from ..errors import InvalidInput
from ..files import safe_name
from ..formatting import last_part, without_folders
from ..metrics.estimates import Estimate
from ..metrics.measures import MEASURES, SHARE_AFTER
from ..providers.catalog import BUILT_IN_MODELS
from ..runs.run import Run, command_of
from ..task.types import Condition, Sample
from .rows import settings_text

Json = dict[str, Any]
SCHEMA, LIBRARY, BENCHMARK = "0.3.0", "cant-do-that-anymore", "cant_do_that_anymore"
LESS_IS_BETTER = {"variant_impact_factor", "delta", SHARE_AFTER}
FROM_REPLY = {
    "turn_idx": 0,
    "source": "output.raw",
    "extraction_method": "custom",
    "is_terminal": True,
}
METHOD = "score interval, clustered by group; it covers every reading of unusable replies"
PROJECT_URL = f"https://github.com/{LIBRARY}/{LIBRARY}"
DATASET = f"{LIBRARY}/{LIBRARY}"  # the benchmark's dataset, with the tasks in its eval.yaml


def export_eee(entries: Iterable[Entry], organization: str = "") -> dict[str, str]:
    """Return the exported texts by file name, two files for each run."""
    files: dict[str, str] = {}
    for entry in entries:
        files |= _files(entry, organization or "unknown")
    return files


def _files(entry: Entry, organization: str) -> dict[str, str]:
    """Return the two files of a run, by their paths in EEE's repository."""
    run = entry.run
    is_ours = run.model in BUILT_IN_MODELS
    now, model = str(int(time.time())), _model_id(run)
    shared = {"schema_version": SCHEMA, "evaluation_id": f"{_task(entry)}/{model}/{now}"}
    folder = "/".join(re.sub(r"[^\w.-]+", "_", part) for part in model.split("/", 1))
    stem = f"data/{LIBRARY}/{folder}/{uuid4()}"
    aggregate = shared | {
        "retrieved_timestamp": now,
        "source_metadata": {
            "source_type": "evaluation_run",
            "source_organization_name": organization,
            "evaluator_relationship": "first_party" if is_ours else "third_party",
        },
        "eval_library": {"name": LIBRARY, "version": run.versions[LIBRARY]},
        "model_info": {
            "name": last_part(run.model),
            "id": model,
            "additional_details": {
                "deployment_type": "self_deployed" if is_ours else "unknown",
                "model_availability": "open_weights" if is_ours else "unknown",
                "version": run.version,
            },
        },
        "evaluation_results": [
            _result(entry, name, estimate)
            for name in MEASURES
            if (estimate := entry.results.get(name))
        ],
        "detailed_evaluation_results": {"format": "jsonl", "file_path": f"{stem}_samples.jsonl"},
    }
    lines = [
        shared | {"model_id": model} | _instance(entry, sample, condition)
        for sample in run.answered
        for condition in run.plan.conditions
    ]
    text = json.dumps(without_folders(aggregate), indent=1, ensure_ascii=False)
    samples = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    return {f"{stem}.json": f"{text}\n", f"{stem}_samples.jsonl": samples}


def _model_id(run: Run) -> str:
    """Return the model with its provider; that of a server of one's own may be unknown."""
    name = last_part(run.options.get("model") or run.model)
    return name if "/" in name else f"unknown/{name}"


def _task(entry: Entry) -> str:
    """Return the name of an evaluation: eval, rules, and any form or pool of its own."""
    parts = [BENCHMARK, entry.run.plan.eval, entry.change.identity, *entry.details]
    return ".".join(part.replace(" ", "-") for part in parts)


def _result(entry: Entry, name: str, estimate: Estimate) -> Json:
    run = entry.run
    model, server = run.options.get("model", run.model), run.options.get("base_url")
    interval = {"lower": estimate.low, "upper": estimate.high, "confidence_level": 0.95}
    return {
        "evaluation_name": _task(entry),
        "evaluation_timestamp": run.started_at,
        "source_data": {
            "dataset_name": f"{entry.run.words.items}: {run.dataset.provenance}",
            "source_type": "other",
        },
        "metric_config": {
            "evaluation_description": MEASURES[name].meaning,
            "metric_id": f"{BENCHMARK}.{name}",
            "lower_is_better": name in LESS_IS_BETTER,
        },
        "score_details": {
            "score": estimate.value,
            "uncertainty": {
                "num_samples": estimate.n,
                "confidence_interval": interval | {"method": METHOD},
            },
            "details": {"notes": " | ".join(run.notes)},
        },
        "generation_config": {
            "generation_args": {
                "execution_command": command_of(run, model, "URL" if server else "")
            },
            "additional_details": {"settings": settings_text(run)},
        },
    }


def _instance(entry: Entry, sample: Sample, condition: Condition) -> Json:
    """Return a sample under a condition: the prompt, the reply, and its outcome."""
    reply, references = sample.replies[condition.name], _references(sample, condition)
    messages = condition.question(sample.item).messages
    prompt = "\n\n".join(f"{message.role}: {message.content}" for message in messages)
    is_correct = reply.outcome == "right" if condition.about else reply.answer in references
    return {
        "evaluation_name": f"{_task(entry)}.{condition.name}",
        "sample_id": f"{sample.item.id}-{sample.draw}",
        "interaction_type": "single_turn",
        "input": {"raw": prompt, "reference": references},
        "output": {"raw": [sample.answers[condition.name].text]},
        "answer_attribution": [FROM_REPLY | {"extracted_value": reply.answer or reply.outcome}],
        "evaluation": {"score": float(is_correct), "is_correct": is_correct},
        "metadata": {"outcome": reply.outcome, "usual": " ".join(sample.item.usual)},
    }


def _references(sample: Sample, condition: Condition) -> list[str]:
    """Return the right answers: yes or no, or all that the rules allow."""
    rules, item = condition.rules, sample.item
    if condition.about:
        return ["yes" if rules.allows(condition.about(item, rules), item) else "no"]
    return [answer for answer in rules.guesses(item) if rules.allows(answer, item)]


def export_hub(entries: Iterable[Entry], organization: str = "") -> dict[str, str]:
    """Return the exported texts by file name, one file for each run.

    Raises:
        InvalidInput: if a run has no rule uptake.
    """
    files: dict[str, str] = {}
    for entry in entries:
        uptake = entry.results.uptake
        if not uptake:
            raise InvalidInput(f"{entry.label} has no rule uptake to share: it shows no habit")
        result = _hub_result(entry, uptake, organization)
        name = f"{safe_name(entry.label)}/.eval_results/{BENCHMARK}.{_task_id(entry)}.yaml"
        files[name] = yaml.safe_dump([result], sort_keys=False, allow_unicode=True)
    return files


def _task_id(entry: Entry) -> str:
    """Return the task of the benchmark: the eval and the change, such as ``all.base-9``."""
    return f"{entry.run.plan.eval}.{entry.change.key}"


def _hub_result(entry: Entry, uptake: Estimate, organization: str) -> dict[str, object]:
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


# Functions that return the texts of an export by file name.
EXPORTS = {"eee": export_eee, "hub": export_hub}
