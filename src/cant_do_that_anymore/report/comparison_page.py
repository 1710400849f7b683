"""A comparison as one self-contained HTML file, in the style of the page of a run."""

from collections.abc import Sequence

from ..evaluation.comparison import MATTERS, Comparison, models_in
from ..evaluation.measures import FORBIDDEN, GAIN, IMPACT, MEASURES, SHARES, UNUSABLE
from ..evaluation.points import in_points, range_in_points
from ..evaluation.verdicts import advice, heading, verdict
from .comparison_words import all_notes, better, by_pair, measures_in, sentences, value
from .templating import rendered

SCALES = (0.1, 0.2, 0.5, 1.0, 2.0)
"""How far the drawings of differences may reach to either side."""


def comparison_page(comparisons: Sequence[Comparison]) -> str:
    """The page: verdict, every pair, every model on its own, and what to keep in mind."""
    models = models_in(comparisons)
    return rendered(
        "comparison.html",
        change=models[0].plan.change,
        verdict=verdict(comparisons),
        heading=heading(models),
        advice=advice(models),
        models=models,
        pairs=by_pair(comparisons),
        measures=measures_in(comparisons),
        sentences=sentences(comparisons),
        notes_on=all_notes(models),
        n_comparisons=len(comparisons),
        matters=MATTERS,
        reach=_reach(comparisons),
        headline=[MEASURES[IMPACT], MEASURES[GAIN]],
        shares=SHARES,
        forbidden=FORBIDDEN,
        unusable=UNUSABLE,
        better=better,
        value=value,
        in_points=in_points,
        range_in_points=range_in_points,
    )


def _reach(comparisons: Sequence[Comparison]) -> float:
    """The smallest scale that holds every interval."""
    ends = [
        abs(end) for c in comparisons if c.interval for end in (c.interval.low, c.interval.high)
    ]
    furthest = max(ends, default=0.0)
    return next((scale for scale in SCALES if furthest <= scale), SCALES[-1])
