"""Does the model know the rule? A question about one move: is it legal now, yes or no?

What is asked about is either a special move, which is not, or a move that is; nothing else in the
question differs.
"""

import re
from collections.abc import Sequence

import chess

from ..game.position import Position
from ..game.rules import STANDARD, Rules
from ..models.model import Answer
from .judging import unread
from .vocabulary import About, Judgement, Reading

DECORATION = " \t\r\n\f\v\u00a0\u200b\ufeff\"'`*_~.,;:!?+#()[]{}<>|$\\" + "«»‘’“”"
MOVE, ANSWERS = "{move}", "{answers}"
"""Stand in a question for the move it is about, and for what may be answered."""

_LONE = {"yes": True, "legal": True, "no": False, "illegal": False}
_BEGINNING = re.compile(
    r"(?:(?P<yes>yes|yeah|yep|yup)|no|nope|nah)\b"
    r"(?!\s+(?:or|and|doubt|idea|issue|problem|question|reason|way to)\b)",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"\?|\b(?:whether|if|unless|unsure|unclear|depends|not sure"
    r"|(?:can['’]t|cannot|don['’]t) (?:tell|know))\b",
    re.IGNORECASE,
)
_NOT_LEGAL = re.compile(
    r"\b(?:illegal|(?:not(?! only)|no longer|never|cannot|\w+n['’]t)\s+"
    r"(?:\w+\s+){0,2}?(?:legal|allowed|permitted))\b",
    re.IGNORECASE,
)
_LEGAL = re.compile(
    r"\b(?:is|remains)\s+(?:\w+\s+){0,2}?(?:legal|allowed|permitted)\b", re.IGNORECASE
)
_ANSWER = re.compile(r"\banswer(?: is|:)\W*(?:(?P<yes>yes)|no)\b", re.IGNORECASE)


def forbidden_move(position: Position, rules: Rules) -> str:
    """A special move; always the same one of several."""
    return _chosen(position, position.special_moves)


def allowed_move(position: Position, rules: Rules) -> str:
    """A move that is legal under the changed rules and, where there is one, only under them.

    It is always the same one of several; a special move where no move is legal.
    """
    board = position.board()
    legal = list(rules.legal_moves(board))
    only_now = [move for move in legal if not STANDARD.is_legal(board, move)]
    return _chosen(position, [m.uci() for m in only_now or legal] or position.special_moves)


def _chosen(position: Position, moves: Sequence[str]) -> str:
    # The last bit of the id decides about the order of the answers.
    return sorted(moves)[int(position.id, 16) // 2 % len(moves)]


def answers_for(position: Position) -> str:
    """What may be answered: "yes" comes first in half of the positions, as their ids say.

    So a liking for the first, or for the last, is not taken for knowledge.
    """
    return "no or yes" if int(position.id, 16) % 2 else "yes or no"


def judge_knowledge(
    about: About, answer: Answer, position: Position, rules: Rules, reading: Reading
) -> Judgement:
    """Judge the answer to whether the move that ``about`` gives is legal under ``rules``."""
    if answer.stop_reason == "error":
        return Judgement("error", None)
    said = read_yes_or_no(answer.text, reading, cut_off=answer.stop_reason == "length")
    if said is None:
        return Judgement(unread(answer), None)
    legal = rules.is_legal(position.board(), chess.Move.from_uci(about(position, rules)))
    return Judgement("right" if said == legal else "wrong", None)


def read_yes_or_no(
    reply: str, reading: Reading = "lenient", *, cut_off: bool = False
) -> bool | None:
    """What a reply says, or None.

    A lenient reader takes a reply, or its last line, that is yes or no once decoration is removed;
    one that begins with yes or no; and one that says that the move is legal, or that it is not, and
    not both. Of one that was cut off, only the beginning counts. The exact reader takes a bare yes
    or no.

    >>> read_yes_or_no("**No**, because bishops move as knights do."), read_yes_or_no("Perhaps.")
    (False, None)
    """
    if reading == "exact":
        return {"yes": True, "no": False}.get(reply.strip().lower())
    bare = reply.strip(DECORATION)
    last_line = (bare.splitlines() or [""])[-1].strip(DECORATION)
    for part in (bare, *([] if cut_off else [last_line])):
        if part.lower() in _LONE:
            return _LONE[part.lower()]
    beginning = _BEGINNING.match(bare)
    if beginning or cut_off:
        return bool(beginning["yes"]) if beginning else None
    return _stated(bare)


def _stated(text: str) -> bool | None:
    """What is said somewhere in the text, if that is one thing."""
    if _OPEN.search(text):
        return None
    said = {bool(answer["yes"]) for answer in _ANSWER.finditer(text)}
    said |= {False for _ in _NOT_LEGAL.finditer(text)}
    said |= {True for _ in _LEGAL.finditer(_NOT_LEGAL.sub(" ", text))}
    return said.pop() if len(said) == 1 else None
