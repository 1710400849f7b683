"""Where the models of an experiment stand, as tables a person can read in a terminal."""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..comparison.entries import Standing
from ..comparison.leaderboard import Ranking
from ..progress import duration
from .document import Document
from .standing_words import (
    DIAGNOSIS,
    WHY,
    WITH_INTERVAL,
    Columns,
    columns,
    legend,
    marked,
    notes_on,
    title_of,
)
from .words import dollars

_LEFT = ("rule uptake", "impact factor", *WITH_INTERVAL)


def experiment_table(ranked: Sequence[Ranking], told: Document) -> RenderableType:
    """The verdicts, a table for each ranking, a line a model, and what should be known of them."""
    found = [standing for ranking in ranked for standing in ranking.standings]
    parts = [part for ranking in ranked for part in (*_of_ranking(ranking.standings), Text())]
    return Group(
        *verdict_lines(ranked, told),
        Text(),
        *parts,
        *(Text(line, style="dim") for line in legend(found)),
        *_in_all(told),
    )


def verdict_lines(ranked: Sequence[Ranking], told: Document) -> Iterator[Text]:
    """What is said first; where there are several rankings, each with its title."""
    for ranking, row in zip(ranked, told["verdicts"], strict=True):
        of = f"{title_of(ranking.standings)}: " if len(ranked) > 1 else ""
        yield Text(f"{of}{row['verdict']}", style="bold")


def standings_table(group: Sequence[Standing]) -> Table:
    """Those of one ranking, two lines a model."""
    return _table("model", group, columns(group))


def _of_ranking(group: Sequence[Standing]) -> list[RenderableType]:
    notes = (Text(f"note on {note}", style="yellow") for note in notes_on(group))
    found: list[RenderableType] = [Text(title_of(group), style="bold"), standings_table(group)]
    if diagnosed := [standing for standing in group if standing.is_diagnosed]:
        found += [Text(), _table(WHY, diagnosed, DIAGNOSIS)]
    return [*found, *notes]


def _in_all(told: Document) -> Iterator[Text]:
    """What all of it took, as far as that is known."""
    total = told["total"]
    if told["runs"]:
        answers = f"{total['tokens']:,} tokens, {dollars(total['dollars'])}"
        spent = f"; spent {dollars(total['spent_dollars'])}" if total["spent_dollars"] else ""
        took = duration(total["seconds"])
        yield Text(f"All answers: {answers}{spent}; all runs: {took}.", style="dim")


def _table(name: str, group: Sequence[Standing], told: Columns) -> Table:
    """Two lines a model, so that it fits 80 columns."""
    # One space between columns: names of models are long.
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column(name, overflow="fold")
    for heading in told:
        table.add_column(
            heading,
            justify="left" if heading in _LEFT else "right",
            no_wrap=True,
        )
    for standing in group:
        cells = (_cell(*of(standing).split("\n")) for of in told.values())
        table.add_row(Text(marked(standing)), *cells, style="yellow" if standing.is_suspect else "")
    return table


def _cell(value: str, below: str = "") -> Text:
    return Text.assemble(value, ("\n" + below, "dim")) if below else Text(value)
