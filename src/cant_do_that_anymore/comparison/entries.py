"""Entries of a leaderboard: the runs of one model under one plan, pooled over seeds."""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from math import inf, sqrt
from pathlib import Path
from statistics import fmean, stdev
from typing import Literal

from ..datasets.storage import Dataset
from ..errors import InvalidInput
from ..formatting import Number
from ..game.rules import Rules, identity_of
from ..metrics.bounds import interval_of
from ..metrics.compute import compute
from ..metrics.diagnosis import CONTRASTS, DIAGNOSIS, KNOWLEDGE
from ..metrics.measures import FORBIDDEN, HABIT, IMPACT, MEASURES, SHARES, UPTAKE
from ..metrics.notes import is_broken, notes_on
from ..metrics.stopping import CRITICAL_FACTOR
from ..metrics.thinking import tokens
from ..metrics.types import Results
from ..providers.base import EFFORTS, Effort
from ..runs.lookup import folders_in, is_half_written
from ..runs.results import Run
from ..runs.storage import load_run
from ..task.types import STANDARD_CONDITION, Eval, Plan, Sample
from .naming import apart, effort_in_words, labels, shown
from .openai_records import CHANGE, Record, records_in

OWN_TEMPERATURE = "the provider's own"


@dataclass(frozen=True)
class Contender:
    """One model, and all its runs that differ in nothing but the seed.

    Attributes:
        label: what it is called among the others.
        runs: in the order of their seeds.
        samples_by_run: of each run, those that no earlier one has; whatever is counted, measured or
            drawn of the model goes by these, and so do the ``controls``.
        results: what they come to together; askings of one position in several runs stay samples
            of one game, so intervals do not shrink merely because the same was asked again.
    """

    label: str
    runs: tuple[Run, ...]
    samples_by_run: tuple[list[Sample], ...]
    controls: list[Sample]
    results: Results

    @property
    def samples(self) -> list[Sample]:
        """Of all runs, each once."""
        return [sample for samples in self.samples_by_run for sample in samples]

    @property
    def plan(self) -> Plan:
        """Of its first run."""
        return self.runs[0].plan

    @property
    def seeds(self) -> list[int]:
        """Those of its runs, each once."""
        return list(dict.fromkeys(run.plan.settings.seed for run in self.runs))

    @property
    def notes(self) -> list[str]:
        """Those of its run, or those on its runs together and what else one of them has."""
        if len(self.runs) == 1:
            return self.runs[0].notes
        derived = {
            note
            for run in self.runs
            for note in notes_on(run.samples, run.results, run.plan, run.controls)
        }
        others = (note for run in self.runs for note in run.notes if note not in derived)
        return list(dict.fromkeys((*self.notes_together, *others)))

    @property
    def notes_together(self) -> list[str]:
        """As on a run: the same about each of its runs would be much to read."""
        plan = replace(self.plan, wanted=self.wanted)
        return notes_on(self.samples, self.results, plan, self.controls)

    @property
    def wanted(self) -> int:
        """How many samples there would be if no run, but for those that stop, lacked any."""
        lacking = (r.plan.wanted - len(r.samples) for r in self.runs if not r.plan.precision)
        return len(self.samples) + sum(lacking)

    @property
    def has_junk(self) -> bool:
        """Whether answers without a move could carry its numbers away."""
        return IMPACT in self.results.bounds

    @property
    def positions(self) -> frozenset[str]:
        """The ids of all it was asked about."""
        return frozenset(sample.position.id for sample in self.samples)

    @property
    def tokens(self) -> int:
        """Of all questions and answers behind its samples."""
        return int(self.results.metrics["usage_total_tokens"] or 0)

    @property
    def dollars(self) -> float | None:
        """What those answers cost; None where a price is unknown.

        Of a run that repeats others in part, it is as large a share as its own samples are.
        """
        total = 0.0
        for run, samples in zip(self.runs, self.samples_by_run, strict=True):
            if run.cost.measuring is None:
                return None
            total += run.cost.measuring * len(samples) / max(1, len(run.samples))
        return total

    @property
    def seconds(self) -> float:
        """How long its runs took."""
        return sum(run.seconds for run in self.runs)

    def by_position(self) -> dict[tuple[str, int], Sample]:
        """The samples by position, a position's askings by their number."""
        times: Counter[str] = Counter()
        found = {}
        for sample in self.samples:
            found[sample.position.id, times[sample.position.id]] = sample
            times[sample.position.id] += 1
        return found


def contenders(runs: Sequence[Run]) -> list[Contender]:
    """The runs by model and plan; one that is given twice, or repeats kept answers, counts once."""
    groups = grouped(runs)
    names = labels([group[0] for group in groups])
    return [_contender(name, group) for name, group in zip(names, groups, strict=True)]


def grouped(runs: Sequence[Run]) -> list[list[Run]]:
    """Those that differ in nothing but the seed together."""
    groups: list[list[Run]] = []
    for run in runs:
        group = next((group for group in groups if _alike(group[0], run)), None)
        if group is None:
            groups.append([run])
        else:
            group.append(run)
    return groups


def _contender(label: str, runs: Sequence[Run]) -> Contender:
    # Of runs with one seed the longest comes first, so that what repeats it is seen to.
    ordered = sorted(runs, key=lambda run: (run.plan.settings.seed, -len(run.samples)))
    kept: list[tuple[Run, list[Sample]]] = []
    for run in ordered:
        new = _new(run, [earlier for earlier, _ in kept])
        if new or not kept:
            kept.append((run, new))
    samples = [sample for _, new in kept for sample in new]
    runs_kept = [run for run, _ in kept]
    controls = [
        control
        for place, run in enumerate(runs_kept)
        for control in _new(run, runs_kept[:place], "controls")
    ]
    # Where one of them stopped by itself, intervals allow for that.
    plan = max((run.plan for run in runs_kept), key=lambda plan: bool(plan.precision))
    results = compute(samples, plan, controls)
    return Contender(label, tuple(runs_kept), tuple(new for _, new in kept), controls, results)


