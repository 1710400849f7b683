"""Leaderboards and comparisons as GitHub Markdown tables."""

import re
from collections.abc import Sequence

from ...comparison.leaderboard import Ranking
from ...formatting import visible
from ..rows import Table, diagnosis_table, leaderboard_table, pair_table

_MARKDOWN = re.compile(r"([\\`*_\[\]<>#|~!&$])")


def leaderboards(ranked: Sequence[Ranking]) -> str:
    """Format the verdict and the leaderboard of each ranking."""
    return "\n\n".join(map(_of_ranking, ranked))


def comparison(ranking: Ranking) -> str:
    """Format one ranking with its leaderboard and one row for each pair."""
    return "\n\n".join([_of_ranking(ranking), _table(pair_table(ranking))])


def _of_ranking(ranking: Ranking) -> str:
    title = f"**{_escape(ranking.entries[0].title)}.** {_escape(ranking.verdict)}"
    tables = leaderboard_table(ranking.entries), diagnosis_table(ranking.entries)
    return "\n\n".join([title, *map(_table, filter(None, tables))])


def _table(table: Table) -> str:
    rule = ["---", *("---:" for _ in table.headings[1:])]
    lines = (map(_escape, table.headings), rule, *(map(_escape, row) for row in table.rows))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _escape(text: str) -> str:
    """Escape Markdown in a text.

    >>> _escape("a|b <i>")
    'a\\\\|b \\\\<i\\\\>'
    """
    return _MARKDOWN.sub(r"\\\1", visible(text).replace("\n", " "))
