"""Hard replies that we wrote ourselves, and how a person reads them.

A line of ``moves`` or ``yes_no`` has a ``reply``, its meaning (``meant`` or ``says``), its style,
and its position. It has ``read`` if the parser reads something else. A line of ``words`` has a
reply with {}, the words to put there, and the meaning. ``otherwise`` is what the parser reads with
an unknown word.
"""

import json
import re
from pathlib import Path
from typing import Any

PROTOCOL = Path(__file__).parents[2] / "docs" / "protocol.md"


def _rows(name: str) -> list[dict[str, Any]]:
    text = (Path(__file__).parent / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


HARD_MOVES, HARD_YES_NO, WORDS = _rows("moves.jsonl"), _rows("yes_no.jsonl"), _rows("words.jsonl")


def replies_with_words(key: str) -> list[tuple[str, Any]]:
    """Return each reply with its expected reading, for every word and for an unknown one."""
    rows = [row for row in WORDS if key in row]
    with_word = [
        (row["reply"].replace("{}", word), row[key]) for row in rows for word in row["words"]
    ]
    others = {row["reply"]: row["otherwise"] for row in rows if "otherwise" in row}
    return with_word + [(reply.replace("{}", "quux"), reading) for reply, reading in others.items()]


def documented_examples(start: str, end: str, rule: str) -> list[tuple[str, str, str]]:
    """Return the examples in a part of the protocol as (rule, reply, reading)."""
    text = PROTOCOL.read_text(encoding="utf-8").partition(start)[2].partition(end)[0]
    parts = re.split(rule, text, flags=re.MULTILINE)
    return [
        (name, reply.replace("\N{RETURN SYMBOL}", "\n"), reading)
        for name, part in zip(parts[1::2], parts[2::2], strict=True)
        for reply, reading in re.findall("`([^`]+)` \N{RIGHTWARDS ARROW} (\\w+)", part)
    ]
