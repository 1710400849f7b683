"""Save and load a run as a folder of plain files: ``run.json`` and ``samples.jsonl``.

A diagnosis has its controls in ``controls.jsonl``, in the same format. Loading a run scores its
saved answers again and computes everything as in a run.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

from ..errors import Interrupted, InvalidInput
from ..files import atomic_dir, atomic_write_text, file_errors
from ..habits.base import Change
from ..habits.catalog import resolve_change, restored_change, saved_change
from ..metrics.compute import Results, compute
from ..metrics.estimates import Estimate
from ..metrics.measures import MEASURES
from ..providers.base import Answer
from ..task.conditions import control_conditions
from ..task.plan import saved_plan
from ..task.prompts import Prompt
from ..task.samples import Trial
from ..task.types import Condition, Plan, Sample
from ..validation import parse
from .run import Run, RunFacts

# Version of the file format; other versions are rejected.
FORMAT = 8
RUN_JSON, SAMPLES_FILE, CONTROLS_FILE = "run.json", "samples.jsonl", "controls.jsonl"
RERUN_ADVICE = "run its command again if it is of another version; cached answers are used"
# Errors from files that cannot be read, and from values that a run does not have.
_UNREADABLE = (OSError, ValueError, TypeError, LookupError, ArithmeticError, RecursionError)


@dataclass(frozen=True, kw_only=True)
class RunFile(RunFacts):
    """The values of ``run.json`` that are read; all others are computed from the samples."""

    __pydantic_config__: ClassVar[Mapping[str, bool]] = {"allow_inf_nan": False}

    format: Literal[8]
    rules: str
    change: Any
    prompts: dict[str, dict[str, Prompt]]
    rule_uptake: Estimate | None
    n: int
    failed: int
    folder: Path = Path()

    @property
    def n_samples(self) -> int:
        """The number of samples in the samples file."""
        return self.n + self.failed

    @property
    def tag(self) -> str:
        """The tag that distinguishes versions under one name; "" if it has none."""
        return str(self.identity.get("tag", ""))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the run, a part of which is enough to find it."""
        of_model = f"{self.model}@{self.endpoint}", f"{self.model} {self.tag}"
        return self.folder.name, self.model, self.tag, *of_model


def save_run(run: Run, folder: Path) -> None:
    """Save the run; the folder appears under its name only when it is complete.

    Raises:
        UserError: if it cannot be written.
    """
    with writing_run(folder), atomic_dir(folder) as temporary:
        atomic_write_text(temporary / SAMPLES_FILE, "".join(map(sample_line, run.samples)))
        if run.controls:
            atomic_write_text(temporary / CONTROLS_FILE, "".join(map(sample_line, run.controls)))
        atomic_write_text(temporary / RUN_JSON, json.dumps(run_json(run), indent=2) + "\n")


def writing_run(folder: Path) -> AbstractContextManager[None]:
    """Return a context that reports an ``OSError`` as a folder that cannot be written."""
    error = partial(Interrupted, resume="Run the same command again with another --out")
    return file_errors("write the run to", folder, error=error)


def run_json(run: Run) -> dict[str, Any]:
    """Return everything about a run except its samples, ready for JSON."""
    plan = run.plan
    dataset = {name: value for name, value in vars(run.dataset).items() if name != "items"}
    return {
        "format": FORMAT,
        **{item.name: getattr(run, item.name) for item in fields(RunFacts)},
        "rules": plan.change.identity,
        "change": saved_change(plan.change),
        "prompts": {
            condition.name: dict(zip(plan.wordings, map(asdict, condition.prompts), strict=True))
            for condition in plan.conditions
        },
        "dataset": {**dataset, "provenance": run.dataset.provenance},
        **results_json(run.results),
        "after_change": run.after_change,
        "cost": asdict(run.cost),
    }


def results_json(results: Results) -> dict[str, Any]:
    """Return all numbers of a run, ready for JSON; a measure that is undefined is null."""
    parts = asdict(results)
    parts["diagnosis"] = {name: _finding(value) for name, value in parts["diagnosis"].items()}
    parts["interventions"] = {effect.pop("name"): effect for effect in parts["interventions"]}
    for name in ("wordings", "diagnosis", "interventions"):
        if not parts[name]:
            del parts[name]
    return {**dict.fromkeys(MEASURES), **parts.pop("estimates"), **parts}


def _finding(finding: dict[str, Any]) -> dict[str, Any]:
    """Return a finding as an estimate with its answer."""
    nothing = dict.fromkeys(item.name for item in fields(Estimate))
    return {**(finding["estimate"] or nothing), "answer": finding["answer"]}


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
    with _reading(path):
        return replace(parse(RunFile, path.read_bytes(), "the file"), folder=folder)


def _reading(path: Path) -> AbstractContextManager[None]:
    """Return a context that reports what is wrong with a file of a run."""
    return file_errors("read the run", path, RERUN_ADVICE, error=InvalidInput, caught=_UNREADABLE)


def load_run(folder: Path | str, rules: Change | None = None) -> Run:
    """Load a run. If it used rules of your own, pass them as ``rules``.

    Raises:
        InvalidInput: naming the file and the problem, if the folder is not a complete run, or
            belongs to other rules.
    """
    folder = Path(folder)
    file = read_run_json(folder)
    change = _change_in(file, rules, folder)
    with _reading(folder / RUN_JSON):
        plan = saved_plan(change, file.options, file.prompts)
    path, controls_path = folder / SAMPLES_FILE, folder / CONTROLS_FILE
    samples, controls = _read_samples(path, plan, plan.conditions), list[Sample]()
    if len(samples) != file.n_samples:
        raise InvalidInput(f"{str(path)!r} has {len(samples)} of {file.n_samples} samples")
    if controls_path.exists():
        controls = _read_samples(controls_path, plan, control_conditions(plan))
    return Run(
        **{item.name: getattr(file, item.name) for item in fields(RunFacts)},
        plan=plan,
        samples=samples,
        controls=controls,
        results=compute(samples, controls, plan),
        folder=folder,
    )


def _change_in(file: RunFile, given: Change | None, folder: Path) -> Change:
    """Return the change of a run: the one given, or else the saved one."""
    if not given and file.change is not None:
        return restored_change(file.change)
    change = resolve_change(given) if given else None
    if change and change.identity == file.rules:
        return change
    raise InvalidInput(
        f"{str(folder)!r} has the rules {file.rules!r}; in Python, use load(FOLDER, rules=...)"
    )


def _read_samples(path: Path, plan: Plan, conditions: Sequence[Condition]) -> list[Sample]:
    """Read and score the samples of a file.

    Raises:
        InvalidInput: if it is damaged.
    """
    with _reading(path), path.open("rb") as file:
        return [_sample_in(line, plan, conditions) for line in file]


def _sample_in(line: bytes, plan: Plan, conditions: Sequence[Condition]) -> Sample:
    facts = json.loads(line)
    trial = Trial(plan.change.its_habit.item(facts), int(facts["draw"]), conditions)
    return trial.sample(parse(dict[str, Answer], facts["replies"], "a sample"), plan.reading)
