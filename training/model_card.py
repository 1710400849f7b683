"""Measures the shipped model and writes the figures into its model card, docs/pocket.md.

    python training/model_card.py

The figures on held-out games come from training/record.json, which train_habit.py wrote.
"""

import json
from collections import defaultdict
from datetime import date
from pathlib import Path

import chess

from cant_do_that_anymore.files import DATA
from cant_do_that_anymore.habits.chess.position import Position, shipped_pool
from cant_do_that_anymore.habits.chess.rules import BISHOPS_AS_KNIGHTS, STANDARD, Rules
from cant_do_that_anymore.providers.bundled import load_network

TRAINING = Path(__file__).parent
CARD = TRAINING.parent / "docs" / "pocket.md"
BEGIN, END = "<!-- figures: written by training/model_card.py -->\n", "<!-- end of figures -->\n"


def likeliest_moves(positions: list[Position]) -> dict[Position, str]:
    """Return the network's move at temperature 0, by position."""
    network = load_network()
    by_length = defaultdict(list)
    for position in positions:
        by_length[len(position.moves)].append(position)
    played = {}
    for same_length in by_length.values():
        scores = network.scores([network.tokens(position.moves) for position in same_length])
        best = (network.moves[token] for token in scores[:, : len(network.moves)].argmax(1))
        played.update(zip(same_length, best, strict=True))
    return played


def legal_share(played: dict[Position, str], rules: Rules) -> float:
    """Return the share of the played moves that the rules allow."""
    return sum(
        rules.is_legal(position.board(), chess.Move.from_uci(move))
        for position, move in played.items()
    ) / len(played)


def usual_share(played: dict[Position, str]) -> float:
    """Return the share of the played moves that are usual moves."""
    return sum(move in position.usual for position, move in played.items()) / len(played)


def percent(share: float) -> str:
    return f"{100 * share:.2f}%"


def figures() -> str:
    """Return the tables of the model card."""
    record = json.loads((TRAINING / "record.json").read_text())
    heldout = record["heldout"]
    pool, diagonal = (likeliest_moves(shipped_pool(name)) for name in ("pool", "diagonal"))
    size = len((DATA / "pocket.onnx").read_bytes()) / 1e6
    rows = [
        ("parameters, all", f"{record['reader']['parameters']:,}"),
        ("parameters, habit network", f"{record['parameters']:,}"),
        ("file", f"{size:.1f} MB"),
        ("trained", f"{record['date']}, {record['seconds']} s on one {record['machine']}"),
        (
            "top-1 on held-out games",
            f"{percent(heldout['top1'])} of {heldout['positions']:,} moves",
        ),
        (
            "top-1 on held-out games, before rounding to 8 bits",
            percent(record["heldout_top1_before_rounding"]),
        ),
        ("cross-entropy on held-out games", f"{heldout['loss']:.3f} nats per move"),
        ("legal moves on the pool", f"{percent(legal_share(pool, STANDARD))} of {len(pool):,}"),
        ("usual move played on the pool", percent(usual_share(pool))),
        (
            "legal moves on the diagonal pool, bishops as knights",
            f"{percent(legal_share(diagonal, BISHOPS_AS_KNIGHTS))} of {len(diagonal):,}",
        ),
    ]
    lines = [
        f"Measured on {date.today()} at temperature 0 with `python training/model_card.py`, and on",
        "held-out games with `training/train_habit.py`, which used the shipped weights.",
        "",
        "| figure | value |",
        "| --- | --- |",
        *(f"| {title} | {value} |" for title, value in rows),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Replace the figures in the model card."""
    before, _, rest = CARD.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    CARD.write_text(before + BEGIN + figures() + END + after)


if __name__ == "__main__":
    main()
