"""Hard replies of our own making, and what a person reads in them.

A line of ``moves`` or ``yes_no`` has the ``reply``, what is ``meant`` (or ``says``), its ``style``,
and the position it is about; ``read`` is there where the readers read something else. A line of
``words`` is a reply with each of its words in the place of {}, and what it is read as
``otherwise``, with a word that nobody knows.
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


def filled(key: str) -> list[tuple[str, Any]]:
    """Replies for each word, what is read in them (by ``key``), and what is read otherwise."""
    rows = [row for row in WORDS if key in row]
    with_word = [
        (row["reply"].replace("{}", each), row[key]) for row in rows for each in row["words"]
    ]
    others = {row["reply"]: row["otherwise"] for row in rows if "otherwise" in row}
    return with_word + [(reply.replace("{}", "quux"), read) for reply, read in others.items()]


def documented(start: str, end: str, rule: str) -> list[tuple[str, str, str]]:
    """The examples in a part of the protocol: the rule, the reply and what it is read as."""
    text = PROTOCOL.read_text(encoding="utf-8").partition(start)[2].partition(end)[0]
    parts = re.split(rule, text, flags=re.MULTILINE)
    return [
        (name, reply.replace("\N{RETURN SYMBOL}", "\n"), read)
        for name, part in zip(parts[1::2], parts[2::2], strict=True)
        for reply, read in re.findall("`([^`]+)` \N{RIGHTWARDS ARROW} (\\w+)", part)
    ]
