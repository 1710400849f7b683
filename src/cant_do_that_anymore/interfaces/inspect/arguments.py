"""What the tasks take, as a spec."""

from typing import Any, TypedDict

from inspect_ai.model import Model, get_model
from pydantic import TypeAdapter, ValidationError

from ...errors import InvalidInput, unknown_value
from ...task.spec import Spec
from ...task.types import Eval, Reading
from .models import OF_THE_SPEC, config_of

FIELDS = {"samples": "n"}
"""Arguments with a name of their own: what field of the spec they are."""


class Arguments(TypedDict, total=False):
    """What ``-T`` takes: fields of `Spec`, which says what they mean and what they default to."""

    rules: str
    wording: str
    reading: Reading
    samples: int
    seed: int
    temperature: float
    max_tokens: int
    reasoning_effort: str
    reasoning_tokens: int
    select_effort: str
    extra_body: dict[str, Any]
    pool: str
    dataset: str
    diagnose: bool
    precision: float
    price: str
    max_cost: float
    ask_above: float
    keep_looking: bool


def active_model() -> Model | None:
    """The model of the task, if that is known already."""
    try:
        return get_model()
    except ValueError:
        return None


def spec_for(eval: Eval, arguments: Arguments, model: Model | None) -> Spec:
    """The spec, with values of the types of its fields: ``-T`` guesses them from the text.

    What the arguments do not say is as Inspect was told for the model.

    Raises:
        InvalidInput: if something cannot work.
    """
    for name in arguments.keys() - Arguments.__annotations__.keys():
        raise unknown_value("argument", name, Arguments.__annotations__)
    if arguments.get("precision"):
        raise InvalidInput(
            "precision cannot end a task of Inspect: give samples instead, or measure with "
            "cdta run --precision"
        )
    told = {name: getattr(config_of(model), name) for name in OF_THE_SPEC} if model else {}
    given = told | {FIELDS.get(name, name): value for name, value in arguments.items()}
    given |= {"eval": eval, "model": str(model) if model else None}
    try:
        fields = {name: value for name, value in given.items() if value is not None}
        return TypeAdapter(Spec).validate_python(fields)
    except ValidationError as problem:
        fault = problem.errors()[0]
        if not fault["loc"]:  # the spec's own sentence
            raise InvalidInput(str(fault["ctx"]["error"])) from None
        names = {field: name for name, field in FIELDS.items()}
        name = names.get(str(fault["loc"][0]), str(fault["loc"][0]))
        raise InvalidInput(
            f"-T {name}={fault['input']} cannot work: {fault['msg'].lower()}"
        ) from None
