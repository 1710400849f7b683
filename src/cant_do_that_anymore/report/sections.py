"""The parts of the page that show results: tiles, notes and tables."""

import json
from collections.abc import Iterable, Sequence
from urllib.parse import urlencode

from ..evaluation.judging import OUTCOMES, Outcome
from ..evaluation.run import Run
from .charts import Mark, intervals
from .groups import Group, by_earlier_moves, by_opening
from .markup import Markup, join, tag
from .words import interval, number, percentage

_IMPACT, _DELTA = "variant_impact_factor", "delta"
_BEFORE, _AFTER = "predicted_move_proportion", "predicted_move_in_variant_proportion"
_ADAPTED, _LEGAL = "adaptation_rate", "variant_legal_proportion"

_NAMES = {
    _IMPACT: ("Impact factor", "the difference as a share of the habit; perfect is −1"),
    _DELTA: ("Difference", "special moves under the changed rules minus the standard ones"),
    _BEFORE: ("Special move, standard rules", "the habit, asked for again"),
    _AFTER: ("Special move, changed rules", "the habit although it is illegal now; perfect is 0"),
    _ADAPTED: ("Adaptation rate", "a legal move instead, where there was a habit; perfect is 1"),
    _LEGAL: ("Legal answers, changed rules", "of all samples; perfect is 1"),
    "mcnemar_p": ("McNemar’s p", "how likely chance alone makes such a difference"),
    "avg_num_previous_moves": ("Earlier moves", "mean over the samples"),
    "std_num_previous_moves": ("Earlier moves, spread", "standard deviation"),
}
_TABLE: tuple[tuple[str, float, tuple[str, ...]], ...] = (
    ("Change", -1.0, (_IMPACT, _DELTA)),
    ("Shares", 0.0, (_BEFORE, _AFTER, _ADAPTED, _LEGAL)),
)
_BARE = ("mcnemar_p", "avg_num_previous_moves", "std_num_previous_moves")
_STYLES = {_BEFORE: "standard", _AFTER: "variant"}
_TILES = {
    "all_diagonal": (_AFTER, _BEFORE, _LEGAL, _IMPACT),
    "all": (_IMPACT, _BEFORE, _AFTER, _ADAPTED),
}

_MEANINGS: dict[Outcome, str] = {
    "special": "the special move: the habit",
    "forbidden": "another move that only the change made illegal",
    "adapted": "a move that only the changed rules allow",
    "legal": "any other legal move",
    "illegal": "any other move",
    "unreadable": "no move, or more than one, could be read",
    "truncated": "cut off before a move was named",
    "refused": "the model declined to answer",
    "error": "no answer came; left out of all metrics",
}


def tiles(run: Run) -> Markup:
    """The numbers that matter most, large, with their intervals."""
    names = _TILES.get(run.plan.eval, _TILES["all"])
    return join(*(_tile(run, name) for name in names))


def _tile(run: Run, name: str) -> Markup:
    value, bounds = run.results.metrics[name], run.results.intervals.get(name)
    signed = name == _IMPACT
    if signed or value is None:
        shown, around = number(value), f"{bounds.low:.3f} to {bounds.high:.3f}" if bounds else ""
    else:
        shown = percentage(value)
        around = f"{percentage(bounds.low)} to {percentage(bounds.high)}" if bounds else ""
    mark = Mark(value, bounds, _STYLES.get(name, "plain"))
    return tag(
        "div",
        tag("dt", _NAMES[name][0]),
        tag("dd", _metric(run, name, _minus(shown)), class_="value"),
        tag("dd", "95 % interval", tag("br"), _minus(around) or "none", class_="around"),
        tag("dd", intervals([mark], -1.0 if signed else 0.0, 1.0)),
        class_="tile",
    )


def notes(run: Run) -> Markup:
    """What a reader of the numbers should know."""
    if not run.notes:
        return Markup()
    items = (tag("li", note) for note in run.notes)
    return tag("aside", tag("h2", "Notes"), tag("ul", *items), class_="notes")


