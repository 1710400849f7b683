"""What an experiment comes to: where each model stands at each effort, over all its runs."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf, sqrt
from pathlib import Path
from statistics import fmean, stdev

from ..errors import InvalidInput
from ..game.rules import Rules, identity_of
from ..metrics.bounds import interval_of
from ..metrics.diagnosis import CONTRASTS, DIAGNOSIS, KNOWLEDGE
from ..metrics.measures import FORBIDDEN, HABIT, IMPACT, MEASURES, SHARES, UPTAKE
from ..metrics.notes import is_broken
from ..metrics.stopping import CRITICAL_FACTOR
from ..metrics.thinking import tokens
from ..metrics.types import Results
from ..providers.base import EFFORTS, Effort
from ..runs.lookup import folders_in, is_half_written
from ..runs.results import Run
from ..runs.storage import load_run
from ..task.types import STANDARD_CONDITION, Eval, Number, Sample
from .comparable import one_protocol
from .contenders import Contender, contenders, names_without_effort
from .labels import apart, effort_in_words
from .records import CHANGE, Record, records_in

Place = tuple[Eval, str, str, str]
METRICS = (UPTAKE, IMPACT, "adaptation_rate", *SHARES.values(), *FORBIDDEN.values(), "delta")
"""What is told of every model."""
OF_DIAGNOSIS = (*(measure.name for measure in DIAGNOSIS), *CONTRASTS)
"""What is told where any was diagnosed."""


@dataclass(frozen=True)
class Standing:
    """One model at one effort, in one eval under one change of rules.

    Attributes:
        model: what it is called among the others, whatever its effort.
        label: the same with its effort, where that is not the same for all.
        eval: the eval.
        change: the changed rules.
        runs: the samples of each run that enter the measures, none of them twice.
        results: of all of them together; of the original's records, what those can tell.
        notes: what a reader of the numbers should know.
        effort: how much it was asked to think; None for as much as it does by itself.
        selection: how its positions were selected, if not at temperature 0.
        pool: what they were chosen from, if not from the pool that the rules have by default.
        contender: its runs taken together, which others are compared with; None for records.
    """

    model: str
    label: str
    eval: Eval
    change: Rules
    runs: Sequence[Sequence[Sample]]
    results: Results
    notes: Sequence[str] = ()
    effort: Effort | None = None
    selection: str = ""
    pool: str = ""
    contender: Contender | None = None

    @property
    def place(self) -> Place:
        """Among whom it stands: numbers of other places cannot be ranked with its own."""
        return self.eval, identity_of(self.change), self.selection, self.pool

    @property
    def samples(self) -> list[Sample]:
        """Of all runs."""
        return [sample for samples in self.runs for sample in samples]

    @property
    def positions(self) -> frozenset[str]:
        """The ids of all it was asked about."""
        return self.contender.positions if self.contender else frozenset()

    @property
    def stops(self) -> bool:
        """Whether its runs stopped by themselves."""
        return any(run.plan.precision for run in self.contender.runs) if self.contender else False

    @property
    def critical_factor(self) -> float:
        """By how much larger critical values are than where no run stops by itself."""
        return CRITICAL_FACTOR if self.stops else 1.0

    @property
    def is_suspect(self) -> bool:
        """Whether what looks like dropping the habit may be no more than useless answers."""
        return IMPACT in self.results.bounds or (self.is_of_runs and is_broken(self.samples))

    @property
    def is_of_runs(self) -> bool:
        """Whether all is known of its answers, and not only what the original records."""
        return UPTAKE in self.results.metrics

    @property
    def is_diagnosed(self) -> bool:
        """Whether it was asked why the habit stays."""
        return KNOWLEDGE in self.results.metrics

    @property
    def least_uptake(self) -> float | None:
        """The rule uptake, or the least of its bounds; None if no readable answer shows a habit."""
        if not any(
            each.replies[STANDARD_CONDITION].usable and each.breaks(STANDARD_CONDITION)
            for each in self.samples
        ):
            return None
        bounds = self.results.bounds.get(UPTAKE)
        return bounds.low if bounds else self.results.metrics.get(UPTAKE)

    def thinking_tokens(self, condition: str) -> Number:
        """How many tokens it thought under a condition, as a mean over the samples."""
        if not self.samples or not self.is_of_runs:
            return None
        return fmean(tokens(condition, sample) for sample in self.samples)

    def error_over_seeds(self, metric: str) -> float | None:
        """The standard error of the mean over seeds; None for one, or where one has no value.

        Those of controls are not told apart by run, and have none.
        """
        measure = MEASURES.get(metric)
        if metric not in self.results.metrics or not measure or measure.of_controls:
            return None
        runs = self.contender.runs if self.contender else ()
        seeds = [run.plan.settings.seed for run in runs] or range(len(self.runs))
        by_seed: dict[int, list[Sample]] = {seed: [] for seed in seeds}
        for seed, samples in zip(seeds, self.runs, strict=True):
            by_seed[seed] += samples
        values = [measure.value(samples) for samples in by_seed.values()]
        known = [value for value in values if value is not None]
        return stdev(known) / sqrt(len(known)) if len(known) == len(values) > 1 else None


def standings(runs: Iterable[Run], records: Iterable[Record] = ()) -> list[Standing]:
    """Where the models stand: evals, rules and the like as they come, in each the best first.

    The best has the highest rule uptake. Only runs that differ in the seed alone are pooled.

    Raises:
        InvalidInput: if the runs are of different protocols.
    """
    by_place: dict[Place, list[Run]] = {}
    for run in one_protocol(runs):
        by_place.setdefault(_place(run), []).append(run)
    found = [standing for group in by_place.values() for standing in of_one_place(group)]
    found += _of_records(records, {each.label for each in found})
    places = list(dict.fromkeys(each.place for each in found))
    return sorted(found, key=lambda each: (places.index(each.place), rank(each)))


def standings_in(paths: Iterable[Path]) -> list[Standing]:
    """Those of run folders, of record files of the original, and of folders of either.

    Raises:
        InvalidInput: if a path holds none, or one that cannot be read or ranked with the others.
    """
    folders: dict[Path, Path] = {}
    files: dict[Path, Path] = {}
    for path in paths:
        runs_here, records_here = _found_at(path)
        if not runs_here and not records_here:
            raise InvalidInput(f"{str(path)!r} holds no run and no record file (.log, .jsonl)")
        folders |= {folder.resolve(): folder for folder in runs_here}
        files |= {file.resolve(): file for file in records_here}
    return standings(map(load_run, folders.values()), records_in(list(files.values())))


def _found_at(path: Path) -> tuple[list[Path], list[Path]]:
    """Run folders and record files, without those that are still being written."""
    if path.is_file():
        return [], [path]
    folders = folders_in(path)
    records = [file for name in ("*.log", "*.jsonl") for file in sorted(path.rglob(name))]
    whole = (file for file in records if not is_half_written(file))
    return folders, [file for file in whole if file.parent not in folders]


def _place(run: Run) -> Place:
    selection = run.dataset.selection if run.dataset.own_temperature else ""
    return run.plan.eval, identity_of(run.plan.change), selection, run.dataset.pool_name


def of_one_place(runs: Sequence[Run]) -> list[Standing]:
    """Those of runs that may be ranked together, in the order they come."""
    found = contenders(runs)
    names = names_without_effort([contender.runs[0] for contender in found])
    efforts = [contender.plan.settings.reasoning_effort for contender in found]
    *_, selection, pool = _place(runs[0])
    labels = apart(
        [
            f"{name} {effort_in_words(effort)}" if len(set(efforts)) > 1 else name
            for name, effort in zip(names, efforts, strict=True)
        ]
    )
    return [
        Standing(
            model=name,
            label=label,
            eval=contender.plan.eval,
            change=contender.plan.change,
            runs=[[s for s in samples if s.answered] for samples in contender.samples_by_run],
            results=contender.results,
            notes=_notes_on(contender),
            effort=contender.plan.settings.reasoning_effort,
            selection=selection,
            pool=pool,
            contender=replace(contender, label=label),
        )
        for name, label, contender in zip(names, labels, found, strict=True)
    ]


def _notes_on(contender: Contender) -> list[str]:
    precisions = {run.plan.precision for run in contender.runs} - {None}
    return [
        *(f"stopped at a precision of {each:g}; intervals allow for that" for each in precisions),
        *contender.notes_together,
    ]


def _of_records(records: Iterable[Record], of_runs: Collection[str]) -> list[Standing]:
    """Those of records; one that shares its name with a model that was run is called a record."""
    groups: dict[tuple[str, Eval], list[Record]] = {}
    for record in records:
        groups.setdefault((record.model, record.eval), []).append(record)
    return [
        Standing(name, name, eval_, CHANGE, runs, _results_of_records(runs))
        for (model, eval_), group in groups.items()
        for name in [f"{model} (record)" if model in of_runs else model]
        for runs in [[record.samples for record in group]]
    ]


def _results_of_records(runs: Sequence[Sequence[Sample]]) -> Results:
    samples = [sample for run in runs for sample in run]
    intervals = {measure.name: interval_of(measure, samples) for measure in HABIT}
    return Results(
        metrics={
            **{measure.name: measure.value(samples) for measure in HABIT},
            "n_samples": len(samples),
        },
        intervals={name: interval for name, interval in intervals.items() if interval},
        by_special_move={},
        bounds={},
        outcomes={},
    )


def rank(standing: Standing) -> tuple[float, float, str, int]:
    """What they are sorted by."""
    uptake, impact = standing.least_uptake, standing.results.metrics[IMPACT]
    effort = EFFORTS.index(standing.effort) if standing.effort else len(EFFORTS)
    numbers = (inf if uptake is None else -uptake, inf if impact is None else impact)
    return (*numbers, standing.model, effort)
