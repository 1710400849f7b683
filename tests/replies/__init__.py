"""Hard replies that we wrote ourselves, and how a person reads them.

A line of ``moves`` or ``yes_no`` has a ``reply``, its meaning (``meant`` or ``says``), its style,
and its position.
"""

import json
from pathlib import Path
from typing import Any


def _rows(name: str) -> list[dict[str, Any]]:
    text = (Path(__file__).parent / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


HARD_MOVES, HARD_YES_NO = _rows("moves.jsonl"), _rows("yes_no.jsonl")
