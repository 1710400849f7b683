"""Unique display names for the models of runs and of experiments."""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any

from ..providers.access import split_address
from ..providers.base import Effort
from ..providers.catalog import info_by_name
from ..runs.run import Run
from ..task.conditions import KNOWS_FORBIDDEN
from ..task.types import CHANGED_CONDITION, STANDARD_CONDITION


def unique_names(*levels: Sequence[str]) -> list[str]:
    """Return a unique name per item: the first of its names that no other item has.

    Each level has one name per item, shorter ones first. Names that several items share in the last
    level are numbered.

    >>> unique_names(["a", "b", "b"], ["a 1", "b 1", "b 2"]), unique_names(["a", "b", "a"])
    (['a', 'b 1', 'b 2'], ['a #1', 'b', 'a #2'])
    """
    last = list(levels[-1])
    while len(set(last)) < len(last):
        last = [
            f"{name} #{last[: index + 1].count(name)}" if last.count(name) > 1 else name
            for index, name in enumerate(last)
        ]
    levels = (*levels[:-1], last)
    names = [
        next(name for level, name in zip(levels, of_item, strict=True) if level.count(name) == 1)
        for of_item in zip(*levels, strict=True)
    ]
    return names if len(set(names)) == len(names) else last


def model_names(runs: Sequence[Run]) -> list[str]:
    """Return a display name per run: the requested one, unless other models share it.

    Else it is the model's version, with settings if several share that.
    """
    return unique_names([run.model for run in runs], _versions_with_settings(runs))


def _versions_with_settings(runs: Sequence[Run]) -> list[str]:
    names = []
    for run in runs:
        same = [_facts(other) for other in runs if other.version == run.version]
        columns = zip(_facts(run), *same, strict=True)
        differing = (text for text, *texts in columns if len(set(texts)) > 1)
        names.append(" ".join((run.version, *filter(None, differing))))
    return names


def _facts(run: Run) -> Iterator[str]:
    """Yield what may distinguish runs of one version, except the effort, as texts."""
    plan = run.plan
    yield run.model
    yield run.endpoint
    yield str(run.identity.get("tag", ""))
    yield plan.eval
    every_run = {STANDARD_CONDITION, CHANGED_CONDITION, *plan.interventions}
    others = [c.name for c in plan.conditions if c.name not in every_run]
    is_diagnosed = KNOWS_FORBIDDEN in others
    yield "diagnosed" if is_diagnosed else " ".join(("with", *others)) * bool(others)
    yield "with interventions" if plan.interventions else ""
    yield f"{plan.wording} wording"
    yield f"{plan.form.name} form"
    yield f"{plan.reading} reading"
    yield f"protocol {run.protocol}"
    yield f"on {run.dataset.origin} {run.words.items} {run.dataset.pool}".strip()
    at_effort = plan.select_effort if run.dataset.asked else None
    yield f"selected at {format_effort(at_effort)}" if at_effort else ""
    for field in fields(plan.settings):
        if field.name != "reasoning_effort" and not field.metadata.get("incidental"):
            value = getattr(plan.settings, field.name)
            yield f"{field.name.replace('_', ' ')} {format_value(value)}"


def format_effort(effort: Effort | None) -> str:
    """Format a reasoning effort; "none" is an effort, None means that none was requested.

    >>> format_effort("none"), format_effort(None)
    ('effort none', 'default effort')
    """
    return f"effort {effort}" if effort else "default effort"


def format_value(value: object) -> str:
    """Format a setting; None is the default of the model or the provider."""
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else "default" if value is None else str(value)


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
        InvalidInput: if a model has two addresses, or one that is invalid or contains a secret.
    """
    named_models: list[ModelFields] = []
    for model in given:
        model_fields = dict(model) if isinstance(model, dict) else {"model": model}
        address = model_fields.get("base_url") or base_url
        model_fields["model"], url = split_address(model_fields.get("model"), address)
        if url:
            info_by_name(_SERVED, url)  # rejects addresses that must not be printed or saved
        model_fields["base_url"] = url.rstrip("/") if url else None
        if model_fields not in named_models:
            named_models.append(model_fields)
    names = unique_names(*zip(*map(_titles, named_models), strict=True))
    return dict(zip(names, named_models, strict=True))


def _titles(model_fields: ModelFields) -> tuple[str, str, str]:
    """Return the possible names, shortest first."""
    name = model_fields["model"] or _SERVED
    with_url = f"{name}@{model_fields['base_url']}" if model_fields["base_url"] else name
    own = (
        f"{key}={model_fields[key]}" for key in sorted(model_fields.keys() - {"model", "base_url"})
    )
    return name, with_url, " ".join((with_url, *own))
