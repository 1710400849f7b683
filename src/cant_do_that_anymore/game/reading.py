"""From a text to the move that it names, however it is written."""

import re
from collections.abc import Iterable, Iterator, Sequence

import chess

from ..errors import BadInput
from .rules import STANDARD, Rules, board_after

_PROMOTION = r"(?:\s*[=/(]?\s*([nbrqNBRQ])\)?)?"
_BETWEEN = r"\s*(?:[-:xX>\u00d7\u2010-\u2015\u2192\u2212]|[-=]>|to)?\s*"
_COORDINATES = re.compile(rf"[NBRQK]?([a-hA-H][1-8]){_BETWEEN}([a-hA-H][1-8]){_PROMOTION}")
_SAN = re.compile(
    r"(?P<castling>[oO0][-\u2010-\u2015][oO0](?P<long>[-\u2010-\u2015][oO0])?)"
    r"|(?P<piece>[NBRQKnrqk])?(?P<file>[a-hA-H])?(?P<rank>[1-8])?[xX:\u00d7]?"
    rf"(?P<to>[a-hA-H][1-8]){_PROMOTION}"
)
_IN_RUNNING_TEXT = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"[NBRQK]?[a-hA-H][1-8][-x\u2013]?[a-hA-H][1-8](?:=?[nbrqNBRQ])?"
    r"|[oO0]-[oO0](?:-[oO0])?"
    r"|[NBRQK][a-h]?[1-8]?x?[a-h][1-8]"
    r"|[a-h]x[a-h][1-8](?:=?[NBRQ])?"
    r"|[a-h][18]=?[NBRQ]"
    r")(?![A-Za-z0-9])"
)
"""What looks like a move there; a bare square such as e4 is a square, not a move."""
DECORATION = " \t\r\n\f\v\u00a0\u200b\ufeff\"'`*_~.,;:!?+#()[]{}<>|$\\" + "«»‘’“”"
_MOVE_NUMBER = re.compile(r"^\d{1,3}\s*(?:\.+|\u2026)\s*")
_LONGEST_LONE_MOVE = 20


def move_in(
    text: str, board: chess.Board, rules: Rules, *, cut_off: bool = False
) -> chess.Move | None:
    """The one move that a text names, or None.

    It is a move once decoration is removed, or its last line is a lone move, or it names exactly
    one move; of one that was cut off, only the first line counts, since nobody knows how the rest
    would have gone on.

    >>> move_in("I play 1. Nf3!", chess.Board(), STANDARD)
    Move.from_uci('g1f3')
    """
    text = text.strip()
    lines = text.splitlines() or [""]
    lone = _lone_move(text, board, rules) or _lone_move(lines[0 if cut_off else -1], board, rules)
    if lone or cut_off:
        return lone
    named = set(named_moves(text, board, rules).values())
    return named.pop() if len(named) == 1 else None


def bare_move(text: str) -> chess.Move | None:
    """The move that a text is in UCI, or None.

    >>> bare_move("e2e4"), bare_move("e4")
    (Move.from_uci('e2e4'), None)
    """
    try:
        return chess.Move.from_uci(text) or None
    except chess.InvalidMoveError:
        return None


def moves_in(game: str, rules: Rules) -> list[str]:
    """The moves of a game from the initial position, in UCI; numbers of moves are passed over.

    Raises:
        BadInput: if a word names no move there, or one that neither the standard rules nor
            ``rules`` allow stands before it.

    >>> moves_in("1. e4 e5 2. Nf3 b8c6", STANDARD)
    ['e2e4', 'e7e5', 'g1f3', 'b8c6']
    """
    moves: list[str] = []
    for word in game.split():
        if _MOVE_NUMBER.fullmatch(word):
            continue
        move = bare_move(word) or move_in(word, board_after(moves, STANDARD, rules), rules)
        if not move:
            told = f"move {len(moves) + 1} names no move there"
            raise BadInput(f"{told}: {word!r}; write it as e2e4 or Nf3")
        moves.append(move.uci())
    return moves


def named_moves(text: str, board: chess.Board, rules: Rules) -> dict[str, chess.Move | None]:
    """All that looks like a move in a running text, and the move that it means, if it means one.

    >>> named_moves("Bb5? No, f1b5 is illegal.", chess.Board(), STANDARD)
    {'Bb5': None, 'f1b5': Move.from_uci('f1b5')}
    """
    words = dict.fromkeys(text.split())  # long texts repeat themselves, and no move has a space
    written = dict.fromkeys(found for word in words for found in _IN_RUNNING_TEXT.findall(word))
    legal = list(_legal(board, rules)) if written else []
    return {each: _from_coordinates(each) or _from_san(each, board, legal) for each in written}


def _lone_move(text: str, board: chess.Board, rules: Rules) -> chess.Move | None:
    """The move that ``text`` is, once decoration is removed."""
    bare = text.strip(DECORATION)
    if len(bare) > _LONGEST_LONE_MOVE:
        return None
    bare = _MOVE_NUMBER.sub("", bare).strip(DECORATION)
    return _from_coordinates(bare) or _from_san(bare, board, _legal(board, rules))


def _from_coordinates(text: str) -> chess.Move | None:
    match = _COORDINATES.fullmatch(text)
    return bare_move("".join(part or "" for part in match.groups()).lower()) if match else None


def _legal(board: chess.Board, rules: Rules) -> Iterator[list[chess.Move]]:
    """What notation can mean: a move of standard chess, else one under the rules in force.

    In this order, since otherwise a habit written so could pass for a move of the changed rules.
    """
    for in_force in dict.fromkeys((STANDARD, rules)):
        yield list(in_force.legal_moves(board))


def _from_san(
    text: str, board: chess.Board, legal: Iterable[Sequence[chess.Move]]
) -> chess.Move | None:
    """The move that standard notation means among the first legal moves of which it fits any."""
    match = _SAN.fullmatch(text)
    if not match:
        return None
    to = chess.parse_square(match["to"].lower()) if match["to"] else None
    for moves in legal:
        meant = [m for m in moves if to in (None, m.to_square) and _fits(match, m, board)]
        if meant:
            return meant[0] if len(meant) == 1 else None
    return None


def _fits(san: "re.Match[str]", move: chess.Move, board: chess.Board) -> bool:
    piece = board.piece_type_at(move.from_square)
    if san["castling"]:
        to_file = 2 if san["long"] else 6
        return (
            piece == chess.KING
            and chess.square_file(move.from_square) == 4
            and chess.square_file(move.to_square) == to_file
        )
    symbol, origin_file = (san["piece"] or "p").lower(), (san["file"] or "").lower()
    promotion = (san.groups()[-1] or "").lower()
    return (
        piece == chess.PIECE_SYMBOLS.index(symbol)
        and (
            not origin_file or chess.FILE_NAMES[chess.square_file(move.from_square)] == origin_file
        )
        and (not san["rank"] or chess.square_rank(move.from_square) == int(san["rank"]) - 1)
        and (chess.piece_symbol(move.promotion) if move.promotion else "") == promotion
    )
