"""A run as a folder of plain files: ``run.json``, and ``samples.jsonl`` with one line a sample."""

import json
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from reprlib import repr as shortened
from typing import Any, cast

from ..errors import BadInput, Problem
from ..game.position import Position
from ..game.rules import board_after, rules_named
from ..home import home, safe_name
from ..models.model import Answer, Settings, Usage
from .datasets import Dataset
from .judging import OUTCOMES, Judgement, Reading
from .metrics import Sample, compute, judged
from .notes import notes_on
from .prices import Cost
from .run import Plan, Run, versions_here
from .wordings import Wording


def new_folder(run: Run) -> Path:
    """A place for the run among the others under ``CDTA_HOME``."""
    stamp = run.started_at.replace(":", "").removesuffix("Z")
    name = f"{stamp}-{safe_name(run.model)}-{run.plan.eval}"
    taken = {path.name for path in (home() / "runs").glob(f"{name}*")}
    return home() / "runs" / (name if name not in taken else f"{name}-{len(taken) + 1}")


def check_free(folder: Path) -> None:
    """Refuse a folder that holds anything already, before anything is spent.

    Raises:
        BadInput: if it does.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(f"{str(folder)!r} is not empty; give --out a new folder")


def save_run(run: Run, folder: Path) -> None:
    """Write the run; the folder appears under its name only when it is whole.

    Raises:
        Problem: if it cannot be written.
    """
    half = folder.with_name(f"{folder.name}.part-{time.time_ns()}")
    try:
        half.mkdir(parents=True)
        _write_samples(run, half / "samples.jsonl")
        _write_facts(run, half / "run.json")
        half.rename(folder)
    except OSError as problem:
        raise Problem(
            f"cannot write the run to {str(folder)!r} ({problem.strerror}); its answers are saved, "
            "run the same command again with another --out"
        ) from None


def load_run(folder: Path) -> Run:
    """Read a run back.

    Raises:
        BadInput: naming the file and the fault, if the folder is not a whole run.
    """
    try:
        facts = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    except OSError as problem:
        raise BadInput(f"{str(folder)!r} is no run folder ({problem.strerror}: run.json)") from None
    except (ValueError, RecursionError) as problem:
        raise BadInput(f"{folder / 'run.json'} is damaged: {problem}") from None
    samples = list(_read_samples(folder / "samples.jsonl"))
    try:
        whole = sum(facts["outcomes"]["standard"].values())
        if len(samples) != whole:
            raise BadInput(
                f"{folder / 'samples.jsonl'} is damaged: it has {len(samples)} of {whole} samples"
            )
        plan = Plan(
            eval=facts["eval"],
            rules=rules_named(facts["rules"]),
            wording=Wording(**facts["wording"]),
            reading=facts["reading"],
            settings=Settings(**facts["settings"]),
            wanted=facts["wanted"],
        )
        return Run(
            model=facts["model"],
            version=facts["model_version"],
            endpoint=facts["endpoint"],
            plan=plan,
            dataset=_dataset_in(facts["dataset"]),
            samples=samples,
            results=compute(samples),
            notes=facts["notes"],
            started_at=facts["started_at"],
            seconds=facts["seconds"],
            cost=Cost(facts["cost"], facts["dataset_cost"], facts["spent"]),
            protocol=facts["protocol"],
            versions=facts["versions"],
        )
    except (KeyError, TypeError) as problem:
        raise BadInput(f"{folder / 'run.json'} is damaged: {problem!r}") from None


def rescore(folder: Path, reading: Reading | None = None) -> Run:
    """Judge a run's answers again and replace its numbers, without asking anything."""
    old = load_run(folder)
    plan = replace(old.plan, reading=reading or old.plan.reading)
    samples = [
        judged(s.position, s.standard, s.variant, plan.rules, plan.reading) for s in old.samples
    ]
    results = compute(samples)
    notes = notes_on(samples, results, plan.rules, plan.reading, plan.wanted)
    run = replace(
        old, plan=plan, samples=samples, results=results, notes=notes, versions=versions_here()
    )
    try:
        for name, write in (("samples.jsonl", _write_samples), ("run.json", _write_facts)):
            write(run, folder / f"{name}.part")
            (folder / f"{name}.part").replace(folder / name)
    except OSError as problem:
        raise Problem(f"cannot write to {str(folder)!r} ({problem.strerror})") from None
    return run


