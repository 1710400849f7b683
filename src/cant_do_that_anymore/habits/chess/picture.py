"""The board diagram of a rule, and the pieces, as SVG."""

from functools import lru_cache
from typing import NamedTuple
from xml.etree import ElementTree

import chess
import chess.svg
from markupsafe import Markup

from ...svg_tags import move_styles, tag
from .notation import move_number_prefix, notate
from .rule_pool import example_of
from .rules import STANDARD, Rules


def pieces() -> Markup:
    """Return the pieces of python-chess as SVG definitions."""
    drawings = [ElementTree.fromstring(drawing) for drawing in chess.svg.PIECES.values()]
    for drawing in drawings:
        move_styles(drawing)
    return Markup("".join(ElementTree.tostring(drawing, "unicode") for drawing in drawings))


_SQUARE = 45.0


class RulePicture(NamedTuple):
    """A board diagram of a piece whose moves a rule changes.

    Attributes:
        board: the diagram: small dots for moves the piece keeps, large dots for new ones, crosses
            for lost ones.
        move: the usual move in notation.
    """

    board: Markup
    move: str


@lru_cache(maxsize=32)
def rule_picture(rules: Rules) -> RulePicture | None:
    """Draw the example of the rules, if they have one."""
    example = example_of(rules)
    if not example:
        return None
    board, usual = example.board(), example.usual[0]
    move = move_number_prefix(board) + notate(board, usual)
    return RulePicture(_board_diagram(board, usual, rules), move)


def _board_diagram(board: chess.Board, usual: str, rules: Rules) -> Markup:
    start = chess.Move.from_uci(usual).from_square
    old, new = (_targets(version, board, start) for version in (STANDARD, rules))
    description = f"{len(new - old)} moves are new, {len(new & old)} kept, {len(old - new)} lost"
    return tag(
        "svg",
        *(_square(square, " last" if square == start else "") for square in chess.SQUARES),
        *(_piece(square, piece) for square, piece in sorted(board.piece_map().items())),
        *(_dot(end, "kept", 6, board) for end in sorted(new & old)),
        *(_dot(end, "new", 9, board) for end in sorted(new - old)),
        *(_cross(end, board) for end in sorted(old - new)),
        class_="board",
        viewBox="0 0 360 360",
        role="img",
        aria_label=description,
    )


def _targets(rules: Rules, board: chess.Board, start: chess.Square) -> set[chess.Square]:
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


def _dot(square: chess.Square, style: str, radius: float, board: chess.Board) -> Markup:
    """Draw a dot, or a ring around the piece that stands there."""
    x, y = _corner(square)
    if board.piece_at(square):
        radius, style = 20, f"{style} ring"
    return tag("circle", cx=x + _SQUARE / 2, cy=y + _SQUARE / 2, r=radius, class_=f"now {style}")


def _cross(square: chess.Square, board: chess.Board) -> Markup:
    """Draw a cross, in a corner of the square if a piece stands there."""
    x, y = _corner(square)
    left, top, size = (29, 4, 12) if board.piece_at(square) else (12, 12, 21)
    strokes = f"M{x + left:g} {y + top:g}l{size} {size}m0 -{size}l-{size} {size}"
    return Markup().join(tag("path", d=strokes, class_=style) for style in ("halo", "lost"))
