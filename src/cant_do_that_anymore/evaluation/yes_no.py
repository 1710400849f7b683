"""Read whether a reply says yes or no, by an ordered list of rules.

The first rule that applies decides: yes, no, or that the reply contradicts itself.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from ..game.reply_text import plain_text

CONTRADICTS = "contradicts"
"""What a rule gives that decides neither for yes nor for no."""
Said = bool | str | None
_WORDS = {
    "yes": True,
    "legal": True,
    "true": True,
    "no": False,
    "illegal": False,
    "false": False,
} | {
    **dict.fromkeys(("ja", "oui", "sí", "si", "да", "是", "はい"), True),
    **dict.fromkeys(("nein", "non", "нет", "否", "いいえ", "not legal", "not allowed"), False),
    **dict.fromkeys(("yeah", "yep", "yup", "correct", "allowed"), True),
    **dict.fromkeys(("nope", "nah", "incorrect", "no it is not", "no it isn't"), False),
}
_YES_OR_NO = r"(?:(?P<yes>yes|true|legal)|no|false|illegal|not legal)\b(?! (?:or|and) (?:no|yes)\b)"
_MARKED = re.compile(
    rf"(?:\\boxed\s*\{{|<(?:answer|final|output)>|[\"'](?:\w*answer|legal|is_legal|result"
    rf"|verdict)[\"']\s*:"
    rf"|\b(?:answer|verdict|conclusion|final|response|result|reply)(?: is| would be"
    rf"| must be)?\s*[:=]?"
    rf"|\b(?:legal|legality|allowed)\s*[:=?])"
    rf"[\s\"'(\[:]*{_YES_OR_NO}",
    re.IGNORECASE,
)
_BEGINNING = re.compile(
    r"\W*(?:(?P<yes>yes|yeah|yep|yup)|no|nope|nah)\b"
    r"(?!\s+(?:or|and|doubt|idea|issue|problem|question|reason|way|matter|longer|worries|need"
    r"|one)\b)",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[^.!?\n]*(?:[.!?](?!\s|$)[^.!?\n]*)*[.!?\n]?")
_CLAUSE = re.compile(
    r"(;|, and\b|\s-+\s|,? \b(?:but|however|while|whereas|although|though|yet|so|therefore|thus"
    r"|hence)\b)",
    re.IGNORECASE,
)
_DOUBTS = re.compile(r"\?|\b(?:unsure|unclear|depends|not sure)\b", re.IGNORECASE)
_OPEN = re.compile(
    r"\b(?:whether|if|unless|let's|need to|would(?! not| be| say| answer)"
    r"|(?:can't|cannot|don't) (?:tell|know|determine|say))\b",
    re.IGNORECASE,
)
_STANDARD = re.compile(
    r"\b(?:standard|normal|regular|ordinary|usual|traditional|classical|conventional|orthodox"
    r"|original"
    r"|old|real)(?: \w+)? (?:chess|rules?|game|circumstances|play)\b|\bnormally|usually|ordinarily"
    r"|traditionally\b",
    re.IGNORECASE,
)
_BOTH = re.compile(
    r"\b(?:both|also|as well as|too|(?:and|or) (?:in |under )?(?:this|these|the|our))\b",
    re.IGNORECASE,
)
_GENERAL = re.compile(
    r"\W*(?:(?:since|because|as|now|here|in this game|under \w+ rules),? )*"
    r"(?:diagonal|bishops|knights|rooks|queens|pieces|(?:it is|it's) (?:il)?legal (?:for|to))\b",
    re.IGNORECASE,
)
"""A clause about all moves of a kind, which says nothing of the move in question."""
_NOT = r"(?:not(?! only| just| merely)|n't|never|cannot|can't|nor|neither|nothing|no|without)"
_LEGAL = r"(?:legal(?:ly)?|allowed|permitted|permissible|valid|possible|lawful|playable|acceptable)"
_ILLEGAL = (
    r"(?:illegal(?:ly)?|forbidden|prohibited|disallowed|invalid|impossible|unlawful|impermissible"
    r"|violat\w+|break(?:s|ing)?|against the rules|banned)"
)
_SAYS = re.compile(
    rf"(?P<not_illegal>{_NOT}\b ?(?:[\w']+ ){{0,3}}?{_ILLEGAL}\b)"
    rf"|(?P<illegal>{_ILLEGAL}\b|{_NOT}\b ?(?:[\w']+ ){{0,4}}?(?:{_LEGAL}|be (?:played|made"
    rf"|done))\b)"
    rf"|(?P<legal>\b{_LEGAL}\b(?! (?:moves?|positions?|openings?|squares?) (?:for|of|are"
    rf"|available|in chess))"
    r"|\bcan (?:indeed |legally )?be (?:played|made)\b|(?:^\W*"
    r"|(?<=[\s:\"(]))(?<!not )(?<!or )(?<!and )yes(?=[\"'.!)]*\s*$|,))"
    r"|(?P<no>(?:^\W*|(?<=[\s:\"(]))(?<!or )(?<!and )no(?=[\"'.!)]*\s*$|,)"
    r"|^\W*(?:(?:it|this|that|the move) )?(?:is not|isn't|'s not|not)"
    r"(?: here| now| anymore| in this game| under these rules)?\W*$)",
    re.IGNORECASE,
)
_THEREFORE = re.compile(
    r"\W*(?:therefore|thus|so|hence|overall|in (?:conclusion|summary|short)|consequently"
    r"|as a result"
    r"|accordingly|conclusion|to conclude)\b",
    re.IGNORECASE,
)
_CONCLUDES = re.compile(
    r"\W*(?:therefore|thus|so|hence|overall|in (?:conclusion|summary|short)|consequently"
    r"|as a result"
    r"|finally|in total|to (?:conclude|summarize|sum up)|since|because|based on|given|all|both"
    r"|every"
    r"|however|but|the (?:entire|whole|given|opening|answer|move)|accordingly|conclusion"
    r"|this opening"
    r"|\S*\s?-?\s?under|in this|with|according)\b",
    re.IGNORECASE,
)


def _lone(text: str) -> Said:
    """The whole reply, its first or its last line is yes or no, or a word for it."""
    lines = [line for line in text.splitlines() if re.search(r"\w", line)]
    for part in [text, *lines[:1], *lines[-1:]]:
        word = " ".join(re.findall(r"[\w']+", part)).lower()
        if word in _WORDS:
            others = {_WORDS.get(" ".join(re.findall(r"[\w']+", line)).lower()) for line in lines}
            return CONTRADICTS if {True, False} <= others else _WORDS[word]
    return None


def _marked(text: str) -> Said:
    """It is marked as the answer: "Answer: no", a box, a field of JSON; the last mark counts."""
    found = [bool(match["yes"]) for match in _MARKED.finditer(text)]
    return found[-1] if found else None


def _begins(text: str) -> Said:
    """It begins with yes or no, and nothing it concludes contradicts that."""
    match = _BEGINNING.match(text)
    if not match:
        return None
    said, concluded = bool(match["yes"]), _stated(text[match.end() :])
    return said if concluded in (None, CONTRADICTS, said) else CONTRADICTS


def _stated(text: str) -> Said:
    """It says that the move is legal, or that it is not; what it concludes counts most."""
    said = [(sentence, verdict) for sentence in _sentences(text) if (verdict := _verdict(sentence))]
    verdicts = [verdict for _, verdict in said]
    if not verdicts:
        return None
    clear = set(verdicts) - {"open"}
    if len(clear) == 1 and verdicts[-1] in clear:
        return clear == {"legal"}
    concluding = [verdict for sentence, verdict in said if _THEREFORE.match(sentence)]
    if _CONCLUDES.match(said[-1][0]) or not concluding:
        concluding = verdicts[-1:] if _CONCLUDES.match(said[-1][0]) else []
    if concluding and concluding[-1] != "open":
        return concluding[-1] == "legal"
    return CONTRADICTS if clear else None


def _sentences(text: str) -> list[str]:
    return [sentence for sentence in _SENTENCE.findall(text) if re.search(r"\w", sentence)]


def _verdict(sentence: str) -> str:
    """What a sentence says of the move: "legal", "illegal", "open", or nothing.

    What holds in standard chess alone does not count.
    """
    verdict, parts = "", ["", *_CLAUSE.split(sentence)]
    for joint, clause in zip(parts[::2], parts[1::2], strict=True):
        found = [match.lastgroup for match in _SAYS.finditer(clause)]
        standard = _STANDARD.search(clause) and not _BOTH.search(clause)
        if not found or standard or _GENERAL.match(clause):
            continue
        kinds = {"illegal" if kind in ("illegal", "no") else "legal" for kind in found}
        said = kinds.pop() if len(kinds) == 1 and not _OPEN.search(clause) else "open"
        verdict = said if verdict in ("", said) or re.search(r"\w", joint) else "open"
    return "open" if _DOUBTS.search(sentence) else verdict


@dataclass(frozen=True)
class Rule:
    """A rule of the reader, with replies and what each is read as."""

    read: Callable[[str], Said]
    examples: dict[str, bool | None]


RULES = (
    Rule(
        _lone,
        {"**Yes.**": True, "Bishops jump now.\n\nNo": False, "Illegal": False, "yes\nno": None},
    ),
    Rule(_marked, {"It may look legal. Answer: no": False, r"\boxed{\text{yes}}": True}),
    Rule(_begins, {"No, bishops jump now.": False, "Yes, it is illegal.": None, "No idea.": None}),
    Rule(_stated, {"f1g3 is illegal in standard chess but legal under these rules.": True}),
)


def read_yes_no(reply: str, *, cut_off: bool = False) -> bool | None:
    """Read whether a reply says yes, the move is legal, or no, or neither.

    Args:
        reply: the text of the reply.
        cut_off: whether a limit cut it off; then its last sentence, unless finished, says nothing.

    Returns:
        True for yes, False for no, None if the reply says neither or contradicts itself.

    >>> read_yes_no("**No**, because bishops move like knights."), read_yes_no("Perhaps.")
    (False, None)
    """
    text = plain_text(reply)
    for rule in RULES:
        unfinished = cut_off and rule.read is _stated
        said = rule.read(_finished(text) if unfinished else text)
        if said is not None:
            return said if isinstance(said, bool) else None
    return None


def _finished(text: str) -> str:
    ends = [match.end() for match in re.finditer(r"[.!?](?=\s|$)|\n", text)]
    return text[: ends[-1]] if ends else ""
