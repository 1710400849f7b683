"""Entries of a leaderboard: one run each, under a unique name."""

from collections.abc import Sequence
from dataclasses import dataclass

from ..formatting import last_part
from ..habits.base import Change
from ..metrics.compute import Results
from ..runs.run import Run
from ..task.types import Eval
from .naming import facts_of, option_text, told_apart

# Eval, rules, form and pool: only numbers of one category can be ranked together.
Category = tuple[Eval, str, str, str]


@dataclass(frozen=True)
class Entry:
    """A run in a leaderboard.

    Attributes:
        label: the unique display name, with the effort if that differs between runs.
        run: the run.
    """

    label: str
    run: Run

    @property
    def model(self) -> str:
        """The display name without the effort, the same for all efforts of a model."""
        effort = option_text("reasoning_effort", self.run.plan.settings.reasoning_effort)
        return self.label.replace(f" {effort}", "") if effort else self.label

    @property
    def results(self) -> Results:
        """The results of its run."""
        return self.run.results

    @property
    def change(self) -> Change:
        """The changed rules."""
        return self.run.plan.change

    @property
    def details(self) -> list[str]:
        """The form and the pool of its items, if they are not the default."""
        plan, pool = self.run.plan, self.run.dataset.pool_name
        form = "" if plan.has_default_form else f"form {plan.form.name}"
        return [text for text in (form, pool and f"pool {pool}") if text]

    @property
    def title(self) -> str:
        """The category of its numbers as a heading."""
        title, eval_ = self.change.title, self.run.plan.eval
        if title.split()[0].isalpha():  # not code, such as max()
            title = title[0].upper() + title[1:]
        details = [*([] if eval_ == "all" else [eval_]), *self.details]
        return f"{title} ({', '.join(details)})" if details else title


def category_of(run: Run) -> Category:
    """Return the category of a run's numbers, which can only be ranked within it."""
    plan = run.plan
    return plan.eval, plan.change.identity, plan.form.name, run.dataset.pool_name


def named_entries(runs: Sequence[Run]) -> list[Entry]:
    """Return an entry for each run, in their order, named by its model and what differs."""
    names = [last_part(run.model) for run in runs]
    labels = told_apart(names, zip(*map(facts_of, runs), strict=True))
    return [Entry(label, run) for label, run in zip(labels, runs, strict=True)]
