"""Entries of a leaderboard: the runs of one model under one plan, pooled over seeds."""

import json
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, sqrt
from operator import attrgetter
from statistics import stdev

from ..errors import InvalidInput
from ..formatting import Number
from ..game.rules import Rules, identity_of
from ..metrics.compute import compute
from ..metrics.diagnosis import KNOWLEDGE
from ..metrics.measures import IMPACT, MEASURES, UPTAKE
from ..metrics.notes import is_broken, notes_on
from ..metrics.types import Results
from ..providers.base import EFFORTS, Effort, add_costs
from ..runs.results import Run
from ..task.types import STANDARD_CONDITION, Eval, Plan, Sample
from .naming import format_effort, model_names, unique_names

# Eval, rules, form and pool: only numbers of one category can be ranked together.
Category = tuple[Eval, str, str, str]


@dataclass(frozen=True)
class Entry:
    """One model at one effort, in one eval under one rule change: runs that differ in the seed.

    Attributes:
        model: the display name, without the effort.
        label: the unique display name, with the effort if that differs between models.
        eval: the eval.
        change: the changed rules.
        samples_by_run: the samples of each run that no earlier run contains. Everything counted,
            measured or plotted for the model uses these. The same applies to the ``controls``.
        results: of all runs pooled. Repeated samples of one position stay in the cluster of their
            game, so repetition alone does not narrow an interval.
        runs: in the order of their seeds.
        pool: the pool of its positions, if not the default pool of the rules.
    """

    model: str
    label: str
    eval: Eval
    change: Rules
    samples_by_run: Sequence[Sequence[Sample]]
    results: Results
    runs: Sequence[Run]
    controls: Sequence[Sample]
    pool: str

    @property
    def category(self) -> Category:
        """The category of its numbers, which can only be ranked within it."""
        return self.eval, identity_of(self.change), self.form, self.pool

    @property
    def form(self) -> str:
        """The name of the form that shows its positions."""
        return self.plan.form.identity

    @property
    def plan(self) -> Plan:
        """The plan of its first run."""
        return self.runs[0].plan

    @property
    def origin(self) -> tuple[str, ...]:
        """Its model, and the origin of its positions."""
        return _origin(self.runs[0])

    @property
    def effort(self) -> Effort | None:
        """The requested reasoning effort; None for the model's default."""
        return self.plan.settings.reasoning_effort

    @property
    def samples(self) -> list[Sample]:
        """The samples of all runs, each once."""
        return [sample for samples in self.samples_by_run for sample in samples]

    @cached_property
    def answered(self) -> list[Sample]:
        """The samples that enter the measures."""
        return [sample for sample in self.samples if sample.answered]

    @property
    def positions(self) -> frozenset[str]:
        """The ids of all its positions."""
        return frozenset(sample.position.id for sample in self.samples)

    @cached_property
    def is_suspect(self) -> bool:
        """Whether unusable or illegal answers may explain the dropped habit."""
        return IMPACT in self.results.bounds or is_broken(self.answered)

    @property
    def is_diagnosed(self) -> bool:
        """Whether it includes a diagnosis."""
        return KNOWLEDGE in self.results.metrics

    @property
    def least_uptake(self) -> float | None:
        """The rule uptake, or its lower bound; None if no readable answer shows a habit."""
        if not any(
            sample.replies[STANDARD_CONDITION].usable
            and sample.breaks_changed_rules(STANDARD_CONDITION)
            for sample in self.answered
        ):
            return None
        bounds = self.results.bounds.get(UPTAKE)
        return bounds.low if bounds else self.results.metrics.get(UPTAKE)

    @property
    def tokens(self) -> int:
        """The tokens of all requests and answers of its samples."""
        return int(self.results.metrics["usage_total_tokens"] or 0)

    @property
    def dollars(self) -> float | None:
        """What its runs cost in total, shared datasets and answers once; None if unknown."""
        return dollars_of(self.runs)

    @property
    def seconds(self) -> float:
        """How long its runs took in total, with each dataset once."""
        return seconds_of(self.runs)

    @cached_property
    def notes(self) -> list[str]:
        """The notes on its runs pooled, because repeating them per run would be long."""
        return self._pooled_notes

    @property
    def notes_of_runs(self) -> list[str]:
        """The notes on its run, or on its runs pooled and any others that a single run has."""
        if len(self.runs) == 1:
            return self.runs[0].notes
        derived = {
            note
            for run in self.runs
            for note in notes_on(run.samples, run.results, run.plan, run.controls)
        }
        others = (note for run in self.runs for note in run.notes if note not in derived)
        return list(dict.fromkeys((*self._pooled_notes, *others)))

    @cached_property
    def _pooled_notes(self) -> list[str]:
        # As many samples as if every run were complete.
        lacking = (run.plan.wanted - len(run.samples) for run in self.runs)
        plan = replace(self.plan, wanted=len(self.samples) + sum(lacking))
        return notes_on(self.samples, self.results, plan, self.controls)

    def mean(self, name: str) -> Number:
        """Return the mean of an amount by its name; 0 if no answer has any."""
        return self.results.metrics.get(name, 0.0) if self.answered else None

    def error_over_seeds(self, metric: str) -> float | None:
        """Return the standard error of the mean over seeds; None with one seed or undefined values.

        Measures of controls have none, because controls are not stored per run.
        """
        measure = MEASURES.get(metric)
        if metric not in self.results.metrics or not measure or measure.of_controls:
            return None
        seeds = [run.plan.settings.seed for run in self.runs]
        by_seed: dict[int, list[Sample]] = {seed: [] for seed in seeds}
        for seed, samples in zip(seeds, self.samples_by_run, strict=True):
            by_seed[seed] += (sample for sample in samples if sample.answered)
        values = [measure.value(samples) for samples in by_seed.values()]
        defined = [value for value in values if value is not None]
        return stdev(defined) / sqrt(len(defined)) if len(defined) == len(values) > 1 else None

    def by_position(self) -> dict[tuple[str, int], Sample]:
        """Return the samples by position and repetition number."""
        repetitions: Counter[str] = Counter()
        samples = {}
        for sample in self.samples:
            samples[sample.position.id, repetitions[sample.position.id]] = sample
            repetitions[sample.position.id] += 1
        return samples


