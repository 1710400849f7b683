"""What all pages share: the templates, their filters, and the rule that text stays text."""

import re
from base64 import b64encode
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ..errors import visible
from . import words
from .charts import Mark, intervals

_UNBROKEN = re.compile(r"(?<=\d) (?=%)|(?<=\bp) (?=[=<] \d)|(?<=\bp [=<]) (?=\d)")
_ASSETS = files("cant_do_that_anymore") / "report" / "assets"


def rendered(template: str, **parts: object) -> str:
    """The page that the template makes of these parts."""
    return _environment().get_template(template).render(**parts)


def streamed(template: str, **parts: object) -> Iterator[str]:
    """The same piece by piece, for one that may be long."""
    return _environment().get_template(template).generate(**parts)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("cant_do_that_anymore", "report/templates"),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= words.FILTERS | {"digest": _digest}
    environment.globals |= {"asset": asset, "intervals": intervals, "Mark": Mark}
    return environment


def _shown(value: Any) -> Any:
    """Whatever a template writes passes through here, so that no text can forget to be visible.

    No line ends between a number and its per cent, or within a p. What a filter or a macro has
    escaped already stays as it is, except for its control characters.
    """
    if isinstance(value, Markup):
        return Markup(visible(value))
    return _UNBROKEN.sub("\N{NO-BREAK SPACE}", visible(value)) if isinstance(value, str) else value


def asset(*names: str) -> Markup:
    """Files of styles or scripts, for the page that carries them inside itself."""
    return Markup("".join((_ASSETS / name).read_text(encoding="utf-8") for name in names))


def _digest(content: str) -> str:
    """What a content policy allows a style or a script by."""
    return f"sha256-{b64encode(sha256(content.encode()).digest()).decode()}"
