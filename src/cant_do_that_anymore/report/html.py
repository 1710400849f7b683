"""HTML rendering: templates, filters and assets."""

import re
from base64 import b64encode
from collections.abc import Callable, Iterator
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ..errors import visible
from ..formatting import (
    amount,
    dollars,
    format_setting,
    minus,
    named_fields,
    number,
    p_value,
    percentage,
)
from ..metrics.stats.intervals import Interval
from ..metrics.types import Bounds
from ..progress import duration
from .svg import Mark, intervals

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
    environment.filters |= FILTERS | {"digest": _digest}
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


PAGE_NAME = "report.html"


def interval(bounds: Interval | None) -> str:
    """A 95 % interval as text."""
    return f"[{bounds.low:.3f}, {bounds.high:.3f}]" if bounds else ""


def bounds(found: Bounds) -> str:
    """What the number of these samples could be, whatever unusable answers would have said."""
    return (
        f"these samples alone [{number(found.low)}, {number(found.high)}], "
        f"complete cases {number(found.complete)}"
    )


def amount_interval(around: Interval | None) -> str:
    """The 95 % interval of such a number."""
    return f"[{amount(around.low)}, {amount(around.high)}]" if around else ""


FILTERS: dict[str, Callable[..., object]] = {
    "number": number,
    "interval": interval,
    "bounds": bounds,
    "amount": amount,
    "amount_interval": amount_interval,
    "percentage": percentage,
    "p_value": p_value,
    "dollars": dollars,
    "duration": duration,
    "minus": minus,
    "plain": format_setting,
    "named_fields": named_fields,
}
"""What the templates know of these by."""
