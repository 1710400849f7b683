"""Save and load a run as a folder of plain files: ``run.json`` and ``samples.jsonl``.

A diagnosis has its controls in ``controls.jsonl``, in the same format.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields, replace
from math import isclose
from pathlib import Path
from reprlib import repr as shortened
from typing import Any

from ..costs.approval import Cost
from ..datasets.storage import Dataset, notes_on_dataset
from ..errors import Interrupted, InvalidInput, UserError, error_reason
from ..files import atomic_new_dir, atomic_write, atomic_write_text
from ..formatting import Number
from ..game.position import Position
from ..game.rules import CATALOGUE, STANDARD, Rules, board_after, identity_of, placebo_of
from ..metrics.compute import compute
from ..metrics.notes import notes_on
from ..metrics.stopping import on_precision
from ..metrics.types import Results
from ..providers.base import Answer, Settings, Usage
from ..task.conditions import condition_named
from ..task.samples import interned, rescore
from ..task.spec import checked
from ..task.spill import SpillFile, spill_file
from ..task.types import (
    CHANGED_CONDITION,
    OUTCOMES,
    STANDARD_CONDITION,
    Plan,
    Reading,
    Sample,
    ScoredAnswer,
)
from .results import PROTOCOL, Run, versions_here

# Errors that parsing a damaged file may raise.
DAMAGE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
AGAIN = "the run's command makes it anew, and asks nothing twice"
CHANGED = f"the file was changed; {AGAIN}"


def line_of(sample: Sample) -> str:
    """Return the sample as a line of the file."""
    answers = sample.answers
    facts = {
        "id": sample.position.id,
        **sample.position.to_json(),
        "draw": sample.draw,
        "replies": {
            name: {**answers[name].to_json(), **asdict(reply)}
            for name, reply in sample.replies.items()
        },
    }
    return json.dumps(facts) + "\n"


def read_samples(path: Path) -> list[Sample]:
    """Read the samples in a file.

    Raises:
        InvalidInput: naming the line that is not a sample, or that repeats one.
    """
    lines: dict[tuple[str, int], int] = {}
    samples = []
    for number, sample in enumerate(_samples_in(path), 1):
        first = lines.setdefault((sample.position.id, sample.draw), number)
        if first != number:
            raise InvalidInput(
                f"{path}, line {number}: the same sample as in line {first}; {CHANGED}"
            )
        samples.append(sample)
    return samples


def check_scores(samples: Sequence[Sample], plan: Plan, path: Path) -> None:
    """Score the saved answers again and compare.

    Raises:
        InvalidInput: naming the first line of the file with another score.
    """
    rescored_samples = rescore(samples, plan, plan.reading)
    for number, (saved, expected) in enumerate(zip(samples, rescored_samples, strict=True), 1):
        for name, reply in expected.replies.items():
            if saved.replies[name] != reply:
                raise InvalidInput(
                    f"{path}, line {number}: the {name} reply "
                    f"{shortened(saved.answers[name].text)} is "
                    f"{_format_score(reply)}, not {_format_score(saved.replies[name])}; {CHANGED}"
                )


def check_numbers(facts: dict[str, Any], results: Results, path: Path) -> None:
    """Reject saved numbers that differ from those computed from the samples."""
    saved, outcomes = facts["metrics"], facts["outcomes"]
    if outcomes != results.outcomes:
        raise InvalidInput(f"{path} has other outcomes than samples.jsonl gives; {CHANGED}")
    for name in saved.keys() & results.metrics.keys():
        if not _is_same(saved[name], results.metrics[name]):
            raise InvalidInput(
                f"{path} says that {name} is {saved[name]!r}, and samples.jsonl gives "
                f"{results.metrics[name]!r}: one of the two was changed; {AGAIN}"
            )


def _is_same(saved: object, computed: Number) -> bool:
    if isinstance(saved, float) and isinstance(computed, float):
        return isclose(saved, computed)  # another machine may round differently
    return saved == computed


def _format_score(reply: ScoredAnswer) -> str:
    return f"{reply.outcome} ({reply.move or 'no move'}, {reply.under_change} under the change)"


def _samples_in(path: Path) -> Iterator[Sample]:
    spill = spill_file()
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                yield _sample_in(line, spill, f"{path}, line {number}")
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error_reason(error)}") from None


def _sample_in(line: bytes, spill: SpillFile, where: str) -> Sample:
    try:
        fields = json.loads(line)
        position = Position.from_json(fields)
        board_after(position.moves)
        replies = {name: _reply_in(reply) for name, reply in fields["replies"].items()}
        answers = {name: Answer.from_json(reply) for name, reply in fields["replies"].items()}
        sample = Sample(position, int(fields["draw"]), replies, spill.spill(answers))
        saved_id = fields["id"]
    except DAMAGE as error:
        raise InvalidInput(f"{where}: not a sample of a run ({shortened(error)})") from None
    if saved_id != position.id:
        raise InvalidInput(f"{where}: the id is not that of the position; {CHANGED}")
    return sample


def _reply_in(fields: dict[str, Any]) -> ScoredAnswer:
    outcome, move, changed = fields["outcome"], fields["move"], fields["under_change"]
    if {outcome, changed} - set(OUTCOMES) or not isinstance(move, str | None):
        raise ValueError(f"no outcome and move: {outcome!r}, {changed!r}, {move!r}")
    if not isinstance(tempted := fields["thought_of_special"], bool):
        raise ValueError(f"neither true nor false: {tempted!r}")
    return interned(outcome, move, changed, tempted)


# Version of the file format; other versions are rejected.
FORMAT = 4
SAMPLES, CONTROLS = "samples.jsonl", "controls.jsonl"


def save_run(run: Run, folder: Path) -> None:
    """Save the run; the folder appears under its name only when it is complete.

    Raises:
        UserError: if it cannot be written.
    """
    files = {SAMPLES: run.samples, **({CONTROLS: run.controls} if run.controls else {})}
    try:
        with atomic_new_dir(folder) as partial:
            for name, samples in files.items():
                with atomic_write(partial / name) as file:
                    file.writelines(line_of(sample).encode() for sample in samples)
            atomic_write_text(partial / "run.json", json.dumps(facts_of(run), indent=2) + "\n")
    except OSError as error:
        raise unwritable(run, folder, error) from None


def facts_in(folder: Path) -> dict[str, Any]:
    """Read ``run.json``.

    Raises:
        InvalidInput: if the file is missing or cannot be read.
    """
    try:
        facts = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(
            f"{str(folder)!r} is no run folder ({error.strerror}: run.json)"
        ) from None
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{folder / 'run.json'} is damaged: {error}") from None
    if not isinstance(facts, dict):
        raise InvalidInput(f"{folder / 'run.json'} is damaged: it holds no object")
    if facts.get("format") != FORMAT:
        raise InvalidInput(
            f"{folder / 'run.json'} was written by another version of this program (its format is "
            f"{facts.get('format')!r}, not {FORMAT}); measure again"
        )
    return facts


def load_run(folder: Path | str, rules: Rules | None = None) -> Run:
    """Load a run, score its answers again and recompute everything.

    If the run used rules of your own, pass them as ``rules``.

    Raises:
        InvalidInput: naming the file and the problem, if the folder is not a complete run, was
            modified, or belongs to other rules.
    """
    folder = Path(folder)
    facts = facts_in(folder)
    try:
        plan = _plan_in(facts, _rules_named(facts["rules"], rules, folder))
        samples = _samples_of_file(folder / SAMPLES, facts["outcomes"])
        control_outcomes = facts.get("control_outcomes")
        controls = _samples_of_file(folder / CONTROLS, control_outcomes) if control_outcomes else []
        results = compute(samples, plan, controls)
        if facts["protocol"] == PROTOCOL:  # other protocols score and measure differently
            check_scores(samples, plan, folder / SAMPLES)
            check_scores(controls, plan, folder / CONTROLS)
            check_numbers(facts, results, folder / "run.json")
        run = Run(
            **{name: facts[name] for name in _COPIED_FIELDS},
            plan=plan,
            dataset=_dataset_in(facts["dataset"]),
            samples=samples,
            results=results,
            cost=checked(Cost(**facts["cost"])),
            folder=folder,
            controls=controls,
        )
        return checked(run)
    except InvalidInput:
        raise
    except DAMAGE as error:
        raise InvalidInput(f"{folder / 'run.json'} is damaged: {error!r}") from None


def rescored(run: Run, reading: Reading) -> Run:
    """Return the run with its answers parsed in another way, without sending anything."""
    plan = replace(run.plan, reading=reading)
    samples, controls = (rescore(group, run.plan, reading) for group in (run.samples, run.controls))
    results = compute(samples, plan, controls)
    return replace(
        run,
        plan=plan,
        samples=samples,
        controls=controls,
        results=results,
        notes=[
            *on_precision(len(samples), results, plan),
            *notes_on(samples, results, plan, controls),
            *notes_on_dataset(run.dataset),
        ],
        protocol=PROTOCOL,
        versions=versions_here(),
    )


# The fields of a run that are written unchanged.
_COPIED_FIELDS = (
    *("protocol", "model", "version", "endpoint", "identity"),
    *("notes", "started_at", "seconds", "versions"),
)


def facts_of(run: Run) -> dict[str, Any]:
    """Return everything about a run except its samples, ready for JSON."""
    plan = run.plan
    dataset = asdict(replace(run.dataset, positions=[]))
    return {
        "format": FORMAT,
        **{name: getattr(run, name) for name in _COPIED_FIELDS},
        "eval": plan.eval,
        "rules": identity_of(plan.change),
        "wording": plan.wording,
        "conditions": [
            {
                "name": condition.name,
                "rules": identity_of(condition.rules),
                "text": condition.text,
                **({"added": condition.added} if condition.added else {}),
            }
            for condition in plan.conditions
        ],
        "reading": plan.reading,
        "settings": plan.settings.non_defaults,
        "temperature": temperatures(run),
        "select_effort": plan.select_effort,
        "wanted": plan.wanted,
        **({"precision": plan.precision} if plan.precision else {}),
        "dataset": dataset | {"positions": None, "provenance": run.dataset.provenance},
        "metrics": run.results.metrics,
        **{
            kind: {name: asdict(entry) for name, entry in getattr(run.results, kind).items()}
            for kind in ("intervals", "by_special_move", "bounds")
        },
        "outcomes": run.results.outcomes,
        **({"control_outcomes": run.results.control_outcomes} if run.controls else {}),
        "cost": asdict(run.cost),
    }


def temperatures(run: Run) -> dict[str, object]:
    """Return the actual temperatures of selection and measurement, as far as known."""
    own = "the provider's own"
    selection: object = 0.0 if run.dataset.asked else "not known"
    if not run.dataset.version:
        selection = "none selected"
    return {
        "selection": own if run.dataset.own_temperature else selection,
        "measuring": own if run.own_temperature else run.plan.settings.temperature,
    }


def _rules_named(identity: str, rules: Rules | None, folder: Path) -> Rules:
    """Return the rules with this identity: those given, or else from the catalogue."""
    if rules and identity_of(rules) != identity:
        problem = f"not under those given, {identity_of(rules)!r}"
    elif not rules and identity not in CATALOGUE:
        problem = "which are not in the catalogue; from Python, load(FOLDER, rules=...) takes them"
    else:
        return rules or CATALOGUE[identity]
    raise InvalidInput(f"{str(folder)!r} was measured under the rules {identity!r}, {problem}")


def _plan_in(facts: dict[str, Any], change: Rules) -> Plan:
    placebo = placebo_of(change)
    rules_by_identity = {
        STANDARD.key: STANDARD,
        identity_of(placebo): placebo,
        facts["rules"]: change,
    }
    conditions = (
        condition_named(
            saved["name"], rules_by_identity[saved["rules"]], saved["text"], saved.get("added", "")
        )
        for saved in facts["conditions"]
    )
    plan = Plan(
        eval=facts["eval"],
        change=change,
        wording=facts["wording"],
        conditions=tuple(map(checked, conditions)),
        reading=facts["reading"],
        settings=checked(Settings(**facts["settings"])),
        wanted=facts["wanted"],
        select_effort=facts["select_effort"],
        precision=facts.get("precision"),
    )
    if not {STANDARD_CONDITION, CHANGED_CONDITION} <= {
        condition.name for condition in plan.conditions
    }:
        raise ValueError("a condition is missing")
    return checked(plan)


def _dataset_in(facts: dict[str, Any]) -> Dataset:
    values = {field.name: facts[field.name] for field in fields(Dataset)}
    values |= {"positions": [], "usage": Usage.from_json(facts["usage"])}
    return checked(Dataset(**values))


def _samples_of_file(path: Path, outcomes: dict[str, dict[str, int]]) -> list[Sample]:
    """Read the samples of a file, which must contain as many as there are outcomes."""
    samples, expected = read_samples(path), sum(outcomes[STANDARD_CONDITION].values())
    if len(samples) != expected:
        raise InvalidInput(f"{path} is damaged: it has {len(samples)} of {expected} samples")
    return samples


def unwritable(run: Run, folder: Path, error: OSError) -> UserError:
    """Return the error for a folder that cannot be written."""
    return Interrupted(
        f"cannot write the run to {str(folder)!r} ({error.strerror})",
        "its answers are saved",
        "run the same command again with another --out",
        cached=run.cached,
    )
