"""Entries of a leaderboard: one run each, under a unique name."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..errors import InvalidInput
from ..habits.base import Change
from ..habits.words import Words
from ..metrics.compute import Results
from ..runs.run import Run
from ..task.types import Eval, Plan, Sample
from .naming import format_effort, run_names

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
        return category_of(self.run)

    @property
    def plan(self) -> Plan:
        """The plan of its run."""
        return self.run.plan

    @property
    def results(self) -> Results:
        """The results of its run."""
        return self.run.results

    @property
    def change(self) -> Change:
        """The changed rules."""
        return self.plan.change

    @property
    def other_form(self) -> str:
        """How its items are shown; "" for the default form."""
        return "" if self.plan.has_default_form else self.plan.form.identity

    @property
    def pool(self) -> str:
        """The pool of its items, if not the default pool of the rules."""
        return self.run.dataset.pool_name

    @property
    def words(self) -> Words:
        """How screens speak of its habit."""
        return self.run.words

    def by_item(self) -> dict[tuple[str, int], Sample]:
        """Return the samples by item and repetition number."""
        repetitions: Counter[str] = Counter()
        samples = {}
        for sample in self.run.samples:
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
        by_category.setdefault(category_of(run), []).append(run)
    return [entry for group in by_category.values() for entry in named_entries(group)]


def category_of(run: Run) -> Category:
    """Return the category of a run's numbers."""
    plan = run.plan
    return plan.eval, plan.change.identity, plan.form.identity, run.dataset.pool_name


def named_entries(runs: Sequence[Run]) -> list[Entry]:
    """Return an entry for each run, in their order."""
    efforts = [format_effort(run.plan.settings.reasoning_effort) for run in runs]
    names = run_names(runs, efforts)
    shows_effort = len(set(efforts)) > 1
    return [
        Entry(name, f"{name} {effort}" if shows_effort else name, run)
        for name, effort, run in zip(names, efforts, runs, strict=True)
    ]


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
