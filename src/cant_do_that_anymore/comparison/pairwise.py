"""Compare models pair by pair, on the items that they share.

Numbers on two datasets cannot be subtracted from each other, because every model's dataset contains
the items that match its own habit. On shared items they can: both models got the same requests, and
the difference in rule uptake is estimated sample by sample.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from ..errors import InvalidInput
from ..metrics.estimates import REACH, Estimate, difference
from ..metrics.measures import UPTAKE
from ..runs.run import Run, command_of
from .entries import Entry

Verdict = Literal["different", "equivalent", "inconclusive"]


@dataclass(frozen=True)
class Pair:
    """Two models on the items that they share.

    Attributes:
        first: the model that ranks higher, and ``second`` the other.
        shared: the number of items that both answered.
        difference: the rule uptake of the first minus that of the second; None if one of them has
            none there. The intervals of all pairs of a ranking contain their true values together,
            with 95% probability.
    """

    first: Entry
    second: Entry
    shared: int
    difference: Estimate | None

    @property
    def verdict(self) -> Verdict:
        """Different if the interval excludes 0, equivalent if it is within 5 points of 0."""
        if not self.difference or self.difference.low is None or self.difference.high is None:
            return "inconclusive"
        if self.difference.sign:
            return "different"
        is_close = self.difference.low >= -REACH and self.difference.high <= REACH
        return "equivalent" if is_close else "inconclusive"

    @property
    def sign(self) -> int:
        """1 if the first follows the rule more often, -1 if the second does, 0 if neither."""
        return self.difference.sign if self.difference else 0

    @property
    def lead(self) -> str:
        """Whose lead over whom it is."""
        return f"{self.first.label} over {self.second.label}"

    @property
    def result(self) -> str:
        """The verdict, or why there is none."""
        if not self.shared:
            return f"no shared {self.first.run.words.item}"
        return self.verdict if self.difference else "one shows no habit"

    @property
    def points(self) -> str:
        """The difference with its interval, in points."""
        return self.difference.as_points if self.difference else "–"


def pairs_of(entries: Sequence[Entry]) -> list[Pair]:
    """Compare every pair of models, given the best first."""
    combined = list(combinations(entries, 2))
    return [_pair(first, second, len(combined)) for first, second in combined]


def _pair(first: Entry, second: Entry, comparisons: int) -> Pair:
    ours, theirs = (
        {(sample.item.id, sample.draw): sample for sample in entry.run.samples}
        for entry in (first, second)
    )
    shared = [key for key in ours if key in theirs]
    samples, others = [ours[key] for key in shared], [theirs[key] for key in shared]
    answered = sum(a.answered and b.answered for a, b in zip(samples, others, strict=True))
    estimate = difference(UPTAKE, UPTAKE, samples, others, comparisons) if answered else None
    return Pair(first, second, answered, estimate)


def check_comparable(runs: Sequence[Run]) -> None:
    """Reject runs that cannot be compared.

    Raises:
        InvalidInput: if their rules, evals or pools differ.
    """
    for what, kinds in (
        ("under different rules", [run.plan.change.identity for run in runs]),
        # all_small draws from the same items as all
        ("of different evals", [run.plan.eval.removesuffix("_small") for run in runs]),
        ("on items from different pools", [run.dataset.chosen_from for run in runs]),
    ):
        if len({*kinds} - {""}) > 1:
            other = next(run for run, kind in zip(runs, kinds, strict=True) if kind != kinds[0])
            server = other.options.get("base_url", "")
            command = command_of(runs[0], other.options.get("model", other.model), server)
            make_one = f", or make one: {command}" if len(runs) == 2 else ""
            raise InvalidInput(
                f"runs {what} cannot be compared: {', '.join(sorted({*kinds} - {''}))}; name runs "
                f"of one kind (see `cdta runs`){make_one}"
            )
