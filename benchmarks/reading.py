"""How the readers do on replies of real models.

    python benchmarks/reading.py moves.jsonl yes_no.jsonl

A line of a file of moves is an object with ``reply``, ``kind`` ("move" where the reply names a
move that was ``meant``, else why there is none), and perhaps ``style``, ``family``, ``fen``,
``moves`` and ``rules``. Any other line with a ``reply`` is read for yes or no. Prints Markdown:
right, unread and wrong by family and by style; of replies without a move, how many were read as
one.
"""

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cant_do_that_anymore import read_move, read_yes_no

COLUMNS = ("right", "unread", "wrong", "no move", "read as a move")


def result_of(line: dict[str, Any]) -> str:
    """How a reply about a move was read."""
    move = read_move(
        line["reply"],
        moves=line.get("moves") or (),
        fen=line.get("fen"),
        rules=line.get("rules", "standard"),
    )
    if line["kind"] != "move":
        return "read as a move" if move else "no move"
    return "unread" if move is None else "right" if move == line["meant"] else "wrong"


def print_moves(lines: Iterable[dict[str, Any]]) -> None:
    """The table of the move reader."""
    tables: dict[str, dict[str, Counter[str]]] = {
        "family": defaultdict(Counter),
        "style": defaultdict(Counter),
    }
    total = Counter[str]()
    for line in lines:
        result = result_of(line)
        total[result] += 1
        for name, table in tables.items():
            table[line.get(name, "")][result] += 1
    for name, table in tables.items():
        print(f"\n| {name} | {' | '.join(COLUMNS)} |")
        print("| --- |" + " --- |" * len(COLUMNS))
        for each, counts in [*sorted(table.items()), ("all", total)]:
            print(f"| {each} | {' | '.join(str(counts[column]) for column in COLUMNS)} |")
    named = sum(total[column] for column in COLUMNS[:3])
    without = total["no move"] + total["read as a move"]
    print(
        f"\nOf {named} replies that name a move {total['right'] / (named or 1):.1%} right, "
        f"{total['wrong'] / (named or 1):.1%} wrong; of {without} without a move "
        f"{total['read as a move'] / (without or 1):.1%} read as one."
    )


def print_yes_no(lines: Iterable[dict[str, Any]]) -> None:
    """The table of the yes/no reader."""
    said: dict[str, Counter[bool | None]] = defaultdict(Counter)
    for line in lines:
        for name in (line.get("model", ""), "all"):
            said[name][read_yes_no(line["reply"])] += 1
    print("\n| model | yes | no | unread | read |\n| --- | --- | --- | --- | --- |")
    for name, counts in sorted(said.items(), key=lambda each: each[0] == "all"):
        read = 1 - counts[None] / counts.total()
        print(f"| {name} | {counts[True]} | {counts[False]} | {counts[None]} | {read:.1%} |")


def main() -> None:
    """Print the tables of all files that are named."""
    for path in map(Path, sys.argv[1:]):
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        print(f"\n{path.name}: {len(lines)} replies")
        if lines and "kind" in lines[0]:
            print_moves(lines)
        else:
            print_yes_no(lines)


if __name__ == "__main__":
    main()
