"""Entries of a leaderboard: one run each, under a unique name."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ..errors import InvalidInput
from ..habits.base import Change
from ..habits.words import Words
from ..metrics.compute import Results
from ..providers.base import Effort
from ..runs.run import Run
from ..task.types import Eval, Plan, Sample
from .naming import format_effort, model_names, unique_names

# Eval, rules, form and pool: only numbers of one category can be ranked together.
Category = tuple[Eval, str, str, str]


@dataclass(frozen=True)
class Entry:
    """A run in a leaderboard.

    Attributes:
        model: the display name, the same for all efforts of a model.
        label: the unique display name, with the effort if that differs between runs.
        run: the run.
    """

    model: str
    label: str
    run: Run

    @property
    def category(self) -> Category:
        """The category of its numbers, which can only be ranked within it."""
        return _category(self.run)

    @property
    def plan(self) -> Plan:
        """The plan of its run."""
        return self.run.plan

    @property
    def results(self) -> Results:
        """The results of its run."""
        return self.run.results

    @property
    def eval(self) -> Eval:
        """The eval."""
        return self.plan.eval

    @property
    def change(self) -> Change:
        """The changed rules."""
        return self.plan.change

    @property
    def form(self) -> str:
        """How its items are shown."""
        return self.plan.form.identity

    @property
    def other_form(self) -> str:
        """How its items are shown; "" for the default form."""
        return "" if self.plan.has_default_form else self.form

    @property
    def pool(self) -> str:
        """The pool of its items, if not the default pool of the rules."""
        return self.run.dataset.pool_name

    @property
    def effort(self) -> Effort | None:
        """The requested reasoning effort; None for the model's default."""
        return self.plan.settings.reasoning_effort

    @property
    def samples(self) -> list[Sample]:
        """The samples of its run."""
        return self.run.samples

    @property
    def items(self) -> frozenset[str]:
        """The ids of all its items."""
        return frozenset(sample.item.id for sample in self.samples)

    @property
    def is_diagnosed(self) -> bool:
        """Whether it includes a diagnosis."""
        return bool(self.results.diagnosis)

    @property
    def words(self) -> Words:
        """How screens speak of its habit."""
        return self.run.words

    def by_item(self) -> dict[tuple[str, int], Sample]:
        """Return the samples by item and repetition number."""
        repetitions: Counter[str] = Counter()
        samples = {}
        for sample in self.samples:
            samples[sample.item.id, repetitions[sample.item.id]] = sample
            repetitions[sample.item.id] += 1
        return samples


def entries_of(runs: Iterable[Run]) -> list[Entry]:
    """Return the entries of all runs, by category.

    Raises:
        InvalidInput: if the runs are of different protocols.
    """
    by_category: dict[Category, list[Run]] = {}
    for run in one_protocol(runs):
        by_category.setdefault(_category(run), []).append(run)
    return [entry for group in by_category.values() for entry in named_entries(group)]


def _category(run: Run) -> Category:
    plan = run.plan
    return plan.eval, plan.change.identity, plan.form.identity, run.dataset.pool_name


def named_entries(runs: Sequence[Run]) -> list[Entry]:
    """Return an entry for each run, in their order."""
    efforts = [format_effort(run.plan.settings.reasoning_effort) for run in runs]
    names = _names_without_effort(runs, efforts)
    with_efforts = map(" ".join, zip(names, efforts, strict=True))
    labels = unique_names(list(with_efforts) if len(set(efforts)) > 1 else names)
    return [Entry(*named) for named in zip(names, labels, runs, strict=True)]


def _names_without_effort(runs: Sequence[Run], efforts: Sequence[str]) -> list[str]:
    """Return a display name per run that is the same for all efforts of a model.

    Runs of one model with the same settings are named by seed, or by date and time.
    """
    groups = _grouped(runs)
    name_of = {
        id(run): name
        for name, group in zip(model_names([group[0] for group in groups]), groups, strict=True)
        for run in group
    }
    levels = [
        [f"{effort}: {name_of[id(run)]}{suffix}" for run, effort, suffix in named]
        for named in (
            zip(runs, efforts, suffixes, strict=True)
            for suffixes in zip(*map(_suffixes, runs), strict=True)
        )
    ]
    names = unique_names(*levels)
    return [name.removeprefix(f"{effort}: ") for name, effort in zip(names, efforts, strict=True)]


def _suffixes(run: Run) -> tuple[str, str, str, str]:
    """Return what may distinguish a run from others with its settings, shortest first."""
    second = run.started_at.replace("T", " ").removesuffix("Z")
    return "", f" seed {run.plan.settings.seed}", f" {second[:-3]}", f" {second}"


def _grouped(runs: Sequence[Run]) -> list[list[Run]]:
    """Group the runs that differ only in the effort and in the seed."""
    groups: list[list[Run]] = []
    for run in runs:
        plan = _plan_without_effort(run)
        same = (
            group
            for group in groups
            if _origin(group[0]) == _origin(run)
            and not _plan_without_effort(group[0]).differences(plan)
        )
        if group := next(same, None):
            group.append(run)
        else:
            groups.append([run])
    return groups


def _origin(run: Run) -> tuple[str, ...]:
    """Return the model and the origin of its positions."""
    data = run.dataset
    identity = json.dumps(run.identity, sort_keys=True, default=str)
    return identity, run.version, run.protocol, data.version, data.origin, data.pool


def _plan_without_effort(run: Run) -> Plan:
    settings = replace(run.plan.settings, reasoning_effort=None)
    # Without requests there was no selection.
    selected_at = run.plan.select_effort if run.dataset.asked else None
    return replace(run.plan, settings=settings, select_effort=selected_at)


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
