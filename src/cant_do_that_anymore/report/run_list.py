"""The columns of a list of runs."""

from collections.abc import Callable
from dataclasses import dataclass

from ..runs.lookup import RunSummary
from .words import dollars, interval, number


@dataclass(frozen=True)
class Column:
    """What a column shows of a run; of a number its unit, for where there is no heading."""

    shown: Callable[[RunSummary], str]
    unit: str = ""

    @property
    def is_number(self) -> bool:
        """Whether it goes to the right."""
        return bool(self.unit)

    def in_words(self, run: RunSummary) -> str:
        """As text that needs no heading."""
        return self.unit.format(self.shown(run)) or self.shown(run)


RUN_COLUMNS = {
    "date": Column(lambda run: run.started_at[:10]),
    "model": Column(lambda run: f"{run.model} ({run.effort})" if run.effort else run.model),
    "rules": Column(lambda run: run.rules),
    "eval": Column(lambda run: run.eval),
    "n": Column(lambda run: f"{run.samples:,}", unit="n {}"),
    "impact factor": Column(lambda run: f"{number(run.impact)} {interval(run.interval)}".strip()),
    "notes": Column(lambda run: str(len(run.notes)), unit="notes {}"),
    "cost": Column(lambda run: "–" if run.cost is None else dollars(run.cost), unit="cost {}"),
}