def entries_of(runs: Iterable[Run]) -> list[Entry]:
    """Return the entries of all runs by category, each category sorted best first.

    The best has the highest rule uptake. Only runs that differ in nothing but the seed are pooled.

    Raises:
        InvalidInput: if the runs are of different protocols.
    """
    by_category: dict[Category, list[Run]] = {}
    for run in one_protocol(runs):
        by_category.setdefault(_category(run), []).append(run)
    groups = by_category.values()
    return [entry for group in groups for entry in sorted(pool_runs(group), key=rank)]


def _category(run: Run) -> Category:
    plan = run.plan
    return plan.eval, identity_of(plan.change), plan.form.identity, run.dataset.pool_name


def pool_runs(runs: Sequence[Run]) -> list[Entry]:
    """Pool runs by model and plan, in their order; repeated cached answers count once."""
    groups = [_without_repeats(group) for group in grouped(runs)]
    firsts = [group[0][0] for group in groups]
    names = _names_without_effort(firsts)
    efforts = [format_effort(first.plan.settings.reasoning_effort) for first in firsts]
    with_efforts = map(" ".join, zip(names, efforts, strict=True))
    labels = unique_names(list(with_efforts) if len(set(efforts)) > 1 else names)
    return [_pool(*named) for named in zip(names, labels, groups, strict=True)]


# A run with its samples and its controls that no earlier run contains.
_NewOfRun = tuple[Run, list[Sample], list[Sample]]


def _pool(model: str, label: str, group: Sequence[_NewOfRun]) -> Entry:
    runs, samples_by_run, controls_by_run = zip(*group, strict=True)
    samples, controls = (
        [sample for of_run in by_run for sample in of_run]
        for by_run in (samples_by_run, controls_by_run)
    )
    plan = runs[0].plan
    return Entry(
        model=model,
        label=label,
        eval=plan.eval,
        change=plan.change,
        samples_by_run=samples_by_run,
        results=runs[0].results if len(runs) == 1 else compute(samples, plan, controls),
        runs=runs,
        controls=controls,
        pool=runs[0].dataset.pool_name,
    )


def _without_repeats(runs: Sequence[Run]) -> list[_NewOfRun]:
    # Of runs with one seed that with the most answers comes first: others count as its repeats.
    ordered = sorted(runs, key=lambda run: (run.plan.settings.seed, -len(run.answered)))
    pooled: list[_NewOfRun] = []
    for run in ordered:
        # Only runs with the same seed share answers.
        earlier = [other for other, *_ in pooled if other.plan.settings == run.plan.settings]
        samples = new_samples(run.samples, [other.samples for other in earlier])
        if samples or not pooled:
            controls = new_samples(run.controls, [other.controls for other in earlier])
            pooled.append((run, samples, controls))
    return pooled


