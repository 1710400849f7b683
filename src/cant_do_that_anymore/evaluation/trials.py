"""Trials: what plots and tables need of a run, out of a run folder or a record of the original."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import BadInput
from ..game.position import Position, earlier_moves
from ..game.rules import BISHOPS_AS_KNIGHTS
from .folder import load_run
from .intervals import Clusters
from .results import Run

Moves = tuple[str, ...]


@dataclass(frozen=True)
class Trial:
    """One model in one run: for every sample the game, the earlier bishop moves, and what it did.

    Attributes:
        model: its name.
        eval: the name of the eval.
        games: which game each sample is from.
        earlier: how many bishop moves were played before.
        before: whether the special move was played under the standard rules.
        after: the same under the changed rules.
    """

    model: str
    eval: str
    games: list[int]
    earlier: list[int]
    before: list[bool]
    after: list[bool]


class Share(NamedTuple):
    """A share and its 95 % interval."""

    value: float
    low: float
    high: float


def share_of(hits: Sequence[bool], games: Sequence[int]) -> Share:
    """The share of hits among samples of those games; there is at least one."""
    interval = Clusters(games).rate(hits)
    assert interval
    return Share(sum(hits) / len(hits), interval.low, interval.high)


def by_earlier_moves(trial: Trial, many: int) -> dict[int, Share]:
    """The share of special moves under the changed rules by number of earlier moves.

    From ``many`` on they are taken together, as the pool has them: few samples each say nothing.
    """
    earlier = [min(many, count) for count in trial.earlier]
    shares = {}
    for count in sorted(set(earlier)):
        here = [index for index, each in enumerate(earlier) if each == count]
        shares[count] = share_of([trial.after[i] for i in here], [trial.games[i] for i in here])
    return shares


def trial_of(run: Run) -> Trial:
    """The trial that a run is."""
    samples = run.answered
    return Trial(
        model=run.model,
        eval=run.plan.eval,
        games=[sample.position.game for sample in samples],
        earlier=[earlier_moves(sample.position, run.plan.change) for sample in samples],
        before=[sample.had_habit for sample in samples],
        after=[sample.kept_habit for sample in samples],
    )


def trials_in(paths: Iterable[Path]) -> list[Trial]:
    """The trials in run folders, in record files of the original, and in folders of either.

    Raises:
        BadInput: if a path holds none, or one that cannot be read.
    """
    runs, records = [], []
    for path in paths:
        runs_here, records_here = _found_at(path)
        if not runs_here and not records_here:
            raise BadInput(f"{str(path)!r} holds no run and no record file (.log, .jsonl)")
        runs += runs_here
        records += records_here
    return [trial_of(load_run(folder)) for folder in runs] + _in_records(records)


def _found_at(path: Path) -> tuple[list[Path], list[Path]]:
    """Run folders and record files."""
    if path.is_file():
        return [], [path]
    runs = sorted(
        file.parent for file in path.rglob("run.json") if not file.parent.name.startswith(".part-")
    )
    suffixes = ("*.log", "*.jsonl")
    records = sorted(file for suffix in suffixes for file in path.rglob(suffix))
    return runs, [file for file in records if file.parent not in runs]


def _in_records(paths: Sequence[Path]) -> list[Trial]:
    trials = [_in_record(path) for path in paths]
    games = iter(_games([moves for _, all_moves in trials for moves in all_moves]))
    return [replace(trial, games=[next(games) for _ in moves]) for trial, moves in trials]


def _in_record(path: Path) -> tuple[Trial, list[Moves]]:
    """The trial, still without its games, and the moves before each sample."""
    lines = list(_objects(path))
    try:
        spec = next(line["spec"] for line in lines if "spec" in line)
        samples = [line["data"] for line in lines if line.get("type") == "metrics"]
        moves = [tuple(sample["previous_moves"]) for sample in samples]
        diagonal = spec["run_config"]["eval_spec"]["args"].get("diagonal_variation")
        trial = Trial(
            model=spec["completion_fns"][0],
            eval="all_diagonal" if diagonal else "all",
            games=[],
            earlier=[
                earlier_moves(Position(0, played, ()), BISHOPS_AS_KNIGHTS) for played in moves
            ],
            before=[bool(sample["predicted_move"]) for sample in samples],
            after=[bool(sample["predicted_move_in_variant"]) for sample in samples],
        )
    except StopIteration:
        raise BadInput(f"{path} is no record file: no line has the key 'spec'") from None
    except (AssertionError, AttributeError, LookupError, TypeError, ValueError) as problem:
        raise BadInput(f"{path} is no record file of this eval ({problem!r})") from None
    if not samples:
        raise BadInput(f"{path} records no samples")
    return trial, moves


def _objects(path: Path) -> Iterator[dict[str, Any]]:
    """The JSON objects of a file, skipping lines that a stopped run left half written."""
    try:
        with path.open(encoding="utf-8") as file:
            for line in file:
                try:
                    found = json.loads(line)
                except (ValueError, RecursionError):
                    continue
                if isinstance(found, dict):
                    yield found
    except (OSError, UnicodeDecodeError) as problem:
        raise BadInput(f"cannot read {path}: {problem}") from None


def _games(moves: Sequence[Moves]) -> list[int]:
    """Which samples are of one game: no record says it, but positions of one extend each other."""
    games = [0] * len(moves)
    game, last = 0, None
    for index in sorted(range(len(moves)), key=moves.__getitem__):
        if last is None or moves[index][: len(last)] != last:
            game += 1
        games[index], last = game, moves[index]
    return games
