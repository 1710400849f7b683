"""Export results in the schema of Every Eval Ever (EEE).

EEE 0.3.0 has one JSON file per model with all aggregate results, and beside it one with a line per
sample and condition. It contains no server's address, and nothing exported names a folder of this
machine.
"""

import json
import re
import time
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any
from uuid import uuid4

from ..comparison.entries import Entry
from ..comparison.leaderboard import Ranking
from ..errors import InvalidInput
from ..formatting import last_part, without_folders
from ..metrics.estimates import Estimate, Event, Measure
from ..metrics.measures import AFTER, BEFORE, MEASURES, SHARE_AFTER, SHARE_BEFORE
from ..providers.catalog import BUILT_IN_MODELS, PROVIDERS
from ..providers.request_fields import NO_TEMPERATURE
from ..runs.run import Run, command_of
from ..task.types import CHANGED_CONDITION, STANDARD_CONDITION, Condition, Sample, answers_of
from .rows import settings_text

Json = dict[str, Any]
SCHEMA, LIBRARY, BENCHMARK = "0.3.0", "cant-do-that-anymore", "cant_do_that_anymore"
PROJECT_URL = "https://github.com/cant-do-that-anymore/cant-do-that-anymore"
# The range of each number, and whether less is better; others are not exported.
RANGES: dict[str, tuple[float | str, float | str, bool]] = {
    "rule_uptake": ("-Infinity", 1.0, False),
    "variant_impact_factor": (-1.0, "Infinity", True),
    "delta": (-1.0, 1.0, True),
    "predicted_move_proportion": (0.0, 1.0, False),
    "predicted_move_in_variant_proportion": (0.0, 1.0, True),
}
# The measure whose mean over the samples is that of the scores under a condition.
OF_CONDITION: dict[str, tuple[str, Event]] = {
    STANDARD_CONDITION: (SHARE_BEFORE, BEFORE),
    CHANGED_CONDITION: (SHARE_AFTER, AFTER),
}
METHOD = "score interval, clustered by group; it covers every reading of unusable replies"


def export(ranked: Sequence[Ranking], organization: str = "") -> dict[str, str]:
    """Return the exported texts by file name, two files for each model."""
    by_label: dict[str, list[Entry]] = {}
    for entry in chain(*(ranking.entries for ranking in ranked)):
        by_label.setdefault(entry.label, []).append(entry)
    files: dict[str, str] = {}
    for entries in by_label.values():
        files |= _files(entries, organization or "unknown")
    return files


def _files(entries: Sequence[Entry], organization: str) -> dict[str, str]:
    """Return the two files of a model, by their paths in EEE's repository."""
    run = entries[0].run  # stands for all in what they share
    is_ours = run.model in BUILT_IN_MODELS
    now, model = str(int(time.time())), _model(run)
    shared = {"schema_version": SCHEMA, "evaluation_id": f"{BENCHMARK}/{model['id']}/{now}"}
    folder = "/".join(re.sub(r"[^\w.-]+", "_", part) for part in model["id"].split("/", 1))
    stem = f"data/{LIBRARY}/{folder}/{uuid4()}"
    path = f"{stem}_samples.jsonl"
    aggregate = shared | {
        "retrieved_timestamp": now,
        "source_metadata": {
            "source_type": "evaluation_run",
            "source_organization_name": organization,
            "evaluator_relationship": "first_party" if is_ours else "third_party",
        },
        "eval_library": {"name": LIBRARY, "version": run.versions[LIBRARY]},
        "model_info": model,
        "evaluation_results": [
            _result(entry, MEASURES[name], estimate)
            for entry in entries
            for name in RANGES
            if (estimate := entry.results.get(name))
        ],
        "detailed_evaluation_results": {"format": "jsonl", "file_path": path},
    }
    lines = (shared | {"model_id": model["id"]} | line for line in chain(*map(_instances, entries)))
    text = json.dumps(without_folders(aggregate), indent=1, ensure_ascii=False)
    samples = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    return {f"{stem}.json": f"{text}\n", path: samples}


def _model_id(run: Run) -> str:
    """Return the model with its developer, as far as its name and address tell."""
    providers = {provider.address: name for name, provider in PROVIDERS.items()}
    if run.endpoint in providers:
        return f"{providers[run.endpoint]}/{run.model}"
    name = last_part(run.model)
    return name if "/" in name else f"unknown/{name}"


def _model(run: Run) -> Json:
    is_ours = run.model in BUILT_IN_MODELS
    return {
        "name": last_part(run.model),
        "id": _model_id(run),
        "developer": _model_id(run).partition("/")[0],
        "additional_details": {
            "deployment_type": "self_deployed" if is_ours else "unknown",
            "model_availability": "open_weights" if is_ours else "unknown",
            "version": run.version,
        },
    }


