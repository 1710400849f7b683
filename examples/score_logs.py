"""Scores your own chat logs: how often does a model break the rule in its prompt?

    python examples/score_logs.py examples/logs.jsonl --rules bishops-as-knights

Each line is JSON with the moves so far in UCI and the reply: {"moves": "e2e4 ...", "reply": "..."}.
"""

import argparse
import json
from collections import Counter
from pathlib import Path

import chess

from cant_do_that_anymore import read_move, rules_named

parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
parser.add_argument("logs", type=Path)
parser.add_argument("--rules", default="bishops-as-knights", help="a key of `cdta rules`")
options = parser.parse_args()
rules = rules_named(options.rules)


def outcome(moves: str, reply: str) -> str:
    """Return whether the move of a reply is legal, forbidden by the rule, illegal or missing."""
    uci = read_move(reply, moves=moves, rules=rules)
    if uci is None:
        return "no move"
    board, move = chess.Board(), chess.Move.from_uci(uci)
    for played in moves.split():
        board.push_uci(played)
    if rules.is_legal(board, move):
        return "legal"
    return "forbidden by the rule" if board.is_legal(move) else "illegal"


counts = Counter(outcome(**json.loads(line)) for line in options.logs.open(encoding="utf-8"))
for name, count in counts.most_common():
    print(f"{count:5}  {count / counts.total():4.0%}  {name}")
