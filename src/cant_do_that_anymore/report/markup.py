"""HTML and SVG that nothing put into it can break: text is escaped unless it is `Markup`."""

import re
import unicodedata
from html import escape

_INVISIBLE = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
_UNUSUAL = re.compile(r"[^\n\t -~]")
_VOID = frozenset(("br", "line", "circle", "rect", "path"))


class Markup(str):
    """Text that is HTML or SVG already."""

    __slots__ = ()


def tag(name: str, *children: str, **attributes: str | float) -> Markup:
    """An element with children and attributes.

    >>> tag("p", "a < b", class_="note")
    '<p class="note">a &lt; b</p>'
    """
    pairs = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(_plain(value))}"'
        for key, value in attributes.items()
    )
    if name in _VOID:
        return Markup(f"<{name}{pairs}/>")
    return Markup(f"<{name}{pairs}>{join(*children)}</{name}>")


def join(*parts: str) -> Markup:
    """Several pieces one after another."""
    return Markup("".join(map(text, parts)))


def text(value: str) -> Markup:
    """The text as markup that shows it."""
    return value if isinstance(value, Markup) else Markup(escape(visible(value)))


def visible(value: str) -> str:
    """The text with every control character spelled out, so that none can reorder or hide others.

    >>> visible("e2" + chr(0x202E) + "e4")
    'e2⟨U+202E⟩e4'
    """
    return _UNUSUAL.sub(lambda found: _spelled(found[0]), value)


def _spelled(character: str) -> str:
    invisible = unicodedata.category(character) in _INVISIBLE
    return f"⟨U+{ord(character):04X}⟩" if invisible else character


def _plain(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"
