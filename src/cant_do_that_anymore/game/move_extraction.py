"""The ordered rules of the move parser: which of the moves that a reply mentions it plays.

The first rule that applies returns the move, or `UNREADABLE`. A wrong move is worse than an
unreadable reply, since the bounds of the metrics account only for the latter.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property

import chess

from .mentions import Mention, Resolver, mentions_in, takes_pawn_to_last_rank
from .reply_text import MOVE_NUMBER, any_case, piece_letters
from .rules import STANDARD, Rules
from .stances import Stance, StanceAnalysis

UNREADABLE = chess.Move.null()  # returned by a rule that decides against every move
MAX_MENTIONS = 2_000  # a reply with more mentions is unreadable
MAX_MARKS = 20  # and so is one with more boxes or tags
_VALUE = (
    r"[\s\"'(\[<:=>-]*"
    r"(?:(?:make_move|bestmove|move|uci|(?:I |I'll )?play)\b[\s\"'(\[:=-]*)?(?:\d+\)+[ ]*)?"
)
_NOT_OURS = any_case(
    r"\b(?:opponent'?s?|your|last|previous|candidate|possible|legal|available|their|alternative"
    r"|other|illegal|forbidden|example|expected|normal|usual|standard|natural|old|invalid"
    r"|considered|second|third|future|following|user'?s?|human'?s?|king's)\b"
)
_NOUN = (
    r"(?:move|answer|action|decision|choice|bestmove|response|reply|output|result|solution|play"
    r"|conclusion|best|pick|verdict|final|correction|edit)"
)
_LABEL = any_case(
    rf"(?<![\w-])(?P<words>(?:[A-Za-z']+[ ]){{0,4}}?){_NOUN}(?:[ ](?:\([^)\n]{{0,25}}\)|played"
    r"|chosen|made|selected|completed|decision|choice|uci|san|in|for|notation|here|now|as"
    r"|white|black|to|play|make|under|these|the|new|rules))*"
    rf"[ ]?(?::|=(?!=)|[-=]>|[ ]is\b|[ ]will be\b){_VALUE}"
)
_COMMAND = any_case(rf"(?:make[_ ]move|bestmove|play_move|submit_move)\b{_VALUE}")
_FIELD = any_case(
    r"[\"'](?P<words>\w*move\w*|uci|san|action|action_input|answer|final_answer|choice|command"
    rf"|content|\w*response|result|output|play|final|best|pick)[\"']\s*:\s*[\"']{_VALUE}"
)
_BOXED = re.compile(r"\\boxed\s*\{([^{}]{0,200})\}")
_TAG = any_case(
    r"<(?:answer|move|final|final_answer|uci|action|best_?move|output|response|result)>"
)
_CORRECTION = any_case(
    r"\b(?:wait|actually|instead|no,|correction|rather|on second thought|however|oops|sorry|hmm"
    r"|reconsider\w*|re-?evaluat\w*|try again|better|mistake|illegal|not (?:legal|allowed|valid))"
)
_LISTED = re.compile(r"\s*(?:[,/]|\band\b|\bor\b)[\s,]*(?:and |or )?[KQRBN]?[a-h]?x?[a-h][1-8]\b")
# What follows a move that an explanation follows.
_EXPLAINED = re.compile(r"[+#!]*(?:\s*[.,:;(\[]|\s*\n|\s+-|\s*//|\s+(?:because|since|as|to)\b)")
_TOKEN = re.compile(
    r"(?<![A-Za-z0-9])(?:[KQRBN]?[a-h]?[1-8]?x?[a-h][1-8](?:=?[QRBNqrbn])?"
    r"|[a-h][1-8]-[a-h][1-8]|(?:O-O|0-0)(?:-[O0])?)(?![A-Za-z0-9])"
)
_RESIDUE = re.compile(
    rf"{MOVE_NUMBER}|\[[ xX]\]|\b(?:e\.?p|1-0|0-1|1/2-1/2|check|checkmate|mate)\b"
)
_SPEAKER = any_case(r"\W*(?:(?P<color>white|black)(?:'s move)?|assistant|me|I)\s*:")


def first_match(reply: "Reply", extractors: Sequence["Extractor"]) -> chess.Move | None:
    """Return the move of the first extractor that applies to a reply, or None."""
    for extract in extractors:
        move = extract(reply)
        if move is not None:
            return move or None
    return None


def may_promote(move: chess.Move, board: chess.Board) -> bool:
    """Whether a move takes a pawn to the last rank without a promotion piece."""
    return takes_pawn_to_last_rank(move, board) and not move.promotion


class Reply:
    """A reply to parse: its plain text, the moves it mentions and its stance on each."""

    def __init__(
        self, text: str, board: chess.Board, rules: Rules, cut_off: bool, previous: str | None
    ) -> None:
        self.text, self.board, self.rules = text, board, rules
        self.cut_off, self.previous = cut_off, previous
        self.resolver = Resolver(board, rules, piece_letters(text))
        self.opponent = "black" if board.turn else "white"

    @cached_property
    def mentions(self) -> list[Mention]:
        """The mentioned moves, without a last one that the token limit may have cut off."""
        mentions = mentions_in(self.text, self.resolver)
        if len(mentions) > MAX_MENTIONS:
            return []
        if self.cut_off and mentions and mentions[-1].end == len(self.text):
            last = mentions[-1]
            castles = last.text.upper() in ("O-O", "0-0", "OO")
            if castles or last.move is None or may_promote(last.move, self.board):
                return mentions[:-1]
        return mentions

    @cached_property
    def analysis(self) -> StanceAnalysis:
        """The stance of the text on each mention."""
        return StanceAnalysis(self.text, self.mentions, self.opponent)

    @cached_property
    def by_start(self) -> dict[int, int]:
        """The index of each mention by its start offset."""
        return {mention.start: index for index, mention in enumerate(self.mentions)}

    def stands(self, index: int) -> bool:
        """Whether a mention is neither rejected, there or later, nor an example."""
        before = self.text[max(0, self.mentions[index].start - 60) : self.mentions[index].start]
        example = re.search(
            r"\b(?:eg|example|for instance|such as|format)\b[^.,;)\n]*$|\blike\W*$", before
        )
        rejected = self.analysis.stances[index] is Stance.REJECTED
        return not (rejected or example or self.analysis.is_rejected_later(index))

    def is_own_piece(self, index: int) -> bool:
        """Whether a mention does not move an opponent's piece."""
        move = self.mentions[index].move
        return not move or self.board.color_at(move.from_square) != (not self.board.turn)

    def with_stance(self, *stances: Stance) -> list[int]:
        """Return the mentions with one of these stances that repeat no move of the opponent."""
        indices = [index for index, stance in enumerate(self.analysis.stances) if stance in stances]
        return [index for index in indices if not self.is_echo(self.mentions[index])]

    def is_echo(self, mention: Mention) -> bool:
        """Whether a mention repeats the opponent's last move."""
        if not self.previous:
            return False
        last = chess.Move.from_uci(self.previous)
        if mention.move:
            return mention.move == last
        return mention.text.endswith(chess.square_name(last.to_square))

    def move_in_part(self, text: str) -> chess.Move | None:
        """Return the move that a marked part of the reply plays, whatever is marked within it."""
        part = Reply(text.strip(), self.board, self.rules, self.cut_off, self.previous)
        return first_match(part, EXTRACTORS[2:])

    def is_answered_by(self, first: Mention, second: Mention) -> bool:
        """Whether the second move is a legal reply to the first, by the other side."""
        move, between = first.move, self.text[first.end : second.start]
        sides = r"\)\)" if self.board.turn else r"\)(?!\))"
        if "\n" not in between and not re.fullmatch(rf"[\s,+#!?]*(?:\d+{sides}\s*)?", between):
            return False
        if not move or self.board.color_at(move.from_square) != self.board.turn:
            return False
        after = self.board.copy(stack=False)
        after.push(move)
        replies = mentions_in(second.text, Resolver(after, self.rules))
        legal = {m for rules in (STANDARD, self.rules) for m in rules.legal_moves(after)}
        return len(replies) == 1 and replies[0].move in legal


