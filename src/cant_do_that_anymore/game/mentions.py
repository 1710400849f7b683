"""Find every move that a text mentions, in any common notation, and resolve it on the board."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest

import chess

from .rules import STANDARD, Rules

_SQUARE, _ANY_SQUARE = "[a-h][1-8]", "[a-hA-H][1-8]"
_NOTHING_BEFORE, _NOTHING_AFTER = r"(?<![A-Za-z0-9])", r"(?![A-Za-z0-9])"
_PROMOTION = (
    r"(?:(?P<letter>[nbrqNBRQ])|[ \t]*[=/(]=?[ \t]*(?P<marked>[nbrqNBRQ])\)?"
    r"|[ \t]*(?:[=(]|,? ?(?:and )?promot\w+ (?:in)?to)?[ \t]*(?:an? )?"
    r"(?P<word>[Qq]ueen|[Rr]ook|[Bb]ishop|[Kk]night)\)?)" + _NOTHING_AFTER
)
_COORDINATES = re.compile(
    rf"(?P<piece>[NBRQKPSLTDCFA](?={_SQUARE}))?(?P<origin>{_ANY_SQUARE})"
    r"(?P<between>[\"']?[ \t]+to[ \t]+[\"']?|[ \t]*[-=]?>[ \t]*"
    r"|[ \t]*(?:-|x|X|takes|captures)[ \t]*|:|[ \t]*)"
    rf"(?P<target>{_ANY_SQUARE})(?:(?={_PROMOTION})|{_NOTHING_AFTER})"
)
_SAN = re.compile(
    r"(?:(?P<short>O-?O|0-0|o-o)(?P<long>-?O|-0|-o)?"
    rf"|(?P<piece>[NBRQKSLTDCFA])(?P<file>[a-h])?(?P<rank>[1-8])?[x:]?(?P<target>{_SQUARE})"
    r"|(?P<upper_piece>[NBRQK])X?(?P<upper_target>[A-H][1-8])"
    rf"|(?P<lower_piece>[nrqk])[x:]?(?P<lower_target>{_SQUARE})"
    rf"){_NOTHING_AFTER}"
)
_PAWN = re.compile(
    rf"P?(?:(?P<file>[a-h])[1-8]?[x:])?(?P<target>{_SQUARE}|[AC-H][1-8])"
    rf"(?:(?={_PROMOTION})|{_NOTHING_AFTER})"
)
_AFTER_NUMBER = re.compile(r"(?<=\d\) )|(?<=\d\)\) )")
_PROMOTED = re.compile(_PROMOTION)
_TO = r"(?:to|x|(?:takes|captures)(?:[ \t]+the)?(?:[ \t]+[a-z]{4,6})?(?:[ \t]+on)?)"
_IN_WORDS = re.compile(
    r"(?:(?P<piece>[Kk]night|[Bb]ishop|[Rr]ook|[Qq]ueen|[Kk]ing|[Pp]awn)[ \t]+"
    rf"(?:{_TO}[ \t]+(?P<target>{_SQUARE})"
    rf"|(?P<there>{_SQUARE})(?![ \t]*(?:to|-|x|->)?[ \t]*{_SQUARE}))"
    r"|[Cc]astl(?:e|es|ed|ing)[ \t]+(?:king-?[ ]?side|short|(?P<long>queen-?[ ]?side|long))"
    r"|(?:[Kk]ing-?[ ]?side|[Ss]hort|(?P<also_long>[Qq]ueen-?[ ]?side|[Ll]ong))[ ]castl(?:e|es|ing)"
    rf"){_NOTHING_AFTER}"
)
_START = re.compile(
    rf"{_NOTHING_BEFORE}(?:[A-Z]?[a-h]?[1-8]?[xX:]?{_ANY_SQUARE}|[nrqk][x:]?{_SQUARE}"
    r"|[oO0]-[oO0]|OO|[Cc]astl|(?:[Kk]ing|[Qq]ueen)-?[ ]?side[ ]c|(?:[Ss]hort|[Ll]ong)[ ]c"
    r"|(?:[Kk]night|[Bb]ishop|[Rr]ook|[Qq]ueen|[Kk]ing|[Pp]awn)[ \t])"
)
# Castling written as the king's move onto its rook.
_ONTO_ROOK = {"e1h1": "e1g1", "e1a1": "e1c1", "e8h8": "e8g8", "e8a8": "e8c8"}
# Squares in a row: a path across the board, not a move.
_PATH = re.compile(
    rf"{_SQUARE}(?:-{_SQUARE}){{2,}}|{_SQUARE}-{_SQUARE}(?=[ -](?:diagonal|file|rank|line))"
)


@dataclass(frozen=True)
class Mention:
    """A move that a text mentions.

    Attributes:
        start: the offset of its start in the text.
        end: the offset of its end.
        text: the move as written.
        move: the move it denotes; None if no legal move fits, or several do.
        weak: whether only its context can make it a move, as with a bare square.
    """

    start: int
    end: int
    text: str
    move: chess.Move | None
    weak: bool = False


class Resolver:
    """Resolves notation on a board to a move of standard chess, or else of the rules in force.

    Standard chess comes first; otherwise a habit in standard notation could be read as a move
    under the changed rules.
    """

    def __init__(
        self, board: chess.Board, rules: Rules, letters: Mapping[str, str] | None = None
    ) -> None:
        self.board, self.rules, self.letters = board, rules, letters or {}
        self._resolved: dict[object, chess.Move | None] = {}

    @cached_property
    def _legal(self) -> list[list[chess.Move]]:
        rule_sets = dict.fromkeys((STANDARD, self.rules))
        return [list(rules.legal_moves(self.board)) for rules in rule_sets]

    def allows(self, move: chess.Move) -> bool:
        """Whether a move is legal, in standard chess or under the rules in force."""
        return any(move in legal for legal in self._legal)

    def piece_moves(
        self, piece: str, target: str, file: str = "", rank: str = "", promotion: str = ""
    ) -> chess.Move | None:
        """Return the only move of a piece (P, N, B, R, Q, K) to a square; a pawn keeps its file."""
        letter, target = self.letters.get(piece.upper(), piece).lower(), target.lower()
        if letter == "p":
            file = file or target[0]

        def fits(move: chess.Move) -> bool:
            origin, end = move.uci()[:2], move.uci()[2:]
            return (
                end == target + promotion
                and origin.startswith(file)
                and origin.endswith(rank)
                and str(self.board.piece_at(move.from_square)).lower() == letter
            )

        return self._single_match((letter, target, file, rank, promotion), fits)

    def castling(self, *, long: bool) -> chess.Move | None:
        """Return the move that castles to one side, if there is one."""
        board = self.board
        fits = board.is_queenside_castling if long else board.is_kingside_castling
        return self._single_match(long, fits)

    def _single_match(self, query: object, fits: Callable[[chess.Move], bool]) -> chess.Move | None:
        if query not in self._resolved:
            matches = ([move for move in legal if fits(move)] for legal in self._legal)
            fitting = next(filter(None, matches), [])
            self._resolved[query] = fitting[0] if len(fitting) == 1 else None
        return self._resolved[query]


def bare_move(text: str) -> chess.Move | None:
    """Parse a text that is a move in UCI, or return None.

    >>> bare_move("e2e4"), bare_move("e4")
    (Move.from_uci('e2e4'), None)
    """
    try:
        return chess.Move.from_uci(text) or None
    except chess.InvalidMoveError:
        return None


def as_castling(move: chess.Move, board: chess.Board) -> chess.Move:
    """Convert "king takes own rook" from the king's first square to castling; keep other moves.

    >>> as_castling(chess.Move.from_uci("e1h1"), chess.Board())
    Move.from_uci('e1g1')
    """
    pieces = [board.piece_at(square) for square in (move.from_square, move.to_square)]
    if pieces != [chess.Piece(kind, board.turn) for kind in (chess.KING, chess.ROOK)]:
        return move
    return chess.Move.from_uci(_ONTO_ROOK.get(move.uci(), move.uci()))


def takes_pawn_to_last_rank(move: chess.Move, board: chess.Board) -> bool:
    """Whether a move is one of a pawn that promotes."""
    pawn = board.piece_type_at(move.from_square) == chess.PAWN
    return pawn and chess.square_rank(move.to_square) in (0, 7)


def mentions_in(text: str, resolver: Resolver) -> list[Mention]:
    """Find everything in a text that looks like a move, in order.

    A square is left out if the next mention is a piece that moves there: "so g3. Bg3".

    >>> board = chess.Board()
    >>> [m.text for m in mentions_in("Nf3, e2-e4 or pawn to d4", Resolver(board, STANDARD))]
    ['Nf3', 'e2-e4', 'pawn to d4']
    """
    mentions: list[Mention] = []
    position = 0
    while start := _START.search(text, position):
        at = start.start()
        path = _PATH.match(text, at)
        parsed = () if path else (parse(text, at, resolver) for parse in _PARSERS)
        mention = next(filter(None, parsed), None)
        if mention:
            mentions.append(mention)
        position = path.end() if path else mention.end if mention else at + 1
    pairs = zip_longest(mentions, mentions[1:])
    return [mention for mention, after in pairs if not (after and _is_target(mention, after))]


def _is_target(square: Mention, after: Mention) -> bool:
    goes_there = square.text == after.text[-2:] and "x" not in after.text
    return goes_there and not after.weak and after.move not in (None, square.move)


def _parse_coordinates(text: str, at: int, resolver: Resolver) -> Mention | None:
    """Parse two squares; with white space between them only if the move is legal."""
    match = _COORDINATES.match(text, at)
    if not match:
        return None
    move, between = bare_move((match["origin"] + match["target"]).lower()), match["between"]
    if move is None:
        return None
    promotes = takes_pawn_to_last_rank(move, resolver.board)
    promotion, end = _promotion(text, match.end(), promotes)
    move = chess.Move.from_uci(move.uci() + promotion)
    spaced = between != between.strip() and not re.search("to|>", between)
    if spaced and not resolver.allows(move):
        return None
    return Mention(at, end, text[at:end], as_castling(move, resolver.board))


def _parse_san(text: str, at: int, resolver: Resolver) -> Mention | None:
    match = _SAN.match(text, at)
    if not match:
        return None
    if match["short"]:
        move = resolver.castling(long=bool(match["long"]))
    elif match["piece"]:
        move = resolver.piece_moves(
            match["piece"], match["target"], match["file"] or "", match["rank"] or ""
        )
    else:
        piece = match["upper_piece"] or match["lower_piece"]
        move = resolver.piece_moves(piece, match["upper_target"] or match["lower_target"])
    return Mention(at, match.end(), match[0], move, weak=bool(match["lower_piece"]))


def _parse_pawn_move(text: str, at: int, resolver: Resolver) -> Mention | None:
    match = _PAWN.match(text, at)
    if not match:
        return None
    promotion, end = _promotion(text, match.end(), int(match["target"][1]) in (1, 8))
    move = resolver.piece_moves("P", match["target"], match["file"] or "", "", promotion)
    weak = not (match["file"] or promotion or _AFTER_NUMBER.match(text, at))
    return Mention(at, end, text[at:end], move, weak)


def _promotion(text: str, end: int, promotes: bool) -> tuple[str, int]:
    """Return the letter of the promotion piece, and the end of the mention."""
    match = _PROMOTED.match(text, end)
    if not match or not (promotes or match["letter"]):
        return "", end
    if match["word"]:
        return {"q": "q", "r": "r", "b": "b", "k": "n"}[match["word"][0].lower()], match.end()
    return (match["letter"] or match["marked"]).lower(), match.end()


def _parse_words(text: str, at: int, resolver: Resolver) -> Mention | None:
    match = _IN_WORDS.match(text, at)
    if not match:
        return None
    if match["piece"]:
        letter = "N" if match["piece"].lower() == "knight" else match["piece"][0]
        move = resolver.piece_moves(letter, match["target"] or match["there"])
    else:
        move = resolver.castling(long=bool(match["long"] or match["also_long"]))
    return Mention(at, match.end(), match[0], move, weak=True)


_PARSERS = (_parse_coordinates, _parse_san, _parse_pawn_move, _parse_words)
