"""Elements of pictures that nothing put into them can break."""

from xml.etree.ElementTree import Element

from markupsafe import Markup


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
