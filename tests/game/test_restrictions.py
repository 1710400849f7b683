"""Rules that are no swap of pieces: mined, counted, and refused by an engine."""

import json
from pathlib import Path
from typing import cast

import pytest
from chess.engine import SimpleEngine

from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.game.mining import MiningCriteria, mine
from cant_do_that_anymore.game.position import Position, earlier_moves
from cant_do_that_anymore.game.rules import BISHOPS_AS_KNIGHTS, STANDARD, Rules, rules_named
from cant_do_that_anymore.game.selfplay import play_positions

NO_CASTLING = rules_named("no-castling")
GAMES = """
1. e4 e5 2. Nf3 Nf6 3. Be2 Be7 4. O-O O-O *

[Event "Nobody castles"]

1. e4 e5 2. Ke2 Ke7 *

[Event "Black castles"]

1. d4 d5 2. e4 Nc6 3. e5 Bf5 4. e6 Qd6 5. a3 O-O-O *
"""


def mined(path: Path, rules: Rules) -> list[tuple[list[str], list[str]]]:
    found = [
        one for some in mine([str(path)], MiningCriteria(rules, every=True)) for one in some.found
    ]
    fields = [json.loads(one.line) for one in found]
    return [(line["previous_moves"], line["next_filtered_moves"]) for line in fields]


def test_games_are_mined_for_the_moves_that_no_castling_forbids(tmp_path: Path) -> None:
    (tmp_path / "games.pgn").write_text(GAMES)
    opening = ["e2e4", "e7e5", "g1f3", "g8f6", "f1e2", "f8e7"]
    other_side = ["d2d4", "d7d5", "e2e4", "b8c6", "e4e5", "c8f5", "e5e6", "d8d6", "a2a3"]
    assert mined(tmp_path / "games.pgn", NO_CASTLING) == [
        (opening, ["e1g1"]),
        ([*opening, "e1g1"], ["e8g8"]),
        (other_side, ["e8c8"]),
    ]


def test_earlier_moves_are_those_that_the_change_concerns() -> None:
    moves = ["e2e4", "e7e5", "g1f3", "g8f6", "f1e2", "f8e7", "e1g1", "e8g8", "d2d3", "d7d6"]
    position = Position(0, tuple(moves), ())
    assert earlier_moves(position, NO_CASTLING) == 2
    assert earlier_moves(position, rules_named("pawns-one-step")) == 2
    assert earlier_moves(position, rules_named("knights-cannot-jump")) == 2
    assert earlier_moves(position, BISHOPS_AS_KNIGHTS) == 2
    assert earlier_moves(position, STANDARD) == 0


def test_an_engine_plays_swaps_only_and_one_sentence_says_so() -> None:
    unused = cast(SimpleEngine, None)
    with pytest.raises(InvalidInput, match="one piece moves as another, not no-castling"):
        next(play_positions(unused, NO_CASTLING, 1, seed=0))
