"""Writes docs/api.md from signatures and docstrings; a test checks that it is up to date.

python tools/api.py
"""

import inspect
import re
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from textwrap import dedent
from types import FunctionType
from typing import Any

import cant_do_that_anymore as package
from cant_do_that_anymore import errors

DOCUMENT = Path(__file__).parents[1] / "docs" / "api.md"
INTRODUCTION = """\
# Python API

Import everything from `cant_do_that_anymore`. [Python and notebooks](python.md) has examples.
Invalid input raises `cant_do_that_anymore.errors.InvalidInput`, and any other problem its base
class `UserError`, with a one-line message. Everything works in a running event loop, such as a
notebook's. This page is written by `python tools/api.py`.
"""
# Public names by heading; those with a dot are the types of their results.
HEADINGS: dict[str, tuple[str, ...]] = {
    "Evaluate": ("Spec", "evaluate", "experiment", "estimate"),
    "Saved runs": ("load", "compare"),
    "Results": ("api.results.Result", "Run", "Comparison", "Experiment", "ExpectedCost"),
    "The contents of a run": (
        *("runs.run.Run", "metrics.compute.Results", "metrics.estimates.Estimate"),
        *("metrics.diagnosis.Finding", "metrics.interventions.Effect", "task.types.Sample"),
        "task.types.ScoredAnswer",
    ),
    "Rules and positions": (
        *("Rules", "rules_named", "Position", "shipped_pool", "read_positions"),
        "QuestionChange",
    ),
    "Prompts": ("question", "Form", "ConditionTemplate", "Message"),
    "Replies": ("read_move", "read_answer", "read_yes_no", "judge", "Answer"),
}
SECTION = re.compile(r"^(Args|Attributes|Raises):$")
TITLES = {"Args": "argument", "Attributes": "attribute", "Raises": "raises"}
ENTRY = re.compile(r"^    (\*?\w+): (.*)$")


def page() -> str:
    """Return the document."""
    parts = [INTRODUCTION]
    for heading, names in HEADINGS.items():
        parts.append(f"## {heading}\n")
        for name in names:
            parts += describe(find_object(name), f"`{name.rpartition('.')[2]}`", "###")
    parts.append("## Errors\n")
    for error in vars(errors).values():
        if inspect.isclass(error) and issubclass(error, errors.UserError):
            parts += describe(error, f"`{error.__name__}({error.__bases__[0].__name__})`", "###")
    return "\n".join(parts)


def find_object(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    return getattr(import_module(f"{package.__name__}.{module}") if module else package, attribute)


def describe(subject: Any, title: str, level: str) -> Iterator[str]:
    """Yield the signature, the docstring and the methods of a class or function."""
    yield f"{level} {title}\n"
    if isinstance(subject, FunctionType):
        yield f"```python\n{signature(subject)}\n```\n"
    yield docstring_to_markdown(subject)
    if inspect.isclass(subject):
        for name, member in public_methods(subject).items():
            yield from describe(member, f"`{name}`", level + "#")


def public_methods(subject: type) -> dict[str, Any]:
    """Return the public methods and properties that a class itself defines."""
    return {
        name: member
        for name, member in vars(subject).items()
        if not name.startswith("_")
        and isinstance(member, FunctionType | property | cached_property)
        and getattr(member, "__name__", name) == name  # not a field whose default is a function
    }


def signature(function: FunctionType) -> str:
    """Return the definition from the source, without its body."""
    source = dedent(inspect.getsource(function))
    text = source[source.index("def ") : source.index('"""')].rstrip()
    return re.sub(r":(?:\s*#.*)?$", "", text).removeprefix("def ")


def docstring_to_markdown(subject: Any) -> str:
    """Convert a docstring in Google's style to Markdown; its sections become tables."""
    defaults: dict[str, Field[Any]] = {}
    if is_dataclass(subject):
        defaults = {item.name: item for item in fields(subject)}
    lines: list[str] = []
    columns = entry = ""
    in_code = False
    for line in (inspect.cleandoc(subject.__doc__ or "").replace("``", "`") + "\n").splitlines():
        if section := SECTION.match(line):
            with_default = bool(defaults) and section[1] == "Attributes"
            columns = "name | default" if with_default else TITLES[section[1]]
            rule = " | ".join("---" for _ in columns.split(" | "))
            lines.append(f"| {columns} | |\n| {rule} | --- |")
        elif columns and (match := ENTRY.match(line)):
            default = f" | {format_default(defaults.get(match[1]))}" if " | " in columns else ""
            entry = f"| `{match[1]}`{default} | {escape(match[2])}"
            lines.append(f"{entry} |")
        elif columns and line.strip():
            entry += f" {escape(line.strip())}"
            lines[-1] = f"{entry} |"
        else:
            columns = "" if not line.strip() else columns
            if line.startswith(">>> ") != in_code and not (in_code and line.strip()):
                in_code = not in_code
                lines.append("```python" if in_code else "```")
            lines.append(line)
    return "\n".join([*lines, *(["```"] if in_code else [])]).strip() + "\n"


def format_default(item: Field[Any] | None) -> str:
    if item is None or item.default is MISSING or callable(item.default):
        return ""
    return f"`{item.default!r}`"


def escape(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    DOCUMENT.write_text(page(), encoding="utf-8")
