"""Read whether a reply says yes or no.

An answer that is called so decides ("the answer is no"). Otherwise the last verdict does: a yes
or no that stands alone, opens a sentence or follows a colon, or a sentence that calls the move
legal or illegal. If the reply begins with the opposite of its last verdict, it says neither.
"""

import re
from collections.abc import Iterator

from ..habits.markup import plain_text

_WORD = r"(?:(?P<yes>yes|yeah|yep|true|legal\b(?![\"']?:))|no|nope|false|illegal|not legal)\b"
_END = r"(?=[\"')\]}]{0,3}(?:[.,;:!-]| [(-]|\s*\n|\s*\Z))"
_FIRST = re.compile(rf"(?i)\W{{0,20}}{_WORD}{_END}")
_ANSWER = re.compile(rf"(?i)\b(?:answer|verdict|conclusion)[\"']?(?: is| ?:)[\s\"':]{{0,9}}{_WORD}")
_MARKED = re.compile(
    rf"(?i)(?:[\n:,]|[.!?;] |\b(?:so|therefore|thus|but|actually))[\s\"'({{\[-]{{0,9}}{_WORD}{_END}"
)
_STATED = re.compile(
    r"(?i)\b(?:is|are|it's|remains)(?P<denied>n't| not| no longer)? (?:\w+ ){0,3}?"
    r"(?:(?P<yes>legal|allowed|permitted|possible|valid)|illegal|forbidden|impossible|invalid)\b"
)
# Sentences that ask, doubt, deny what they say or are about standard chess.
_NO_STATEMENT = re.compile(
    r"(?i)\?|\b(?:if|whether|standard|normal\w*|usual\w*|sure|no (?:way|reason)|nothing"
    r"|not the case|statement)\b|(?:n't| not) (?:think|see|believe)\b"
)
_SENTENCE = re.compile(r"[^.!?\n]+[.!?\n]*")
_UCI = re.compile(r"\b([a-h][1-8])-?([a-h][1-8])\b")


def read_yes_no(reply: str, *, move: str = "", cut_off: bool = False) -> bool | None:
    """Read whether a reply says yes (the move is legal), no, or neither.

    Args:
        reply: the text of the reply.
        move: the move that was asked about, in UCI; sentences about other moves then do not count.
        cut_off: whether a limit cut the reply off; an unfinished last sentence then says nothing.

    Returns:
        True for yes, False for no, None if the reply says neither or contradicts itself.

    >>> read_yes_no("**No**, because bishops move like knights."), read_yes_no("Perhaps.")
    (False, None)
    """
    text = plain_text(reply)
    answers = [bool(match["yes"]) for match in _ANSWER.finditer(text)]
    if answers:
        return answers[-1]
    first, marked = _FIRST.match(text), list(_MARKED.finditer(text))
    verdicts = [(match.end(), bool(match["yes"])) for match in (first, *marked) if match]
    verdicts += _statements(text, move, cut_off)
    if not verdicts:
        return None
    last = max(verdicts)[1]
    return None if first and bool(first["yes"]) != last else last


def _statements(text: str, move: str, cut_off: bool) -> Iterator[tuple[int, bool]]:
    """Yield the place of each sentence that says whether the move is legal, and what it says."""
    for sentence in _SENTENCE.finditer(text):
        moves = ["".join(squares) for squares in _UCI.findall(sentence[0])]
        is_unfinished = cut_off and sentence.end() == len(text)
        is_about_others = move and moves and move not in moves
        if is_unfinished or is_about_others or _NO_STATEMENT.search(sentence[0]):
            continue
        for match in _STATED.finditer(sentence[0]):
            yield sentence.end(), bool(match["yes"]) != bool(match["denied"])
