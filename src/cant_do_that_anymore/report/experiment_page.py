"""The page of an experiment: where the models stand, and all pictures, in one HTML file."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from markupsafe import Markup

from ..errors import counted
from ..evaluation.standings import Standing
from .inlining import inlined
from .page import PAGE_NAME
from .standing_words import DIAGNOSIS, WHY, by_place, columns, legend, marked, notes_on, title_of
from .templating import rendered

INDEX = "index.html"
CAPTIONS = {
    "rules": "Headline measures by rules",
    "curve": "The thinking curve",
    "bars": "Special moves",
    "headline": "Headline measures",
    "diagonal": "Special moves by earlier moves of the changed piece",
}
"""What a picture shows, by the first word of its name."""


@dataclass(frozen=True)
class Place:
    """Those who are ranked together, and the pictures of them."""

    title: str
    group: Sequence[Standing]
    pictures: Sequence[Markup]


def experiment_page(
    found: Sequence[Standing],
    pictures: Sequence[Sequence[Path]],
    out: Path,
    of_rules: Sequence[Path] = (),
) -> str:
    """The page for a folder that the links lead from; pictures are files, by place and of rules."""
    places = [
        Place(title_of(group), group, _inlined(files))
        for group, files in zip(by_place(found), pictures, strict=True)
    ]
    return rendered(
        "experiment.html",
        of_rules=_inlined(of_rules),
        places=places,
        size=_size(found),
        columns=columns(found),
        diagnosis=DIAGNOSIS,
        why=WHY,
        legend=legend(found),
        marked=marked,
        notes_on=notes_on,
        pages=lambda standing: _pages(standing, out),
    )


def _inlined(files: Sequence[Path]) -> list[Markup]:
    found = []
    for file in files:
        kind, _, place = file.stem.partition("-")
        if file.suffix == ".svg":
            drawing, told = file.read_text(encoding="utf-8"), f"{CAPTIONS[kind]} ({place})"
            found.append(inlined(drawing, told, file.stem))
    return found


def _size(found: Sequence[Standing]) -> str:
    """How much was measured."""
    parts = [counted(len({each.model for each in found}), "model")]
    efforts = len({each.effort for each in found})
    if efforts > 1:
        parts.append(counted(efforts, "effort"))
    parts.append(counted(sum(len(each.runs) for each in found), "run"))
    return ", ".join(parts)


def _pages(standing: Standing, out: Path) -> list[str]:
    """Links to the pages of its runs, as far as they have any."""
    pages = (folder / PAGE_NAME for folder in standing.folders)
    return [quote(Path(os.path.relpath(page, out)).as_posix()) for page in pages if page.exists()]
