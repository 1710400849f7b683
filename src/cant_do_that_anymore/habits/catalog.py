"""All changes that can be measured, by key, file or value."""

from operator import attrgetter
from pathlib import Path
from typing import Any

from ..errors import InvalidInput, shortlist, unknown_value
from ..validation import parse
from .base import Change, Form, Habit
from .chess.habit import CHESS
from .chess.rules import CATALOG, resolve_rules
from .questions import (
    Meaning,
    QuestionChange,
    Questions,
    read_change,
    shipped_change,
    shipped_keys,
)

# Stands for all changes of all habits.
ALL = "all"
# Habits by the folder of their texts, which decides how their items are read.
KINDS: dict[str, Habit] = {habit.folder: habit for habit in (CHESS, Questions(""))}
# The ways of showing a position. The default also stands for the only form of other habits.
FORMS = CHESS.forms
DEFAULT_FORM = CHESS.form.name


def changes_named(name: str) -> dict[str, Change]:
    """Return the changes that a name stands for: all, those of a habit, or none."""
    of_chess = (rules for rules in CATALOG.values() if rules.forbids_something)
    of_questions = sorted(map(shipped_change, shipped_keys()), key=attrgetter("habit"))
    changes: tuple[Change, ...] = (*of_chess, *of_questions)
    return {change.key: change for change in changes if name in (ALL, change.its_habit.name)}


def resolve_change(value: Any) -> Change:
    """Return a change given by its key, as a TOML file, or as a value.

    Raises:
        InvalidInput: if there is no such change, or it cannot be used.
    """
    if isinstance(value, str) and value.endswith(".py"):
        raise InvalidInput(
            f"{value}: give own rules of chess in Python, with Spec(rules=...) (docs/rules.md)"
        )
    if isinstance(value, str | Path) and str(value).endswith(".toml"):
        value = read_change(Path(value))
    if isinstance(value, str):
        return _change_named(value)
    if not isinstance(value, QuestionChange):
        return resolve_rules(value)
    if value.identity != value.key and value.key in (*CATALOG, *shipped_keys()):
        raise InvalidInput(
            f"the key {value.key!r} is that of a change in the catalog; give yours another name"
        )
    return value


def _change_named(key: str) -> Change:
    if key in CATALOG:
        return CATALOG[key]
    if key in shipped_keys():
        return shipped_change(key)
    if several := changes_named(key):
        raise InvalidInput(f"{key!r} stands for several rules; give one: {shortlist([*several])}")
    raise unknown_value("rules", key, [*changes_named(ALL), "FILE.toml"])


def form_for(change: Change, name: str) -> Form:
    """Return a form of a change's items.

    Raises:
        InvalidInput: if there is no such form.
    """
    habit = change.its_habit
    if name == DEFAULT_FORM:
        return habit.form
    if name not in habit.forms:
        raise unknown_value("form", name, habit.forms)
    return habit.forms[name]


def saved_change(change: Change) -> Any:
    """Return what a file needs to restore a change; None for rules of chess that are code.

    Of what questions mean as usual, or under a placebo, it is the change.
    """
    if isinstance(change, Meaning):
        change = change.of
    if change.identity == change.key:
        return change.key
    return change.to_json() if isinstance(change, QuestionChange) else None


def restored_change(saved: Any) -> Change:
    """Return a change from a file; one of the user's own comes without its items.

    Raises:
        InvalidInput: if it cannot be restored.
    """
    if isinstance(saved, dict):
        return parse(QuestionChange, saved | {"items": []}, "the saved change")
    return resolve_change(saved)
