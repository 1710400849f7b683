"""Where state lives: answers, datasets and runs, under one folder."""

import os
import re
from hashlib import sha256
from pathlib import Path

import platformdirs

from .errors import Problem

FOR_THE_USER = 0o700
"""Who may enter what is made here: answers, and whatever a server repeats in them, are private."""


def home(inside: str = "") -> Path:
    """The folder ``CDTA_HOME``, by default the platform's user data folder, or one in it.

    Raises:
        Problem: if the folder cannot be made.
    """
    given = os.environ.get("CDTA_HOME")
    path = Path(given or platformdirs.user_data_dir("cdta", appauthor=False))
    try:
        for folder in (path, path / inside):
            folder.mkdir(FOR_THE_USER, parents=True, exist_ok=True)
    except OSError as problem:
        raise Problem(
            f"cannot use {str(path)!r} to keep answers ({problem.strerror}); "
            "set CDTA_HOME to a folder you can write to"
        ) from None
    return path / inside


def answers_file() -> Path:
    """Where every answer is kept."""
    return home() / "answers.sqlite"


def safe_name(name: str) -> str:
    """A file name for any text: readable, never a path, different for different texts.

    >>> safe_name("gpt-4-0314")
    'gpt-4-0314'
    >>> safe_name("a/../../b")
    'a_.._.._b-feddf167'
    """
    readable = re.sub(r"[^A-Za-z0-9._-]+", "_", name)[:80].lstrip(".")
    if readable and readable == name:
        return name
    return f"{readable}-{sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
