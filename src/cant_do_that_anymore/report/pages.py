"""HTML pages of experiments and comparisons, and the files beside them."""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from xml.etree import ElementTree

from markupsafe import Markup

from ..comparison.entries import Standing
from ..comparison.leaderboard import Ranking
from ..errors import UserError, error_reason, pluralize
from ..files import atomic_write_text, safe_name
from .columns import all_notes, boards, shared_parts
from .document import Document, as_csv, document
from .html import rendered
from .plots.curve import curve_chart, has_curve
from .plots.headlines import headline_chart, rules_chart
from .plots.shares import bar_chart, line_chart
from .plots.style import COLOURS, GRID, INK
from .svg import move_styles

_PALETTE = dict(
    zip(
        COLOURS,
        ("standard", "changed", "adapted", "illegal", "special", "legal", "ink"),
        strict=True,
    )
)
_PALETTE |= {"#ffffff": "paper", "#000000": "ink", INK: "ink", GRID: "rule"}
"""What the style sheet calls the colours, so that they follow light and dark."""


def embed_svg(svg: str, title: str, prefix: str) -> Markup:
    """A plot for a page; the prefix tells its names from those of the other plots there."""
    plot = ElementTree.fromstring(svg)
    for parent in list(plot.iter()):
        for child in list(parent):
            if child.tag.endswith(("}metadata", "}style")):
                parent.remove(child)
    move_styles(plot)
    for element in plot.iter():
        element.tag = _without_namespace(element.tag)
        element.attrib = {_without_namespace(key): each for key, each in element.attrib.items()}
    # Letters have no colour of their own.
    plot.attrib |= {"fill": "var(--ink)", "stroke-linejoin": "round"}
    plot.attrib |= {"class": "plot", "role": "img", "aria-label": title}
    text = ElementTree.tostring(plot, "unicode")
    for colour, name in _PALETTE.items():
        text = text.replace(f'"{colour}"', f'"var(--{name})"')
    return Markup(re.sub(r'( id="|href="#|"url\(#)', rf"\1{prefix}-", text))


def _without_namespace(name: str) -> str:
    return name.rpartition("}")[2]


INDEX = "index.html"
CAPTIONS = {
    "rules": "Headline measures by rules",
    "curve": "The thinking curve",
    "bars": "Special moves",
    "headline": "Headline measures",
    "diagonal": "Special moves by earlier moves of the changed piece",
}
"""What a picture shows, by the first word of its name."""


def experiment_page(
    ranked: Sequence[Ranking],
    told: Document,
    pictures: Sequence[Sequence[Path]] = (),
    of_rules: Sequence[Path] = (),
) -> str:
    """The page; pictures are files, by ranking and of rules."""
    return rendered(
        "experiment.html",
        of_rules=_inlined(of_rules),
        boards=boards(ranked, told, [_inlined(files) for files in pictures]),
        size=_size([standing for ranking in ranked for standing in ranking.standings]),
        **shared_parts(ranked, told),
    )


def _inlined(files: Sequence[Path]) -> list[Markup]:
    found = []
    for file in files:
        kind, _, place = file.stem.partition("-")
        if file.suffix == ".svg":
            drawing, told = file.read_text(encoding="utf-8"), f"{CAPTIONS[kind]} ({place})"
            found.append(embed_svg(drawing, told, file.stem))
    return found


def _size(found: Sequence[Standing]) -> str:
    """How much was measured."""
    parts = [pluralize(len({each.model for each in found}), "model")]
    efforts = len({each.effort for each in found})
    if efforts > 1:
        parts.append(pluralize(efforts, "effort"))
    parts.append(pluralize(sum(len(each.runs) for each in found), "run"))
    return ", ".join(parts)


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