def _agreed_move(reply: Reply, marked: Sequence[int]) -> chess.Move | None:
    """Return the only move of the standing marked mentions, or the last if it is a correction."""
    standing = [index for index in marked if reply.stands(index)]
    if not standing:
        return None
    moves = [reply.mentions[index].move for index in standing]
    if len(set(moves)) == 1:
        return moves[0] or UNREADABLE
    first, following = standing[0], standing[0] + 1
    if reply.is_answered_by(reply.mentions[first], reply.mentions[following]):
        return moves[0] or UNREADABLE
    last = standing[-1]
    between = reply.text[reply.mentions[standing[-2]].end : reply.mentions[last].start]
    return (_CORRECTION.search(between) and moves[-1]) or UNREADABLE


def _marked_move(reply: Reply, marks: Iterable["re.Match[str]"]) -> chess.Move | None:
    return _agreed_move(
        reply, [reply.by_start[m.end()] for m in marks if m.end() in reply.by_start]
    )


def boxed(reply: Reply) -> chess.Move | None:
    """The move in ``\\boxed{}``."""
    return _move_in_parts(reply, _BOXED.findall(reply.text))


def tagged(reply: Reply) -> chess.Move | None:
    """The move between tags such as ``<answer>`` and ``</answer>``."""
    starts = [match.end() for match in _TAG.finditer(reply.text)][: MAX_MARKS + 1]
    return _move_in_parts(reply, [reply.text[start:].partition("</")[0] for start in starts])


