"""Unique display names for runs and models."""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any

from ..providers.access import split_address
from ..providers.base import Effort
from ..providers.catalogue import info_by_name
from ..runs.results import Run


def labels(runs: Sequence[Run]) -> list[str]:
    """Return a display name per run: the model's version, plus settings if several share it."""
    names = [run.version for run in runs]
    for name in dict.fromkeys(names):
        same = [index for index, label in enumerate(names) if label == name]
        for index, suffix in zip(
            same, _distinguishing_suffixes([runs[index] for index in same]), strict=True
        ):
            names[index] += suffix
    return apart(names)


def apart(names: Sequence[str]) -> list[str]:
    """Number the names that occur more than once.

    >>> apart(["a", "b", "a"])
    ['a #1', 'b', 'a #2']
    """
    unique = list(names)
    while len(set(unique)) < len(unique):
        unique = [
            f"{name} #{unique[: index + 1].count(name)}" if unique.count(name) > 1 else name
            for index, name in enumerate(unique)
        ]
    return unique


def _distinguishing_suffixes(runs: Sequence[Run]) -> list[str]:
    if len(runs) == 1:
        return [""]
    facts = [dict(_facts(run)) for run in runs]
    names = [name for name in facts[0] if len({fact[name] for fact in facts}) > 1]
    return ["".join(f" {fact[name]}" for name in names if fact[name]) for fact in facts]


def _facts(run: Run) -> Iterator[tuple[str, str]]:
    """Yield what may distinguish runs of one version: name and text."""
    plan = run.plan
    yield "model", run.model
    yield "endpoint", run.endpoint
    yield "tag", str(run.identity.get("tag", ""))
    yield "eval", plan.eval
    yield "conditions", "" if len(plan.conditions) == 2 else "diagnosed"
    yield "wording", f"{plan.wording} wording"
    yield "reading", f"{plan.reading} reading"
    yield "protocol", f"protocol {run.protocol}"
    yield "positions", f"on {run.dataset.origin} positions {run.dataset.pool}".strip()
    effort = plan.settings.reasoning_effort
    yield "effort", effort_in_words(effort)
    elsewhere = run.dataset.asked and plan.select_effort != effort
    yield "selected", f"selected at {effort_in_words(plan.select_effort)}" if elsewhere else ""
    yield "selection", f"selected {run.dataset.selection}" if run.dataset.selection else ""
    for field in fields(plan.settings):
        if field.name != "reasoning_effort" and not field.metadata.get("incidental"):
            value = getattr(plan.settings, field.name)
            yield field.name, f"{field.name.replace('_', ' ')} {shown(value)}"


def effort_in_words(effort: Effort | None) -> str:
    """Format a reasoning effort; "none" is an effort, None means that none was requested.

    >>> effort_in_words("none"), effort_in_words(None)
    ('effort none', 'its own effort')
    """
    return f"effort {effort}" if effort else "its own effort"


def shown(value: object) -> str:
    """Format a setting; None is the default of the model or the provider."""
    return f"{value:g}" if isinstance(value, float) else "its own" if value is None else str(value)


# Display name of a server's only model.
_SERVED = "served"
# Fields of a spec by name: model, address, the model's own settings, and its ``efforts``.
Entrant = dict[str, Any]


def unique_names(
    given: Sequence[str | Entrant | None], base_url: str | None = None
) -> dict[str, Entrant]:
    """Return the models by unique display name.

    That is the model's name, with the address if several share the name, and with the settings if
    they share both.

    Args:
        given: names as `split_address` takes them, None for a server's only model, or fields.
        base_url: the server of all of them.

    >>> list(unique_names(["a", "b@http://x", "b@http://y"]))
    ['a', 'b@http://x', 'b@http://y']

    Raises:
        InvalidInput: if a model has two addresses, or one that is invalid or contains a secret.
    """
    entries = [dict(model) if isinstance(model, dict) else {"model": model} for model in given]
    for entry in entries:
        address = entry.get("base_url") or base_url
        entry["model"], url = split_address(entry.get("model"), address)
        if url:
            info_by_name(_SERVED, url)  # rejects addresses that must not be printed or saved
        entry["base_url"] = url.rstrip("/") if url else None
    entrants = [entry for index, entry in enumerate(entries) if entry not in entries[:index]]
    levels = list(zip(*map(_titles, entrants), strict=True))
    by_name: dict[str, Entrant] = {}
    for index, entry in enumerate(entrants):
        unique = (titles[index] for titles in levels if titles.count(titles[index]) == 1)
        by_name[next(unique, levels[-1][index])] = entry
    return by_name


def _titles(entrant: Entrant) -> tuple[str, str, str]:
    """Return the possible names, shortest first; the last is unique."""
    name = entrant["model"] or _SERVED
    with_url = f"{name}@{entrant['base_url']}" if entrant["base_url"] else name
    own = (f"{key}={entrant[key]}" for key in sorted(entrant.keys() - {"model", "base_url"}))
    return name, with_url, " ".join((with_url, *own))
