"""Results by group: length, opening, pool, and how common the move is in human games.

The file of move frequencies (`tools/make_move_frequencies.py`) covers the positions of the shipped
pools, so reports of runs on them do not load the network.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from struct import Struct

from ..datasets.storage import Dataset, common_positions
from ..errors import UserError
from ..formatting import Number
from ..game.notation import notate_game
from ..game.position import DATA, Position, earlier_moves
from ..game.rules import BISHOPS_AS_KNIGHTS, Rules
from ..task.types import Plan, Sample, Samples
from .bounds import group_value, interval_of
from .measures import FORBIDDEN_SHARE, MEASURES, SPECIAL_SHARE, UPTAKE
from .stats.intervals import Interval
from .types import GroupValue

# Per position of the shipped pools: the bytes of its id, and one byte for the percentage.
FREQUENCIES_FILE = "usual.bin"
_ENTRY = Struct("6sB")


def human_frequency(positions: Sequence[Position]) -> list[int]:
    """Return how common each position's special moves are in human games, in percent, rounded down.

    Raises:
        UserError: if the network is needed and cannot be loaded.
    """
    shipped = _shipped_percents()
    missing = {position.id: position for position in positions if position.id not in shipped}
    percents = shipped | dict(zip(missing, compute_human_frequency(missing.values()), strict=True))
    return [percents[position.id] for position in positions]


def compute_human_frequency(positions: Iterable[Position]) -> list[int]:
    """Compute how common special moves are in human games, in percent, by the bundled network."""
    games = [(position.moves, position.special_moves) for position in positions]
    if not games:
        return []
    from ..providers.pocket import likelihoods_of  # loads the network and its runtime

    return [int(100 * likely) for likely in likelihoods_of(games)]


def packed(percents: dict[str, int]) -> bytes:
    """Encode percentages by position id in the format of the shipped file."""
    return b"".join(_ENTRY.pack(bytes.fromhex(id_), percents[id_]) for id_ in sorted(percents))


@cache
def _shipped_percents() -> dict[str, int]:
    entries = _ENTRY.iter_unpack((DATA / FREQUENCIES_FILE).read_bytes())
    return {id_.hex(): per_cent for id_, per_cent in entries}


MOST_GROUPS = 8
MOST_OPENINGS = 12
OPENING_PLIES = 2
USUAL_BINS = 5
# Samples with at least this many earlier moves of the changed piece form one group.
MAX_EARLIER = 8
EARLIER_LABELS = (*map(str, range(MAX_EARLIER)), f"{MAX_EARLIER} or more")
# A trend by length needs this many groups with this many samples each.
ENOUGH_GROUPS, ENOUGH_IN_GROUP = 3, 20
COMMON_LABELS = ("in the common pool", "not in it")


@dataclass(frozen=True)
class Share:
    """Proportions of special moves and of any forbidden moves under one condition."""

    value: Number
    interval: Interval | None
    forbidden: Number


@dataclass(frozen=True)
class Group:
    """Samples with a common property.

    Attributes:
        label: the property.
        shares: the proportions by condition.
        uptake: the rule uptake, with the number of samples.
        opening: the moves of their common opening, if they are grouped by opening.
    """

    label: str
    shares: Mapping[str, Share]
    uptake: GroupValue
    opening: str = ""


def by_earlier_moves(samples: Samples, plan: Plan) -> tuple[str, list[Group]]:
    """Group by the number of earlier moves, ascending; return what was counted and the groups.

    All moves are counted. For games played under the changed rules, only moves of the changed piece
    count: each of them showed the model the new rule.
    """
    if plan.eval == "all_diagonal":
        label = f"earlier {plan.change.affected_moves_label}"
        return label, by_affected_moves(samples, plan.change)
    return "earlier moves", by_length(samples, plan)


def by_length(samples: Samples, plan: Plan) -> list[Group]:
    """Group by the number of moves between the rule and the question, ascending."""
    counts = [len(sample.position.moves) for sample in samples]
    bins = _even_bins(counts)
    labels = [bins[count] for count in counts]
    return _grouped(samples, labels, bins.values())


def shows_trend(groups: Sequence[Group]) -> bool:
    """Whether there are enough groups with enough samples to show a trend."""
    return sum(group.uptake.n >= ENOUGH_IN_GROUP for group in groups) >= ENOUGH_GROUPS


def by_common(samples: Samples, plan: Plan, dataset: Dataset) -> list[Group]:
    """Group by whether the common pool has the position; empty for runs on another pool."""
    if plan.change != BISHOPS_AS_KNIGHTS or plan.eval == "all_diagonal" or dataset.pool_name:
        return []
    common = {position.id for position in common_positions()}
    labels = [COMMON_LABELS[sample.position.id not in common] for sample in samples]
    groups = _grouped(samples, labels, COMMON_LABELS)
    return groups if len(groups) > 1 else []


def uptake_by_group(
    samples: Samples, plan: Plan, dataset: Dataset
) -> dict[str, dict[str, dict[str, Number]]]:
    """Return the rule uptake by length and by pool, ready for JSON."""
    groups = {"plies": by_length(samples, plan), "pool": by_common(samples, plan, dataset)}
    return {
        kind: {group.label: asdict(group.uptake) for group in members}
        for kind, members in groups.items()
        if members
    }


def by_affected_moves(samples: Samples, change: Rules) -> list[Group]:
    """Group by the number of earlier moves that the rule change affects, ascending."""
    earlier = (min(MAX_EARLIER, earlier_moves(sample.position, change)) for sample in samples)
    labels = [EARLIER_LABELS[number] for number in earlier]
    return _grouped(samples, labels, EARLIER_LABELS)


def by_human_frequency(samples: Samples, plan: Plan) -> list[Group]:
    """Group by how common the special move is in human games, according to the bundled network.

    Empty if the network cannot be loaded, because the report is complete without these groups.
    """
    try:
        percents = human_frequency([sample.position for sample in samples])
    except UserError:
        return []
    width = 100 // USUAL_BINS
    bins = [f"{n * width} to {(n + 1) * width}%" for n in range(USUAL_BINS)]
    labels = [bins[min(USUAL_BINS - 1, percent // width)] for percent in percents]
    return _grouped(samples, labels, bins)


def by_opening(samples: Samples, plan: Plan) -> list[Group]:
    """Group by the first moves of the game, the most frequent opening first and all others last."""
    beginnings = [sample.position.moves[:OPENING_PLIES] for sample in samples]
    openings = {
        moves: notate_game(moves) or "(initial position)"
        for moves, _ in Counter(beginnings).most_common(MOST_OPENINGS)
    }
    labels = [openings.get(moves, "all others") for moves in beginnings]
    order = [*openings.values(), "all others"]
    searchable = {label for moves, label in openings.items() if moves}
    return [
        replace(group, opening=group.label if group.label in searchable else "")
        for group in _grouped(samples, labels, order)
    ]


def _even_bins(counts: Sequence[int]) -> dict[int, str]:
    """Return a label per count; neighboring counts share a label until enough samples have it."""
    bins: list[list[int]] = []
    in_bin = 0
    for count, samples in sorted(Counter(counts).items()):
        if not bins or in_bin >= len(counts) / MOST_GROUPS:
            bins.append([])
            in_bin = 0
        bins[-1].append(count)
        in_bin += samples
    return {
        count: f"{bin_[0]} to {bin_[-1]}" if len(bin_) > 1 else str(count)
        for bin_ in bins
        for count in bin_
    }


def _grouped(samples: Samples, labels: Sequence[str], order: Iterable[str]) -> list[Group]:
    """Group samples by their labels, in this order of labels; groups without samples are left out.

    Args:
        labels: the label of each sample.
    """
    grouped: dict[str, list[Sample]] = {label: [] for label in order}
    for sample, label in zip(samples, labels, strict=True):
        grouped[label].append(sample)
    return [
        Group(
            label,
            {name: _share(members, name) for name in SPECIAL_SHARE},
            group_value(MEASURES[UPTAKE], members),
        )
        for label, members in grouped.items()
        if members
    ]


def _share(samples: Samples, condition: str) -> Share:
    special, forbidden = (MEASURES[names[condition]] for names in (SPECIAL_SHARE, FORBIDDEN_SHARE))
    interval = interval_of(special, samples)
    return Share(special.value(samples), interval, forbidden.value(samples))