def _task(entry: Entry) -> str:
    """Return the name of an evaluation: eval, rules, and any form or pool of its own."""
    parts = [entry.plan.eval, entry.change.identity, entry.other_form, entry.pool]
    return ".".join([BENCHMARK, *(part.replace(" ", "-") for part in parts if part)])


def _result(entry: Entry, measure: Measure, estimate: Estimate) -> Json:
    low, high, less_is_better = RANGES[measure.name]
    return {
        "evaluation_result_id": f"{_task(entry)}.{measure.name}",
        "evaluation_name": _task(entry),
        "source_data": {
            "dataset_name": f"{entry.words.items}: {entry.run.dataset.provenance}",
            "source_type": "url",
            "url": [PROJECT_URL],
        },
        "metric_config": {
            "evaluation_description": measure.meaning,
            "metric_id": f"{BENCHMARK}.{measure.name}",
            "metric_name": measure.title,
            "lower_is_better": less_is_better,
            "score_type": "continuous",
            "min_score": low,
            "max_score": high,
        },
        "score_details": {
            "score": estimate.value,
            "uncertainty": {
                "num_samples": estimate.n,
                "confidence_interval": {
                    "lower": estimate.low,
                    "upper": estimate.high,
                    "confidence_level": 0.95,
                    "method": METHOD,
                },
            },
            "details": {"notes": " | ".join(entry.run.notes)},
        },
        "generation_config": _generation(entry.run),
    }


def _generation(run: Run) -> Json:
    changed = next(c for c in run.plan.conditions if c.name == CHANGED_CONDITION)
    was_rejected = any(NO_TEMPERATURE in answer.adjustments for answer in answers_of(run.samples))
    return {
        "generation_args": {
            "temperature": None if was_rejected else run.plan.settings.temperature,
            "max_tokens": run.token_limit,
            "reasoning": any(answer.has_reasoning for answer in answers_of(run.samples)),
            "prompt_template": changed.prompts[0].text,
            "execution_command": command_of(run, *_model_words(run)),
        },
        "additional_details": {"settings": settings_text(run)},
    }


def _instances(entry: Entry) -> Iterator[Json]:
    """Yield each sample under each condition: prompt, reply, the answer read and its score."""
    for sample in entry.run.answered:
        for condition in entry.plan.conditions:
            yield _instance(entry, sample, condition)


def _instance(entry: Entry, sample: Sample, condition: Condition) -> Json:
    item, name = sample.item, condition.name
    reply, answer = sample.replies[name], sample.answers[name]
    reference, usage = _references(sample, condition), answer.usage
    is_correct = reply.outcome == "right" if condition.about else reply.answer in reference
    line: Json = {
        "evaluation_name": f"{_task(entry)}.{name}",
        "sample_id": f"{item.id}-{sample.draw}",
        "interaction_type": "single_turn",
        "input": {"raw": _prompt(sample, condition), "reference": reference},
        "output": {"raw": [answer.text]},
        "answer_attribution": [
            {
                "turn_idx": 0,
                "source": "output.raw",
                "extracted_value": reply.answer or reply.outcome,
                "extraction_method": f"custom: {entry.plan.reading} reading",
                "is_terminal": True,
            }
        ],
        "evaluation": {"score": float(is_correct), "is_correct": is_correct},
        "token_usage": {
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "total_tokens": usage.input_tokens + usage.output_tokens,
            "reasoning_tokens": usage.thinking_tokens,
        },
        "metadata": {
            "condition": name,
            "outcome": reply.outcome,
            "group": str(item.group),
            "usual": " ".join(item.usual),
            "wording": without_folders(entry.plan.wording_of(item)),
        },
    }
    if answer.reasoning:
        line["output"]["reasoning_trace"] = [answer.reasoning]
    if name in OF_CONDITION:
        measure, event = OF_CONDITION[name]
        line["evaluation_result_id"] = f"{_task(entry)}.{measure}"
        line["evaluation"]["score"] = float(event.holds(sample))
    return line


def _prompt(sample: Sample, condition: Condition) -> str:
    try:
        messages = condition.question(sample.item).messages
    except InvalidInput:  # a form of one's own, which no saved run can render
        return condition.prompt(sample.item).text
    return "\n\n".join(f"{message.role}: {message.content}" for message in messages)


def _references(sample: Sample, condition: Condition) -> list[str]:
    """Return the right answers: yes or no, or all that the rules allow."""
    rules, item = condition.rules, sample.item
    if condition.about:
        return ["yes" if rules.allows(condition.about(item, rules), item) else "no"]
    return [answer for answer in rules.guesses(item) if rules.allows(answer, item)]


def _model_words(run: Run) -> tuple[str, str]:
    """Return how a command names the model, and ``URL`` for a server of one's own."""
    own_server = run.endpoint and _model_id(run).startswith("unknown/")
    return (run.model, "URL") if own_server else (_model_id(run), "")
