"""The page of an experiment: where the models stand, and all pictures, in one HTML file."""

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from ..comparison.entries import Standing
from ..comparison.leaderboard import Ranking
from ..errors import pluralize
from .document import Document
from .inlining import inlined
from .leaderboard import boards, shared_parts
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
            found.append(inlined(drawing, told, file.stem))
    return found


def _size(found: Sequence[Standing]) -> str:
    """How much was measured."""
    parts = [pluralize(len({each.model for each in found}), "model")]
    efforts = len({each.effort for each in found})
    if efforts > 1:
        parts.append(pluralize(efforts, "effort"))
    parts.append(pluralize(sum(len(each.runs) for each in found), "run"))
    return ", ".join(parts)
