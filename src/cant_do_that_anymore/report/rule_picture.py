"""How the piece that a change of the rules is about moves now, as a picture of one position."""

from dataclasses import dataclass

import chess
from markupsafe import Markup

from ..game.notation import turn_of, written
from ..game.position import Position
from ..game.rule_pool import GAME, example_of
from ..game.rules import STANDARD, Rules
from .markup import tag

_SQUARE = 45.0


@dataclass(frozen=True)
class RulePicture:
    """A position with a piece of which some moves are new, some kept and some lost.

    Attributes:
        board: a dot for each move the piece has now, a strong one if it is new, and a cross for
            each that it has lost.
        move: the special move, as it is written.
        source: which game it is from.
    """

    board: Markup
    move: str
    source: str


def rule_picture(rules: Rules, otherwise: Position | None = None) -> RulePicture | None:
    """The example of the rules as a picture, or else another position with a special move."""
    example = example_of(rules)
    position = example or otherwise
    if not position:
        return None
    board, special = position.board(), position.special_moves[0]
    source = GAME if example else "a sample of this run"
    return RulePicture(
        _drawn(board, special, rules), turn_of(board) + written(board, special), source
    )


def _drawn(board: chess.Board, special: str, rules: Rules) -> Markup:
    start = chess.Move.from_uci(special).from_square
    before, now = (_ends(each, board, start) for each in (STANDARD, rules))
    words = f"{len(now - before)} moves are new, {len(now & before)} kept, {len(before - now)} lost"
    return tag(
        "svg",
        *(_square(square, " last" if square == start else "") for square in chess.SQUARES),
        *(_piece(square, piece) for square, piece in sorted(board.piece_map().items())),
        *(_dot(end, "kept", 6) for end in sorted(now & before)),
        *(_dot(end, "new", 9) for end in sorted(now - before)),
        *(_cross(end) for end in sorted(before - now)),
        class_="board",
        viewBox="0 0 360 360",
        role="img",
        aria_label=words,
    )


def _ends(rules: Rules, board: chess.Board, start: chess.Square) -> set[chess.Square]:
    return {move.to_square for move in rules.legal_moves(board) if move.from_square == start}


def _corner(square: chess.Square) -> tuple[float, float]:
    return _SQUARE * chess.square_file(square), _SQUARE * (7 - chess.square_rank(square))


def _square(square: chess.Square, marked: str) -> Markup:
    x, y = _corner(square)
    shade = "light" if chess.BB_SQUARES[square] & chess.BB_LIGHT_SQUARES else "dark"
    return tag("rect", x=x, y=y, width=_SQUARE, height=_SQUARE, class_=shade + marked)


def _piece(square: chess.Square, piece: chess.Piece) -> Markup:
    x, y = _corner(square)
    name = f"{chess.COLOR_NAMES[piece.color]}-{chess.piece_name(piece.piece_type)}"
    return tag("use", href=f"#{name}", transform=f"translate({x:g} {y:g})")


def _dot(square: chess.Square, style: str, radius: float) -> Markup:
    x, y = _corner(square)
    return tag("circle", cx=x + _SQUARE / 2, cy=y + _SQUARE / 2, r=radius, class_=f"now {style}")


def _cross(square: chess.Square) -> Markup:
    x, y = _corner(square)
    strokes = f"M{x + 12:g} {y + 12:g}l21 21m0 -21l-21 21"
    return tag("path", d=strokes, class_="lost")