def _new(
    run: Run, earlier: Sequence[Run], kind: Literal["samples", "controls"] = "samples"
) -> list[Sample]:
    """The samples that no earlier run has: with one seed, kept answers come again."""
    new: list[Sample] = getattr(run, kind)
    for other in earlier:
        if other.plan.settings == run.plan.settings:
            known = {(s.position.id, s.draw): s.replies for s in getattr(other, kind)}
            again = [s for s in new if (s.position.id, s.draw) in known]
            # Answers that differ were asked anew, and then those that agree were as well.
            if all(known[s.position.id, s.draw] == s.replies for s in again):
                new = [s for s in new if (s.position.id, s.draw) not in known]
    return new


def _alike(one: Run, other: Run) -> bool:
    return (
        _identity(one) == _identity(other)
        and (one.version, one.protocol) == (other.version, other.protocol)
        and _positions(one) == _positions(other)
        and not one.plan.differences(other.plan)
    )


def _positions(run: Run) -> tuple[str, str, str, str]:
    """Where its positions come from and how they were selected, the same for all seeds."""
    dataset = run.dataset
    return dataset.version, dataset.origin, dataset.pool, dataset.selection


def _identity(run: Run) -> str:
    return json.dumps(run.identity, sort_keys=True, default=str)


def names_without_effort(runs: Sequence[Run]) -> list[str]:
    """What each is called whatever its effort: one name for those that differ in nothing else.

    It is the name that they were asked for by, unless this is that of others as well.
    """
    bare = [_without_effort(run) for run in runs]
    groups = grouped(bare)
    firsts = [group[0] for group in groups]
    told, asked_for = labels(firsts), [first.model for first in firsts]
    pairs = list(zip(told, asked_for, strict=True))
    called = [label if asked_for.count(name) > 1 else name for label, name in pairs]
    unique = called if len(set(called)) == len(called) else told
    names = {id(run): name for name, group in zip(unique, groups, strict=True) for run in group}
    return [names[id(run)] for run in bare]


def _without_effort(run: Run) -> Run:
    settings = replace(run.plan.settings, reasoning_effort=None)
    selected_at = run.plan.select_effort if run.dataset.asked else None  # or nobody selected
    return replace(run, plan=replace(run.plan, settings=settings, select_effort=selected_at))


def differences_in_plan(models: Sequence[Contender], but: Collection[str] = ()) -> list[str]:
    """What was not the same for all, one sentence each, but for what is told elsewhere."""
    names = {name for model in models[1:] for name in models[0].plan.differences(model.plan)}
    looked_at: dict[str, Callable[[Run], object]] = {
        **{name: partial(_of_plan, name) for name in sorted(names - {"temperature", *but})},
        "the temperature that was used": _temperature_used,
        "how their datasets were selected": lambda run: (
            f"{run.dataset.origin} {run.dataset.selection}".strip()
        ),
    }
    notes = []
    for what, of in looked_at.items():
        values = {m.label: " and ".join(sorted({shown(of(r)) for r in m.runs})) for m in models}
        if len(set(values.values())) > 1:
            who = "; ".join(f"{label}: {value}" for label, value in values.items())
            notes.append(f"the runs differ in {what}, which may be why they score apart ({who})")
    return notes


def _of_plan(name: str, run: Run) -> object:
    plan, attribute = run.plan, name.replace(" ", "_")
    if attribute == "conditions":
        return ", ".join(f"{each.name} {each.text!r:.40}" for each in plan.conditions)
    if attribute == "change":
        return identity_of(plan.change)
    return getattr(plan if hasattr(plan, attribute) else plan.settings, attribute)


def _temperature_used(run: Run) -> object:
    return OWN_TEMPERATURE if run.own_temperature else run.plan.settings.temperature


def common_dataset(models: Sequence[Contender]) -> Dataset | None:
    """The dataset that all were measured on, if it was the same for all.

    Who stops by itself was measured on the beginning of it.
    """
    datasets = [run.dataset for model in models for run in model.runs]
    same = len({(each.version, each.origin, each.endpoint) for each in datasets}) == 1
    by_size = sorted((model.positions for model in models), key=len)
    stops = any(run.plan.precision for model in models for run in model.runs)
    beginnings = stops and all(fewer <= more for fewer, more in pairwise(by_size))
    return datasets[0] if same and (beginnings or len(set(by_size)) == 1) else None


Category = tuple[Eval, str, str, str]
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
    def place(self) -> Category:
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
    by_place: dict[Category, list[Run]] = {}
    for run in one_protocol(runs):
        by_place.setdefault(_place(run), []).append(run)
    found = [standing for group in by_place.values() for standing in entries_in(group)]
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


def _place(run: Run) -> Category:
    selection = run.dataset.selection if run.dataset.own_temperature else ""
    return run.plan.eval, identity_of(run.plan.change), selection, run.dataset.pool_name


def entries_in(runs: Sequence[Run]) -> list[Standing]:
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


def one_protocol(runs: Iterable[Run]) -> list[Run]:
    """The runs, all scored by one protocol.

    Raises:
        InvalidInput: if they are not.
    """
    found = list(runs)
    protocols = sorted({run.protocol for run in found})
    if len(protocols) > 1:
        raise InvalidInput(
            f"runs of protocols {' and '.join(protocols)} cannot be ranked together; `cdta rescore "
            "RUN` scores the answers of an older run again, without asking anything"
        )
    return found
