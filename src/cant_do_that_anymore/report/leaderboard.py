"""A ranking as the pages show it: the rows of the document, and the axes that all of them share."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ..comparison.leaderboard import OUTCOMES, Ranking
from ..comparison.verdict import advice, heading
from ..evaluation.points import in_points
from ..metrics.diagnosis import OF_PLACEBO
from ..metrics.measures import IMPACT, MEASURES, UPTAKE
from ..providers.base import EFFORTS
from .axes import Axis, axis_over, dot, scale, stack
from .document import Document, Row, Value
from .standing_words import (
    DIAGNOSED,
    WHY,
    WITH_INTERVAL,
    brief,
    legend,
    notes_on,
    title_of,
)

VERDICTS = {
    "different": "significant",
    "equivalent": "equivalent",
    "inconclusive": "inconclusive",
}
"""What the verdict on a pair is called in a table."""

Numbered = tuple[int, Row]
"""A row, and its place in the document."""


@dataclass(frozen=True)
class Board:
    """Those that are ranked together.

    Attributes:
        title: which eval and rules.
        number: the place of its verdict in the document.
        labels: those that are compared, the best first.
        rows: one for each model at one effort.
        pairs: one for each pair, which is its comparisons in all measures.
        compared_on: what positions the pairs are compared on, and ``advice`` what is fairer.
        notes: what should be known about them.
        pictures: drawn of them.
    """

    title: str
    number: int
    labels: Sequence[str]
    rows: Sequence[Numbered]
    pairs: Sequence[Sequence[Numbered]]
    compared_on: str
    advice: str
    notes: Sequence[str]
    pictures: Sequence[Markup] = ()

    @property
    def leads(self) -> Mapping[tuple[str, str], Numbered]:
        """The rule uptake of every pair, by the labels of the higher and the lower."""
        return {
            (str(row["model"]), str(row["other"])): (number, row)
            for pair in self.pairs
            for number, row in pair
            if row["measure"] == UPTAKE
        }


def boards(
    ranked: Sequence[Ranking],
    told: Document,
    pictures: Sequence[Sequence[Markup]] = (),
) -> list[Board]:
    """Every ranking, with the pictures of each if there are any."""
    rows, pairs = enumerate(told["results"]), enumerate(told["pairs"])
    return [
        Board(
            title=title_of(ranking.standings),
            number=number,
            labels=[contender.label for contender in ranking.contenders],
            rows=[next(rows) for _ in ranking.standings],
            pairs=[[next(pairs) for _ in pair] for pair in ranking.pairs],
            compared_on=heading(ranking.contenders) if ranking.pairs else "",
            advice=advice(ranking.contenders) if ranking.pairs else "",
            notes=notes_on(ranking.standings),
            pictures=pictures[number] if pictures else (),
        )
        for number, ranking in enumerate(ranked)
    ]


def shared_parts(ranked: Sequence[Ranking], told: Document) -> dict[str, object]:
    """What the templates of both pages need to show boards."""
    results, runs = told["results"], told["runs"]
    standings = [standing for ranking in ranked for standing in ranking.standings]
    return {
        "told": told,
        "axes": {name: _axis(results, name) for name in (UPTAKE, IMPACT)},
        "difference_axis": _axis_of_differences(told["pairs"]),
        "measures": MEASURES,
        "impact": IMPACT,
        "uptake": UPTAKE,
        "outcomes": OUTCOMES,
        "counts_in": lambda row: {outcome: row[f"changed_{outcome}"] for outcome in OUTCOMES},
        "links_of": lambda row: [run["page"] for run in runs if run["page"] and _is_of(row, run)],
        "efforts": (*EFFORTS, None),
        "with_effort": any(row["reasoning_effort"] for row in results),
        "with_thoughts": any(row["changed_thinking_tokens"] for row in results),
        "diagnosed": DIAGNOSED,
        "with_interval": WITH_INTERVAL,
        "of_placebo": OF_PLACEBO,
        "why": WHY,
        "verdicts": VERDICTS,
        "legend": legend(standings)[1:],
        "dates": " to ".join(_ends(str(run["started_at"])[:10] for run in runs)) or "unknown",
        "in_common": {title: _who(runs, name) for title, name in _IN_COMMON.items() if runs},
        "brief": brief,
        "in_points": in_points,
        "dot": dot,
        "scale": scale,
        "stack": stack,
    }


_IN_COMMON = {"Settings": "settings", "Positions": "dataset", "Versions": "versions"}
"""What is told of how runs were made; where it is not the same for all, with who had what."""


def _is_of(row: Row, run: Row) -> bool:
    return all(run[name] == row[name] for name in ("label", "eval", "rules", "selection", "pool"))


def _ends(days: Iterable[str]) -> list[str]:
    found = sorted(set(days))
    return [*found[:1], *found[1:][-1:]]


def _who(runs: Sequence[Row], name: str) -> dict[str, list[str]]:
    who: dict[str, list[str]] = {}
    for run in runs:
        names = who.setdefault(str(run[name]), [])
        if run["label"] not in names:
            names.append(str(run["label"]))
    return who


def _axis(rows: Sequence[Row], name: str) -> Axis:
    return _axis_over(row[each] for row in rows for each in (name, f"{name}_low", f"{name}_high"))


def _axis_of_differences(pairs: Sequence[Row]) -> Axis:
    names = ("difference", "difference_low", "difference_high")
    values = (pair[name] for pair in pairs if pair["measure"] == UPTAKE for name in names)
    return _axis_over(values, factor=100, unit="points")


def _axis_over(values: Iterable[Value], factor: float = 1, unit: str = "") -> Axis:
    known = (value for value in values if isinstance(value, int | float))
    return axis_over(known, factor, unit)
