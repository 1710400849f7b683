"""A comparison as one self-contained HTML file, made of the parts of an experiment's page."""

from pathlib import Path

from ..errors import Problem, reason_of
from ..evaluation.rankings import Ranking
from ..files import replacing_text
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


def write_comparison(ranking: Ranking, path: Path) -> Path:
    """Write the page, and say where; an older one is replaced only when the new one is whole.

    Raises:
        Problem: if it cannot be written.
    """
    try:
        replacing_text(path, comparison_page(ranking, path.parent))
    except OSError as problem:
        raise Problem(f"cannot write {str(path)!r} ({reason_of(problem)})") from None
    return path
