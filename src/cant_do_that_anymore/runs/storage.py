"""Save and load a run as a folder of plain files: ``run.json`` and ``samples.jsonl``.

A diagnosis has its controls in ``controls.jsonl``, in the same format.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from reprlib import repr as shortened
from typing import Any, ClassVar

from ..datasets.storage import Dataset
from ..errors import Interrupted, InvalidInput
from ..files import atomic_dir, atomic_write, atomic_write_text, file_errors
from ..formatting import Number
from ..habits.base import Change
from ..habits.catalog import resolve_change, restored_change, saved_change
from ..metrics.compute import compute
from ..metrics.measures import MAIN_NUMBERS
from ..metrics.stats.intervals import Interval, ends_of
from ..providers.base import Answer
from ..task.conditions import CONDITIONS, SavedCondition, control_conditions
from ..task.samples import Trial
from ..task.types import (
    CHANGED_CONDITION,
    STANDARD_CONDITION,
    Condition,
    Outcome,
    Plan,
    PlanOptions,
    Sample,
)
from ..validation import parse
from .results import Cost, Run

# Version of the file format; other versions are rejected.
FORMAT = 5
RUN_JSON, SAMPLES_FILE, CONTROLS_FILE = "run.json", "samples.jsonl", "controls.jsonl"
RERUN_ADVICE = "run its command again; cached answers are used"


@dataclass(frozen=True, kw_only=True)
class RunFile(PlanOptions):
    """The values of ``run.json`` that are read; all others are computed from the samples."""

    __pydantic_config__: ClassVar[Mapping[str, bool]] = {"allow_inf_nan": False}

    protocol: str
    model: str
    version: str
    endpoint: str
    identity: dict[str, Any]
    notes: list[str]
    started_at: str
    seconds: float
    versions: dict[str, str]
    rules: str
    change: str | dict[str, str] | None
    wording: str | tuple[str, ...]
    conditions: list[SavedCondition]
    dataset: Dataset
    metrics: dict[str, Number]
    intervals: dict[str, Interval]
    outcomes: dict[str, dict[Outcome, int]]
    control_outcomes: dict[str, dict[Outcome, int]] | None = None
    interventions: tuple[dict[str, Any], ...] = ()
    after_change: dict[str, float] = field(default_factory=dict)
    cost: Cost


# The values of ``run.json`` that are fields of a run or of its plan, under the same name.
_OF_RUN = (
    *("protocol", "model", "version", "endpoint", "identity"),
    *("notes", "started_at", "seconds", "versions"),
)
_OF_PLAN = [item.name for item in fields(PlanOptions)]


def save_run(run: Run, folder: Path) -> None:
    """Save the run; the folder appears under its name only when it is complete.

    Raises:
        UserError: if it cannot be written.
    """
    files = {SAMPLES_FILE: run.samples, **({CONTROLS_FILE: run.controls} if run.controls else {})}
    with writing_run(run, folder), atomic_dir(folder) as temporary:
        for name, samples in files.items():
            with atomic_write(temporary / name) as file:
                file.writelines(sample_line(sample).encode() for sample in samples)
        atomic_write_text(temporary / RUN_JSON, json.dumps(run_json(run), indent=2) + "\n")


def writing_run(run: Run, folder: Path) -> AbstractContextManager[None]:
    """Return a context that reports an ``OSError`` as a folder that cannot be written."""
    resume = "Run the same command again with another --out"
    error = partial(Interrupted, resume=resume, cached=run.cached)
    return file_errors("write the run to", folder, error=error)


def run_json(run: Run) -> dict[str, Any]:
    """Return everything about a run except its samples, ready for JSON."""
    plan, effects = run.plan, [asdict(effect) for effect in run.results.interventions]
    dataset = asdict(replace(run.dataset, items=[]))
    return {
        "format": FORMAT,
        **{name: getattr(run, name) for name in _OF_RUN},
        **_options_json(plan),
        "rules": plan.change.identity,
        "change": saved_change(plan.change),
        "wording": plan.wordings[0] if len(plan.wordings) == 1 else plan.wordings,
        "conditions": [SavedCondition.json_of(condition) for condition in plan.conditions],
        "temperature": run.temperature_used,
        "dataset": dataset | {"items": None, "provenance": run.dataset.provenance},
        **{name: _estimate(run, name) for name in MAIN_NUMBERS if name in run.results.metrics},
        **({"after_change": run.after_change} if run.after_change else {}),
        "metrics": run.results.metrics,
        **{
            kind: {name: asdict(entry) for name, entry in getattr(run.results, kind).items()}
            for kind in ("intervals", "bounds")
        },
        **({"wordings": asdict(run.results.wordings)} if run.results.wordings else {}),
        "outcomes": run.results.outcomes,
        **({"control_outcomes": run.results.control_outcomes} if run.controls else {}),
        **({"interventions": effects} if effects else {}),
        "cost": asdict(run.cost),
    }


def _estimate(run: Run, name: str) -> dict[str, Number]:
    """Return a number with the ends of its interval, if it has one, and the number of samples."""
    low, high = ends_of(run.results.intervals.get(name))
    metrics = run.results.metrics
    return {"value": metrics[name], "low": low, "high": high, "n": metrics["n_samples"]}


def _options_json(plan: Plan) -> dict[str, Any]:
    """Return the plain values of a plan, without those that have their default."""
    values = {item: getattr(plan, item.name) for item in fields(PlanOptions)}
    not_default = {item.name: value for item, value in values.items() if value != item.default}
    return not_default | {"settings": plan.settings.non_defaults}


def sample_line(sample: Sample) -> str:
    """Return the sample as a line of the file."""
    answers = sample.answers
    facts = {
        "id": sample.item.id,
        **sample.item.to_json(),
        "draw": sample.draw,
        "replies": {
            name: {**answers[name].to_json(), **asdict(reply)}
            for name, reply in sample.replies.items()
        },
    }
    return json.dumps(facts) + "\n"


def read_run_json(folder: Path) -> RunFile:
    """Read ``run.json``.

    Raises:
        InvalidInput: if the file is missing, damaged or of another format.
    """
    path = folder / RUN_JSON
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(
            f"{str(folder)!r} is not a run folder ({error.strerror}: {RUN_JSON})"
        ) from None
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{path} is damaged: {error}") from None
    if not isinstance(facts, dict):
        raise InvalidInput(f"{path} is damaged: it is not a JSON object")
    if facts.get("format") != FORMAT:
        raise InvalidInput(
            f"{path} was written by another version of this program (format "
            f"{facts.get('format')!r}, not {FORMAT}); run it again"
        )
    if isinstance(dataset := facts.get("dataset"), dict):
        dataset["items"] = []
    try:
        return parse(RunFile, facts, "the file")
    except InvalidInput as error:
        raise InvalidInput(
            f"{path} is damaged or of another version: {error}; {RERUN_ADVICE}"
        ) from None


def load_run(folder: Path | str, rules: Change | None = None) -> Run:
    """Load a run: score its saved answers and compute everything, as in a run.

    If the run used rules of your own, pass them as ``rules``.

    Raises:
        InvalidInput: naming the file and the problem, if the folder is not a complete run, or
            belongs to other rules.
    """
    folder = Path(folder)
    file = read_run_json(folder)
    change = _change_in(file, rules, folder)
    try:
        plan = _plan_in(file, change)
        samples = _read_samples(folder / SAMPLES_FILE, plan, plan.conditions, file.outcomes)
        controls = _read_samples(
            folder / CONTROLS_FILE, plan, control_conditions(plan), file.control_outcomes or {}
        )
        results = compute(samples, plan, controls)
    except (ArithmeticError, LookupError) as error:
        raise InvalidInput(f"{folder / RUN_JSON} is damaged: {error!r}") from None
    return Run(
        **{name: getattr(file, name) for name in _OF_RUN},
        plan=plan,
        dataset=file.dataset,
        samples=samples,
        results=results,
        cost=file.cost,
        folder=folder,
        controls=controls,
    )


def _change_in(file: RunFile, given: Change | None, folder: Path) -> Change:
    """Return the change of a run: the one given, or else the saved one."""
    given = given and resolve_change(given)
    if given and given.identity != file.rules:
        problem = f"not under those given, {given.identity!r}"
    elif not given and file.change is None:
        problem = "which are not in the catalog; in Python, use load(FOLDER, rules=...)"
    else:
        return given or restored_change(file.change)
    raise InvalidInput(f"{str(folder)!r} was measured under the rules {file.rules!r}, {problem}")


def _plan_in(file: RunFile, change: Change) -> Plan:
    templates = (CONDITIONS[c.name] for c in file.conditions if c.name in CONDITIONS)
    possible = [change, *(template.rules(change) for template in templates)]
    rules = {in_force.identity: in_force for in_force in possible}
    interventions = tuple(sorted(effect["name"] for effect in file.interventions))
    conditions = {saved.name: saved.condition(rules, interventions) for saved in file.conditions}
    if missing := {STANDARD_CONDITION, CHANGED_CONDITION} - conditions.keys():
        raise KeyError(f"no condition {' and '.join(missing)}")
    return Plan(
        **{name: getattr(file, name) for name in _OF_PLAN},
        change=change,
        wordings=(file.wording,) if isinstance(file.wording, str) else file.wording,
        conditions=tuple(conditions.values()),
        interventions=interventions,
    )


def _read_samples(
    path: Path,
    plan: Plan,
    conditions: Sequence[Condition],
    outcomes: dict[str, dict[Outcome, int]],
) -> list[Sample]:
    """Read and score the samples of a file, which must contain as many as there are outcomes.

    Raises:
        InvalidInput: naming the line that is not a sample.
    """
    if not outcomes:
        return []
    with file_errors("read", path, error=InvalidInput), path.open("rb") as file:
        samples = [
            _sample_in(line, plan, conditions, f"{path}, line {number}")
            for number, line in enumerate(file, 1)
        ]
    if len({(sample.item.id, sample.draw) for sample in samples}) < len(samples):
        raise InvalidInput(f"{path} is damaged: a sample occurs twice")
    if len(samples) != (expected := sum(outcomes[STANDARD_CONDITION].values())):
        raise InvalidInput(f"{path} is damaged: it has {len(samples)} of {expected} samples")
    return samples


def _sample_in(line: bytes, plan: Plan, conditions: Sequence[Condition], where: str) -> Sample:
    try:
        facts = json.loads(line)
        trial = Trial(plan.change.its_habit.item(facts), int(facts["draw"]))
        answers = parse(dict[str, Answer], facts["replies"], where)
        saved = [answers[condition.name] for condition in conditions]
    except (LookupError, RecursionError, TypeError, ValueError) as error:
        raise InvalidInput(f"{where}: not a sample of a run ({shortened(error)})") from None
    return trial.sample(saved, conditions, plan.reading)
