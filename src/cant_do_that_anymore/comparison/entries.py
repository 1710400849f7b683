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
    """One model with all its runs that differ only in the seed.

    Attributes:
        label: the unique display name.
        runs: in the order of their seeds.
        samples_by_run: the samples of each run that no earlier run contains. Everything counted,
            measured or plotted for the model uses these. The same applies to the ``controls``.
        results: of all runs pooled. Repeated samples of one position stay in the cluster of their
            game, so repetition alone does not narrow an interval.
    """

    label: str
    runs: tuple[Run, ...]
    samples_by_run: tuple[list[Sample], ...]
    controls: list[Sample]
    results: Results

    @property
    def samples(self) -> list[Sample]:
        """The samples of all runs, each once."""
        return [sample for samples in self.samples_by_run for sample in samples]

    @property
    def plan(self) -> Plan:
        """The plan of its first run."""
        return self.runs[0].plan

    @property
    def seeds(self) -> list[int]:
        """The seeds of its runs, each once."""
        return list(dict.fromkeys(run.plan.settings.seed for run in self.runs))

    @property
    def notes(self) -> list[str]:
        """The notes on its run, or on its runs pooled and any others that a single run has."""
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
        """The notes on the pooled runs, because repeating them per run would be long."""
        plan = replace(self.plan, wanted=self.wanted)
        return notes_on(self.samples, self.results, plan, self.controls)

    @property
    def wanted(self) -> int:
        """The number of samples if every run without a target precision were complete."""
        lacking = (r.plan.wanted - len(r.samples) for r in self.runs if not r.plan.precision)
        return len(self.samples) + sum(lacking)

    @property
    def has_unusable(self) -> bool:
        """Whether answers without a move could change its numbers."""
        return IMPACT in self.results.bounds

    @property
    def positions(self) -> frozenset[str]:
        """The ids of all its positions."""
        return frozenset(sample.position.id for sample in self.samples)

    @property
    def tokens(self) -> int:
        """The tokens of all requests and answers of its samples."""
        return int(self.results.metrics["usage_total_tokens"] or 0)

    @property
    def dollars(self) -> float | None:
        """The cost of these answers; None if a price is unknown.

        A run that partly repeats others counts in proportion to its own samples.
        """
        total = 0.0
        for run, samples in zip(self.runs, self.samples_by_run, strict=True):
            if run.cost.measuring is None:
                return None
            total += run.cost.measuring * len(samples) / max(1, len(run.samples))
        return total

    @property
    def seconds(self) -> float:
        """The duration of its runs."""
        return sum(run.seconds for run in self.runs)

    def by_position(self) -> dict[tuple[str, int], Sample]:
        """Return the samples by position and repetition number."""
        repetitions: Counter[str] = Counter()
        samples = {}
        for sample in self.samples:
            samples[sample.position.id, repetitions[sample.position.id]] = sample
            repetitions[sample.position.id] += 1
        return samples


def contenders(runs: Sequence[Run]) -> list[Contender]:
    """Pool runs by model and plan; a run that repeats another's cached answers counts once."""
    groups = grouped(runs)
    names = labels([group[0] for group in groups])
    return [_pool_runs(name, group) for name, group in zip(names, groups, strict=True)]


def grouped(runs: Sequence[Run]) -> list[list[Run]]:
    """Group the runs that differ only in the seed."""
    groups: list[list[Run]] = []
    for run in runs:
        group = next((group for group in groups if _differs_only_in_seed(group[0], run)), None)
        if group is None:
            groups.append([run])
        else:
            group.append(run)
    return groups


def _pool_runs(label: str, runs: Sequence[Run]) -> Contender:
    # Of runs with one seed the longest comes first, so that shorter ones count as repeats.
    ordered = sorted(runs, key=lambda run: (run.plan.settings.seed, -len(run.samples)))
    pooled: list[tuple[Run, list[Sample]]] = []
    for run in ordered:
        new_samples = _new_samples(run, [earlier for earlier, _ in pooled])
        if new_samples or not pooled:
            pooled.append((run, new_samples))
    samples = [sample for _, new_samples in pooled for sample in new_samples]
    pooled_runs = [run for run, _ in pooled]
    controls = [
        control
        for index, run in enumerate(pooled_runs)
        for control in _new_samples(run, pooled_runs[:index], "controls")
    ]
    # If one of them has a target precision, intervals allow for that.
    plan = max((run.plan for run in pooled_runs), key=lambda plan: bool(plan.precision))
    results = compute(samples, plan, controls)
    return Contender(
        label,
        tuple(pooled_runs),
        tuple(new_samples for _, new_samples in pooled),
        controls,
        results,
    )


