"""The arguments of the tasks (``-T``), and the spec that they and Inspect's options describe."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any, TypedDict

import click
from inspect_ai.model import GenerateConfig, Model, get_model
from inspect_ai.model._generate_config import active_generate_config  # has no public name

from ..errors import InvalidInput, UserError, also_spelled, unknown_value
from ..task.spec import Spec
from ..task.types import Eval, Reading


class Arguments(TypedDict, total=False):
    """The arguments of each task; all but ``samples`` are named as in ``cdta run``.

    Attributes:
        samples: how many items to draw, ``-n`` of ``cdta run``.
    """

    samples: int
    rules: str
    wording: str | list[str]
    form: str
    reading: Reading
    pool: str
    dataset: str
    seed: int
    diagnose: bool
    keep_looking: bool
    price: str | Sequence[float]
    max_cost: float


# Options of ``inspect eval`` that are fields of the spec.
CONFIG_OPTIONS = ("temperature", "max_tokens", "reasoning_effort", "extra_body")


def inspect_terms() -> AbstractContextManager[None]:
    """Name the arguments of the task, too, in the message of an error."""
    names = {"n": "samples"} | {name.replace("_", "-"): name for name in Arguments.__annotations__}
    return also_spelled("Inspect", {option: f"-T {name}=..." for option, name in names.items()})


@contextmanager
def click_errors() -> Iterator[None]:
    """Raise a ``UserError`` as an error of click, which Inspect prints without a stack trace."""
    try:
        with inspect_terms():
            yield
    except UserError as problem:
        kind = click.UsageError if isinstance(problem, InvalidInput) else click.ClickException
        raise kind(str(problem)) from None


def active_model() -> Model | None:
    """Return the model of the task, or None if there is none yet."""
    try:
        return get_model()
    except ValueError:
        return None


def spec_of(eval: Eval, arguments: Arguments) -> Spec:
    """Return the spec of a task for any model.

    Raises:
        InvalidInput: if an argument is unknown or invalid.
    """
    fields: dict[str, Any] = dict(arguments)
    for name in fields.keys() - Arguments.__annotations__.keys():
        raise unknown_value("argument", name, Arguments.__annotations__)
    return Spec(eval=eval, n=fields.pop("samples", None), **fields)


def config_of(model: Model) -> GenerateConfig:
    """Return all settings of the model in Inspect, such as ``inspect eval --top-p 0.9``."""
    return model.config.merge(active_generate_config())


def spec_for(spec: Spec, model: Model) -> Spec:
    """Return the spec of a task with the options of ``inspect eval`` for its model."""
    config = config_of(model)
    given = {name: getattr(config, name) for name in CONFIG_OPTIONS}
    return replace(spec, **{name: value for name, value in given.items() if value is not None})
