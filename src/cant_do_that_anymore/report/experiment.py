"""The files of an experiment: where the models stand, as a table, as pictures and as a page."""

import json
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from ..comparison.entries import Standing
from ..comparison.leaderboard import Ranking
from ..errors import UserError
from ..files import atomic_write_text, safe_name
from .curve import curve_chart, has_curve
from .document import Document, as_csv
from .experiment_page import INDEX, experiment_page
from .headlines import headline_chart, rules_chart
from .plots import bar_chart, line_chart

TABLE, DOCUMENT = "results.csv", "results.json"


def write(ranked: Sequence[Ranking], told: Document, out: Path) -> list[Path]:
    """Write everything into a folder, and name the files: tables first, the page last.

    Raises:
        UserError: if they cannot be written.
    """
    of_rules = list(_drawn_by_rules(list(chain(*(each.standings for each in ranked))), out))
    pictures = [list(_drawn(ranking.standings, out)) for ranking in ranked]
    texts = {
        TABLE: as_csv(told["results"]),
        DOCUMENT: json.dumps(told, indent=1, ensure_ascii=False) + "\n",
        INDEX: experiment_page(ranked, told, pictures, of_rules),
    }
    try:
        for name, text in texts.items():
            atomic_write_text(out / name, text)
    except OSError as problem:
        raise UserError(f"cannot write to {str(out)!r} ({problem.strerror})") from None
    return [out / TABLE, out / DOCUMENT, *of_rules, *chain(*pictures), out / INDEX]


def _drawn_by_rules(found: Sequence[Standing], out: Path) -> Iterator[Path]:
    """A picture for each eval that was measured under several rules."""
    groups: dict[tuple[str, str], list[Standing]] = {}
    for standing in found:
        groups.setdefault((standing.eval, standing.selection), []).append(standing)
    for (eval_, _), group in groups.items():
        if len({standing.change.key for standing in group}) > 1:
            yield from rules_chart(group, out / f"rules-{eval_}{_how_selected(group[0])}")


def _drawn(group: Sequence[Standing], out: Path) -> Iterator[Path]:
    """The pictures of one place.

    The thinking curve where a model has several efforts, bars and the headline measures; for
    positions from games under the changed rules, also lines.
    """
    rules = group[0].change.key + _how_selected(group[0])
    if group[0].pool:
        rules += f"-{safe_name(group[0].pool)}"
    place = f"{group[0].eval}-{rules}"
    if has_curve(group):
        yield from curve_chart(group, out / f"curve-{place}")
    yield from bar_chart(group, out / f"bars-{place}")
    yield from headline_chart(group, out / f"headline-{place}")
    if group[0].eval == "all_diagonal":
        yield from line_chart(group, out / f"diagonal-{rules}")


def _how_selected(standing: Standing) -> str:
    return "-drawn" if standing.selection else ""
