"""Runs, comparisons and experiments in notebooks."""

from collections.abc import Sequence

from markupsafe import Markup

from ..comparison.leaderboard import Ranking, verdicts
from ..formatting import pluralize, visible
from ..runs.run import Run
from ..task.types import CHANGED_CONDITION, STANDARD_CONDITION
from .html import asset, render
from .rows import leaderboard_cells, pair_cells, share_text
from .run_page import headline_and_tiles
from .tables import outcomes_in


def run_line(run: Run) -> str:
    """Summarize a run in one line: model, eval, rules, rule uptake, and its folder."""
    parts = [
        f"{run.version}: {run.plan.eval}",
        run.plan.change.key,
        pluralize(run.results.n, "sample"),
        f"rule uptake {share_text(run.results.uptake)}",
        _folder_text(run),
    ]
    return visible(f"<Run of {', '.join(parts)}>")


def run_html(run: Run) -> str:
    """Render the headline, the tiles and the outcomes of a run."""
    counts = {name: run.results.outcomes[name] for name in (STANDARD_CONDITION, CHANGED_CONDITION)}
    return render(
        "notebook_run.html",
        **headline_and_tiles(run),
        palette=_palette(),
        counts=counts,
        outcomes=outcomes_in(counts),
        saved=_folder_text(run),
    )


def rankings_html(ranked: Sequence[Ranking], remarks: Sequence[str] = ()) -> str:
    """Render the verdict, the leaderboard and the pairs of each ranking."""
    tables = {
        verdict: [leaderboard_cells(ranking.entries), pair_cells(ranking)]
        for verdict, ranking in zip(verdicts(ranked), ranked, strict=True)
    }
    return render("notebook_tables.html", palette=_palette(), tables=tables, remarks=remarks)


def _folder_text(run: Run) -> str:
    return f"saved in {run.folder}" if run.folder else "not saved: run.save()"


def _palette() -> Markup:
    """Return the CSS variables with the colors of the reports."""
    return Markup(asset("page.css").partition("{")[2].partition("}")[0])
