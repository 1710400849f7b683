"""Render HTML: templates, filters and assets."""

import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from ..files import atomic_write_text, file_errors
from ..formatting import (
    amount,
    dollars,
    duration,
    format_setting,
    number,
    rounded,
    visible,
)
from .svg import axis_over, dot, scale, stack

_ASSETS = files("cant_do_that_anymore") / "report" / "assets"


def render(template: str, **parts: object) -> str:
    """Render a template with these variables."""
    return _environment().get_template(template).render(**parts)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("cant_do_that_anymore", "report/templates"),
        autoescape=True,
        finalize=_finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = amount, digest, dollars, duration, format_setting, number, prose, rounded
    environment.filters |= {function.__name__: function for function in filters}
    functions = asset, axis_over, dot, scale, stack
    environment.globals |= {function.__name__: function for function in functions}
    return environment


def _finalize(value: Any) -> Any:
    """Make control characters visible in everything a template writes.

    Markup that a filter or a macro has escaped already is left as it is otherwise.
    """
    if isinstance(value, Markup):
        return Markup(visible(value))
    return visible(value) if isinstance(value, str) else value


def asset(*names: str) -> Markup:
    """Return style sheets or scripts, to be embedded in a report."""
    return Markup("".join((_ASSETS / name).read_text(encoding="utf-8") for name in names))


def digest(content: str) -> str:
    """Return the hash by which a content security policy allows a style or a script."""
    return f"sha256-{b64encode(sha256(content.encode()).digest()).decode()}"


PAGE_NAME = "report.html"


def write_text(text: str, path: Path) -> Path:
    """Write a report or a table atomically, in folders that are created, and return its path.

    Raises:
        UserError: if it cannot be written.
    """
    with file_errors("write", path):
        atomic_write_text(path, text)
    return path


def prose(text: str) -> Markup:
    """Escape a sentence, with what it has in backticks as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(visible(text)))))
