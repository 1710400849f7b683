"""Import record files of the original eval, or of ``oaieval``, as runs.

A record contains every prompt and every reply. The replies are scored again, so an imported run has
all measures that other runs have.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from ..datasets.storage import Dataset
from ..errors import InvalidInput, error_reason
from ..files import file_errors
from ..formatting import pluralize
from ..game.position import Position, checked
from ..game.rules import BISHOPS_AS_KNIGHTS, STANDARD
from ..metrics.notes import version_of_all, versions_of
from ..metrics.types import Results
from ..providers.base import Answer, Settings, Usage
from ..providers.request_variants import as_text
from ..task.conditions import condition_named, conditions_for
from ..task.forms import MOVES
from ..task.prompts import DEFAULT, Prompt
from ..task.samples import trials_of
from ..task.types import (
    CHANGED_CONDITION,
    STANDARD_CONDITION,
    UNUSABLE_OUTCOMES,
    Eval,
    Plan,
    Reading,
    Sample,
)
from ..validation import parse
from .results import Run
from .storage import rescored

# The conditions of the original with their rules, in the order of its requests.
RULES = {STANDARD_CONDITION: STANDARD, CHANGED_CONDITION: BISHOPS_AS_KNIGHTS}
# The original reads replies exactly; `oaieval` can do both.
READINGS: tuple[Reading, ...] = ("exact", "lenient")
Line = Mapping[str, Any]


@dataclass(frozen=True)
class SamplingEvent:
    """The data of a ``sampling`` event: a request and its reply."""

    prompt: str | list[dict[str, Any]]
    sampled: list[str]
    model: str | None = None
    usage: dict[str, Any] | None = None
    reasoning: str = ""


@dataclass(frozen=True)
class MetricsEvent:
    """The data of a ``metrics`` event: a position, and whether its replies are special moves.

    Only records of our ``oaieval`` contain the outcomes.
    """

    move: list[str]
    previous_moves: list[str]
    predicted_move: bool
    predicted_move_in_variant: bool
    standard_outcome: str = ""
    variant_outcome: str = ""

    def agrees_with(self, sample: Sample) -> bool:
        """Whether the sample has the scores of the record, which does not say how replies ended."""
        recorded = self.standard_outcome, self.variant_outcome
        outcomes = zip(recorded, (r.outcome for r in sample.replies.values()), strict=True)
        return (self.predicted_move, self.predicted_move_in_variant) == (
            sample.had_habit,
            sample.kept_habit,
        ) and all(
            old in ("", new) or UNUSABLE_OUTCOMES.issuperset((old, new)) for old, new in outcomes
        )


def import_records(paths: Sequence[Path]) -> list[Run]:
    """Return the runs in record files, one per file.

    Records do not name the games of their positions; they are recognized in all files together.

    Raises:
        InvalidInput: naming the file and the problem, if one is not a record of this eval.
    """
    runs = [_read(path) for path in paths]
    games = _games({sample.position.moves for run in runs for sample in run.samples})
    return [_with_results(run, games) for run in runs]


def _read(path: Path) -> Run:
    """Read a run without results, whose positions have no games."""
    lines = list(_objects(path))
    specs = [line["spec"] for line in lines if "spec" in line]
    if not specs:
        raise InvalidInput(f"{path} is not a record file: no line has the key 'spec'")
    if len(specs) > 1:
        raise InvalidInput(f"{path} contains {len(specs)} records; split it into one file each")
    try:
        return _run(specs[0], [line for line in lines if "type" in line])
    except KeyError as missing:
        raise InvalidInput(f"{path} is not a record of this eval: {missing} is missing") from None
    except (AttributeError, IndexError, InvalidInput, TypeError, ValueError) as error:
        reason = error_reason(error)
        raise InvalidInput(f"{path} is not a record of this eval ({reason})") from None


def _run(spec: Line, events: Sequence[Line]) -> Run:
    sampling: dict[str, list[SamplingEvent]] = {}
    metrics: dict[str, MetricsEvent] = {}
    for event in events:
        sample, kind = str(event["sample_id"]), event["type"]
        sampling.setdefault(sample, [])
        if kind == "sampling":
            sampling[sample].append(parse(SamplingEvent, event["data"], "a sampling event"))
        elif kind == "metrics":
            metrics[sample] = parse(MetricsEvent, event["data"], "a metrics event")
    if not metrics:
        raise ValueError("it has no samples")
    requests = [sampling[sample] for sample in metrics]
    plan, samples = _scored(spec, list(metrics.values()), requests)
    pairs = zip(requests, samples, strict=True)
    wordings = {_prompt(of_sample[0], sample.position) for of_sample, sample in pairs}
    solver = str(spec["completion_fns"][0])
    version = version_of_all(versions_of(samples), solver)
    stamps = [datetime.fromisoformat(event["created_at"]) for event in events]
    failed = len(sampling) - len(metrics)
    return Run(
        model=solver,
        version=version,
        endpoint="",
        identity={"solver": solver},
        plan=plan,
        dataset=Dataset("" if plan.eval == "all_diagonal" else version, "recorded"),
        samples=samples,
        results=Results({}, {}, {}, {}, {}),
        notes=[
            "imported from a record, which does not contain the temperature or the token limit",
            *[f"the record has {len(wordings)} wordings; the prompts shown are its first ones"][
                : len(wordings) - 1
            ],
            *[f"left out {pluralize(failed, 'sample')} of the record without answers"][:failed],
        ],
        started_at=f"{datetime.fromisoformat(spec['created_at']):%Y-%m-%dT%H:%M:%SZ}",
        seconds=round((max(stamps) - min(stamps)).total_seconds(), 2),
        seconds_now=0.0,
    )


def _scored(
    spec: Line, metrics: Sequence[MetricsEvent], sampling: Sequence[Sequence[SamplingEvent]]
) -> tuple[Plan, list[Sample]]:
    """Return the plan, and the samples scored by the reading that gives what the record says."""
    positions, answers = [*map(_position, metrics)], [*map(_answers, sampling)]
    conditions = tuple(
        condition_named(name, rules, [_prompt(sampling[0][index], positions[0])])
        for index, (name, rules) in zip((0, -1), RULES.items(), strict=True)
    )
    default = conditions == conditions_for(RULES, BISHOPS_AS_KNIGHTS, DEFAULT)
    diagonal = spec["run_config"]["eval_spec"]["args"].get("diagonal_variation")
    split: Eval = "all_small" if spec["split"] == "all_small" else "all"
    for reading in READINGS:
        samples = [
            trial.sample(replies, conditions, reading)
            for trial, replies in zip(trials_of(positions), answers, strict=True)
        ]
        if all(map(MetricsEvent.agrees_with, metrics, samples)):
            plan = Plan(
                eval="all_diagonal" if diagonal else split,
                change=BISHOPS_AS_KNIGHTS,
                wordings=(DEFAULT.name if default else "recorded",),
                conditions=conditions,
                reading=reading,
                settings=Settings(seed=int(spec["run_config"]["seed"])),
                select_effort=None,
                wanted=len(samples),
            )
            return plan, samples
    raise ValueError("its replies contradict its metrics events")


def _position(metrics: MetricsEvent) -> Position:
    position = Position(0, tuple(metrics.previous_moves), tuple(metrics.move), where="a position")
    return checked(position, BISHOPS_AS_KNIGHTS)


def _answers(sampling: Sequence[SamplingEvent]) -> list[Answer]:
    """Return the answer under each condition: one request, or two with a chain of thought."""
    half, odd = divmod(len(sampling), len(RULES))
    if odd or not half:
        raise ValueError(f"a sample has {len(sampling)} sampling events, not two or four")
    return [_answer(sampling[:half]), _answer(sampling[half:])]


def _answer(requests: Sequence[SamplingEvent]) -> Answer:
    *thinking, reply = requests
    counts = [request.usage or {} for request in requests]
    return Answer(
        reply.sampled[0],
        usage=Usage(
            *(
                sum(c.get(key) or 0 for c in counts)
                for key in ("prompt_tokens", "completion_tokens")
            )
        ),
        version=reply.model or "",
        reasoning="\n\n".join(request.sampled[0] for request in thinking) or reply.reasoning,
    )


def _prompt(request: SamplingEvent, position: Position) -> Prompt:
    """Return the text before the moves; "" if it is not a message of its own."""
    if isinstance(request.prompt, str):
        turns = as_text(tuple(MOVES.render(position)))
        return Prompt(request.prompt.removeprefix("System: ").removesuffix(f"\n{turns}"))
    first = request.prompt[0]
    return Prompt(str(first["content"]) if first["role"] == "system" else "")


def _with_results(run: Run, games: Mapping[tuple[str, ...], int]) -> Run:
    samples = [
        replace(sample, position=replace(sample.position, game=games[sample.position.moves]))
        for sample in run.samples
    ]
    finished = rescored(replace(run, samples=samples), run.plan.reading)
    return replace(finished, notes=[*run.notes, *finished.notes])


def _games(all_moves: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], int]:
    """Number the games: positions of one game extend each other.

    Numbers are digests, so games of records that are imported one by one have different ones.
    """
    games: dict[tuple[str, ...], int] = {}
    last: tuple[str, ...] | None = None
    for moves in sorted(all_moves):
        if last is None or moves[: len(last)] != last:
            game = int(sha256(" ".join(moves).encode()).hexdigest()[:8], 16)
        games[moves], last = game, moves
    return games


def _objects(path: Path) -> Iterator[Line]:
    """Yield the JSON objects of a file, skipping lines that an interrupted run left incomplete."""
    with file_errors("read", path, error=InvalidInput), path.open("rb") as file:
        for line in file:
            with suppress(ValueError, RecursionError):
                if isinstance(data := json.loads(line), dict):
                    yield data
