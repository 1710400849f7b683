"""Who takes part in an experiment: each with settings of its own, and a name among the others."""

from collections.abc import Sequence
from typing import Any

from ..providers.catalogue import known_by_name
from ..providers.http import with_address

_SERVED = "served"
"""What the only model of a server is called."""
Entrant = dict[str, Any]
"""Fields of a spec by name: model, address, what is set for it alone, and its ``efforts``."""


def by_title(
    given: Sequence[str | Entrant | None], base_url: str | None = None
) -> dict[str, Entrant]:
    """Models, by what they are called among each other.

    That is the name, with the address where several share the name, and with the settings where
    they share both.

    Args:
        given: names as `with_address` takes them, None for the only model of a server, or fields.
        base_url: the server of all of them.

    >>> list(by_title(["a", "b@http://x", "b@http://y"]))
    ['a', 'b@http://x', 'b@http://y']

    Raises:
        InvalidInput: if one has two addresses, or one that is none or holds a secret.
    """
    told = [dict(one) if isinstance(one, dict) else {"model": one} for one in given]
    for one in told:
        address = one.get("base_url") or base_url
        one["model"], url = with_address(one.get("model"), address)
        if url:
            known_by_name(_SERVED, url)  # refuses what may not be told and kept from here on
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
