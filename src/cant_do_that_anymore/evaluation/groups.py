"""Samples in groups: how the share of special moves depends on the game so far."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..errors import UserError
from ..game.notation import numbered, written_game
from ..game.position import earlier_moves
from ..game.rules import Rules
from ..task.types import Number, Sample
from .measures import FORBIDDEN, MEASURES, SHARES
from .precision import stretch_of
from .results import Run
from .statistics.intervals import Interval
from .uncertainty import interval_of
from .usualness import usualness

MOST_GROUPS = 8
MOST_OPENINGS = 12
OPENING_PLIES = 2
USUAL_BINS = 5
MANY = 8
"""Earlier moves of the changed piece from here on are one group."""
EARLIER = (*map(str, range(MANY)), f"{MANY} or more")
"""The labels of those groups."""


@dataclass(frozen=True)
class Share:
    """The share of special moves under one condition, and that of any forbidden ones."""

    value: Number
    interval: Interval | None
    forbidden: Number


@dataclass(frozen=True)
class Group:
    """Samples that have something in common.

    Attributes:
        label: what that is.
        n: how many there are.
        shares: what they come to, by condition.
        opening: if they have an opening in common, its moves.
    """

    label: str
    n: int
    shares: Mapping[str, Share]
    opening: str = ""


def by_earlier_moves(run: Run) -> tuple[str, list[Group]]:
    """What was counted, and groups by it, from few to many.

    Moves are counted, or where the positions come from games under the changed rules, moves of
    the changed piece: there the habit has already been broken before the model's eyes.
    """
    samples, change, critical_factor = run.answered, run.plan.change, stretch_of(run.plan)
    if run.plan.eval == "all_diagonal":
        return f"earlier {change.affected_moves_label}", by_concerned_moves(
            samples, change, critical_factor
        )
    counts = [len(sample.position.moves) for sample in samples]
    return "earlier moves", _labelled(samples, counts, _even_bins(counts), critical_factor)


def by_concerned_moves(
    samples: Sequence[Sample], change: Rules, critical_factor: float
) -> list[Group]:
    """Groups by the earlier moves that the change concerns, from few to many."""
    counts = [min(MANY, earlier_moves(sample.position, change)) for sample in samples]
    return _labelled(samples, counts, dict(enumerate(EARLIER)), critical_factor)


def by_usualness(run: Run) -> list[Group]:
    """Groups by how usual the special move is among people, as the embedded network says.

    None at all if that cannot be read: it is not what the run is about.
    """
    samples = run.answered
    try:
        percents = usualness([sample.position for sample in samples])
    except UserError:
        return []
    wide = 100 // USUAL_BINS
    bins = [min(USUAL_BINS - 1, percent // wide) for percent in percents]
    labels = {n: f"{n * wide} to {(n + 1) * wide} %" for n in range(USUAL_BINS)}
    return _labelled(samples, bins, labels, stretch_of(run.plan))


def by_opening(run: Run) -> list[Group]:
    """Groups by the first moves of the game, the most frequent first and all others last."""
    samples, critical_factor = run.answered, stretch_of(run.plan)
    beginnings = [sample.position.moves[:OPENING_PLIES] for sample in samples]
    frequent = [moves for moves, _ in Counter(beginnings).most_common(MOST_OPENINGS)]
    grouped: defaultdict[tuple[str, ...] | None, list[Sample]] = defaultdict(list)
    for sample, moves in zip(samples, beginnings, strict=True):
        grouped[moves if moves in frequent else None].append(sample)
    groups = []
    for moves in frequent:
        name = numbered(written_game(moves))
        label = name or "(initial position)"
        groups.append(_group(label, grouped[moves], critical_factor, opening=name))
    return (
        [*groups, _group("all others", grouped[None], critical_factor)] if grouped[None] else groups
    )


def _even_bins(counts: Sequence[int]) -> dict[int, str]:
    """A label for each count, shared by neighbours until enough samples have it."""
    bins: list[list[int]] = []
    held = 0
    for count, samples in sorted(Counter(counts).items()):
        if not bins or held >= len(counts) / MOST_GROUPS:
            bins.append([])
            held = 0
        bins[-1].append(count)
        held += samples
    return {
        count: f"{bin_[0]} to {bin_[-1]}" if len(bin_) > 1 else str(count)
        for bin_ in bins
        for count in bin_
    }


def _labelled(
    samples: Sequence[Sample],
    counts: Sequence[int],
    labels: Mapping[int, str],
    critical_factor: float,
) -> list[Group]:
    """Samples grouped by the label of their count, in the order of the labels."""
    grouped: dict[str, list[Sample]] = {label: [] for label in labels.values()}
    for sample, count in zip(samples, counts, strict=True):
        grouped[labels[count]].append(sample)
    return [
        _group(label, members, critical_factor) for label, members in grouped.items() if members
    ]


def _group(
    label: str, samples: Sequence[Sample], critical_factor: float, *, opening: str = ""
) -> Group:
    shares = {condition: _share(samples, condition, critical_factor) for condition in SHARES}
    return Group(label, len(samples), shares, opening)


def _share(samples: Sequence[Sample], condition: str, critical_factor: float) -> Share:
    special, forbidden = (MEASURES[names[condition]] for names in (SHARES, FORBIDDEN))
    around = interval_of(special, samples, critical_factor)
    return Share(special.value(samples), around, forbidden.value(samples))
