"""The arguments of the tasks (``-T``), which are options of `Spec`."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import click
from inspect_ai.model import GenerateConfig, Model, get_model
from inspect_ai.model._generate_config import active_generate_config  # has no public name

from ..errors import InvalidInput, UserError, also_spelled, unknown_value
from ..task.spec import OPTIONS, Spec, validate_option
from ..task.types import Eval

Arguments = Mapping[str, Any]

# Options of ``inspect eval`` that are fields of the spec; ``-T`` takes precedence.
CONFIG_OPTIONS = ("temperature", "max_tokens", "reasoning_effort", "extra_body")
# Options that Inspect has itself, and those that only ``cdta`` has.
_NOT_ARGUMENTS = {
    *("model", "base_url", "max_connections", "eval"),
    *("header", "tag", "fresh", "interventions"),
}
# The field of the spec for each argument.
ARGUMENTS = {
    "samples" if name == "n" else name: name for name in OPTIONS if name not in _NOT_ARGUMENTS
}


def inspect_terms() -> AbstractContextManager[None]:
    """Name the arguments of the task, too, in the message of an error."""
    options = {name.replace("_", "-"): f"-T {arg}=..." for arg, name in ARGUMENTS.items()}
    return also_spelled("Inspect", options)


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


def config_of(model: Model) -> GenerateConfig:
    """Return all settings of the model in Inspect, such as ``inspect eval --top-p 0.9``."""
    return model.config.merge(active_generate_config())


def spec_for(eval: Eval, arguments: Arguments, model: Model | None) -> Spec:
    """Build the spec of a task; options of ``inspect eval`` apply where the arguments are silent.

    Raises:
        InvalidInput: if an argument is invalid.
    """
    for name in arguments.keys() - ARGUMENTS.keys():
        raise unknown_value("argument", name, ARGUMENTS)
    config = config_of(model) if model else GenerateConfig()
    values = {name: getattr(config, name) for name in CONFIG_OPTIONS}
    values = {name: value for name, value in values.items() if value is not None}
    given = {ARGUMENTS[name]: value for name, value in arguments.items()}
    values |= {name: validate_option(name, value) for name, value in given.items()}
    return Spec(eval=eval, model=str(model) if model else None, **values)
