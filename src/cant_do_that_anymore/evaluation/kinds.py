"""Whether what was read from a file is of the kinds that the types say."""

import types
from collections.abc import Mapping, Sequence
from math import isfinite
from reprlib import repr as shortened
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

Made = TypeVar("Made")


def checked(made: Made) -> Made:
    """The same, once every field is known to be what its type says.

    Raises:
        ValueError: naming the field that is not.
    """
    for name, kind in get_type_hints(type(made)).items():
        value = getattr(made, name)
        if not _is(value, kind):
            raise ValueError(f"{name} cannot be {shortened(value)}")
    return made


def _is(value: Any, kind: Any) -> bool:
    """Whether a value is of a kind; an infinite number is none."""
    outer, inner = get_origin(kind), get_args(kind)
    if outer is Literal:
        return any(value is one or (value == one and type(value) is type(one)) for one in inner)
    if outer in (Union, types.UnionType):
        return any(_is(value, one) for one in inner)
    if outer in (dict, Mapping):
        return isinstance(value, dict) and all(_is(one, inner[1]) for one in value.values())
    if outer in (list, tuple, Sequence):
        return isinstance(value, list | tuple) and all(_is(one, inner[0]) for one in value)
    if kind is float:
        return type(value) in (int, float) and abs(value) < 2**63 and isfinite(value)
    if kind is int:
        return type(value) is int and abs(value) < 2**63
    return kind is Any or isinstance(value, outer or kind)
