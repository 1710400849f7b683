"""Read the move that a reply plays.

A reply that names one move plays it. Only if that move is illegal under the rules in force, and the
reply has other words, the move must be marked as the answer or chosen: "f1b5 is illegal now" plays
nothing. Of several moves, the reply plays the one that is marked, alone on the first or the last
line, or chosen ("I play d4"). Anything else is unreadable.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from operator import attrgetter

import chess

from ...errors import InvalidInput
from ..markup import plain_text
from .move_names import MOVE, as_castling, bare_move, may_promote, moves_by_name, resolve
from .rules import STANDARD, Rules, board_after, resolve_rules


def _any(words: str) -> str:
    return f"(?:{'|'.join(words.split())})"


_NOUN = _any(
    "move answer choice action reply response decision bestmove make_move play uci best white black"
    " assistant final continuation"
)
_OF_ONE_S_OWN = _any(
    "my our the best better good final next chosen selected recommended strongest optimal correct"
    " legal new only so therefore thus is would be will uci white's black's"
)
_BESIDE = _any(
    "here now then in uci san notation for to white black this position game i is as would will"
    " played made completed chosen"
)
# What stands before a move that is marked. Another adjective ("illegal move:") makes it no mark.
_MARK = re.compile(
    rf"(?i)(?:(?:\A|[^\w\s]|\n|\b{_OF_ONE_S_OWN})[\s_]{{0,3}}(?:{_OF_ONE_S_OWN}[\s_]){{0,5}}{_NOUN}"
    rf"(?:\s{_BESIDE}){{0,6}}[\"']?\s?(?:[:=\n]|->|-(?= )|is|be)|\b(?:make_move|bestmove))"
    r"[\s\"'(\[{:>-]{0,9}(?:(?:the|to|play|move|make_move|uci)\s){0,2}(?:\d+\.+ ?)?\Z"
)
_PLAY = _any(
    "play choose pick select go move mak make made respond reply answer continue castle take captur"
    " capture develop push advance submit recommend suggest settle decide decided prefer start"
    " chose"
)
_FIRST_PERSON = r"\b(?:I|we|let's|let us|let me)(?:'(?:ll|m|d|ve))?"
_NOT_CHOSEN = _any(
    r"not no never cannot but than if instead against other avoid normally usually want love was"
    r" could over used thought almost refuse decline hesitate fail unable \w+n't"
)
# What stands before a move that is chosen, without a negation or another clause between.
_CHOICE = re.compile(
    rf"(?i)(?:{_FIRST_PERSON}(?:\s(?!{_NOT_CHOSEN}\b)\w+){{0,6}}?\s{_PLAY}(?:ing)?"
    rf"|(?:\A|[.!?:,\n])\s*play)"
    rf"(?:[\s(\"]+(?!{_NOT_CHOSEN}\b|\w*[a-h][1-8])[\w'/-]+){{0,8}}[\s(\"',:]+(?:\d+\.+ ?)?\Z"
)
# What follows a move that is chosen; its purpose only if the reply begins with the move.
_CHOSEN_AFTER = re.compile(
    r"(?i)[\"')+#!]{0,3} (?:it is|(?:is|as) (?:\w+ ){0,2}(?:best|move|choice|answer)|instead)\b"
)
_PURPOSE = re.compile(
    r"(?i)[\W_]{1,6}(?:(?:it|this|which|and|to|then)\s){0,3}(?:develop|pin|attack|threaten|prepar"
    r"|control|captur|castl|putting|aiming|the (?-i:[A-Z]))"
)
# Words beside an illegal move that is not played: about other rules, or that it is illegal.
_OTHER_RULES = re.compile(
    r"(?i)\b(?:normal|usual|tradition|standard|ordinar|diagonal|before|if|were|had|former|previous"
    r"|old\b|illegal|not allowed)"
)
_CLAUSE = re.compile(r"[.!?]|(?<![:\n])\n|\b(?:but|so|here|now)\b")  # a heading belongs to the next
_DENIED = re.compile(
    r"(?i)[^?]{0,60}?(?:n't\b|[✗❌]|\b(?:illegal|not|cannot|no longer|forbidden|impossible|out|wait"
    r"|breaks the rules?|sorry|oops|scratch|edit|no(?=[,:.])|correct(?:ion|ed)|revised)\b)"
)
# What stands before a move that is an example, or in question.
_EXAMPLE = re.compile(r"(?i)\b(?:such as|like|e\.g\.|example|format is|if|whether)[ ,:\"'(]{0,4}\Z")
# What follows a move in a question.
_QUESTION = re.compile(r"[^.!\n]{0,80}\?")
_CLAUSE_BEGINS = re.compile(r"(?i)(?:\A|[.!?;:,(\n>-]|\b(?:so|hence|here|thus|but|now))[\s\"']*\Z")
_CLAUSE_ENDS = re.compile(
    r"(?i)[\"')+#!]{0,3}(?:\Z|[.!,;(\n]|\s(?:because|since|as|instead|rather|\W))"
)
_SENTENCE_BEGINS = re.compile(r"(?i)(?:[.!,]|\bso|\bhence|\bthus) ?\Z")
_ENDS_REPLY = re.compile(r"\W*\Z")
_LINE = re.compile(r"[^\n]*\w[^\n]*")
_NUMBERED = re.compile(r"\W*\d+\s?\.+\s?\w")
CHARACTERS_AROUND = 120  # at most so many tell whether a move is marked or chosen


@dataclass(frozen=True)
class Mention:
    """A place in a reply that names a move.

    Attributes:
        start: where it begins.
        before: at most `CHARACTERS_AROUND` characters before it.
        after: all of the reply after it.
        move: the move; None if no legal move has this name, or several do.
        is_square: whether it only names a square: "e4" may be a pawn's move or a place.
        is_own: whether an own piece moves; other moves are the opponent's or repeat the game.
        is_legal: whether the rules in force allow the move.
    """

    start: int
    before: str
    after: str
    move: chess.Move | None
    is_square: bool
    is_own: bool
    is_legal: bool

    def is_discussed(self) -> bool:
        """Whether the move is only an example, or in question."""
        return bool(_EXAMPLE.search(self.before) or _QUESTION.match(self.after))

    def is_marked(self) -> bool:
        """Whether the move is marked as the answer: "Move: d4", a JSON field, bold on a line."""
        return bool(_MARK.search(self.before))

    def is_chosen(self) -> bool:
        """Whether the reply says that it plays the move: "I'll go with d4"."""
        begins = not self.before.strip("\"'([ ")
        has_purpose = begins and _PURPOSE.match(self.after)
        return bool(_CHOICE.search(self.before) or _CHOSEN_AFTER.match(self.after) or has_purpose)

    def is_denied(self) -> bool:
        """Whether the move is illegal and the words beside it say so, or speak of other rules."""
        clause = _CLAUSE.split(self.before)[-1]
        rest = re.split(r"[.!?\n]", self.after[:CHARACTERS_AROUND])[0]
        is_rejected = _OTHER_RULES.search(f"{clause}|{rest}") or _DENIED.match(self.after)
        return bool(is_rejected) and not self.is_legal

    def is_clause(self) -> bool:
        """Whether the move is a clause of its own."""
        return bool(_CLAUSE_BEGINS.search(self.before) and _CLAUSE_ENDS.match(self.after))

    def ends_reply(self) -> bool:
        """Whether the move is a sentence of its own, and the last one."""
        return bool(_SENTENCE_BEGINS.search(self.before) and _ENDS_REPLY.match(self.after))


class Reply:
    """A reply as plain text, and the moves that it names."""

    def __init__(self, text: str, board: chess.Board, rules: Rules, *, cut_off: bool) -> None:
        self.text = plain_text(text)
        self._board, self._rules, self._cut_off = board, rules, cut_off
        self.mentions = [each for each in self._find_mentions() if not each.is_discussed()]
        self._own = [mention for mention in self.mentions if mention.is_own]
        self._legal = [mention for mention in self.mentions if mention.is_legal]

    def _find_mentions(self) -> Iterator[Mention]:
        board, text = self._board, self.text
        notation = cache(lambda: moves_by_name(board, self._rules))
        for match in MOVE.finditer(text):
            start, end = match.span()
            move = resolve(match, board, notation)
            may_go_on = match["castling"] or (move and may_promote(move, board))
            if self._cut_off and may_go_on and end == len(text):
                return
            yield Mention(
                start=start,
                before=text[max(0, start - CHARACTERS_AROUND) : start],
                after=text[end:],
                move=move,
                is_square=match[0] == match["target"],
                is_own=move is not None and board.color_at(move.from_square) == board.turn,
                is_legal=move is not None and self._rules.is_legal(board, move),
            )

    @property
    def repeats_game(self) -> bool:
        """Whether it begins with a numbered move, names others and has no words."""
        is_numbered = len(self.mentions) > 1 and _NUMBERED.match(self.text)
        return bool(is_numbered) and not re.search(r"[^\W\d]{5}", self.text)

    def next_in_game(self) -> Mention | None:
        """The move with the number of the next one, in a game that is repeated or goes on."""
        gap = r"\s*" if self._board.turn else r"(?:\.\.\s*|\s*[^\s.]+\W+)"
        number = re.search(rf"\b{self._board.fullmove_number}\s?\.{gap}", self.text)
        starts = {mention.start: mention for mention in self.mentions}
        return starts.get(number.end()) if number else None

    def played(self) -> Mention | None:
        """The move that is marked, alone on a line, chosen or the only one, unless denied."""
        found = (
            self._last(Mention.is_marked),
            self.alone(),
            self._last(Mention.is_chosen),
            self.only(),
        )
        return next((mention for mention in found if mention and not mention.is_denied()), None)

    def _last(self, condition: Callable[[Mention], bool]) -> Mention | None:
        return next(filter(condition, reversed(self.mentions)), None)

    def alone(self) -> Mention | None:
        """The move of the last or the first line, if only that line is nothing but a move.

        The last one may correct others, unless it ends a list.
        """
        *others, last = (self._only_mention(line) for line in _LINE.finditer(self.text))
        if last:
            return None if any(others[-1:]) else last
        return None if any(others[1:]) else next(iter(others), None)

    def _only_mention(self, line: "re.Match[str]") -> Mention | None:
        """The move of a line that has no words; the opponent's move beside it does not count."""
        if re.search(r"[^\W\d_]", MOVE.sub("", line[0])):
            return None
        candidates = self._own or self.mentions
        begin, end = (bisect_left(candidates, at, key=attrgetter("start")) for at in line.span())
        mentions = candidates[begin:end]
        return mentions[0] if len({mention.move for mention in mentions}) == 1 else None

    def only(self) -> Mention | None:
        """The only move: legal, or a sentence of its own at the end ("Sure! f1b5").

        Beside other moves, the only legal one, if it alone is a clause of its own.
        """
        if self._cut_off:  # the rest of the reply could reject its only move
            return None
        named = {mention.move for mention in self._own if not mention.is_square}
        if len(named) == 1 and not self._legal:
            return self._own[-1] if self._own[-1].ends_reply() else None
        legal = {mention.move for mention in self._legal}
        clauses = {mention.move for mention in self.mentions if mention.is_clause()}
        return self._legal[0] if len(legal) == 1 and legal in (named, clauses) else None


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
    reply = Reply(text, board, rules, cut_off=cut_off)
    if not reply.mentions:
        return None
    found = reply.next_in_game() if reply.repeats_game else reply.played()
    return found.move if found else None


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
