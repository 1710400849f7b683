"""A comparison as tables a person can read in a terminal."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..comparison.leaderboard import Ranking
from ..comparison.pairwise import Comparison, of_measure
from ..comparison.verdict import advice, heading, verdict
from ..evaluation.points import in_points, range_in_points
from ..metrics.measures import IMPACT, UPTAKE
from .experiment_table import standings_table
from .leaderboard import VERDICTS
from .standing_words import all_notes, legend
from .words import number, p_value


def comparison_table(ranking: Ranking) -> RenderableType:
    """The verdict, one row a pair, every model on its own, and what to keep in mind."""
    models = ranking.contenders
    hint = advice(models)
    return Group(
        Text(verdict(ranking), style="bold"),
        Text(),
        Text(heading(models), style="bold"),
        _pairs(ranking),
        Text(
            "Differences in points, [95% interval]; p corrected for all pairs and measures. "
            "significant: p < 0.05 and the interval excludes 0. equivalent: the interval lies "
            "within 5 points of 0. Below 0 in the impact factor, the first drops more of its "
            "habit; * significant.",
            style="dim",
        ),
        Text(),
        Text("Each model alone, on all its positions", style="bold"),
        standings_table(ranking.standings),
        *(Text(line, style="dim") for line in legend(ranking.standings)),
        *([Text(hint)] if hint else []),
        *(Text(f"note: {note}", style="yellow") for note in all_notes(models)),
    )


def _pairs(ranking: Ranking) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("lead of ... over", overflow="fold", min_width=12)
    table.add_column("shared", justify="right")
    table.add_column("rule uptake", no_wrap=True)
    table.add_column("p", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("impact\nfactor", no_wrap=True)
    for pair in ranking.pairs:
        [uptake], [impact] = (of_measure(pair, name) for name in (UPTAKE, IMPACT))
        table.add_row(
            Text(f"{uptake.second.label} over {uptake.first.label}"),
            number(uptake.n_samples),
            _difference(uptake),
            p_value(uptake.corrected_p),
            Text(VERDICTS[uptake.verdict], style="bold" if uptake.is_significant else ""),
            Text(in_points(impact.difference) + ("*" if impact.is_significant else "")),
        )
    return table


def _difference(comparison: Comparison) -> Text:
    found = comparison.interval
    around = f" [{range_in_points(found.low, found.high, ', ')}]" if found else ""
    return Text.assemble(in_points(comparison.difference), (around, "dim"))
