"""SVG elements as text."""

from xml.etree.ElementTree import Element

from markupsafe import Markup, escape


def tag(name: str, *children: str, **attributes: str | float) -> Markup:
    """Return an SVG element; children that are not `Markup` are escaped.

    >>> print(tag("text", "a < b", class_="note"))
    <text class="note">a &lt; b</text>
    """
    pairs = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_written(value))}"'
        for key, value in attributes.items()
    )
    return Markup(f"<{name}{pairs}>{''.join(map(escape, children))}</{name}>")


def _written(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"


def move_styles(drawing: Element) -> None:
    """Turn inline styles into attributes, since the content security policy allows no styles."""
    for element in drawing.iter():
        for declaration in filter(None, element.attrib.pop("style", "").split(";")):
            name, _, value = declaration.partition(":")
            element.set(name.strip(), value.strip())
