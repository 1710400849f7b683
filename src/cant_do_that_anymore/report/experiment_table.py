"""Where the models of an experiment stand, as tables a person can read in a terminal."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..evaluation.standings import Standing
from .standing_words import (
    DIAGNOSIS,
    WHY,
    Columns,
    by_place,
    columns,
    legend,
    marked,
    notes_on,
    title_of,
)

_LEFT = ("impact factor", "legal gain", "corrected", "specific")


def experiment_table(found: Sequence[Standing]) -> RenderableType:
    """A table for each place, a line a model, and what should be known about them."""
    parts = [part for group in by_place(found) for part in (*_of_group(group), Text())]
    return Group(*parts, *(Text(line, style="dim") for line in legend(found)))


def _of_group(group: Sequence[Standing]) -> list[RenderableType]:
    notes = (Text(f"note on {note}", style="yellow") for note in notes_on(group))
    found: list[RenderableType] = [Text(title_of(group), style="bold")]
    found.append(_table("model", group, columns(group)))
    if diagnosed := [standing for standing in group if standing.is_diagnosed]:
        found += [Text(), _table(WHY, diagnosed, DIAGNOSIS)]
    return [*found, *notes]


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
        table.add_row(Text(marked(standing)), *cells, style="yellow" if standing.is_junk else "")
    return table


def _cell(value: str, below: str = "") -> Text:
    return Text.assemble(value, ("\n" + below, "dim")) if below else Text(value)