def _move_in_parts(reply: Reply, parts: Sequence[str]) -> chess.Move | None:
    """Return the move that all marked parts and a final label play; none if they disagree."""
    if not parts or len(parts) > MAX_MARKS:
        return UNREADABLE if parts else None
    moves = {reply.move_in_part(part) for part in parts} | ({final_label(reply)} - {None})
    if len(moves) == 1 or _CORRECTION.search(reply.text):
        return reply.move_in_part(parts[-1]) or UNREADABLE
    return UNREADABLE


def final_label(reply: Reply) -> chess.Move | None:
    """The move after a label with the word "final"."""
    marks = (m for m in _labels(reply) if re.search(r"\bfinal\b", m["words"], re.IGNORECASE))
    return _marked_move(reply, marks)


def field(reply: Reply) -> chess.Move | None:
    """The move in a JSON field, or in an argument of a tool call."""
    marks = _FIELD.finditer(reply.text)
    return _marked_move(
        reply, (m for m in marks if _is_own_label(reply, m["words"].replace("_", " ")))
    )


def command(reply: Reply) -> chess.Move | None:
    """The move after a command such as ``bestmove`` or ``make_move``."""
    return _marked_move(reply, _COMMAND.finditer(reply.text))


def label(reply: Reply) -> chess.Move | None:
    """The move after a label such as ``Move:`` or "My move is"."""
    return _marked_move(reply, _labels(reply))


def _labels(reply: Reply) -> Iterator["re.Match[str]"]:
    for match in _LABEL.finditer(reply.text):
        of_next = re.search(r"\bnext\b", match["words"], re.IGNORECASE)
        later = of_next and reply.by_start.get(match.end())  # not the first mention
        if _is_own_label(reply, match["words"]) and not later:
            yield match


def _is_own_label(reply: Reply, words: str) -> bool:
    """Whether a label is not about the opponent's moves or rejected ones."""
    return not _NOT_OURS.search(words) and reply.opponent not in words.lower()


def repeated_game(reply: Reply) -> chess.Move | None:
    """The first new move after the moves of the game, repeated from its beginning."""
    board, target, end = chess.Board(), reply.board, 0
    first = re.search(r"(?<![\w)])1\)", reply.text)
    for ply, token in enumerate(_TOKEN.finditer(reply.text, first.end() if first else 0)):
        if ply and board.turn == target.turn and board.board_fen() == target.board_fen():
            if re.search(r"[^\W\d]{2}", reply.text[end : token.start()]):
                return None
            new = mentions_in(token[0], reply.resolver)
            index = reply.by_start.get(token.start())
            if index is not None and not reply.stands(index):
                return None
            return (new and new[0].move) or UNREADABLE
        mentions = mentions_in(token[0], Resolver(board, reply.rules))
        move = mentions[0].move if mentions else None
        if not move or board.color_at(move.from_square) != board.turn:
            return None
        board.push(move)
        end = token.end()
    return None


def lone_move(reply: Reply) -> chess.Move | None:
    """The move on a line of its own; the first of several that continue the game."""
    lone = list(_lone_lines(reply))
    standing = [index for index in lone if reply.stands(index)]
    if len({reply.mentions[index].move for index in standing}) > 1:
        echoes = [n for n, index in enumerate(standing) if reply.is_echo(reply.mentions[index])]
        standing = standing[echoes[-1] + 1 :] if echoes else standing
    moves = [reply.mentions[index].move for index in standing]
    if not moves or _is_corrected(reply, standing[-1]):
        return None
    if len(set(moves)) == 1:
        return moves[0] or UNREADABLE
    others = [index for index in standing if reply.mentions[index].move != moves[0]]
    if reply.is_answered_by(reply.mentions[standing[0]], reply.mentions[others[0]]):
        return moves[0]
    return UNREADABLE if len(lone) == len(reply.mentions) else None


