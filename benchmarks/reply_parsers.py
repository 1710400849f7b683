"""Measures the accuracy of the reply parsers on replies of real models.

    python benchmarks/reply_parsers.py moves.jsonl yes_no.jsonl questions.jsonl

A line of a file of moves is an object with ``reply`` and ``kind``. The kind is "move" if the reply
names a move, which is then in ``meant``; otherwise it says why there is none. Optional keys are
``style``, ``family``, ``fen``, ``moves`` and ``rules``. A line of a file of questions has
``reply``, ``question``, ``usual``, ``right``, ``condition`` ("standard" or another), ``finish``
("length" if cut off) and ``means``: the answer that the reply gives, or null. Any other line with
a ``reply`` goes to the parser of yes and no. Prints Markdown tables: right, unread and wrong moves
or answers, and replies without one that were read as one.
"""

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from markdown_tables import print_heading, print_row

from cant_do_that_anymore import read_answer, read_move, read_yes_no

COLUMNS = ("right", "unread", "wrong", "no move", "read as a move")


def grade(line: dict[str, Any]) -> str:
    """Parse a reply to a request for a move, and return the column that counts it."""
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
    """Print the tables of the move parser."""
    tables: dict[str, dict[str, Counter[str]]] = {
        "family": defaultdict(Counter),
        "style": defaultdict(Counter),
    }
    total = Counter[str]()
    for line in lines:
        column = grade(line)
        total[column] += 1
        for key, table in tables.items():
            table[line.get(key, "")][column] += 1
    for key, table in tables.items():
        print()
        print_heading(key, *COLUMNS)
        for name, counts in [*sorted(table.items()), ("all", total)]:
            print_row(name, *(counts[column] for column in COLUMNS))
    with_move = sum(total[column] for column in COLUMNS[:3])
    without_move = total["no move"] + total["read as a move"]
    print(
        f"\nOf {with_move} replies that name a move, {total['right'] / (with_move or 1):.1%} were "
        f"read right and {total['wrong'] / (with_move or 1):.1%} wrong. Of {without_move} without "
        f"a move, {total['read as a move'] / (without_move or 1):.1%} were read as one."
    )


def grade_answer(line: dict[str, Any]) -> str:
    """Read a reply to a question, and return the column that counts it."""
    changed = line["condition"] != "standard"
    answers = {key: line[key] for key in ("question", "usual", "right")}
    read = read_answer(line["reply"], **answers, changed=changed)
    if line["finish"] == "length":  # replies that were cut off are not read
        read = None
    if line["means"] is not None:
        return "unread" if read is None else "right" if read == line["means"] else "wrong"
    if read is None:
        return "no answer"
    return "read as kept" if changed and read == line["usual"] else "read as another"


def print_answers(lines: Iterable[dict[str, Any]]) -> None:
    """Print the table of the answer reader."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for line in lines:
        for name in (line["condition"], "all"):
            counts[name][grade_answer(line)] += 1
    columns = ("right", "unread", "wrong", "no answer", "read as another", "read as kept")
    print()
    print_heading("condition", *columns)
    for name, graded in sorted(counts.items(), key=lambda item: item[0] == "all"):
        print_row(name, *(graded[column] for column in columns))


def print_yes_no(lines: Iterable[dict[str, Any]]) -> None:
    """Print the table of the parser of yes and no."""
    by_model: dict[str, Counter[bool | None]] = defaultdict(Counter)
    for line in lines:
        for name in (line.get("model", ""), "all"):
            by_model[name][read_yes_no(line["reply"])] += 1
    print()
    print_heading("model", "yes", "no", "unread", "read")
    for name, counts in sorted(by_model.items(), key=lambda item: item[0] == "all"):
        share = 1 - counts[None] / counts.total()
        print_row(name, counts[True], counts[False], counts[None], f"{share:.1%}")


def main() -> None:
    """Print the tables of each file on the command line."""
    for path in map(Path, sys.argv[1:]):
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        print(f"\n{path.name}: {len(lines)} replies")
        if lines and "kind" in lines[0]:
            print_moves(lines)
        elif lines and "question" in lines[0]:
            print_answers(lines)
        else:
            print_yes_no(lines)


if __name__ == "__main__":
    main()
