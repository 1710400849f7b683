"""The options of a run: invalid values are refused in one sentence."""

from dataclasses import Field, fields, replace
from pathlib import Path
from types import MappingProxyType, NoneType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import pytest
from annotated_types import Ge, Gt, Le, Lt

from cant_do_that_anymore import Spec
from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.task.spec import validate_option
from custom_rules import NoEnPassant

INVALID = [object(), b"5", 1j, {5}, [1j], (None,), NoEnPassant]
WRONG_TYPES: dict[Any, list[object]] = {
    int: [2.5, True],
    float: [True, float("inf"), float("nan")],
    bool: [1, 0.0],
    str: [5, 1.0, True, Path("x"), ["x"]],
}
BOUNDS = [
    (name, bound)
    for name, hint in get_type_hints(Spec, include_extras=True).items()
    if get_origin(hint) is Annotated
    for bound in hint.__metadata__
]
every_field = pytest.mark.parametrize("field", fields(Spec), ids=lambda field: field.name)


@every_field
def test_a_field_accepts_its_default_and_refuses_other_types(field: Field[Any]) -> None:
    default: Any = field.default
    assert Spec(**{field.name: default}) == Spec()
    hint = get_type_hints(Spec)[field.name]
    types = {*get_args(hint)} - {NoneType} or {hint}
    values: list[Any] = [*INVALID, *(WRONG_TYPES.get(types.pop(), []) if len(types) == 1 else [])]
    for value in values:
        with pytest.raises(InvalidInput) as error:
            Spec(**{field.name: value})
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(("name", "bound"), BOUNDS, ids=str)
def test_a_number_beyond_a_bound_is_refused(name: str, bound: Ge | Gt | Le | Lt) -> None:
    word = fields(bound)[0].name
    limit = getattr(bound, word)
    phrase, step = {
        "ge": ("greater than or equal to", -1),
        "gt": ("above", 0),
        "le": ("at most", 1),
    }.get(word, ("less than", 0))
    outside = limit + step
    if step:
        assert getattr(Spec(**{name: limit}), name) == limit
    for build in (lambda: Spec(**{name: outside}), lambda: validate_option(name, str(outside))):
        with pytest.raises(InvalidInput, match=rf"^{name} must be {phrase} \S+, not '?{outside}"):
            build()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dataset": 5}, "dataset must be a valid string or an instance of Path, not 5"),
        ({"price": (1, "x")}, "price must be IN,OUT in US dollars per million tokens, "),
        ({"price": "-1,2"}, "price must be IN,OUT"),
        ({"max_cost": float("nan")}, "max_cost must be a finite number, not "),
        ({"header": ("a=secret", b"secret")}, "header[1] must be a valid string"),
        ({"extra_body": "[1]"}, 'extra_body must be a JSON object such as {"top_k": 20}, not '),
        (
            {"extra_body": {"stream": True}},
            "extra_body may not contain 'stream', which other options",
        ),
        ({"pool": "games", "dataset": "gpt-4-0314"}, "give a pool or a dataset, not both"),
        (
            {"model": "m@http://x", "base_url": "http://y"},
            "give one address: 'm@http://x' has one, ",
        ),
    ],
)
def test_an_invalid_spec_is_refused_without_showing_secrets(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput) as error:
        Spec(**options)
    assert str(error.value).startswith(message)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    ("options", "same"),
    [
        ({"temperature": 1, "max_cost": 5}, {"temperature": 1.0, "max_cost": 5.0}),
        ({"price": [5, 20]}, {"price": "5,20"}),
        ({"header": "a=b"}, {"header": ("a=b",)}),
        ({"extra_body": MappingProxyType({"a": 1})}, {"extra_body": '{"a": 1}'}),
        ({"model": "m@http://x"}, {"model": "m", "base_url": "http://x"}),
    ],
)
def test_equivalent_values_give_equal_specs(options: dict[str, Any], same: dict[str, Any]) -> None:
    spec = Spec(**options)
    assert spec == Spec(**same) == replace(spec) == replace(Spec(), **options)
    assert hash(spec) == hash(Spec(**same))