def _new_samples(
    run: Run, earlier: Sequence[Run], kind: Literal["samples", "controls"] = "samples"
) -> list[Sample]:
    """Return the samples that no earlier run contains; runs with the same seed share answers."""
    new: list[Sample] = getattr(run, kind)
    for earlier_run in earlier:
        if earlier_run.plan.settings == run.plan.settings:
            known_replies = {(s.position.id, s.draw): s.replies for s in getattr(earlier_run, kind)}
            repeated = [s for s in new if (s.position.id, s.draw) in known_replies]
            # If some answers differ, all were requested again, including those that agree.
            if all(known_replies[s.position.id, s.draw] == s.replies for s in repeated):
                new = [s for s in new if (s.position.id, s.draw) not in known_replies]
    return new


def _differs_only_in_seed(first: Run, second: Run) -> bool:
    return (
        _identity(first) == _identity(second)
        and (first.version, first.protocol) == (second.version, second.protocol)
        and _positions(first) == _positions(second)
        and not first.plan.differences(second.plan)
    )


def _positions(run: Run) -> tuple[str, str, str, str]:
    """Return the source and the selection of its positions, which are the same for all seeds."""
    dataset = run.dataset
    return dataset.version, dataset.origin, dataset.pool, dataset.selection


def _identity(run: Run) -> str:
    return json.dumps(run.identity, sort_keys=True, default=str)


def names_without_effort(runs: Sequence[Run]) -> list[str]:
    """Return a display name per run that ignores the effort.

    It is the requested name, unless other models share that name.
    """
    bare = [_without_effort(run) for run in runs]
    groups = grouped(bare)
    firsts = [group[0] for group in groups]
    full_names, requested = labels(firsts), [first.model for first in firsts]
    pairs = list(zip(full_names, requested, strict=True))
    names_by_group = [label if requested.count(name) > 1 else name for label, name in pairs]
    unique = names_by_group if len(set(names_by_group)) == len(names_by_group) else full_names
    name_of = {id(run): name for name, group in zip(unique, groups, strict=True) for run in group}
    return [name_of[id(run)] for run in bare]


def _without_effort(run: Run) -> Run:
    settings = replace(run.plan.settings, reasoning_effort=None)
    # Without requests there was no selection.
    selected_at = run.plan.select_effort if run.dataset.asked else None
    return replace(run, plan=replace(run.plan, settings=settings, select_effort=selected_at))


def differences_in_plan(models: Sequence[Contender], but: Collection[str] = ()) -> list[str]:
    """Return a note for each setting that differs between models, except those given."""
    names = {name for model in models[1:] for name in models[0].plan.differences(model.plan)}
    settings: dict[str, Callable[[Run], object]] = {
        **{name: partial(_of_plan, name) for name in sorted(names - {"temperature", *but})},
        "the temperature that was used": _temperature_used,
        "how their datasets were selected": lambda run: (
            f"{run.dataset.origin} {run.dataset.selection}".strip()
        ),
    }
    notes = []
    for setting, value_of in settings.items():
        values = {
            m.label: " and ".join(sorted({shown(value_of(r)) for r in m.runs})) for m in models
        }
        if len(set(values.values())) > 1:
            by_model = "; ".join(f"{label}: {value}" for label, value in values.items())
            notes.append(
                f"the runs differ in {setting}, which may be why they score apart ({by_model})"
            )
    return notes


def _of_plan(name: str, run: Run) -> object:
    plan, attribute = run.plan, name.replace(" ", "_")
    if attribute == "conditions":
        return ", ".join(
            f"{condition.name} {condition.text!r:.40}" for condition in plan.conditions
        )
    if attribute == "change":
        return identity_of(plan.change)
    return getattr(plan if hasattr(plan, attribute) else plan.settings, attribute)


