"""Text that hides nothing, and elements of pictures that nothing put into them can break."""

import re
import unicodedata
from xml.etree.ElementTree import Element

from markupsafe import Markup

_INVISIBLE = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
_UNUSUAL = re.compile(r"[^\n\t -~]")


def visible(value: str) -> str:
    """The text with every control character spelled out, so that none can reorder or hide others.

    >>> visible("e2" + chr(0x202E) + "e4")
    'e2⟨U+202E⟩e4'
    """
    return _UNUSUAL.sub(lambda found: _shown(found[0]), value)


def _shown(character: str) -> str:
    invisible = unicodedata.category(character) in _INVISIBLE
    return spelled(character) if invisible else character


def spelled(character: str) -> str:
    """A character by its number."""
    return f"⟨U+{ord(character):04X}⟩"


def tag(name: str, *children: str, **attributes: str | float) -> Markup:
    """An element of a picture; what is not `Markup` already is escaped.

    >>> print(tag("text", "a < b", class_="note"))
    <text class="note">a &lt; b</text>
    """
    pairs = Markup().join(
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), _plain(value))
        for key, value in attributes.items()
    )
    return Markup("<{0}{1}>{2}</{0}>").format(name, pairs, Markup().join(children))


def move_styles(picture: Element) -> None:
    """Make attributes of the styles of all elements: the policy of the pages allows no styles."""
    for element in picture.iter():
        for declaration in filter(None, element.attrib.pop("style", "").split(";")):
            name, _, value = declaration.partition(":")
            element.set(name.strip(), value.strip())


def _plain(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"
