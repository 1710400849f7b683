"""The arguments of the tasks (``-T``): the options of `Spec`, as a spec."""

from collections.abc import Mapping
from typing import Any

from inspect_ai.model import Model, get_model

from ..errors import InvalidInput, unknown_value
from ..task.spec import OPTIONS, Spec, parse_option
from ..task.types import Eval
from .model import SPEC_OPTIONS, config_of

Arguments = Mapping[str, Any]

# The task's name, and options of ``inspect eval`` itself. Inspect's log keeps the answers.
NOT_ARGUMENTS = (
    *("model", "base_url", "header", "eval", "max_connections", "max_error_rate", "batch"),
    *("tag", "fresh", "interventions"),
)
# The field of the spec for each argument.
ARGUMENTS = {
    "samples" if name == "n" else name: name for name in OPTIONS if name not in NOT_ARGUMENTS
}


def active_model() -> Model | None:
    """Return the model of the task, or None if there is none yet."""
    try:
        return get_model()
    except ValueError:
        return None


def spec_for(eval: Eval, arguments: Arguments, model: Model | None) -> Spec:
    """Build the spec of a task; options of ``inspect eval`` apply where the arguments are silent.

    Raises:
        InvalidInput: if an argument is invalid.
    """
    for name in arguments.keys() - ARGUMENTS.keys():
        raise unknown_value("argument", name, ARGUMENTS)
    if arguments.get("precision"):
        raise InvalidInput(
            "Inspect tasks do not support precision; use samples, or cdta run --precision"
        )
    values = {name: getattr(config_of(model), name) for name in SPEC_OPTIONS} if model else {}
    for name, value in arguments.items():
        try:
            values[ARGUMENTS[name]] = parse_option(ARGUMENTS[name], value)
        except InvalidInput as problem:
            raise InvalidInput(f"-T {name}={value} is not valid: {problem}") from None
    given = {name: value for name, value in values.items() if value is not None}
    return Spec(eval=eval, model=str(model) if model else None, **given)
