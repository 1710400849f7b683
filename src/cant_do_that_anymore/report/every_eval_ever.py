"""Export results in the schema of Every Eval Ever (EEE).

EEE 0.3.0 has one JSON file per model with all aggregate results, and beside it one with a line per
sample and condition. It contains no server's address, and nothing exported names a folder of this
machine.
"""

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import chain
from typing import Any
from uuid import UUID

from ..comparison.entries import Entry
from ..comparison.leaderboard import Ranking
from ..errors import InvalidInput
from ..formatting import without_folders
from ..metrics.estimates import Estimate, Event, Measure
from ..metrics.measures import AFTER, BEFORE, MEASURES, SHARE_AFTER, SHARE_BEFORE
from ..providers.catalog import BUILT_IN_MODELS, PROVIDERS
from ..runs.run import Run, command_of
from ..task.types import CHANGED_CONDITION, STANDARD_CONDITION, Condition, Sample, answers_of

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
        files |= _Evaluation(entries, organization).files()
    return files


@dataclass(frozen=True)
class _Evaluation:
    """The results of one model as EEE has them; its entries differ in rules, eval, form or pool."""

    entries: Sequence[Entry]
    organization: str
    now: str = field(default_factory=lambda: str(int(time.time())))

    @property
    def run(self) -> Run:
        """The first run, which stands for all in what they share."""
        return self.entries[0].run

    def files(self) -> dict[str, str]:
        """Return the aggregate file and that of the samples, by their paths in EEE's repository."""
        lines = [json.dumps(line, ensure_ascii=False) + "\n" for line in self._instances()]
        samples = "".join(lines)
        digest = sha256(samples.encode())
        name = str(UUID(bytes=digest.digest()[:16], version=4))
        developer, _, model = str(self._model()["id"]).partition("/")
        folder = "/".join(re.sub(r"[^\w.-]+", "_", part) for part in (LIBRARY, developer, model))
        stem = f"data/{folder}/{name}"
        path = f"{stem}_samples.jsonl"
        detailed = {
            "format": "jsonl",
            "file_path": path,
            "hash_algorithm": "sha256",
            "checksum": digest.hexdigest(),
            "total_rows": len(lines),
        }
        aggregate = without_folders(self._aggregate() | {"detailed_evaluation_results": detailed})
        text = json.dumps(aggregate, indent=1, ensure_ascii=False) + "\n"
        return {f"{stem}.json": text, path: samples}

    @property
    def id(self) -> str:
        """The benchmark, the model and the time of the export."""
        return f"{BENCHMARK}/{self._model()['id']}/{self.now}"

    def _model(self) -> Json:
        """Return the model, with its developer and who runs it as far as its name tells."""
        run, details = self.run, {"deployment_type": "unknown", "model_availability": "unknown"}
        name, api = run.model, str(run.identity.get("api", ""))
        addresses = {service.address: provider for provider, service in PROVIDERS.items()}
        platform = addresses.get(run.endpoint) or (name.split("/")[0] if api == "inspect" else "")
        if name in BUILT_IN_MODELS:
            details = {"deployment_type": "self_deployed", "model_availability": "open_weights"}
        elif run.endpoint in addresses:
            name, details["deployment_type"] = f"{platform}/{name}", "externally_managed"
        model_id = name if "/" in name else f"unknown/{name}"
        facts = {"version": run.version, "tag": run.identity.get("tag"), "api": api}
        return {
            "name": run.model,
            "id": model_id,
            "developer": model_id.partition("/")[0],
            **({"inference_platform": platform} if platform else {}),
            "additional_details": details | _texts(facts),
        }

    def _aggregate(self) -> Json:
        run, is_ours = self.run, self.run.model in BUILT_IN_MODELS
        versions = {name: version for name, version in run.versions.items() if name != LIBRARY}
        return {
            "schema_version": SCHEMA,
            "evaluation_id": self.id,
            "evaluation_timestamp": run.started_at,
            "retrieved_timestamp": self.now,
            "source_metadata": {
                "source_name": "Can't Do That Anymore",
                "source_type": "evaluation_run",
                "source_organization_name": self.organization or "unknown",
                "evaluator_relationship": "first_party" if is_ours else "third_party",
            },
            "eval_library": {
                "name": LIBRARY,
                "version": run.versions[LIBRARY],
                "additional_details": versions | {"protocol": run.protocol, "url": PROJECT_URL},
            },
            "model_info": self._model(),
            "evaluation_results": [
                self._result(entry, MEASURES[name], estimate)
                for entry in self.entries
                for name in RANGES
                if (estimate := entry.results.get(name))
            ],
        }

    def _result(self, entry: Entry, measure: Measure, estimate: Estimate) -> Json:
        dataset = replace(entry.run.dataset, built_now=False, saved_at="", endpoint="")
        habit, words = entry.change.its_habit, entry.words
        games = {f"{words.group}s": entry.results.groups}
        return {
            "evaluation_result_id": f"{_task(entry)}.{measure.name}",
            "evaluation_name": _task(entry),
            "evaluation_timestamp": entry.run.started_at,
            "source_data": {
                "dataset_name": f"{words.items} of {habit.name} ({dataset.provenance})",
                "source_type": "url",
                "url": [PROJECT_URL],
                "additional_details": _texts({"pool": entry.pool, **games}),
            },
            "metric_config": _metric(measure),
            "score_details": _score(entry, estimate),
            "generation_config": _generation(entry, str(self._model()["id"])),
        }

    def _instances(self) -> Iterator[Json]:
        shared = {"schema_version": SCHEMA, "evaluation_id": self.id}
        shared |= {"model_id": self._model()["id"], "interaction_type": "single_turn"}
        for entry in self.entries:
            for sample in entry.run.answered:
                for condition in entry.plan.conditions:
                    yield shared | _instance(entry, sample, condition)


