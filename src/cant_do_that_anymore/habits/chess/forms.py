"""The forms of a position: the ways of showing it to a model."""

from collections.abc import Callable, Iterable

from ..base import Form, Message, Role, with_user_turn
from .notation import notate_game, with_coordinates
from .position import Position


def _moves(position: Position) -> Iterable[Message]:
    """Return the moves so far, one per turn: the side to move is the assistant."""
    roles: tuple[Role, Role] = ("assistant", "user")
    to_move = len(position.moves) % 2
    return (Message(roles[(ply - to_move) % 2], move) for ply, move in enumerate(position.moves))


def _moves_and_fen(position: Position) -> Iterable[Message]:
    opening = Message("system", "")
    return with_user_turn((opening, *_moves(position)), f"FEN: {_fen(position)}")[1:]


def _fen(position: Position) -> str:
    return position.board().fen(en_passant="fen")


def _board(position: Position) -> str:
    """Return the board with coordinates, and below it what else a FEN tells."""
    _, to_move, castling, en_passant, *_ = _fen(position).split()
    return "\n".join(
        (
            with_coordinates(str(position.board())),
            f"{'White' if to_move == 'w' else 'Black'} to move",
            f"Castling rights: {castling}",
            f"En passant square: {en_passant}",
        )
    )


def _pgn(position: Position) -> str:
    return notate_game(position.moves) or "(no moves yet)"


def _in_one_turn(text: Callable[[Position], str]) -> Callable[[Position], Iterable[Message]]:
    return lambda position: [Message("user", text(position))]


MOVES = Form("moves", "The moves so far are given turn by turn", _moves)
FORMS: dict[str, Form] = {
    form.name: form
    for form in (
        MOVES,
        Form("fen", "The position is given in FEN", _in_one_turn(_fen)),
        Form(
            "board",
            "The position is given as a board, with White's pieces in uppercase and Black's in "
            "lowercase",
            _in_one_turn(_board),
        ),
        Form(
            "moves+fen",
            "The moves so far are given turn by turn, followed by the position in FEN",
            _moves_and_fen,
        ),
        Form("pgn", "The moves so far are given in PGN", _in_one_turn(_pgn)),
    )
}
