"""Why the habit stays, as the page and the terminal show it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from markupsafe import Markup

from ..game.rules import placebo_of
from ..metrics.diagnosis import (
    CORRECTED,
    KNOWING,
    KNOWING_EFFECT,
    KNOWLEDGE,
    PLACEBO_IMPACT,
    SPECIFIC,
    Contrast,
    Knowing,
    knowing_of,
    unclaimed,
)
from ..metrics.measures import IMPACT, MEASURES
from ..metrics.types import Measure
from ..runs.results import Run
from ..task.conditions import PLACEBO
from ..task.types import CHANGED_CONDITION, STANDARD_CONDITION
from .markup import tag

CONTROL, NO_HABIT, NO_ANSWER = "control", "no habit", "no answer"
"""Groups of samples beside the six."""


@dataclass(frozen=True)
class Part:
    """One of the six groups."""

    group: Knowing
    does: str
    count: int
    share: float
    style: str

    @property
    def link(self) -> str:
        """To its samples."""
        return "#" + urlencode({"knowing": self.group})


@dataclass(frozen=True)
class Row:
    """Those that know the rule, that do not, or that cannot be read: who drops, and who keeps."""

    title: str
    count: int
    share: float
    parts: tuple[Part, Part]

    @property
    def bar(self) -> Markup:
        """Both parts beside each other, as wide as the row's share of all."""
        bands, x = [], 0.0
        for part in self.parts:
            wide = 100 * self.share * part.share
            words = f"{part.count:,} {part.group}"
            band = tag("rect", x=f"{x:.3f}%", width=f"{wide:.3f}%", y=0, height="100%")
            link = {"href": part.link, "class_": part.style, "aria_label": words}
            bands.append(tag("a", tag("title", words), band, **link))
            x += wide
        return tag("svg", *bands, width="100%", height=26)


@dataclass(frozen=True)
class Why:
    """What a diagnosis found.

    Attributes:
        habits: how many samples had the habit.
        rows: who of them knows the rule, who does not, and of whom no answer tells.
        knowing: the measures of knowledge, to stand on one axis, and so the impact ``factors``.
        placebo: what the placebo states.
        unclaimed: the factors that do not show the effect of the rule, since the placebo alone
            moved the habit.
        controls: the share of habits played at control positions, by condition.
    """

    habits: int
    rows: tuple[Row, ...]
    knowing: tuple[Measure | Contrast, ...]
    factors: tuple[Measure | Contrast, ...]
    placebo: str
    unclaimed: tuple[str, ...]
    controls: dict[str, float]


def why(run: Run) -> Why | None:
    """What the diagnosis found; None where none was made."""
    if KNOWLEDGE not in run.results.metrics:
        return None
    counts = Counter(group for sample in run.answered if (group := knowing_of(sample)))
    rows = (
        _row("knows the rule", KNOWING[:2], counts),
        _row("does not know the rule", KNOWING[2:4], counts),
        _row("yes/no answers unreadable", KNOWING[4:], counts),
    )
    return Why(
        habits=sum(counts.values()),
        rows=tuple(row for row in rows if row.count or row != rows[2]),
        knowing=(MEASURES[KNOWLEDGE], KNOWING_EFFECT),
        factors=(MEASURES[IMPACT], MEASURES[PLACEBO_IMPACT], CORRECTED, SPECIFIC),
        placebo=placebo_of(run.plan.change).statement,
        unclaimed=unclaimed(run.results),
        controls=_of_controls(run),
    )


def _row(title: str, groups: Sequence[Knowing], counts: Counter[Knowing]) -> Row:
    count = sum(counts[group] for group in groups)
    drops, keeps = (
        Part(group, does, counts[group], counts[group] / max(1, count), f"is-{style}")
        for group, does, style in zip(
            groups, ("drops the habit", "keeps it"), ("adapted", "special"), strict=True
        )
    )
    return Row(title, count, count / max(1, sum(counts.values())), (drops, keeps))


def _of_controls(run: Run) -> dict[str, float]:
    answered = [control for control in run.controls if control.answered]
    return {
        name: sum(control.plays_special(name) for control in answered) / len(answered)
        for name in (STANDARD_CONDITION, PLACEBO, CHANGED_CONDITION)
        if answered
    }
