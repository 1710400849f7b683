"""Unique display names for the models of runs and of experiments."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from ..formatting import format_setting, last_part
from ..providers.access import split_address
from ..runs.run import Run
from ..task.option_info import LIMITS
from ..task.spec import OPTIONS

# Options that cannot change an answer.
WITHOUT_EFFECT = {name for name, info in OPTIONS.items() if info.heading == LIMITS}
# Those that lists of runs show in columns of their own, or that another one implies.
_UNNAMED = {"model", "base_url", "tag", "rules", "n", "select_effort"} | WITHOUT_EFFECT


def told_apart(names: Sequence[str], facts: Iterable[Sequence[str]]) -> list[str]:
    """Return names that are unique: those that are not get facts that differ, or else a number.

    Args:
        names: one per item.
        facts: what may be added to the names, one sequence after the other.

    >>> told_apart(["a", "b", "b"], [["", "", ""], [" 1", " 2", " 3"]])
    ['a', 'b 2', 'b 3']
    >>> told_apart(["a", "a"], [])
    ['a #1', 'a #2']
    """
    unique = list(names)
    numbers = [f" #{number}" for number in range(1, len(unique) + 1)]
    for additions in (*facts, numbers):
        different = Counter(name for name, _ in set(zip(unique, additions, strict=True)))
        unique = [
            f"{name}{addition}" if different[name] > 1 else name
            for name, addition in zip(unique, additions, strict=True)
        ]
    return unique


def facts_of(run: Run) -> list[str]:
    """Return what may distinguish a run from others of its model, as additions to its name."""
    options = {**run.options, **asdict(run.plan.settings)}
    texts = [
        *(str(run.identity.get("tag", "")), run.endpoint, f"({run.version})", f"({run.model})"),
        *(option_text(name, options.get(name)) for name in OPTIONS),
        run.started_at.replace("T", " ").removesuffix("Z"),
    ]
    return [f" {text}" if text else "" for text in texts]


def option_text(name: str, value: Any) -> str:
    """Return what tells a run with this option from one without, such as its wording."""
    if name in _UNNAMED or value is None:
        return ""
    if name == "eval":
        return str(value)
    if name == "interventions":
        return f"{len(value)} interventions"
    title = name.removeprefix("reasoning_").replace("_", " ")
    return title if value is True else f"{title} {last_part(format_setting(value))}"


# Display name of a server's only model.
_SERVED = "served"
# Fields of a spec by name: model, address, the model's own settings, and its ``efforts``.
ModelFields = dict[str, Any]


def models_by_name(
    given: Sequence[str | ModelFields | None], base_url: str | None = None
) -> dict[str, ModelFields]:
    """Return the models by unique display name.

    That is the model's name, with the address if several share the name, and with the settings if
    they share both.

    Args:
        given: names as `split_address` takes them, None for a server's only model, or fields.
        base_url: the server of all of them.

    >>> list(models_by_name(["a", "b@http://x", "b@http://y"]))
    ['a', 'b@http://x', 'b@http://y']

    Raises:
        InvalidInput: if a model has two addresses.
    """
    models: list[ModelFields] = []
    for model in given:
        model_fields = dict(model) if isinstance(model, dict) else {"model": model}
        address = model_fields.get("base_url") or base_url
        name, url = split_address(model_fields.get("model"), address)
        model_fields |= {"model": name, "base_url": url.rstrip("/") if url else None}
        if model_fields not in models:
            models.append(model_fields)
    names = [each["model"] or _SERVED for each in models]
    addresses = [f"@{each['base_url']}" if each["base_url"] else "" for each in models]
    return dict(zip(told_apart(names, [addresses, list(map(_own, models))]), models, strict=True))


def _own(model_fields: ModelFields) -> str:
    """Return the settings of a model that has its own."""
    own = sorted(model_fields.keys() - {"model", "base_url"})
    return "".join(f" {key}={model_fields[key]}" for key in own)