def _temperature_used(run: Run) -> object:
    return OWN_TEMPERATURE if run.own_temperature else run.plan.settings.temperature


def common_dataset(models: Sequence[Contender]) -> Dataset | None:
    """Return the dataset that all models were evaluated on, or None if it differs.

    A run with a target precision may use only the beginning of it.
    """
    datasets = [run.dataset for model in models for run in model.runs]
    same = len({(data.version, data.origin, data.endpoint) for data in datasets}) == 1
    by_size = sorted((model.positions for model in models), key=len)
    stops = any(run.plan.precision for model in models for run in model.runs)
    beginnings = stops and all(fewer <= more for fewer, more in pairwise(by_size))
    return datasets[0] if same and (beginnings or len(set(by_size)) == 1) else None


Category = tuple[Eval, str, str, str]
# Reported for every model.
METRICS = (UPTAKE, IMPACT, "adaptation_rate", *SHARES.values(), *FORBIDDEN.values(), "delta")
# Reported if any model was diagnosed.
OF_DIAGNOSIS = (*(measure.name for measure in DIAGNOSIS), *CONTRASTS)


@dataclass(frozen=True)
class Standing:
    """The result of one model at one effort, in one eval under one rule change.

    Attributes:
        model: the display name, without the effort.
        label: the display name, with the effort if that differs between models.
        eval: the eval.
        change: the changed rules.
        runs: the samples of each run that enter the measures, none of them twice.
        results: of all runs pooled; for records of the original, as far as they allow.
        notes: warnings and remarks for readers of the numbers.
        effort: the requested reasoning effort; None for the model's default.
        selection: how its positions were selected, if not at temperature 0.
        pool: the pool of its positions, if not the default pool of the rules.
        contender: its pooled runs, for comparisons; None for records of the original.
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
        """Its category; numbers of different categories cannot be ranked together."""
        return self.eval, identity_of(self.change), self.selection, self.pool

    @property
    def samples(self) -> list[Sample]:
        """The samples of all runs."""
        return [sample for samples in self.runs for sample in samples]

    @property
    def positions(self) -> frozenset[str]:
        """The ids of all its positions."""
        return self.contender.positions if self.contender else frozenset()

    @property
    def stops(self) -> bool:
        """Whether any of its runs has a target precision."""
        return any(run.plan.precision for run in self.contender.runs) if self.contender else False

    @property
    def critical_factor(self) -> float:
        """The factor on critical values: above 1 if a run may stop early."""
        return CRITICAL_FACTOR if self.stops else 1.0

    @property
    def is_suspect(self) -> bool:
        """Whether unusable or illegal answers may explain the dropped habit."""
        return IMPACT in self.results.bounds or (self.is_of_runs and is_broken(self.samples))

    @property
    def is_of_runs(self) -> bool:
        """Whether all its answers are known, and not only the original's records."""
        return UPTAKE in self.results.metrics

    @property
    def is_diagnosed(self) -> bool:
        """Whether it includes a diagnosis."""
        return KNOWLEDGE in self.results.metrics

    @property
    def least_uptake(self) -> float | None:
        """The rule uptake, or its lower bound; None if no readable answer shows a habit."""
        if not any(
            sample.replies[STANDARD_CONDITION].usable and sample.breaks(STANDARD_CONDITION)
            for sample in self.samples
        ):
            return None
        bounds = self.results.bounds.get(UPTAKE)
        return bounds.low if bounds else self.results.metrics.get(UPTAKE)

    def thinking_tokens(self, condition: str) -> Number:
        """Return the mean number of reasoning tokens under a condition."""
        if not self.samples or not self.is_of_runs:
            return None
        return fmean(tokens(condition, sample) for sample in self.samples)

    def error_over_seeds(self, metric: str) -> float | None:
        """Return the standard error of the mean over seeds; None with one seed or undefined values.

        Measures of controls have none, because controls are not stored per run.
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
        defined = [value for value in values if value is not None]
        return stdev(defined) / sqrt(len(defined)) if len(defined) == len(values) > 1 else None


def standings(runs: Iterable[Run], records: Iterable[Record] = ()) -> list[Standing]:
    """Return the entries of all runs and records by category, each category sorted best first.

    The best has the highest rule uptake. Only runs that differ in nothing but the seed are pooled.

    Raises:
        InvalidInput: if the runs are of different protocols.
    """
    by_category: dict[Category, list[Run]] = {}
    for run in one_protocol(runs):
        by_category.setdefault(_category(run), []).append(run)
    entries = [standing for group in by_category.values() for standing in entries_in(group)]
    entries += _of_records(records, {entry.label for entry in entries})
    categories = list(dict.fromkeys(entry.place for entry in entries))
    return sorted(entries, key=lambda entry: (categories.index(entry.place), rank(entry)))


def standings_in(paths: Iterable[Path]) -> list[Standing]:
    """Return the entries of run folders, record files of the original, and folders of either.

    Raises:
        InvalidInput: if a path contains none, or one that cannot be read or ranked with the others.
    """
    folders: dict[Path, Path] = {}
    files: dict[Path, Path] = {}
    for path in paths:
        runs_here, records_here = _sources_at(path)
        if not runs_here and not records_here:
            raise InvalidInput(f"{str(path)!r} holds no run and no record file (.log, .jsonl)")
        folders |= {folder.resolve(): folder for folder in runs_here}
        files |= {file.resolve(): file for file in records_here}
    return standings(map(load_run, folders.values()), records_in(list(files.values())))


def _sources_at(path: Path) -> tuple[list[Path], list[Path]]:
    """Return the run folders and record files at a path, except those still being written."""
    if path.is_file():
        return [], [path]
    folders = folders_in(path)
    records = [file for name in ("*.log", "*.jsonl") for file in sorted(path.rglob(name))]
    complete_files = (file for file in records if not is_half_written(file))
    return folders, [file for file in complete_files if file.parent not in folders]


def _category(run: Run) -> Category:
    selection = run.dataset.selection if run.dataset.own_temperature else ""
    return run.plan.eval, identity_of(run.plan.change), selection, run.dataset.pool_name


def entries_in(runs: Sequence[Run]) -> list[Standing]:
    """Return the entries of runs of one category, in their order."""
    models = contenders(runs)
    names = names_without_effort([model.runs[0] for model in models])
    efforts = [model.plan.settings.reasoning_effort for model in models]
    *_, selection, pool = _category(runs[0])
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
            eval=model.plan.eval,
            change=model.plan.change,
            runs=[[s for s in samples if s.answered] for samples in model.samples_by_run],
            results=model.results,
            notes=_notes_on(model),
            effort=model.plan.settings.reasoning_effort,
            selection=selection,
            pool=pool,
            contender=replace(model, label=label),
        )
        for name, label, model in zip(names, labels, models, strict=True)
    ]


def _notes_on(contender: Contender) -> list[str]:
    precisions = {run.plan.precision for run in contender.runs} - {None}
    return [
        *(
            f"stopped at a precision of {target:g}; intervals allow for that"
            for target in precisions
        ),
        *contender.notes_together,
    ]


def _of_records(records: Iterable[Record], of_runs: Collection[str]) -> list[Standing]:
    """Return the entries of records; those that share a name with a run are marked "(record)"."""
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
    """Return the sort key of an entry: rule uptake first."""
    uptake, impact = standing.least_uptake, standing.results.metrics[IMPACT]
    effort = EFFORTS.index(standing.effort) if standing.effort else len(EFFORTS)
    numbers = (inf if uptake is None else -uptake, inf if impact is None else impact)
    return (*numbers, standing.model, effort)


def one_protocol(runs: Iterable[Run]) -> list[Run]:
    """Return the runs if all have the same protocol.

    Raises:
        InvalidInput: if they do not.
    """
    all_runs = list(runs)
    protocols = sorted({run.protocol for run in all_runs})
    if len(protocols) > 1:
        raise InvalidInput(
            f"runs of protocols {' and '.join(protocols)} cannot be ranked together; `cdta rescore "
            "RUN` scores the answers of an older run again, without asking anything"
        )
    return all_runs
