"""Leaderboards and comparisons as GitHub Markdown tables."""

import re
from collections.abc import Sequence

from ...comparison.leaderboard import Ranking
from ...formatting import visible
from ..rows import diagnosis_cells, leaderboard_cells, pair_cells

_MARKDOWN = re.compile(r"([\\`*_\[\]<>#|~!&$])")


def leaderboards(ranked: Sequence[Ranking]) -> str:
    """Format the verdict and the leaderboard of each ranking."""
    return "\n\n".join(map(_of_ranking, ranked))


def comparison(ranking: Ranking) -> str:
    """Format one ranking with its leaderboard and one row for each pair."""
    return "\n\n".join([_of_ranking(ranking), *_tables(pair_cells(ranking))])


def _of_ranking(ranking: Ranking) -> str:
    title = f"**{_escape(ranking.entries[0].title)}.** {_escape(ranking.verdict)}"
    cells = leaderboard_cells(ranking.entries), diagnosis_cells(ranking.entries)
    return "\n\n".join([title, *_tables(*cells)])


def _tables(*tables: Sequence[Sequence[str]]) -> list[str]:
    """Format tables of texts; the first line of each has the headings."""
    return [_table(*cells) for cells in tables if cells]


def _table(headings: Sequence[str], *rows: Sequence[str]) -> str:
    rule = ["---", *("---:" for _ in headings[1:])]
    lines = (map(_escape, headings), rule, *(map(_escape, row) for row in rows))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _escape(text: str) -> str:
    """Escape Markdown in a text.

    >>> _escape("a|b <i>")
    'a\\\\|b \\\\<i\\\\>'
    """
    return _MARKDOWN.sub(r"\\\1", visible(text).replace("\n", " "))
