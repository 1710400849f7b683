"""Save and load a run as a folder of plain files: ``run.json`` and ``samples.jsonl``.

A diagnosis has its controls in ``controls.jsonl``, in the same form.
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

DAMAGE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What reading may raise where a file is not what it should be."""
AGAIN = "the run's command makes it anew, and asks nothing twice"
CHANGED = f"the file was changed; {AGAIN}"


def line_of(sample: Sample) -> str:
    """The sample as a line of the file."""
    said = sample.answers
    facts = {
        "id": sample.position.id,
        **sample.position.to_json(),
        "draw": sample.draw,
        "replies": {
            name: {**said[name].to_json(), **asdict(reply)}
            for name, reply in sample.replies.items()
        },
    }
    return json.dumps(facts) + "\n"


def read_samples(path: Path) -> list[Sample]:
    """The samples in a file, each once.

    Raises:
        InvalidInput: naming the line that is no sample, or one that came before.
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


def check_judgements(samples: Sequence[Sample], plan: Plan, path: Path) -> None:
    """Judge the kept answers again.

    Raises:
        InvalidInput: naming the first line of the file that says something else.
    """
    again = rescore(samples, plan, plan.reading)
    for number, (kept, now) in enumerate(zip(samples, again, strict=True), 1):
        for name, reply in now.replies.items():
            if kept.replies[name] != reply:
                raise InvalidInput(
                    f"{path}, line {number}: the {name} reply "
                    f"{shortened(kept.answers[name].text)} is "
                    f"{_told(reply)}, not {_told(kept.replies[name])}; {CHANGED}"
                )


def check_numbers(facts: dict[str, Any], results: Results, path: Path) -> None:
    """Refuse numbers that the samples do not give."""
    kept, outcomes = facts["metrics"], facts["outcomes"]
    if outcomes != results.outcomes:
        raise InvalidInput(f"{path} has other outcomes than samples.jsonl gives; {CHANGED}")
    for name in kept.keys() & results.metrics.keys():
        if not _same(kept[name], results.metrics[name]):
            raise InvalidInput(
                f"{path} says that {name} is {kept[name]!r}, and samples.jsonl gives "
                f"{results.metrics[name]!r}: one of the two was changed; {AGAIN}"
            )


def _same(kept: object, now: Number) -> bool:
    if isinstance(kept, float) and isinstance(now, float):
        return isclose(kept, now)  # another machine may round otherwise
    return kept == now


def _told(reply: ScoredAnswer) -> str:
    return f"{reply.outcome} ({reply.move or 'no move'}, {reply.under_change} under the change)"


def _samples_in(path: Path) -> Iterator[Sample]:
    aside = spill_file()
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                yield _sample_in(line, aside, f"{path}, line {number}")
    except OSError as problem:
        raise InvalidInput(f"cannot read {path}: {error_reason(problem)}") from None


def _sample_in(line: bytes, aside: SpillFile, where: str) -> Sample:
    try:
        fields = json.loads(line)
        position = Position.from_json(fields)
        board_after(position.moves)
        replies = {name: _reply_in(told) for name, told in fields["replies"].items()}
        said = {name: Answer.from_json(told) for name, told in fields["replies"].items()}
        sample = Sample(position, int(fields["draw"]), replies, aside.spill(said))
        named = fields["id"]
    except DAMAGE as problem:
        raise InvalidInput(f"{where}: not a sample of a run ({shortened(problem)})") from None
    if named != position.id:
        raise InvalidInput(f"{where}: the id is not that of the position; {CHANGED}")
    return sample


def _reply_in(fields: dict[str, Any]) -> ScoredAnswer:
    outcome, move, changed = fields["outcome"], fields["move"], fields["under_change"]
    if {outcome, changed} - set(OUTCOMES) or not isinstance(move, str | None):
        raise ValueError(f"no outcome and move: {outcome!r}, {changed!r}, {move!r}")
    if not isinstance(tempted := fields["thought_of_special"], bool):
        raise ValueError(f"neither true nor false: {tempted!r}")
    return interned(outcome, move, changed, tempted)


FORMAT = 4
"""Of the files; those of another one are refused."""
SAMPLES, CONTROLS = "samples.jsonl", "controls.jsonl"


def save_run(run: Run, folder: Path) -> None:
    """Write the run; the folder appears under its name only when it is whole.

    Raises:
        UserError: if it cannot be written.
    """
    files = {SAMPLES: run.samples, **({CONTROLS: run.controls} if run.controls else {})}
    try:
        with atomic_new_dir(folder) as half:
            for name, samples in files.items():
                with atomic_write(half / name) as file:
                    file.writelines(line_of(sample).encode() for sample in samples)
            atomic_write_text(half / "run.json", json.dumps(facts_of(run), indent=2) + "\n")
    except OSError as problem:
        raise unwritable(run, folder, problem) from None


def facts_in(folder: Path) -> dict[str, Any]:
    """What ``run.json`` says.

    Raises:
        InvalidInput: if there is none, or none that can be read.
    """
    try:
        facts = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    except OSError as problem:
        raise InvalidInput(
            f"{str(folder)!r} is no run folder ({problem.strerror}: run.json)"
        ) from None
    except (ValueError, RecursionError) as problem:
        raise InvalidInput(f"{folder / 'run.json'} is damaged: {problem}") from None
    if not isinstance(facts, dict):
        raise InvalidInput(f"{folder / 'run.json'} is damaged: it holds no object")
    if facts.get("format") != FORMAT:
        raise InvalidInput(
            f"{folder / 'run.json'} was written by another version of this program (its format is "
            f"{facts.get('format')!r}, not {FORMAT}); measure again"
        )
    return facts


def load_run(folder: Path | str, rules: Rules | None = None) -> Run:
    """Read a run back, judge its answers again and compute everything anew.

    Rules of one's own under which it was measured have to be given.

    Raises:
        InvalidInput: naming the file and the fault, if the folder is not a whole run, not as it was
            written, or one under other rules.
    """
    folder = Path(folder)
    facts = facts_in(folder)
    try:
        plan = _plan_in(facts, _rules_of(facts["rules"], rules, folder))
        samples = _samples_of_file(folder / SAMPLES, facts["outcomes"])
        of_controls = facts.get("control_outcomes")
        controls = _samples_of_file(folder / CONTROLS, of_controls) if of_controls else []
        results = compute(samples, plan, controls)
        if facts["protocol"] == PROTOCOL:  # another one judges and measures otherwise
            check_judgements(samples, plan, folder / SAMPLES)
            check_judgements(controls, plan, folder / CONTROLS)
            check_numbers(facts, results, folder / "run.json")
        run = Run(
            **{name: facts[name] for name in _PLAIN},
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
    except DAMAGE as problem:
        raise InvalidInput(f"{folder / 'run.json'} is damaged: {problem!r}") from None


def rescored(run: Run, reading: Reading) -> Run:
    """The run with its answers read in another way, without asking anything."""
    plan = replace(run.plan, reading=reading)
    samples, controls = (rescore(each, run.plan, reading) for each in (run.samples, run.controls))
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


_PLAIN = (
    *("protocol", "model", "version", "endpoint", "identity"),
    *("notes", "started_at", "seconds", "versions"),
)
"""The fields of a run that are written as they are."""


def facts_of(run: Run) -> dict[str, Any]:
    """Everything about a run except its samples, ready for JSON."""
    plan = run.plan
    dataset = asdict(replace(run.dataset, positions=[]))
    return {
        "format": FORMAT,
        **{name: getattr(run, name) for name in _PLAIN},
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
            kind: {name: asdict(one) for name, one in getattr(run.results, kind).items()}
            for kind in ("intervals", "by_special_move", "bounds")
        },
        "outcomes": run.results.outcomes,
        **({"control_outcomes": run.results.control_outcomes} if run.controls else {}),
        "cost": asdict(run.cost),
    }


def temperatures(run: Run) -> dict[str, object]:
    """What was really used to find the dataset and to measure, as far as it is known."""
    own = "the provider's own"
    selection: object = 0.0 if run.dataset.asked else "not known"
    if not run.dataset.version:
        selection = "none selected"
    return {
        "selection": own if run.dataset.own_temperature else selection,
        "measuring": own if run.own_temperature else run.plan.settings.temperature,
    }


def _rules_of(known: str, given: Rules | None, folder: Path) -> Rules:
    """The rules that are known by that name: those given, or else of the catalogue."""
    if given and identity_of(given) != known:
        told = f"not under those given, {identity_of(given)!r}"
    elif not given and known not in CATALOGUE:
        told = "which are not in the catalogue; from Python, load(FOLDER, rules=...) takes them"
    else:
        return given or CATALOGUE[known]
    raise InvalidInput(f"{str(folder)!r} was measured under the rules {known!r}, {told}")


def _plan_in(facts: dict[str, Any], change: Rules) -> Plan:
    placebo = placebo_of(change)
    in_force = {STANDARD.key: STANDARD, identity_of(placebo): placebo, facts["rules"]: change}
    conditions = (
        condition_named(told["name"], in_force[told["rules"]], told["text"], told.get("added", ""))
        for told in facts["conditions"]
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
    told = {each.name: facts[each.name] for each in fields(Dataset)}
    told |= {"positions": [], "usage": Usage.from_json(facts["usage"])}
    return checked(Dataset(**told))


def _samples_of_file(path: Path, outcomes: dict[str, dict[str, int]]) -> list[Sample]:
    """The samples of a file, which must hold as many as had an outcome."""
    samples, whole = read_samples(path), sum(outcomes[STANDARD_CONDITION].values())
    if len(samples) != whole:
        raise InvalidInput(f"{path} is damaged: it has {len(samples)} of {whole} samples")
    return samples


def unwritable(run: Run, folder: Path, problem: OSError) -> UserError:
    """What to say of a folder that takes no run."""
    return Interrupted(
        f"cannot write the run to {str(folder)!r} ({problem.strerror})",
        "its answers are saved",
        "run the same command again with another --out",
        kept=run.kept,
    )
