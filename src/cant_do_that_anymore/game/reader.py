"""Read the move that a reply plays.

The reply becomes plain text in which one character stands for each move. The first of `RULES` that
applies says which move is played. A move that is illegal under the rules in force counts only if it
is labeled as the answer, chosen in words or alone in its place: "f1b5 is illegal now" plays none.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cache

import chess

from ..errors import InvalidInput
from .rules import STANDARD, Rules, board_after, resolve_rules

_FIGURINES = str.maketrans("×♔♕♖♗♘♚♛♜♝♞", "xKQRBNKQRBN")
_REASONING = r"(?:think(?:ing)?|thoughts?|reasoning|analysis|reflection|scratchpad)"
_TAG = r"(?:answer|move|uci|final(?:_answer)?|best_?move|output|response|result|action)"
_ONE_MOVE = r"(?:\d+\.+ ?)?[KQRBN]?[a-h1-8xO0+#=!-]{2,9}[*.: \t]*$"
_BOLD_LINE = r"^[ \t]*(?:#+[ \t]+\**|\*\*(?=[^*\n]{1,80}\*\*[.:]?[ \t]*$))"
_MARKUP = [
    (re.compile(pattern, re.IGNORECASE | re.DOTALL | re.MULTILINE), replacement)
    for pattern, replacement in (
        ("[\u200b-\u200d\u2060\ufeff\ufe0e\ufe0f\u00ad\ue000-\uf8ff♙♟]", ""),
        ("[\u2010-\u2015\u2212]", "-"),
        ("[‘’‚]", "'"),
        ("[“”„«»]", '"'),
        ("[→⇒➔➜➡⟶↦]", "->"),
        ("[❌✗✘🚫⛔]", " no "),
        (rf"\A.*</{_REASONING}>(?=.*\w)|<{_REASONING}>.*", ""),
        (r"~~[^~]{1,200}~~|<(s|del|strike)>[^<]{0,200}</\1>", " "),
        (r"```[a-z_+-]*[ \t]*(?=\n|$)", ""),
        (rf"<{_TAG}>", "\nAnswer: "),
        (rf"<\|[^|<>]{{0,40}}\|>|</{_TAG}>|<br ?/?>", "\n"),
        (r"</?[a-z]{1,10}>|\[/?inst\]", ""),
        (r"\\(?:text\w*|math\w+|mbox)\s?\{([^{}]{0,200})\}", r"\1"),
        (r"\\boxed\s?\{([^{}]{0,200})\}", r"\nAnswer: \1\n"),
        (r"[\"']from[\"']: ?[\"'](\w\w)[\"'],\s?[\"']to[\"']: ?[\"'](\w\w)", r'"move": "\1\2'),
        # A bold line or heading announces what follows; a bold move that none announces is marked.
        (rf"{_BOLD_LINE}(?!{_ONE_MOVE})([^\n]{{1,80}}?):?[*.: \t]*$", r"\1:"),
        (rf"(?<!:\n)(?<!:\n\n){_BOLD_LINE}(?={_ONE_MOVE})", "Answer: "),
        (r"[*`$]", ""),
        (
            r"(?<=\S)\s*\n\W{0,9}(?:user|human|player|you|opponent|question|system)\W{0,9}[:\n].*",
            "",
        ),
    )
]


def plain_text(reply: str) -> str:
    """Remove markup and reasoning from a reply; marks of an answer become "Answer:".

    >>> plain_text("<think>d4?</think>Hm.\\n**e2\u2013e4**\\n")
    'Hm.\\nAnswer: e2-e4'
    """
    text = unicodedata.normalize("NFKC", reply).translate(_FIGURINES)
    for pattern, replacement in _MARKUP:
        text = pattern.sub(replacement, text)
    return text.strip()


_PIECES = {"knight": "N", "bishop": "B", "rook": "R", "queen": "Q", "king": "K", "pawn": ""}
_MOVE = re.compile(
    r"(?<![A-Za-z0-9])(?:(?P<castling>(?:O-?O|0-0|o-o)(?:-?[Oo0])?)"
    rf"|P?(?P<piece>[NBRQK]|(?i:{'|'.join(_PIECES)}) (?:from )?)?"
    r"(?P<origin>[a-hA-H][1-8]|[a-h]|[1-8])?(?: ?-?> ?|-|[xX:]| ?(?:to|takes|captures) )?"
    r"(?P<target>[a-hA-H][1-8])(?:(?<=[18])[ =(/]{0,2}(?P<promotion>[NBRQnbrq]"
    r"|(?i:queen|rook|bishop|knight))\)?)?)(?![A-Za-z0-9])"
)
_ONTO_ROOK = {"e1h1": "e1g1", "e1a1": "e1c1", "e8h8": "e8g8", "e8a8": "e8c8"}
_Notation = dict[str, chess.Move | None]


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
    uci = move.uci()
    return chess.Move.from_uci(_ONTO_ROOK.get(uci, uci)) if board.is_castling(move) else move


def may_promote(move: chess.Move, board: chess.Board) -> bool:
    """Whether a move takes a pawn to the last rank without a promotion piece."""
    pawn = board.piece_type_at(move.from_square) == chess.PAWN
    return bool(pawn and chess.square_rank(move.to_square) in (0, 7) and not move.promotion)


def _notation(board: chess.Board, rules: Rules) -> _Notation:
    """Return the legal moves by name; None where several have the same.

    Standard chess comes first, so that a habit is never read as a move of the changed rules.
    """
    notation: _Notation = {}
    for legal in (rules.legal_moves(board), STANDARD.legal_moves(board)):
        named = defaultdict(list)
        for move in legal:
            for name in _names(move, board):
                named[name].append(move)
        notation |= {name: found[0] if len(found) == 1 else None for name, found in named.items()}
    return notation


def _names(move: chess.Move, board: chess.Board) -> list[str]:
    if board.is_castling(move):
        return ["OOO" if board.is_queenside_castling(move) else "OO"]
    origin, target = move.uci()[:2], move.uci()[2:]
    piece = str(board.piece_at(move.from_square)).upper()
    if piece == "P":
        return [target if origin[0] == target[0] else origin[0] + target]
    return [piece + part + target for part in ("", *origin)]


def _resolve(
    match: "re.Match[str]", board: chess.Board, notation: Callable[[], _Notation]
) -> chess.Move | None:
    """Return a move from square to square, legal or not, or the legal one of this name."""
    if match["castling"]:
        return notation().get("O" * len(match["castling"].replace("-", "")))
    promotion = (match["promotion"] or "").lower()
    promotion = "n" if promotion == "knight" else promotion[:1]
    origin, target = (match["origin"] or "").lower(), match["target"].lower()
    if len(origin) == 2:
        move = bare_move(origin + target + promotion)
        return move and as_castling(move, board)
    piece = (match["piece"] or "pawn").split()[0]
    return notation().get(_PIECES.get(piece.lower(), piece) + origin + target + promotion)


# One character stands for each move: of an own piece, by a bare square, of the opponent.
_OWN, _SQUARE, _OTHER = range(0xE000, 0xE800), range(0xE800, 0xF000), range(0xF000, 0xF800)
_STRONG, _M, _ANY = "[\ue000-\ue7ff]", "[\ue000-\uefff]", "[\ue000-\uf7ff]"
_MOVED = rf"(?:\d{{0,3}} ?\.{{1,3}} ?)?({_M})"


def _words(words: str) -> str:
    return f"(?:{'|'.join(words.split())})"


_EXAMPLE = re.compile(
    r"(?i)\b(?:such as|like|e\.g\.|example|format is|if|whether)[ ,:\"'(]{0,4}"
    rf"{_ANY}(?: or {_ANY})?"
)
_MINE = _words(
    "my our the best better good final chosen selected recommended suggested strongest optimal uci"
    " san correct legal new only so therefore thus here's white's black's"
)
_NOUN = _words(
    "move answer action choice bestmove decision response reply output result solution pick option"
    " alternative recommendation conclusion uci san command best final"
)
_TAIL = _words("here now in uci for to white black this position game the new rules i choose input")
# A label of the answer; with another adjective before the noun ("illegal move:") it is none.
_LABELED = re.compile(
    rf"(?i)(?:(?:^|[^\w\s]|\n|\b{_MINE}[ _])[ \t]{{0,9}}(?:{_MINE}[ _]){{0,4}}{_NOUN}"
    rf"(?:[ _]{_TAIL}){{0,6}}[\"']?[ ]?(?::|=|->|(?:is|(?:will|would|should) be)\b)"
    r"|\b(?:make_move|bestmove|submit_move|play_move)\b|(?:^|\n)(?:white|black|assistant|me):)"
    r"[\s\"'(\[{<:=>-]{0,12}(?:(?:make_move|uci|move|play|i'll play|i play|i choose|the)\b"
    rf"[\s\"'(\[:=>-]{{0,6}}){{0,4}}(?:{_MOVED}|none\b|null\b|\"\")"
)
_AUXILIARY = _words(
    "will shall would am going like want to must should have now then therefore simply just think"
    " choose decided also can only"
)
_VERB = _words(
    "play choose pick select go opt make made move capture take castle respond reply answer decide"
    " settle continue start develop push advance recommend suggest try prefer promote submit chose"
    " fianchetto complete proceed decided place bring"
)
_NOT_CHOSEN = _words(r"no not never but than if instead against without other of after like \w+n't")
_GAP = rf"(?:[ ,:(\"]{{1,3}}(?!{_NOT_CHOSEN}\b)[\w'/-]{{1,20}}){{0,10}}?[ :(\"'\n,]{{1,6}}"
_END = r"[\"')+#!]{0,5}(?:[.!,;:(\n]|$| [(-]| (?:because|since|as|to|instead|then|now)\b)"
_PURPOSE = (
    r"[\s.,:;(!\"')+#-]{0,9}(?:(?:it|this|which|and|to|then)\s){0,3}(?:develop|pin|attack|threaten"
    r"|prepar|control|captur|put|giv|challeng|aim|activat|eye|improv|complet|press|support|defend"
    r"|the (?-i:[A-Z]))"
)
_CHOSEN = re.compile(
    rf"(?i)(?:\b(?:(?:I|we)(?:'ll|'m|'d|'ve)?|let(?:'s| us| me))(?: {_AUXILIARY}){{0,5}} {_VERB}\b"
    r"|(?:^|[.!?\n:,])[ ]{0,3}(?:(?:so|then|but)[ ,]+)?(?:play|going with|go with)\b"
    rf"|\bmy next move is\b|\b(?:white|black) plays\b){_GAP}{_MOVED}"
    rf"|(?:\b(?:so|therefore|thus|hence|instead)[ ,:]{{1,3}}|[-=]> ?){_MOVED}(?={_END})"
    rf"|({_M})[\"')+#!]{{0,5}} (?:it is\b|(?:is|as) {_MINE} (?:\w+ )?{_NOUN}\b|instead\b)"
    rf"|\A\W*?{_MOVED}(?={_PURPOSE})|[^\W\d][.!]\s+{_MOVED}\W*\Z"
)
_CLAUSE = re.compile(r"(?i)[.!?;\n]|\b(?:but|however|so|here|now|instead|therefore)\b")
# Where an illegal move is chosen under other rules or conditions, and where it is taken back.
_ELSEWHERE = re.compile(
    r"(?i)\b(?:(?:norm|usu|tradition|origin)al\w*|ordinary|standard|regular|old|if|were|when|but|not)\b"
)
_CORRECTED = re.compile(r"(?i)\b(?:wait|actually|correction|sorry|oops|hold on|illegal|no[,.!:])")
_OWN_CLAUSE = re.compile(rf"(?i)(?:\A|[.!?;:,(\n>-]|\bbut|\bis) ?{_MOVED}(?={_END})")


class Reply:
    """A reply as plain text, in which one character stands for each move.

    Attributes:
        text: the text; equal characters stand for equal moves.
        moves: the move of each character; None if no legal move has its name, or several do.
        corrected: the place of the last word of a correction.
    """

    def __init__(self, text: str, board: chess.Board, rules: Rules, cut_off: bool) -> None:
        self.board, self.rules, plain = board, rules, plain_text(text)
        self.moves: dict[str, chess.Move | None] = {}
        notation, known = (
            cache(lambda: _notation(board, rules)),
            dict[tuple[range, chess.Move | None], str](),
        )

        def character(match: "re.Match[str]") -> str:
            move = _resolve(match, board, notation)
            may_go_on = match["castling"] or (move and may_promote(move, board))
            if cut_off and may_go_on and match.end() == len(plain):
                return ""
            kind = self._kind(match, move)
            code = kind.start + len(known)
            found = known.setdefault((kind, move), chr(code) if code in kind else "")
            self.moves.setdefault(found, move)
            return found

        self.text = _EXAMPLE.sub("", _MOVE.sub(character, plain))
        if not re.search(_STRONG, self.text):  # then the others are all there is
            self.text = self.text.translate({code: code - 0x1000 for code in _OTHER})
            self.moves |= {chr(ord(c) - 0x1000): move for c, move in self.moves.items()}
        corrections = [match.start() for match in _CORRECTED.finditer(self.text)]
        self.corrected = max(corrections, default=0)

    def _kind(self, match: "re.Match[str]", move: chess.Move | None) -> range:
        squares = (move.from_square, move.to_square) if move else ()
        movers = [piece.color for piece in map(self.board.piece_at, squares) if piece]
        if movers[:1] == [not self.board.turn]:  # also if its last move is repeated
            return _OTHER
        return _SQUARE if match[0] == match["target"] else _OWN

    def is_legal(self, character: str, *others: Rules) -> bool:
        """Whether a move is legal under the rules in force, or under others."""
        move = self.moves[character]
        return move is not None and any(r.is_legal(self.board, move) for r in (self.rules, *others))

    def is_meant(self, character: str, start: int, end: int) -> bool:
        """Whether a move is played where the text says so, neither asked nor taken back."""
        after = self.text[end : end + 120]
        if re.match(r"[^.!\n]*\?", after):
            return False
        before = _CLAUSE.split(self.text[max(0, start - 120) : start])[-1]
        beside = before + "|" + re.split(r"[.!;\n]|,(?! but)", after)[0]
        return self.is_legal(character) or not (_ELSEWHERE.search(beside) or self.corrected > start)

    def last(self, pattern: "re.Pattern[str]") -> str | None:
        """The move of the last match of a pattern, "" if that says that there is none."""
        found = None
        for match in pattern.finditer(self.text):
            move = next(filter(None, match.groups()), "")
            if not move or self.is_meant(move, match.start(), match.end()):
                found = move
        return found


def labeled(reply: Reply) -> str | None:
    """The move after the last label of an answer, such as "Move:" or a JSON field."""
    return reply.last(_LABELED)


def next_in_game(reply: Reply) -> str | None:
    """The move with the number of the next one, in a game that is repeated or goes on."""
    before = rf"\A(?:[\W\d]*?{_ANY}\W{{1,5}}{_ANY})?\W{{0,5}}\b{reply.board.fullmove_number}"
    number = r" ?\.\s?" if reply.board.turn else rf" ?\.(?:\.\.?\s?|\s?{_ANY}\W{{1,5}})"
    match = re.match(rf"{before}{number}({_M})(?!\W{{0,5}}[a-z]{{2}})", reply.text)
    return match[1] if match else None


def alone(reply: Reply) -> str | None:
    """The move on the last or the first line, if that has nothing else."""
    lines = [line for line in reply.text.split("\n") if re.search(rf"\w|{_ANY}", line)]
    are_moves = [not re.search(r"[^\W\d]", line) and bool(re.search(_ANY, line)) for line in lines]
    if all(are_moves):
        return _first_of("".join(lines), reply) or ""
    first, last = are_moves.index(False), len(lines) - are_moves[::-1].index(False)
    move = _first_of("".join(lines[last:]), reply)
    if move and (reply.is_legal(move) or not lines[last - 1].rstrip().endswith(":")):
        return move
    move = _first_of("".join(lines[:first]), reply)
    return move if move and not reply.corrected else None


def _first_of(line: str, reply: Reply) -> str | None:
    """The first move of a line, if the others go on with the game and are no alternatives."""
    moves = [m for m in dict.fromkeys(re.findall(_ANY, line)) if ord(m) not in _OTHER]
    moves = [m for m in moves if not reply.moves[m] or reply.is_legal(m, STANDARD)] or moves
    is_list = len(moves) > 1 and reply.is_legal(moves[1], STANDARD)
    return moves[0] if moves and not is_list else None


def chosen(reply: Reply) -> str | None:
    """The last move that the reply says it plays: "I'll go with d4", "so d4"."""
    return reply.last(_CHOSEN)


def only_one(reply: Reply) -> str | None:
    """The only legal move of the reply; beside illegal ones, only if it is a clause of its own."""
    moves = set(re.findall(_STRONG, reply.text))
    legal = {move for move in moves if reply.is_legal(move)}
    if len(moves) == 1 == len(legal):
        move = legal.pop()
        return move if reply.is_meant(move, 0, reply.text.rindex(move) + 1) else None
    clauses = set(_OWN_CLAUSE.findall(reply.text))
    is_clear = moves and len(clauses) == 1 and legal <= clauses
    return next(filter(reply.is_legal, clauses), None) if is_clear else None


RULES = (labeled, next_in_game, alone, chosen, only_one)


def move_in(
    text: str, board: chess.Board, rules: Rules, *, cut_off: bool = False
) -> chess.Move | None:
    """Return the move that a reply plays, or None; ``cut_off`` if the token limit ended it.

    >>> move_in("Instead of 1. Nf3, I play d4.", chess.Board(), STANDARD)
    Move.from_uci('d2d4')
    """
    bare = bare_move(text.strip())
    if bare and not (cut_off and may_promote(bare, board)):
        return as_castling(bare, board)
    reply = Reply(text, board, rules, cut_off)
    if not reply.moves:
        return None
    rules_of_reading = RULES[:-1] if cut_off else RULES  # the rest could reject the only move
    found = (move for rule in rules_of_reading if (move := rule(reply)) is not None)
    return reply.moves.get(next(found, ""))


def read_move(
    reply: str,
    *,
    moves: Sequence[str] | str = (),
    fen: str | None = None,
    rules: Rules | str = "standard",
) -> str | None:
    """Parse the move that a reply plays.

    Args:
        reply: the text of the reply.
        moves: the moves played so far, in UCI, as a sequence or as one string with spaces.
        fen: the position, if it is not the one after ``moves`` from the initial position.
        rules: the rules in force, by key or as a value.

    Returns:
        The move in UCI, legal or not, or None if the reply plays none, or more than one.

    Raises:
        InvalidInput: if the moves, the FEN or the rules are invalid.

    >>> read_move("Instead of 4. Bb5, I play d4.", moves="e2e4 e7e6 g1f3 c7c5 c2c3 b7b6")
    'd2d4'
    """
    played = moves.split() if isinstance(moves, str) else list(moves)
    current_rules = resolve_rules(rules)
    if fen is None:
        board = board_after(played, STANDARD, current_rules)
    else:
        try:
            board = chess.Board(fen)
        except ValueError:
            raise InvalidInput(f"not a position in FEN: {fen!r}") from None
    move = move_in(reply, board, current_rules)
    return move.uci() if move else None


def named_moves(text: str, board: chess.Board, rules: Rules) -> dict[str, chess.Move | None]:
    """Find everything in a text that looks like a move, with the move it denotes, if any.

    Bare squares do not count.

    >>> named_moves("Bb5? No, f1b5 is illegal.", chess.Board(), STANDARD)
    {'Bb5': None, 'f1b5': Move.from_uci('f1b5')}
    """
    notation = cache(lambda: _notation(board, rules))
    words = dict.fromkeys(text.split())  # long texts repeat themselves
    found = (match for word in words for match in _MOVE.finditer(word))
    return {m[0]: _resolve(m, board, notation) for m in found if m[0] != m["target"]}
