"""Results by group: earlier moves, opening, and how common the move is in human games.

For the positions of the shipped pools that is known (`tools/make_usual.py`), so that a page of the
usual runs needs no network.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from struct import Struct

from ..errors import UserError
from ..formatting import Number
from ..game.notation import notate_game, with_move_numbers
from ..game.position import DATA, Position, earlier_moves
from ..game.rules import Rules
from ..runs.results import Run
from ..task.types import Sample
from .bounds import interval_of
from .measures import FORBIDDEN, MEASURES, SHARES
from .stats.intervals import Interval
from .stopping import critical_factor_of

KNOWN = "usual.bin"
"""For each position of those pools the bytes of its id, and one for the per cent."""
_ENTRY = Struct("6sB")


def usualness(positions: Sequence[Position]) -> list[int]:
    """The per cent of each position's special moves, rounded down.

    Raises:
        UserError: if the network is needed and cannot be read.
    """
    known = _known()
    unknown = {each.id: each for each in positions if each.id not in known}
    found = known | dict(zip(unknown, read_usualness(unknown.values()), strict=True))
    return [found[position.id] for position in positions]


def read_usualness(positions: Iterable[Position]) -> list[int]:
    """The same from the network itself."""
    games = [(position.moves, position.special_moves) for position in positions]
    if not games:
        return []
    from ..providers.pocket import likelihoods_of  # loads the network and its runtime

    return [int(100 * likely) for likely in likelihoods_of(games)]


def packed(known: dict[str, int]) -> bytes:
    """The per cent by id as the shipped file holds them."""
    return b"".join(_ENTRY.pack(bytes.fromhex(id_), known[id_]) for id_ in sorted(known))


@cache
def _known() -> dict[str, int]:
    entries = _ENTRY.iter_unpack((DATA / KNOWN).read_bytes())
    return {id_.hex(): per_cent for id_, per_cent in entries}


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
    samples, change, critical_factor = run.answered, run.plan.change, critical_factor_of(run.plan)
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
    return _labelled(samples, bins, labels, critical_factor_of(run.plan))


def by_opening(run: Run) -> list[Group]:
    """Groups by the first moves of the game, the most frequent first and all others last."""
    samples, critical_factor = run.answered, critical_factor_of(run.plan)
    beginnings = [sample.position.moves[:OPENING_PLIES] for sample in samples]
    frequent = [moves for moves, _ in Counter(beginnings).most_common(MOST_OPENINGS)]
    grouped: defaultdict[tuple[str, ...] | None, list[Sample]] = defaultdict(list)
    for sample, moves in zip(samples, beginnings, strict=True):
        grouped[moves if moves in frequent else None].append(sample)
    groups = []
    for moves in frequent:
        name = with_move_numbers(notate_game(moves))
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