def _is_corrected(reply: Reply, last: int) -> bool:
    """Whether the text later chooses another move and calls that a correction."""
    for index in range(last, len(reply.mentions)):
        other = reply.mentions[index]
        named = reply.analysis.stances[index] in (Stance.CHOSEN, Stance.PLAIN)
        if named and other.move != reply.mentions[last].move:
            between = reply.text[reply.mentions[last].end : other.end + 12]
            return bool(_CORRECTION.search(between))
    return False


def _lone_lines(reply: Reply) -> Iterator[int]:
    """Yield the mentions on lines of moves only; a lone weak one must be on the first or last."""
    lines = [line for line in re.finditer(r"[^\n]+", reply.text) if re.search(r"\w", line[0])]
    starts = [mention.start for mention in reply.mentions]
    for line in lines:
        inside = range(bisect_left(starts, line.start()), bisect_left(starts, line.end()))
        if not inside or not _is_only_moves(reply, line, inside):
            continue
        weak_too = line in (lines[0], lines[-1]) or len(inside) > 1
        yield from (index for index in inside if weak_too or not reply.mentions[index].weak)


def _is_only_moves(reply: Reply, line: "re.Match[str]", inside: Iterable[int]) -> bool:
    rest, place = "", line.start()
    for index in inside:
        rest += reply.text[place : reply.mentions[index].start] + " "
        place = reply.mentions[index].end
    rest += reply.text[place : line.end()]
    speaker = _SPEAKER.match(rest)
    if speaker:
        if speaker["color"] and speaker["color"].lower() == reply.opponent:
            return False
        rest = rest[speaker.end() :]
    return not re.search(r"\w", _RESIDUE.sub("", rest)) and "?" not in rest


def chosen(reply: Reply) -> chess.Move | None:
    """The move that the text says it plays: "I play", "let's go with", "so"."""
    return _agreed_move(reply, reply.with_stance(Stance.CHOSEN))


def leading_move(reply: Reply) -> chess.Move | None:
    """The move at the start of a reply, before an explanation that does not retract it."""
    if not reply.mentions or re.search(r"[^\W\d]", reply.text[: reply.mentions[0].start]):
        return None
    first, rest = reply.mentions[0], reply.text[reply.mentions[0].end :]
    if not _EXPLAINED.match(rest) or not reply.stands(0) or not reply.is_own_piece(0):
        return None
    if not first.move or reply.is_echo(first) or reply.analysis.rejects(first.move):
        return None
    if len(reply.mentions) > 1:
        between = reply.text[first.end : reply.mentions[1].start]
        words = re.search(r"[^\W\d]{3}", between)
        listed = not words and reply.analysis.stances[1] is not Stance.REJECTED
        lines = any(re.search(r"\n\W*$", reply.text[: m.start]) for m in reply.mentions[1:])
        if listed or lines or re.search(r"\bor\b|\?", between):
            return None
    forbidden = reply.rules.forbids(reply.board, first.move)
    return None if forbidden and reply.analysis.may_be_refused(0) else first.move


def only_move(reply: Reply) -> chess.Move | None:
    """The only move that the text names and does not reject."""
    named = reply.with_stance(Stance.PLAIN, Stance.DOUBTFUL)
    plain = [index for index in named if not reply.analysis.is_asked_alone(index)] or named
    moves = {reply.mentions[index].move for index in plain}
    if len(moves) != 1 or any(reply.analysis.rejects(move) for move in moves):
        return None
    if not all(reply.stands(index) and reply.is_own_piece(index) for index in plain):
        return None
    if reply.cut_off and not all(reply.analysis.is_finished(index) for index in plain):
        return None
    if any(_LISTED.match(reply.text, reply.mentions[index].end) for index in plain):
        return None
    if any(re.search(r"\bor\b[\w ]{0,20}$", reply.text[: reply.mentions[i].start]) for i in plain):
        return None
    move = moves.pop()
    forbidden = move and reply.rules.forbids(reply.board, move)
    refused = re.search(r"\bbut\b", reply.text) or any(map(reply.analysis.may_be_refused, plain))
    return None if forbidden and refused else move


Extractor = Callable[[Reply], chess.Move | None]
EXTRACTORS: tuple[Extractor, ...] = (
    boxed,
    tagged,
    final_label,
    field,
    command,
    label,
    repeated_game,
    lone_move,
    chosen,
    leading_move,
    only_move,
)
