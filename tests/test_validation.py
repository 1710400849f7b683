"""Validation of data from outside: an invalid value gives a one-sentence error."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest

from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.validation import check, parse


@dataclass(frozen=True)
class Part:
    number: int = 1

    def __post_init__(self) -> None:
        if self.number < 0:
            raise ValueError("a negative number")


@dataclass(frozen=True)
class Whole:
    __pydantic_config__: ClassVar[Mapping[str, Any]] = {"extra": "forbid", "allow_inf_nan": False}
    name: str
    share: float = 0.5
    kind: Literal["small", "large"] | None = None
    parts: tuple[Part, ...] = field(default=())
    file: Path | str | None = None


def test_values_become_an_instance() -> None:
    text = b'{"name": "x", "share": 1, "parts": [{"number": 2}]}'
    assert parse(Whole, text, "f") == Whole("x", 1.0, None, (Part(2),))
    assert parse(Whole, {"name": "\ud800", "kind": "small"}, "f") == Whole("\ud800", kind="small")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "f is not JSON: Expecting property name"),
        ("[" * 100_000, "f is not JSON: maximum recursion depth"),
        ("[]", r"f must be a table of values, not \[\]"),
        ("{}", "f is missing the key 'name'"),
        ('{"name": 3}', "'name' in f must be a text, not 3"),
        ('{"name": "x", "share": "a"}', "'share' in f must be a number, not 'a'"),
        ('{"name": "x", "share": NaN}', "'share' in f must be a finite number, not nan"),
        ('{"name": "x", "kind": "larg"}', r"unknown 'kind' in f: 'larg' \(did you mean 'large'\?"),
        ('{"name": "x", "kind": 3}', "'kind' in f must be 'small' or 'large', not 3"),
        ('{"name": "x", "parts": 3}', "'parts' in f must be a list, not 3"),
        (
            '{"name": "x", "parts": [{}, {"number": null}]}',
            r"'parts\[1\].number' in f must be a whole number, not None",
        ),
        (
            '{"name": "x", "parts": [{"number": -1}]}',
            r"'parts\[0\]' in f is not valid: a negative number",
        ),
        (
            '{"name": "x", "parts": [{"newer": 1}]}',
            r"unknown key in f: 'parts\[0\].newer'$",
        ),
        ('{"name": "x", "file": 3}', "'file' in f must be a path or a text, not 3"),
        ('{"name": "x", "shares": 3}', r"unknown key in f: 'shares' \(did you mean 'share' or"),
    ],
)
def test_invalid_values_give_a_one_sentence_error(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=f"^{message}"):
        parse(Whole, text, "f")


@pytest.mark.parametrize(
    ("hint", "value", "message"),
    [
        (int | None, True, "n must be a whole number, not True"),
        (float, float("inf"), "n must be a finite number, not inf"),
        (Path | str, 3, "n must be a Path or a text, not 3"),
        (tuple[str, ...], ["a", 3], r"n\[1\] must be a text, not 3"),
        (Part | str, 3, "n must be a Part or a text, not 3"),
    ],
)
def test_a_python_value_is_not_converted(hint: Any, value: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=f"^{message}$"):
        check(hint, value, "n")
    with pytest.raises(InvalidInput) as error:
        check(hint, value, "n", secret=True)
    assert "not" not in str(error.value)


def test_a_list_is_accepted_as_a_tuple() -> None:
    assert check(tuple[str, ...], ["a"], "n") == ("a",)
