"""A comparison as one self-contained HTML file, made of the parts of an experiment's page."""

from pathlib import Path

from ..comparison.leaderboard import Ranking
from ..errors import UserError, error_reason
from ..files import atomic_write_text
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
        UserError: if it cannot be written.
    """
    try:
        atomic_write_text(path, comparison_page(ranking, path.parent))
    except OSError as problem:
        raise UserError(f"cannot write {str(path)!r} ({error_reason(problem)})") from None
    return path
