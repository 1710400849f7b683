"""Hard replies of our own making, and what a person reads in them.

A line has the ``reply``, what is ``meant`` (or ``says``), its ``style``, and the position it is
about; ``read`` is there where the readers read something else.
"""

import json
from pathlib import Path
from typing import Any


def _rows(name: str) -> list[dict[str, Any]]:
    text = (Path(__file__).parent / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


HARD_MOVES, HARD_YES_NO = _rows("moves.jsonl"), _rows("yes_no.jsonl")
