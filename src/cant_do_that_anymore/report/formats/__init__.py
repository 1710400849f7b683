"""Formats of tables besides the terminal's, each a module here.

A module has ``leaderboards`` and ``comparison``.
"""

from importlib import import_module
from types import ModuleType

# The help of the option ``--NAME``, by name of the module.
TABLE_FORMATS = {"markdown": "Print Markdown tables, as for GitHub."}


def table_format(name: str) -> ModuleType:
    """Import the module of a format."""
    return import_module(f".{name}", __name__)