def _texts(facts: Mapping[str, object]) -> dict[str, str]:
    """Return facts as texts, without empty ones."""
    return {name: str(value) for name, value in facts.items() if value not in (None, "", (), [])}


def _task(entry: Entry) -> str:
    """Return the name of an evaluation: eval, rules, and any form or pool of its own."""
    form = entry.other_form
    parts = [entry.eval, entry.category[1], form, entry.pool]
    return ".".join([BENCHMARK, *(part.replace(" ", "-") for part in parts if part)])


def _metric(measure: Measure) -> Json:
    low, high, less = RANGES[measure.name]
    return {
        "evaluation_description": measure.meaning,
        "metric_id": f"{BENCHMARK}.{measure.name}",
        "metric_name": measure.title,
        "metric_kind": "relative_change" if measure.relative else "proportion",
        "metric_unit": "proportion",
        "lower_is_better": less,
        "score_type": "continuous",
        "min_score": low,
        "max_score": high,
    }


def _score(entry: Entry, estimate: Estimate) -> Json:
    return {
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
        "details": _texts({"notes": " | ".join(entry.run.notes)}),
    }


def _generation(entry: Entry, model_id: str) -> Json:
    run, plan, settings = entry.run, entry.plan, entry.plan.settings
    changed = next(c for c in plan.conditions if c.name == CHANGED_CONDITION)
    others = {
        "wordings": ", ".join(plan.wordings),
        "form": entry.plan.form.name,
        "conditions": ", ".join(condition.name for condition in plan.conditions),
        "reading": plan.reading,
        "seed": settings.seed,
        "reasoning_effort": settings.reasoning_effort,
        "extra_body": settings.extra_body,
    }
    return {
        "generation_args": {
            "temperature": None if run.own_temperature else settings.temperature,
            "max_tokens": run.token_limit,
            "reasoning": any(answer.has_reasoning for answer in answers_of(run.samples)),
            "prompt_template": changed.prompts[0].text,
            "execution_command": command_of(run, model_id),
        },
        "additional_details": _texts(others),
    }


def _instance(entry: Entry, sample: Sample, condition: Condition) -> Json:
    """Return a sample under one condition: prompt, reply, the answer read and its score."""
    item, name = sample.item, condition.name
    details = entry.change.its_habit.details(item)
    reply, answer = sample.replies[name], sample.answers[name]
    measure, event = OF_CONDITION.get(name, ("", None))
    raw, reference = _prompt(sample, condition), _references(sample, condition)
    is_correct = reply.outcome == "right" if condition.about else reply.answer in reference
    usage = answer.usage
    return {
        "evaluation_name": f"{_task(entry)}.{name}",
        **({"evaluation_result_id": f"{_task(entry)}.{measure}"} if measure else {}),
        "sample_id": f"{item.id}-{sample.draw}",
        "sample_hash": sha256((raw + "".join(reference)).encode()).hexdigest(),
        "input": {"raw": raw, "reference": reference},
        "output": {
            "raw": [answer.text],
            **({"reasoning_trace": [answer.reasoning]} if answer.reasoning else {}),
        },
        "answer_attribution": [
            {
                "turn_idx": 0,
                "source": "output.raw",
                "extracted_value": reply.answer or reply.outcome,
                "extraction_method": f"custom: {entry.plan.reading} reading",
                "is_terminal": True,
            }
        ],
        "evaluation": {
            "score": float(event.holds(sample) if event else is_correct),
            "is_correct": is_correct,
        },
        "token_usage": {
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "total_tokens": usage.input_tokens + usage.output_tokens,
            "reasoning_tokens": usage.thinking_tokens,
        },
        "metadata": {
            "condition": name,
            "outcome": reply.outcome,
            **{key: str(value) for key, value in details.items()},
            "group": str(item.group),
            "usual": " ".join(item.usual),
            "wording": without_folders(entry.plan.wording_of(item)),
        },
    }


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
