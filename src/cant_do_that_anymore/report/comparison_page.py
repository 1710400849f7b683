"""A comparison as one self-contained HTML file, made of the parts of an experiment's page."""

from pathlib import Path

from ..evaluation.rankings import Ranking
from .document import document
from .leaderboard import boards, shared_parts
from .standing_words import all_notes
from .templating import rendered


def comparison_page(ranking: Ranking, out: Path) -> str:
    """The page: verdict, every pair, every model alone; for a folder that the links lead from."""
    told = document([ranking], out)
    return rendered(
        "comparison.html",
        boards=boards([ranking], told),
        remarks=all_notes(ranking.contenders),
        **shared_parts([ranking], told),
    )
