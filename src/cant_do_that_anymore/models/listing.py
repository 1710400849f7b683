"""What a server says of its models: their names, and what tells the weights behind one apart."""

import json
import time
from collections.abc import Sequence
from typing import Any

from ..errors import nearest

Card = dict[str, Any]

A_MINUTE = 60


def cards_in(body: str) -> list[Card]:
    """The entries of a list of models.

    Raises:
        ValueError: if it is none.
    """
    try:
        return [card for card in json.loads(body)["data"] if isinstance(card["id"], str)]
    except (LookupError, TypeError, RecursionError) as fault:
        raise ValueError(f"no list of models: {fault}") from None


def marks_in(cards: Sequence[Card], name: str) -> dict[str, str]:
    """When a model was created, and from what, as far as it is said.

    Some servers give the time of the listing as that of the creation, which tells nothing.
    """
    card = next((each for each in cards if each["id"] == name), {})
    created = card.get("created")
    if isinstance(created, int | float) and abs(time.time() - created) < A_MINUTE:
        created = None
    told = {"created": created, "root": card.get("root")}
    return {mark: str(value)[:300] for mark, value in told.items() if value}


def near_in(cards: Sequence[Card], name: str) -> str:
    """Which of the models may be meant by a name that none of them has; "" if one has it."""
    served = [card["id"] for card in cards]
    return f"; {nearest(name, served)}" if served and name not in served else ""
