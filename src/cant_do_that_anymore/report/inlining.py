"""Plots as parts of a page: nothing that its policy forbids, and the colours of its style sheet."""

import re
from xml.etree import ElementTree

from markupsafe import Markup

from .drawing import COLOURS, GRID, INK
from .markup import move_styles

_PALETTE = dict(
    zip(
        COLOURS,
        ("standard", "changed", "adapted", "illegal", "special", "legal", "ink"),
        strict=True,
    )
)
_PALETTE |= {"#ffffff": "paper", "#000000": "ink", INK: "ink", GRID: "rule"}
"""What the style sheet calls the colours, so that they follow light and dark."""


def inlined(svg: str, title: str, prefix: str) -> Markup:
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