def facts_of(run: Run) -> dict[str, Any]:
    """Everything about a run except its samples, ready for JSON."""
    plan = run.plan
    return {
        "protocol": run.protocol,
        "model": run.model,
        "model_version": run.version,
        "endpoint": run.endpoint,
        "eval": plan.eval,
        "rules": plan.rules.key,
        "reading": plan.reading,
        "wanted": plan.wanted,
        "settings": asdict(plan.settings),
        "wording": asdict(plan.wording),
        "dataset": {
            "version": run.dataset.version,
            "origin": run.dataset.origin,
            "asked": run.dataset.asked,
            "pool_ended": run.dataset.pool_ended,
            "usage": asdict(run.dataset.usage),
            "endpoint": run.dataset.endpoint,
            "saved_at": run.dataset.saved_at,
            "built_now": run.dataset.built_now,
            "provenance": run.dataset.provenance,
        },
        "metrics": run.results.metrics,
        "intervals": {name: asdict(interval) for name, interval in run.results.intervals.items()},
        "outcomes": run.results.outcomes,
        "notes": run.notes,
        "started_at": run.started_at,
        "seconds": run.seconds,
        "cost": run.cost.measuring,
        "dataset_cost": run.cost.dataset,
        "spent": run.cost.spent,
        "versions": run.versions,
    }


def _write_facts(run: Run, path: Path) -> None:
    path.write_text(json.dumps(facts_of(run), indent=2) + "\n", encoding="utf-8")


def _write_samples(run: Run, path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        for sample in run.samples:
            line = {
                "id": sample.position.id,
                **sample.position.to_json(),
                "standard": asdict(sample.standard) | asdict(sample.standard_judgement),
                "variant": asdict(sample.variant) | asdict(sample.variant_judgement),
            }
            file.write(json.dumps(line) + "\n")


def _dataset_in(facts: dict[str, Any]) -> Dataset:
    told = {name: value for name, value in facts.items() if name != "provenance"}
    return Dataset(positions=[], **told | {"usage": Usage(**facts["usage"])})


def _read_samples(path: Path) -> Iterator[Sample]:
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                yield _sample_in(line, f"{path}, line {number}")
    except (OSError, UnicodeDecodeError) as problem:
        raise BadInput(f"cannot read {path}: {problem}") from None


def _sample_in(line: str, where: str) -> Sample:
    try:
        fields = json.loads(line)
        position = Position(
            int(fields["game_idx"]),
            tuple(fields["previous_moves"]),
            _texts(*fields["next_filtered_moves"]),
            fields.get("source"),
        )
        board_after(position.moves)
        (standard, judgement), (variant, variant_judgement) = (
            _answer_in(fields[rule_set]) for rule_set in ("standard", "variant")
        )
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ) as problem:
        raise BadInput(f"{where}: not a sample of a run ({shortened(problem)})") from None
    return Sample(position, standard, variant, judgement, variant_judgement)


def _answer_in(fields: dict[str, Any]) -> tuple[Answer, Judgement]:
    judgement = Judgement(fields.pop("outcome"), fields.pop("move"))
    if judgement.outcome not in OUTCOMES:
        raise ValueError(f"no outcome: {judgement.outcome!r}")
    usage = Usage(**{name: int(count) for name, count in fields.pop("usage").items()})
    conceded = _texts(*fields.pop("conceded"))
    _texts(judgement.move or "", *fields.values())
    return Answer(usage=usage, conceded=conceded, **fields), judgement


def _texts(*values: object) -> tuple[str, ...]:
    for value in values:
        if not isinstance(value, str):
            raise TypeError(f"expected a text, got {value!r}")
    return cast(tuple[str, ...], values)
