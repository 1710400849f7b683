"""Leaderboards and comparisons as GitHub tables."""

import re
from collections.abc import Iterator, Sequence

from ..comparison.entries import Standing
from ..comparison.leaderboard import Ranking
from ..comparison.pairwise import of_measure
from ..comparison.verdict import verdict
from ..errors import visible
from ..formatting import dollars, in_points, number, p_value, percentage, range_in_points
from ..metrics.measures import UNUSABLE, UPTAKE
from ..progress import duration
from ..task.types import CHANGED_CONDITION
from .columns import VERDICTS, columns, marked, title_of

_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~!&$])")


def rankings_in_markdown(ranked: Sequence[Ranking]) -> str:
    """The verdict and the leaderboard of each ranking."""
    return "\n\n".join(_of_ranking(ranking) for ranking in ranked)


def comparison_in_markdown(ranking: Ranking) -> str:
    """The same of one ranking, and one row a pair."""
    heads = ("pair", "shared", "lead in rule uptake, points", "95% interval", "p", "")
    rows = []
    for pair in ranking.pairs:
        [lead] = of_measure(pair, UPTAKE)
        around = lead.interval
        rows.append(
            (
                f"{lead.second.label} over {lead.first.label}",
                number(lead.n_samples),
                in_points(lead.difference),
                range_in_points(around.low, around.high) if around else "–",
                p_value(lead.corrected_p),
                VERDICTS[lead.verdict],
            )
        )
    return f"{_of_ranking(ranking)}\n\n{_table(heads, rows)}"


def _of_ranking(ranking: Ranking) -> str:
    heads = ("model", "runs", "n", "rule uptake", "impact factor", "adapts", "no move")
    rows = [tuple(_cells(standing)) for standing in ranking.standings]
    told = _table((*heads, "tokens", "dollars", "time"), rows)
    return f"**{_plain(title_of(ranking.standings))}.** {_plain(verdict(ranking))}\n\n{told}"


def _cells(standing: Standing) -> Iterator[str]:
    yield marked(standing)
    told = columns([standing])
    for name in ("runs", "n", "rule uptake", "impact factor", "adapts"):
        yield told[name](standing).replace("\n", " ")
    yield percentage(standing.results.metrics.get(UNUSABLE[CHANGED_CONDITION]))
    made = standing.contender
    yield number(made.tokens) if made else "–"
    yield dollars(made.dollars) if made and made.dollars is not None else "–"
    yield duration(made.seconds) if made else "–"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    rule = ["---", *("---:" for _ in heads[1:])]
    lines = (heads, rule, *([_plain(cell) for cell in row] for row in rows))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _plain(text: str) -> str:
    """Text that no Markdown is made of.

    >>> _plain("a|b <i>")
    'a\\\\|b \\\\<i\\\\>'
    """
    return _SPECIAL.sub(r"\\\1", visible(text).replace("\n", " "))
