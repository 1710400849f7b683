"""Unique display names for runs and models."""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any

from ..providers.base import Effort
from ..providers.catalogue import info_by_name
from ..providers.http import split_address
from ..runs.results import Run


def labels(runs: Sequence[Run]) -> list[str]:
    """The model's version, with as much more as tells those of one name apart."""
    found = [run.version for run in runs]
    for name in dict.fromkeys(found):
        same = [index for index, label in enumerate(found) if label == name]
        for index, more in zip(same, _told_apart([runs[index] for index in same]), strict=True):
            found[index] += more
    return apart(found)


def apart(names: Sequence[str]) -> list[str]:
    """The names, with a number behind those that several have.

    >>> apart(["a", "b", "a"])
    ['a #1', 'b', 'a #2']
    """
    found = list(names)
    while len(set(found)) < len(found):
        found = [
            f"{name} #{found[: place + 1].count(name)}" if found.count(name) > 1 else name
            for place, name in enumerate(found)
        ]
    return found


def _told_apart(runs: Sequence[Run]) -> list[str]:
    if len(runs) == 1:
        return [""]
    facts = [dict(_facts(run)) for run in runs]
    names = [name for name in facts[0] if len({fact[name] for fact in facts}) > 1]
    return ["".join(f" {fact[name]}" for name in names if fact[name]) for fact in facts]


def _facts(run: Run) -> Iterator[tuple[str, str]]:
    """What may tell runs of one version apart, in words, by name."""
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
    for each in fields(plan.settings):
        if each.name != "reasoning_effort" and not each.metadata.get("incidental"):
            value = getattr(plan.settings, each.name)
            yield each.name, f"{each.name.replace('_', ' ')} {shown(value)}"


def effort_in_words(effort: Effort | None) -> str:
    """How much a model was asked to think; "none" is an effort, and not asking is another thing.

    >>> effort_in_words("none"), effort_in_words(None)
    ('effort none', 'its own effort')
    """
    return f"effort {effort}" if effort else "its own effort"


def shown(value: object) -> str:
    """A setting as text; what is not set is the model's or the provider's own."""
    return f"{value:g}" if isinstance(value, float) else "its own" if value is None else str(value)


_SERVED = "served"
"""What the only model of a server is called."""
Entrant = dict[str, Any]
"""Fields of a spec by name: model, address, what is set for it alone, and its ``efforts``."""


def unique_names(
    given: Sequence[str | Entrant | None], base_url: str | None = None
) -> dict[str, Entrant]:
    """Models, by what they are called among each other.

    That is the name, with the address where several share the name, and with the settings where
    they share both.

    Args:
        given: names as `split_address` takes them, None for the only model of a server, or fields.
        base_url: the server of all of them.

    >>> list(unique_names(["a", "b@http://x", "b@http://y"]))
    ['a', 'b@http://x', 'b@http://y']

    Raises:
        InvalidInput: if one has two addresses, or one that is none or holds a secret.
    """
    told = [dict(one) if isinstance(one, dict) else {"model": one} for one in given]
    for one in told:
        address = one.get("base_url") or base_url
        one["model"], url = split_address(one.get("model"), address)
        if url:
            info_by_name(_SERVED, url)  # refuses what may not be told and kept from here on
        one["base_url"] = url.rstrip("/") if url else None
    entrants = [one for place, one in enumerate(told) if one not in told[:place]]
    levels = list(zip(*map(_titles, entrants), strict=True))
    found: dict[str, Entrant] = {}
    for place, one in enumerate(entrants):
        unique = (titles[place] for titles in levels if titles.count(titles[place]) == 1)
        found[next(unique, levels[-1][place])] = one
    return found


def _titles(entrant: Entrant) -> tuple[str, str, str]:
    """From the shortest on; the last tells it from all others."""
    name = entrant["model"] or _SERVED
    at = f"{name}@{entrant['base_url']}" if entrant["base_url"] else name
    own = (f"{key}={entrant[key]}" for key in sorted(entrant.keys() - {"model", "base_url"}))
    return name, at, " ".join((at, *own))
