"""Leaderboards and comparisons as GitHub Markdown tables."""

import re
from collections.abc import Sequence

from ...comparison.leaderboard import Ranking
from ...comparison.pairwise import of_measure
from ...comparison.verdict import verdict
from ...formatting import in_points, number, p_number, range_in_points, visible
from ...metrics.measures import UPTAKE
from ..columns import VERDICTS, cells_in
from ..document import matrix_cells, matrix_of

_MARKDOWN = re.compile(r"([\\`*_\[\]<>#|~!&$])")


def leaderboards(ranked: Sequence[Ranking]) -> str:
    """Format the verdict and the leaderboard of each ranking, and results by wording and form."""
    parts = [_of_ranking(ranking) for ranking in ranked]
    if matrix := matrix_of([entry for ranking in ranked for entry in ranking.entries]):
        headings, *rows = matrix_cells(matrix)
        parts.append(_table(headings, rows))
    return "\n\n".join(parts)


def comparison(ranking: Ranking) -> str:
    """Format one ranking with its leaderboard and one row for each pair."""
    headings = ("pair", "shared", "lead in rule uptake, points", "95% interval", "p", "")
    rows = [
        (
            f"{lead.second.label} over {lead.first.label}",
            number(lead.n_samples),
            in_points(lead.difference),
            range_in_points(lead.interval.low, lead.interval.high) if lead.interval else "–",
            p_number(lead.corrected_p),
            VERDICTS[lead.verdict],
        )
        for pair in ranking.pairs
        for lead in of_measure(pair, UPTAKE)
    ]
    return f"{_of_ranking(ranking)}\n\n{_table(headings, rows)}"


def _of_ranking(ranking: Ranking) -> str:
    headings, *cells = cells_in("markdown", ranking.entries)
    table = _table(headings, cells)
    return f"**{_escape(ranking.title)}.** {_escape(verdict(ranking))}\n\n{table}"


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    rule = ["---", *("---:" for _ in headings[1:])]
    lines = (map(_escape, headings), rule, *(map(_escape, row) for row in rows))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _escape(text: str) -> str:
    """Escape Markdown in a text.

    >>> _escape("a|b <i>")
    'a\\\\|b \\\\<i\\\\>'
    """
    return _MARKDOWN.sub(r"\\\1", visible(text).replace("\n", " "))
