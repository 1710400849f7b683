"""Unique display names for the models of runs and of experiments."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from ..formatting import format_setting, last_part
from ..providers.access import split_address
from ..providers.base import Effort
from ..providers.catalog import parse_name
from ..runs.run import Run
from ..task.spec import OPTIONS

# Options that cannot change an answer, or that lists of runs show in columns of their own.
_UNNAMED = {
    *("model", "base_url", "tag", "rules", "n", "select_effort"),
    *("max_cost", "max_connections", "price", "keep_looking", "fresh"),
}


def told_apart(
    names: Sequence[str], facts: Iterable[Sequence[str]], kinds: Sequence[str] = ()
) -> list[str]:
    """Return names that are unique: those that are not get facts that differ, or else a number.

    Args:
        names: one per item.
        facts: what may be added to the names, one sequence after the other until they are unique.
        kinds: items of different kinds may share a name.

    >>> told_apart(["a", "b", "b"], [["", "", ""], [" 1", " 2", " 3"]])
    ['a', 'b 2', 'b 3']
    >>> told_apart(["a", "a"], [])
    ['a #1', 'a #2']
    """
    kinds = kinds or [""] * len(names)
    numbers = [f" #{number}" for number in range(1, len(names) + 1)]
    for additions in (*facts, numbers):
        ambiguous = _ambiguous(names, additions, kinds)
        names = [
            f"{name}{addition}" if name in ambiguous else name
            for name, addition in zip(names, additions, strict=True)
        ]
    return list(names)


def _ambiguous(names: Sequence[str], additions: Sequence[str], kinds: Sequence[str]) -> set[str]:
    """Return the names that several items of one kind have, if the additions to them differ."""
    different = Counter(name for name, _ in set(zip(names, additions, strict=True)))
    counts = Counter(zip(names, kinds, strict=True))
    return {name for (name, _), n in counts.items() if n > 1 and different[name] > 1}


def run_names(runs: Sequence[Run], efforts: Sequence[str]) -> list[str]:
    """Return a display name per run, the same for all efforts of a model."""
    facts = zip(*map(_facts, runs), strict=True)
    return told_apart([last_part(run.model) for run in runs], facts, efforts)


def _facts(run: Run) -> list[str]:
    """Return what may distinguish a run from others of its model, as additions to its name."""
    options = (name for name in OPTIONS if name not in ("seed", "reasoning_effort"))
    texts = [
        *(str(run.identity.get("tag", "")), run.endpoint, f"({run.version})", f"({run.model})"),
        *(option_text(name, run.options.get(name)) for name in options),
        *(f"seed {run.plan.settings.seed}", run.started_at.replace("T", " ").removesuffix("Z")),
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
    title = name.replace("_", " ")
    return title if value is True else f"{title} {last_part(format_setting(value))}"


def format_effort(effort: Effort | None) -> str:
    """Format a reasoning effort; "none" is an effort, None means that none was requested.

    >>> format_effort("none"), format_effort(None)
    ('effort none', 'default effort')
    """
    return f"effort {effort}" if effort else "default effort"


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
    models: list[ModelFields] = []
    for model in given:
        model_fields = dict(model) if isinstance(model, dict) else {"model": model}
        address = model_fields.get("base_url") or base_url
        model_fields["model"], url = split_address(model_fields.get("model"), address)
        if url:
            parse_name(_SERVED, url).info()  # rejects addresses that must not be printed or saved
        model_fields["base_url"] = url.rstrip("/") if url else None
        if model_fields not in models:
            models.append(model_fields)
    addresses = [f"@{each['base_url']}" if each["base_url"] else "" for each in models]
    names = [each["model"] or _SERVED for each in models]
    return dict(zip(told_apart(names, [addresses, list(map(_own, models))]), models, strict=True))


def _own(model_fields: ModelFields) -> str:
    """Return the settings of a model that has its own."""
    own = sorted(model_fields.keys() - {"model", "base_url"})
    return "".join(f" {key}={model_fields[key]}" for key in own)
