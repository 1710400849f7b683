"""A comparison as one self-contained HTML file, in the style of the page of a run."""

from collections.abc import Sequence
from itertools import groupby

from ..evaluation.comparison import MATTERS, Comparison, differences_in_plan, labels
from ..evaluation.measures import IMPACT, MEASURES, SHARES
from ..evaluation.results import Run
from .templating import rendered


def comparison_page(runs: Sequence[Run], comparisons: Sequence[Comparison]) -> str:
    """The page: every run on its own dataset, every pair on the positions it shares, verdicts."""
    pairs = groupby(comparisons, key=lambda comparison: (comparison.first, comparison.second))
    return rendered(
        "comparison.html",
        change=runs[0].plan.change,
        notes_on=differences_in_plan(runs),
        results={label: run.results for label, run in zip(labels(runs), runs, strict=True)},
        shares=SHARES,
        impact=MEASURES[IMPACT],
        pairs=[list(measures) for _, measures in pairs],
        n_comparisons=len(comparisons),
        matters=MATTERS,
    )
