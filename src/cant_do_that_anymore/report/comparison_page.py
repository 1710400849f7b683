"""A comparison as one self-contained HTML file, in the style of the page of a run."""

from collections.abc import Sequence
from importlib.resources import files
from itertools import groupby

from ..evaluation.run import Run
from .charts import Mark, intervals
from .compare import MATTERS, MEASURES, Comparison, differences_in_plan, labels
from .markup import Markup, join, tag
from .words import interval, number, p_value, percentage

_ASSETS = files("cant_do_that_anymore") / "report" / "assets"
_BEFORE, _AFTER = "predicted_move_proportion", "predicted_move_in_variant_proportion"
_TITLE = "Models side by side"


def comparison_page(runs: Sequence[Run], comparisons: Sequence[Comparison]) -> str:
    """The page: every run on its own dataset, every pair on the positions it shares, verdicts."""
    eyebrow = tag(
        "p", "Can’t do that anymore ", tag("span", runs[0].plan.rules.title), class_="eyebrow"
    )
    header = tag("header", eyebrow, tag("h1", _TITLE), _notes(runs))
    body = join(header, tag("main", _own(runs), _shared(comparisons)))
    style = (_ASSETS / "page.css").read_text(encoding="utf-8")
    head = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{_TITLE}</title>\n<style>{style}</style>\n</head>\n"
    )
    return f"{head}{tag('body', body)}\n</html>\n"


def _notes(runs: Sequence[Run]) -> Markup:
    notes = differences_in_plan(runs)
    if not notes:
        return Markup()
    items = (tag("li", note) for note in notes)
    return tag("aside", tag("h2", "Notes"), tag("ul", *items), class_="notes")


def _own(runs: Sequence[Run]) -> Markup:
    return tag(
        "section",
        tag("h2", "Each on its own dataset"),
        tag(
            "p",
            "The share of special moves under the ",
            tag("span", "standard", class_="key standard"),
            " and under the ",
            tag("span", "changed", class_="key variant"),
            " rules. Every model has positions of its own here, those where it has the habit, so "
            "these shares say how strong each habit is and not who plays better.",
        ),
        _table(
            ("model", "samples", "standard", "changed", ""),
            [_own_row(label, run) for label, run in zip(labels(runs), runs, strict=True)],
            "groups",
        ),
        tag("h3", "How much of the habit the change takes away"),
        _table(
            ("model", "impact factor", "95 % interval", "perfect is −1"),
            [_impact_row(label, run) for label, run in zip(labels(runs), runs, strict=True)],
            "metrics",
        ),
    )


def _own_row(label: str, run: Run) -> Markup:
    metrics, bounds = run.results.metrics, run.results.intervals
    marks = [
        Mark(metrics[_BEFORE], bounds.get(_BEFORE), "standard"),
        Mark(metrics[_AFTER], bounds.get(_AFTER), "variant"),
    ]
    shares = (percentage(metrics[_BEFORE]), percentage(metrics[_AFTER]))
    return _row(label, number(metrics["n_samples"]), *shares, drawn=intervals(marks, 0.0, 1.0))


def _impact_row(label: str, run: Run) -> Markup:
    name = "variant_impact_factor"
    value, bounds = run.results.metrics[name], run.results.intervals.get(name)
    drawn = intervals([Mark(value, bounds, "plain")], -1.0, 1.0)
    return _row(label, number(value), interval(bounds), drawn=drawn)


def _shared(comparisons: Sequence[Comparison]) -> Markup:
    pairs = groupby(comparisons, key=lambda c: (c.first, c.second, c.n_samples, c.n_games))
    tables = [_pair(*pair, list(measures)) for pair, measures in pairs]
    return tag(
        "section",
        tag("h2", "On the positions they share"),
        tag(
            "p",
            "Both were asked the same questions. The difference is the second model’s share minus "
            "the first’s, sample by sample; its 95 % interval is found by resampling whole games. "
            f"p is corrected for {len(comparisons)} comparisons by Holm’s method; the drawings "
            "reach from −0.5 to 0.5. Differences below "
            f"{100 * MATTERS:.0f} points are not looked for.",
        ),
        *tables,
    )


def _pair(
    first: str, second: str, n_samples: int, n_games: int, comparisons: Sequence[Comparison]
) -> Markup:
    counted = f"{n_samples:,} shared samples of {n_games:,} games"
    headings = ("share of", "first", "second", "difference", "95 % interval", "p", "")
    rows = [
        _row(
            MEASURES[comparison.measure],
            *(percentage(share) for share in comparison.shares or (None, None)),
            number(comparison.difference),
            interval(comparison.interval),
            p_value(comparison.corrected_p if comparison.shares else None),
            drawn=intervals([Mark(comparison.difference, comparison.interval, "plain")], -0.5, 0.5),
        )
        for comparison in comparisons
    ]
    return join(
        tag("h3", f"{first} (first) and {second} (second): {counted}"),
        tag("ul", *(tag("li", comparison.sentence) for comparison in comparisons)),
        tag("div", _table(headings, rows, "pairs"), style="overflow-x: auto"),
    )


def _table(headings: Sequence[str], rows: Sequence[Markup], style: str) -> Markup:
    label, *numbers, drawn = headings
    head = tag(
        "tr",
        tag("th", label, scope="col"),
        *(tag("th", heading, scope="col", class_="number") for heading in numbers),
        tag("th", drawn, scope="col"),
    )
    return tag("table", tag("thead", head), tag("tbody", *rows), class_=style)


def _row(label: str, *numbers: str, drawn: Markup) -> Markup:
    cells = (tag("td", cell, class_="number") for cell in numbers)
    return tag("tr", tag("td", label), *cells, tag("td", drawn))
