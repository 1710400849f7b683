"""Whether what was given, or read from a file, is of the kinds that the types say."""

import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import Field, fields
from functools import cache
from math import isfinite
from pathlib import Path
from reprlib import repr as shortened
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from ..errors import InvalidInput
from ..game.rules import Rules

Made = TypeVar("Made")

LIMIT = 2**63
"""No number is this large: others could not read it from a file."""
_WORDS: dict[Any, str] = {
    **{str: "a text", int: "a whole number", float: "a number", bool: "True or False"},
    **{Mapping: "a mapping", Path: "a path", Rules: "a value such as MyRule()"},
}


def checked(made: Made) -> Made:
    """The same, once every field is known to be what its type says.

    Raises:
        ValueError: naming the field that is not.
    """
    for field, _, value in _misfits(made):
        raise ValueError(f"{field.name} cannot be {shortened(value)}")
    return made


def check_given(made: object) -> None:
    """Refuse a field that is not what its type says; what is not to be shown is not.

    Raises:
        InvalidInput: saying what it can be.
    """
    for field, kind, value in _misfits(made):
        large = isinstance(value, int | float) and abs(value) >= LIMIT
        told = f"{field.name} must be {_in_words(kind)}" + " between -2**63 and 2**63" * large
        raise InvalidInput(told + (f", not {shortened(value)}" if field.repr else ""))


def _misfits(made: Any) -> Iterator[tuple[Field[Any], Any, Any]]:
    """Every field that is not of its kind, the kind, and the value."""
    kinds = _kinds(made.__class__)
    for field in fields(made):
        kind, value = kinds[field.name], getattr(made, field.name)
        if not _is(value, kind):
            yield field, kind, value


@cache
def _kinds(of: type) -> dict[str, Any]:
    return get_type_hints(of)


def _in_words(kind: Any) -> str:
    outer, inner = get_origin(kind), get_args(kind)
    if outer in (Union, types.UnionType):
        *others, last = (_in_words(one) for one in inner if one is not types.NoneType)
        return f"{', '.join(others)} or {last}" if others else last
    if outer is Literal:
        return " or ".join(map(repr, inner))
    if outer is tuple:
        return f"a tuple of {_in_words(inner[0]).removeprefix('a ')}s"
    return _WORDS[outer or kind]


def _is(value: Any, kind: Any) -> bool:
    """Whether a value is of a kind; an infinite number is none."""
    outer, inner = get_origin(kind), get_args(kind)
    if outer is Literal:
        return any(value is one or (value == one and type(value) is type(one)) for one in inner)
    if outer in (Union, types.UnionType):
        return any(_is(value, one) for one in inner)
    if outer in (dict, Mapping):
        return isinstance(value, Mapping) and all(_is(one, inner[1]) for one in value.values())
    if outer in (list, tuple, Sequence):
        return isinstance(value, list | tuple) and all(_is(one, inner[0]) for one in value)
    if kind in (int, float):
        fits = isinstance(value, kind | int) and not isinstance(value, bool)
        return fits and abs(value) < LIMIT and isfinite(value)
    return kind is Any or isinstance(value, outer or kind)
