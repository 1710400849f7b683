"""Columns, legends and notes of leaderboards and run lists."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from markupsafe import Markup

from ..comparison.entries import Contender, Standing, differences_in_plan
from ..comparison.leaderboard import OUTCOMES, Ranking
from ..comparison.verdict import advice, heading
from ..formatting import dollars, in_points, number
from ..metrics.diagnosis import (
    CORRECTED,
    KNOWING_EFFECT,
    KNOWLEDGE,
    OF_PLACEBO,
    PLACEBO_IMPACT,
    SPECIFIC,
    unclaimed,
)
from ..metrics.measures import FORBIDDEN, IMPACT, MEASURES, SHARES, UNUSABLE, UPTAKE
from ..providers.base import EFFORTS
from ..runs.lookup import RunSummary
from ..task.types import CHANGED_CONDITION, STANDARD_CONDITION
from .document import Document, Row, Value
from .html import interval
from .svg import Axis, axis_over, dot, scale, stack

JUNK = "(!) dropped habits may be useless or missing answers"
"""What the mark means."""
LEGEND = (
    "Highest rule uptake first. habit and kept: special moves under the standard and the "
    "changed rules; below them, any forbidden moves. [95% interval], all runs together. "
    "adapts: adaptation rate. no move: answers under the changed rules that name none"
)
THINKS = "; thinks: tokens of thoughts under the changed rules, mean"
KNOWS = (
    "J: knowledge of the rule, 0 = guessing, 1 = always right. knowing: habits kept where the rule "
    "is known, minus those kept elsewhere. reminder: change in answers that are not legal. "
    "placebo: effect of another change, which leaves the habit legal. corrected: the changed rules "
    "compared with the placebo. specific: the same, less what happens to habits that stay legal. "
    "The last two are left out where the placebo alone moved the habit."
)
BOUNDS = "; intervals allow for every reading of them."

Columns = dict[str, Callable[[Standing], str]]


def marked(standing: Standing) -> str:
    """The model's name, with a mark if its numbers are not to be trusted."""
    return standing.label + (" (!)" if standing.is_suspect else "")


def title_of(group: Sequence[Standing]) -> str:
    """Which eval and rules, and how and where the positions were found if not as usual."""
    first = group[0]
    chosen = f" from the pool {first.pool}" if first.pool else ""
    selected = f" selected {first.selection}" if first.selection else ""
    how = f" (positions{chosen}{selected})" if chosen or selected else ""
    return f"{first.eval}: {first.change.title}{how}"


def group_notes(group: Sequence[Standing]) -> list[str]:
    """What should be known about them, each note once, with all whom it is about."""
    about: dict[str, list[str]] = {}
    for standing in group:
        for note in standing.notes:
            about.setdefault(note, []).append(marked(standing))
    models = [standing.contender for standing in group if standing.contender]
    of_all = differences_in_plan(models, but=["reasoning effort"]) if models else []
    return [
        *(f"{', '.join(names)}: {note}" for note, names in about.items()),
        *(f"all: {note}" for note in of_all),
    ]


def all_notes(models: Sequence[Contender]) -> list[str]:
    """The notes of the runs, each with its model's label, and what was not the same for all."""
    return [
        *(f"{model.label}: {note}" for model in models for note in model.notes),
        *differences_in_plan(models),
    ]


def legend(found: Sequence[Standing]) -> list[str]:
    """What the columns mean."""
    thinks = THINKS if any(map(thought, found)) else ""
    return [
        f"{LEGEND}{thinks}.",
        *([KNOWS] if any(s.is_diagnosed for s in found) else []),
        *([JUNK + BOUNDS] if any(s.is_suspect for s in found) else []),
    ]


def columns(found: Sequence[Standing]) -> Columns:
    """What is told of each beside its name, by heading; of thinking only where there is any.

    Headings and cells have a second line where something belongs to the first.
    """
    return {
        "runs": lambda each: str(len(each.runs)),
        "n": lambda each: f"{each.results.metrics['n_samples']:,}",
        "habit\nany": lambda each: _special(each, STANDARD_CONDITION),
        "kept\nany": lambda each: _special(each, CHANGED_CONDITION),
        "rule uptake": lambda each: _range(UPTAKE, each),
        "impact factor": lambda each: _range(IMPACT, each),
        "adapts": lambda each: brief(each.results.metrics.get("adaptation_rate")),
        "no\nmove": lambda each: _percent(each.results.metrics.get(UNUSABLE[CHANGED_CONDITION])),
        **({"thinks": _thinks} if any(map(thought, found)) else {}),
    }


def thought(standing: Standing) -> bool:
    """Whether it thought before it replied, or was told how much to."""
    told = standing.effort is not None
    return told or any(
        standing.thinking_tokens(name) for name in (STANDARD_CONDITION, CHANGED_CONDITION)
    )


def _thinks(standing: Standing) -> str:
    tokens = standing.thinking_tokens(CHANGED_CONDITION)
    return "–" if tokens is None else f"{tokens:,.0f}"


def _special(standing: Standing, condition: str) -> str:
    """The share of special moves, and below it that of any forbidden ones."""
    metrics = standing.results.metrics
    any_forbidden = brief(metrics.get(FORBIDDEN[condition]))
    return f"{brief(metrics[SHARES[condition]])}\n{any_forbidden}"


def _briefly(name: str, standing: Standing) -> str:
    """The value alone."""
    return brief(standing.results.metrics.get(name))


def _range(name: str, standing: Standing) -> str:
    """The value, and below it its interval."""
    interval = standing.results.intervals.get(name)
    around = f"\n[{brief(interval.low)}, {brief(interval.high)}]" if interval else ""
    return brief(standing.results.metrics.get(name)) + around


def brief(value: float | None) -> str:
    """Two places: a line has no room for more, and few samples do not tell more.

    >>> brief(-0.001), brief(-0.984), brief(None)
    ('0.00', '-0.98', '–')
    """
    return "–" if value is None else f"{round(value, 2) + 0:.2f}"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.0f} %"


DIAGNOSED = {
    "J": KNOWLEDGE,
    "knowing": KNOWING_EFFECT.name,
    "reminder": "reminder_effect",
    "placebo": PLACEBO_IMPACT,
    "corrected": CORRECTED.name,
    "specific": SPECIFIC.name,
}
"""Who knows the rule, and what the rule itself takes away: measures by heading."""
WITH_INTERVAL = ("J", "corrected", "specific")
"""Those of them that are told with their intervals."""


def _diagnosed(heading: str, standing: Standing) -> str:
    name = DIAGNOSED[heading]
    if name in unclaimed(standing.results):
        return "–"
    return (_range if heading in WITH_INTERVAL else _briefly)(name, standing)


DIAGNOSIS: Columns = {heading: partial(_diagnosed, heading) for heading in DIAGNOSED}
WHY = "why the habit stays"
"""What they tell."""

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
            notes=group_notes(ranking.standings),
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
