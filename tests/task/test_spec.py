"""What can be asked of a run from Python: every field is of its type, or refused in a sentence."""

from dataclasses import MISSING, Field, fields
from pathlib import Path
from types import MappingProxyType, NoneType
from typing import Any, get_args, get_type_hints

import pytest

from cant_do_that_anymore import Spec, evaluate, load
from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.game.rules import CATALOGUE
from own_rules import NoEnPassant
from processes import cdta, oaieval

OF_NO_KIND = [object(), b"5", 1j, {5}, [1j], (None,), NoEnPassant]
WRONG: dict[Any, list[object]] = {
    int: ["5", 2.5, True, 2**63, -(2**63), 10**40],
    float: ["1", True, 1e30, 2**63],
    bool: [1, 0.0, "yes"],
    str: [5, 1.0, True, Path("x"), ["x"]],
}
SEEDS = [-(2**63) + 1, 2**63 - 1]


def wrong_for(field: Field[Any]) -> list[Any]:
    """Values that the field cannot have, by its type."""
    hint = get_type_hints(Spec)[field.name]
    kinds = {*get_args(hint)} - {NoneType} or {hint}
    return [*OF_NO_KIND, *(WRONG.get(kinds.pop(), []) if len(kinds) == 1 else [])]


@pytest.mark.parametrize("field", fields(Spec), ids=lambda field: field.name)
def test_a_field_of_a_wrong_type_is_refused_in_one_sentence(field: Field[Any]) -> None:
    for value in wrong_for(field):
        with pytest.raises(InvalidInput) as told:
            Spec(**{field.name: value})
        assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"n": "5"}, "n must be a whole number, not '5'"),
        ({"temperature": "1"}, "temperature must be a number, not '1'"),
        ({"fresh": "no"}, "fresh must be True or False, not 'no'"),
        ({"dataset": 5}, "dataset must be a path or a text, not 5"),
        ({"price": (1, "x")}, "price must be a tuple of numbers or a text, not (1, 'x')"),
        ({"header": ("a=secret", 5)}, "header must be a tuple of texts"),
        ({"seed": 2**64}, f"seed must be a whole number between -2**63 and 2**63, not {2**64}"),
    ],
)
def test_the_sentence_says_what_would_work_and_shows_no_secret(
    given: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InvalidInput) as told:
        Spec(**given)
    assert str(told.value) == sentence


@pytest.mark.parametrize("field", fields(Spec), ids=lambda field: field.name)
def test_what_a_field_is_by_default_may_be_given(field: Field[Any]) -> None:
    assert field.default is not MISSING
    assert Spec(**{field.name: field.default}) == Spec()


@pytest.mark.parametrize(
    ("given", "same"),
    [
        ({"temperature": 1, "max_cost": 5}, {"temperature": 1.0, "max_cost": 5.0}),
        ({"price": [5, 20]}, {"price": "5,20"}),
        ({"header": ["a=b"]}, {"header": ("a=b",)}),
        ({"header": "a=b"}, {"header": ("a=b",)}),
        ({"conditions": ["standard", "changed"]}, {}),
        ({"extra_body": MappingProxyType({"a": 1})}, {"extra_body": '{"a": 1}'}),
    ],
)
def test_values_that_mean_the_same_are_taken(given: dict[str, Any], same: dict[str, Any]) -> None:
    assert Spec(**given) == Spec(**same)


def test_a_field_of_several_types_takes_each_of_them() -> None:
    Spec(dataset=Path("x"), rules=NoEnPassant(), n=None, ask_above=None, seed=-1)
    Spec(dataset="x", rules=CATALOGUE["no-castling"], n=1, ask_above=1)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_with_any_seed_that_is_taken_can_be_read(seed: int) -> None:
    run = evaluate(Spec(model="cdta/random", eval="all_diagonal", n=2, seed=seed), quiet=True)
    assert load(run.save()).samples == run.samples


def test_a_seed_that_no_file_could_hold_is_refused_by_every_command() -> None:
    told = "seed must be a whole number between -2**63 and 2**63"
    for command in ("run", "experiment", "estimate"):
        refused = cdta(command, "--model", "cdta/random", "-n", 2, "--seed", SEEDS[1] + 1)
        assert (refused.returncode, told in refused.stderr) == (2, True), command
    refused = oaieval("cdta/random", "cant_do_that_anymore.all_small", "--seed", SEEDS[1] + 1)
    assert (refused.returncode, told in refused.stderr) == (2, True)