def new_samples(samples: list[Sample], earlier: Sequence[Sequence[Sample]]) -> list[Sample]:
    """Return the samples that no earlier run contains.

    A sample without an answer is requested again by the next run, so it says nothing about whether
    the others were.
    """
    new = samples
    for of_run in earlier:
        known = {(s.position.id, s.draw): s for s in of_run}
        pairs = [(s, known.get((s.position.id, s.draw))) for s in new]
        # If some answers differ, all were requested again, including those that agree.
        if all(k.replies == s.replies for s, k in pairs if k and s.answered and k.answered):
            new = [s for s, k in pairs if not k or (s.answered and not k.answered)]
    return new


def grouped(
    runs: Sequence[Run], plan_of: Callable[[Run], Plan] = attrgetter("plan")
) -> list[list[Run]]:
    """Group the runs that differ only in the seed."""
    groups: list[list[Run]] = []
    for run in runs:
        same = (
            group
            for group in groups
            if _origin(group[0]) == _origin(run) and not plan_of(group[0]).differences(plan_of(run))
        )
        if group := next(same, None):
            group.append(run)
        else:
            groups.append([run])
    return groups


def dollars_of(runs: Iterable[Run]) -> float | None:
    """Return what runs cost in total, shared datasets and answers once; None if unknown."""
    costs: dict[Hashable, float | None] = {}
    for run in runs:
        costs |= _answer_costs(run)
        key, cost = _dataset_key(run), run.dataset_cost
        costs[key] = max(cost, costs.get(key), key=lambda known: known or 0.0)
    return add_costs(*costs.values())


def seconds_of(runs: Iterable[Run]) -> float:
    """Return how long runs took in total, with each dataset once."""
    ordered = sorted(runs, key=lambda run: run.dataset.seconds)
    datasets = {_dataset_key(run): run.dataset.seconds for run in ordered}
    return sum((*(run.seconds - run.dataset.seconds for run in ordered), *datasets.values()))


def _dataset_key(run: Run) -> Hashable:
    change, effort = identity_of(run.plan.change), run.plan.select_effort
    return run.model, run.dataset.version, run.dataset.pool, change, run.plan.form.identity, effort


def _answer_costs(run: Run) -> Iterator[tuple[Hashable, float | None]]:
    """Yield what identifies each answer of a run, and its cost; equal ones are of one request."""
    plan, identity = run.plan, json.dumps(run.identity, sort_keys=True, default=str)
    shared = identity, plan.settings, identity_of(plan.change), plan.form.identity
    for sample in (*run.samples, *run.controls):
        wording = plan.wording_of(sample.position)
        for condition, answer in sample.answers.items():
            if not answer.error:
                yield (shared, wording, sample.position.id, sample.draw, condition), answer.cost


def _origin(run: Run) -> tuple[str, ...]:
    """Return the model and the origin of its positions, which are the same for all seeds."""
    data = run.dataset
    identity = json.dumps(run.identity, sort_keys=True, default=str)
    return identity, run.version, run.protocol, data.version, data.origin, data.pool


def _names_without_effort(runs: Sequence[Run]) -> list[str]:
    """Return a display name per run that is the same for all efforts of a model."""
    groups = grouped(runs, _plan_without_effort)
    names = model_names([group[0] for group in groups])
    name_of = {id(run): name for name, group in zip(names, groups, strict=True) for run in group}
    return [name_of[id(run)] for run in runs]


def _plan_without_effort(run: Run) -> Plan:
    settings = replace(run.plan.settings, reasoning_effort=None)
    # Without requests there was no selection.
    selected_at = run.plan.select_effort if run.dataset.asked else None
    return replace(run.plan, settings=settings, select_effort=selected_at)


def rank(entry: Entry) -> tuple[float, float, str, int]:
    """Return the sort key of an entry: rule uptake first."""
    uptake, impact = entry.least_uptake, entry.results.metrics[IMPACT]
    effort = EFFORTS.index(entry.effort) if entry.effort else len(EFFORTS)
    numbers = (inf if uptake is None else -uptake, inf if impact is None else impact)
    return (*numbers, entry.model, effort)


def one_protocol(runs: Iterable[Run]) -> list[Run]:
    """Return the runs if all have the same protocol.

    Raises:
        InvalidInput: if they do not.
    """
    all_runs = list(runs)
    protocols = sorted({run.protocol for run in all_runs})
    if len(protocols) > 1:
        raise InvalidInput(
            f"runs of protocols {' and '.join(protocols)} cannot be ranked together; "
            "run the older ones again, from the cache"
        )
    return all_runs
