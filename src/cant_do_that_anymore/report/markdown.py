"""Leaderboards and comparisons as GitHub Markdown tables."""

import re
from collections.abc import Iterator, Sequence

from ..comparison.entries import Entry
from ..comparison.leaderboard import Ranking
from ..comparison.pairwise import of_measure
from ..comparison.verdict import verdict
from ..errors import visible
from ..formatting import dollars, in_points, number, p_value, percentage, range_in_points
from ..metrics.measures import UNUSABLE, UPTAKE
from ..progress import duration
from ..task.types import CHANGED_CONDITION
from .columns import VERDICTS, columns, marked

_MARKDOWN = re.compile(r"([\\`*_\[\]<>#|~!&$])")


def rankings_in_markdown(ranked: Sequence[Ranking]) -> str:
    """Format the verdict and the leaderboard of each ranking."""
    return "\n\n".join(_of_ranking(ranking) for ranking in ranked)


def comparison_in_markdown(ranking: Ranking) -> str:
    """Format one ranking with its leaderboard and one row for each pair."""
    headings = ("pair", "shared", "lead in rule uptake, points", "95% interval", "p", "")
    rows = []
    for pair in ranking.pairs:
        [lead] = of_measure(pair, UPTAKE)
        interval = lead.interval
        rows.append(
            (
                f"{lead.second.label} over {lead.first.label}",
                number(lead.n_samples),
                in_points(lead.difference),
                range_in_points(interval.low, interval.high) if interval else "–",
                p_value(lead.corrected_p),
                VERDICTS[lead.verdict],
            )
        )
    return f"{_of_ranking(ranking)}\n\n{_table(headings, rows)}"


def _of_ranking(ranking: Ranking) -> str:
    headings = ("model", "runs", "n", "rule uptake", "impact factor", "adapts", "no move")
    rows = [tuple(_cells(entry)) for entry in ranking.entries]
    table = _table((*headings, "tokens", "dollars", "time"), rows)
    return f"**{_escape(ranking.title)}.** {_escape(verdict(ranking))}\n\n{table}"


def _cells(entry: Entry) -> Iterator[str]:
    yield marked(entry)
    formats = columns([entry])
    for name in ("runs", "n", "rule uptake", "impact factor", "adapts"):
        yield formats[name](entry).replace("\n", " ")
    yield percentage(entry.results.metrics.get(UNUSABLE[CHANGED_CONDITION]))
    yield number(entry.tokens)
    yield "–" if entry.dollars is None else dollars(entry.dollars)
    yield "–" if entry.seconds is None else duration(entry.seconds)


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    rule = ["---", *("---:" for _ in headings[1:])]
    lines = (headings, rule, *([_escape(cell) for cell in row] for row in rows))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _escape(text: str) -> str:
    """Escape Markdown in a text.

    >>> _escape("a|b <i>")
    'a\\\\|b \\\\<i\\\\>'
    """
    return _MARKDOWN.sub(r"\\\1", visible(text).replace("\n", " "))
