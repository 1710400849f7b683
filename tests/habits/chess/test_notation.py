"""Moves in words, and visible text: no reply of a model can break them."""

import unicodedata

import chess
from hypothesis import given
from hypothesis import strategies as st

from cant_do_that_anymore.formatting import visible
from cant_do_that_anymore.habits.chess.notation import draw_board, notate
from cant_do_that_anymore.habits.chess.position import Position, shipped_pool

POSITIONS = shipped_pool("diagonal")[:200]
SQUARES = st.sampled_from(chess.SQUARE_NAMES)


@given(st.sampled_from(POSITIONS), SQUARES, SQUARES, st.sampled_from(["", "q", "n", "b", "r"]))
def test_any_move_can_be_written(position: Position, start: str, end: str, promotion: str) -> None:
    board = position.board()
    before = board.fen()
    if start != end:
        assert notate(board, start + end + promotion)
        assert board.fen() == before


def test_the_board_is_drawn_from_the_side_to_move() -> None:
    board = chess.Board()
    board.push_uci("e2e4")
    assert draw_board(board).splitlines() == [
        "1 ♖ ♘ ♗ ♔ ♕ ♗ ♘ ♖",
        "2 ♙ ♙ ♙ · ♙ ♙ ♙ ♙",
        "3 · · · · · · · ·",
        "4 · · · ♙ · · · ·",
        "5 · · · · · · · ·",
        "6 · · · · · · · ·",
        "7 ♟ ♟ ♟ ♟ ♟ ♟ ♟ ♟",
        "8 ♜ ♞ ♝ ♚ ♛ ♝ ♞ ♜",
        "  h g f e d c b a",
    ]


@given(st.text(st.characters(), max_size=50))
def test_visible_text_has_no_invisible_characters(text: str) -> None:
    output = visible(text).replace("\n", "").replace("\t", "")
    categories = {unicodedata.category(character) for character in output}
    assert not categories & {"Cc", "Cf", "Cs", "Zl", "Zp"}
