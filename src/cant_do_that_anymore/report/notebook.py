"""A run or a comparison in a notebook: one line, or HTML that suits light and dark ones alike."""

from markupsafe import Markup

from ..comparison.leaderboard import Ranking
from ..comparison.verdict import heading, verdict
from ..errors import pluralize, visible
from ..evaluation.points import in_points, range_in_points
from ..metrics.measures import MEASURES, TILES
from ..runs.results import Run
from ..task.types import CHANGED_CONDITION, OUTCOMES, STANDARD_CONDITION
from .page import first_numbers
from .templating import asset, rendered
from .words import interval, number


def run_line(run: Run) -> str:
    """Who was measured how, the first number of its page, and whether it was saved."""
    first = MEASURES[TILES[run.plan.eval][0]]
    value, around = run.results.metrics[first.name], run.results.intervals.get(first.name)
    told = [
        f"{run.version}: {run.plan.eval}",
        run.plan.change.key,
        pluralize(len(run.answered), "sample"),
        f"{first.title.lower()} {number(value)} {interval(around)}".rstrip(),
        _whether_saved(run),
    ]
    return visible(f"<Run of {', '.join(told)}>")


def run_html(run: Run) -> str:
    """Headline, tiles and outcomes."""
    counts = {name: run.results.outcomes[name] for name in (STANDARD_CONDITION, CHANGED_CONDITION)}
    outcomes = [o for o in OUTCOMES if any(count.get(o) for count in counts.values())]
    return rendered(
        "notebook_run.html",
        **first_numbers(run),
        palette=_palette(),
        counts=counts,
        outcomes=outcomes,
        saved=_whether_saved(run),
    )


def comparison_html(ranking: Ranking) -> str:
    """The verdict, and every pair in every measure."""
    return rendered(
        "notebook_comparison.html",
        palette=_palette(),
        verdict=verdict(ranking),
        heading=heading(ranking.contenders),
        pairs=ranking.pairs,
        in_points=in_points,
        range_in_points=range_in_points,
    )


def _whether_saved(run: Run) -> str:
    return f"saved in {run.folder}" if run.folder else "not saved: run.save()"


def _palette() -> Markup:
    """The colours of the pages, by name."""
    return Markup(asset("page.css").partition("{")[2].partition("}")[0])