def outcomes(run: Run) -> Markup:
    """How many answers were what, and what the words mean."""
    standard, variant = run.results.outcomes["standard"], run.results.outcomes["variant"]
    rows = (
        _row(
            join(tag("span", class_=f"swatch is-{outcome}"), outcome),
            _MEANINGS[outcome],
            *(
                tag(
                    "data",
                    number(counts[outcome]),
                    value=str(counts[outcome]),
                    data_outcome=f"{rule_set}.{outcome}",
                )
                for rule_set, counts in (("standard", standard), ("variant", variant))
            ),
        )
        for outcome in OUTCOMES
        if standard[outcome] or variant[outcome]
    )
    return _table(("outcome", "meaning", "standard", "changed"), rows, "outcomes")


def metrics(run: Run) -> Markup:
    """The original's six metrics and the strict ones, with their intervals drawn."""
    bodies = []
    for heading, low, names in _TABLE:
        axis = tag("span", *(tag("i", _minus(f"{end:g}")) for end in (low, (low + 1) / 2, 1)))
        head = tag(
            "tr",
            tag("th", heading, scope="rowgroup", colspan="3"),
            tag("td", axis, class_="axis-labels"),
        )
        bodies.append(tag("tbody", head, *(_metric_row(run, name, low) for name in names)))
    head = tag("tr", tag("th", "Also", scope="rowgroup", colspan="4"))
    bodies.append(tag("tbody", head, *(_metric_row(run, name, None) for name in _BARE)))
    headings = ("metric", "value", "95 % interval", "")
    head = tag("tr", *(tag("th", heading, scope="col") for heading in headings))
    return tag("table", tag("thead", head), *bodies, class_="metrics")


def _metric_row(run: Run, name: str, low: float | None) -> Markup:
    title, meaning = _NAMES[name]
    value, bounds = run.results.metrics[name], run.results.intervals.get(name)
    tiny = name == "mcnemar_p" and value is not None and value < 0.001
    shown = "< 0.001" if tiny else _minus(number(value))
    mark = Mark(value, bounds, _STYLES.get(name, "plain"))
    return tag(
        "tr",
        tag("th", title, " ", tag("code", name), tag("small", meaning), scope="row"),
        tag("td", _metric(run, name, shown), class_="number"),
        tag("td", _minus(interval(bounds)), class_="number"),
        tag("td", intervals([mark], low, 1.0) if low is not None else "", class_="drawn"),
    )


def all_metrics(run: Run) -> Markup:
    """Every metric by its name in ``run.json``."""
    rows = (
        _row(tag("code", name), _metric(run, name), interval(run.results.intervals.get(name)))
        for name in run.results.metrics
    )
    return _table(("metric", "value", "95 % interval"), rows, "all")


def earlier_moves(run: Run) -> tuple[str, Markup]:
    """What was counted, and the share of special moves by it."""
    counted, groups = by_earlier_moves(run)
    return counted, _groups_table(counted, groups)


def openings(run: Run) -> Markup:
    """The share of special moves by the first moves of the game."""
    return _groups_table("opening", by_opening(run))


def _groups_table(heading: str, groups: Sequence[Group]) -> Markup:
    rows = (
        _row(
            _opening_link(group) if group.opening else group.label,
            f"{group.n:,}",
            percentage(group.standard.value),
            percentage(group.variant.value),
            intervals(
                [
                    Mark(group.standard.value, group.standard.interval, "standard"),
                    Mark(group.variant.value, group.variant.interval, "variant"),
                ],
                0.0,
                1.0,
            ),
        )
        for group in groups
    )
    axis = tag("span", *(tag("i", end) for end in ("0 %", "50 %", "100 %")))
    return _table((heading, "samples", "standard", "changed", axis), rows, "groups")


def _opening_link(group: Group) -> Markup:
    return tag("a", group.label, href="#" + urlencode({"move": group.opening}))


def _metric(run: Run, name: str, shown: str | None = None) -> Markup:
    """A metric as an element whose value is the number in ``run.json``."""
    value = run.results.metrics[name]
    return tag("data", shown or number(value), value=json.dumps(value), data_metric=name)


def _table(headings: Iterable[str], rows: Iterable[Markup], style: str) -> Markup:
    head = tag("thead", tag("tr", *(tag("th", heading, scope="col") for heading in headings)))
    return tag("table", head, tag("tbody", *rows), class_=style)


def _row(heading: str, *cells: str) -> Markup:
    return tag("tr", tag("th", heading, scope="row"), *(tag("td", cell) for cell in cells))


def _minus(shown: str) -> str:
    """With a typographer's minus sign."""
    return shown.replace("-", "−")
