"""Read whether a reply says yes or no, by an ordered list of rules.

The first rule that applies decides: yes, no, or that the reply contradicts itself.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..game.reply_text import any_case, plain_text
from ..game.stances import OLD

# What a rule reads: both if the reply contradicts itself, nothing if the rule does not apply.
Said = set[bool]
_WORDS = {
    **dict.fromkeys(("yes", "legal", "true", "yeah", "yep", "yup", "correct", "allowed"), True),
    **dict.fromkeys(("ja", "oui", "sí", "si", "да", "是", "はい"), True),
    **dict.fromkeys(("no", "illegal", "false", "nope", "nah", "incorrect"), False),
    **dict.fromkeys(("not", "not legal", "not allowed"), False),
    **dict.fromkeys(("nein", "non", "нет", "否", "いいえ"), False),
}
_SURELY = r"(?:absolutely|certainly|definitely|of course|clearly|obviously|surely|most)"
_YES_OR_NO = r"(?:(?P<yes>yes|true|legal)|no|false|illegal|not legal)\b"
_MARKED = any_case(
    r"(?:\\boxed ?\{|<(?:answer|final|output)>|[\"'](?:\w{0,20}answer|result|verdict)[\"'] ?:"
    r"|\b(?:answer|verdict|conclusion|final|response|result|reply)(?: is| would be| must be)? ?"
    r"[:=]?|(?P<illegal>\b(?:illegal|forbidden)[\"']? ?[:=?])"
    r"|(?:\b|[\"'])(?:is_)?(?:legal|legality|allowed)[\"']? ?[:=?])"
    rf"[\s\"'(\[:]{{0,9}}(?P<inverted>not )?{_YES_OR_NO}"
)
# The two answer options, as the question names them.
_QUOTED = any_case(r"\b(?:yes[\"']? or [\"']?no|no[\"']? or [\"']?yes)\b")
_BEGINNING = any_case(
    r"\W*(?:(?P<yes>yes|yeah|yep|yup)|no|nope|nah)\b"
    r"(?!\s+(?:and|doubt|idea|issue|problem|question|reason|way|matter|longer|worries|need|one"
    r"|rule|move|piece)\b| in \w+ chess)"
)
_SENTENCE = re.compile(r"[^.!?\n]*(?:[.!?](?!\s|$)[^.!?\n]*)*[.!?\n]*")
_CONTRAST = (
    r"(?<!anything )but|however|yet|though|although|while|whereas|actually|instead|wait|hmm"
    r"|sorry|correction|oops|hold on|on (?:closer|second|reflection|further)"
)
_CONCLUSION = (
    r"so|then|therefore|thus|hence|overall|in (?:conclusion|summary|short|the end)|consequently"
    r"|as a result|accordingly|conclusion|to (?:conclude|summarize|sum up)|finally|in total"
    r"|all moves|both moves|every move"
)
_CLAUSE = any_case(
    rf"[;:()]|\s-+\s|,(?=\s)(?! (?:too|as well))|(?=\b(?:{_CONTRAST}|so|therefore|thus|hence"
    r"|because|since|which|as (?=(?:it|the|this|that|there|move|a|an|we|you)\b))\b)"
)
_MARKER = any_case(rf"\W*(?:and )?(?P<contrast>{_CONTRAST})\b|\W*(?:{_CONCLUSION})\b")
_DOUBTS = any_case(
    r"\?|\b(?:unsure|unclear|depends|not sure|whether|if|unless|might|may|could|perhaps|maybe|let's"
    r"|only (?:for|if|when)|at first|for an? (?:knight|bishop|rook|queen|king)"
    r"|(?:can't|cannot|don't) (?:tell|know|determine|say)(?! that))\b"
)
_STANDARD = any_case(
    rf"\b(?:{OLD})(?: \w+)? (?:chess|rules?|game|circumstances|play)\b"
    r"|\b(?:normally|usually|ordinarily|traditionally|used to|was|were|before)\b"
)
_HERE = any_case(
    r"\b(?:here|now|this (?:game|variant|position)|these rules|the rules of"
    r"|(?:changed|new|modified|given|current) rules?|both|also|as well|too|neither|anymore)\b"
)
# A clause about all moves of a kind, which says nothing about the move in question.
_GENERAL = any_case(
    r"\W*(?:(?:since|because|as|but|and|now|here|in this game|under \w+ rules),? )*"
    r"(?:(?:no|all|any) )?(?:diagonals?|bishops|knights|rooks|queens|pieces"
    r"|(?:it is|it's) (?:il)?legal (?:for|to))\b"
)
_NOT = any_case(
    r"\b(?:not(?! only| just| merely)|never|cannot|neither\b.{0,80}?\bnor|nor|neither|nothing|no"
    r"|far from|anything but|hardly|without|wrong|false|incorrect|untrue)\b|n't\b"
)
_DENIED = any_case(r"\b(?:is|are|would be) (?:false|wrong|incorrect|untrue)\b")
_REASON = any_case(r"\W*(?:as(?! a result)|because|since)\b")
_PREDICATE = any_case(
    r"\b(?:(?P<illegal>illegal(?:ly)?|forbidden|prohibited|disallowed|invalid|impossible|unlawful"
    r"|impermissible|violat\w+|break(?:s|ing)?|broken|against the rules|banned|forbids?|prohibits?)"
    r"|legal(?:ly)?(?! moves (?:are|for|available))|allowed|permitted|permissible|valid"
    r"|possible|lawful|playable|acceptable|fine|okay|allows?|permits?"
    r"|(?:can|may|could)(?P<cannot>not|'t)? (?:\w+ ){0,2}?(?:play(?:ed)?|make|made|do|done|go)"
    r"|(?P<yes>yes(?=\W*$| here\b| in this))|(?P<no>no(?=\W*$| here\b| in this)))\b"
)
_PLACE = r"(?: (?:here|now|anymore|any more|in this \w+|under [\w ]+))?"
# A clause such as "here it is" or "not anymore", which refers to an earlier predicate.
_ELLIPSIS = any_case(
    r"\W*(?:[\w' ]+ )?(?:it|this|that|the move|[a-h][1-8][a-h][1-8])(?P<no_longer> no longer)?"
    rf"(?:'s| is| does| can)(?P<not>n't|'t| not|not)?{_PLACE}\W*"
    rf"|\W*(?:but |and )?(?P<bare>not){_PLACE}\W*"
)
_MAX_ELLIPSIS = 120  # characters
_SUBJECT = re.compile(r"\b(?:[a-h][1-8]-?[a-h][1-8]|[KQRBN]?[a-h]?x?[a-h][1-8])\b|^\W*\d+\)")
_UCI = re.compile(r"(?:[a-h][1-8]){2}")


@dataclass(frozen=True)
class Statement:
    """What a clause says about the move.

    Attributes:
        legal: whether it says that the move is legal.
        contrasts: whether it corrects an earlier clause.
        concludes: whether it is introduced as a conclusion or a correction.
        subject: the move or the list item that it names, if any.
    """

    legal: bool
    contrasts: bool
    concludes: bool
    subject: str


def _whole_line(text: str, move: str) -> Said:
    """The whole reply, its first line or its last line is yes, no or a synonym."""
    lines = [line for line in text.splitlines() if re.search(r"\w", line)]
    words = [" ".join(re.findall(r"[\w']+", line)).lower() for line in lines]
    words = [re.sub(rf"^{_SURELY} (?=\w)", "", word) for word in words]
    readings = {_WORDS[word] for word in words if word in _WORDS}
    if words and words[-1] in _WORDS:
        return readings
    if words and words[0] in _WORDS:
        return readings if len(readings) > 1 else _first_word(text, move)
    return set()


def _marked(text: str, move: str) -> Said:
    """The answer is marked: "Answer: no", a box, a JSON field."""
    return {
        bool(match["yes"]) != bool(match["illegal"] or match["inverted"])
        for match in _MARKED.finditer(text)
    }


def _first_word(text: str, move: str) -> Said:
    """The reply begins with yes or no, and later clauses agree or correct it."""
    match = _BEGINNING.match(text)
    if not match:
        return {True, False} if re.match(r"\W*yes and no\b", text, re.IGNORECASE) else set()
    says_yes, later = bool(match["yes"]), list(statements(text[match.end() :], move))
    if later and later[-1].legal == says_yes:
        return {says_yes}
    agreeing_subjects = {statement.subject for statement in later if statement.legal == says_yes}
    contrary = [
        statement
        for statement in later
        if statement.legal != says_yes
        and not (statement.subject and agreeing_subjects - {statement.subject})
    ]
    if not contrary:
        return {says_yes}
    return {not says_yes} if contrary[-1].contrasts else {True, False}


def _stated(text: str, move: str) -> Said:
    """The reply says that the move is legal or illegal; the final statement decides."""
    all_statements = list(statements(text, move))
    if not all_statements:
        return set()
    concluding = [statement for statement in all_statements if statement.concludes]
    last = concluding[-1] if concluding and not all_statements[-1].contrasts else all_statements[-1]
    against = [
        statement
        for statement in all_statements
        if statement.legal != last.legal and statement.subject == last.subject
    ]
    outweighed = last.concludes and not any(
        statement.concludes or statement is all_statements[-1] for statement in against
    )
    if last.contrasts or not against or outweighed:
        return {last.legal}
    return {True, False}


def statements(text: str, move: str) -> Iterator[Statement]:
    """Yield what the clauses of a text say about the move, under the rules of this game.

    Clauses about standard chess only, questions, doubts, and clauses about another move or about
    all moves of a kind do not count.

    >>> [s.legal for s in statements("Illegal in normal chess, but legal here.", "")]
    [True]
    """
    base_illegal = False
    for sentence in _SENTENCE.findall(text):
        standard, marker, first = False, None, _SUBJECT.search(sentence)
        for clause in _CLAUSE.split(sentence):
            marker = _MARKER.match(clause) or marker
            here = bool(_HERE.search(clause))
            standard = bool(_STANDARD.search(clause) and not here) or (
                standard and not here and not (marker and marker["contrast"])
            )
            predicates = list(_PREDICATE.finditer(clause))
            ellipsis = _ELLIPSIS.fullmatch(clause) if len(clause) < _MAX_ELLIPSIS else None
            if predicates:
                base_illegal = bool(predicates[0]["illegal"])
                legal = _is_legal_in(clause, predicates[0])
            elif ellipsis:
                legal = base_illegal == any(ellipsis.groups())
            else:
                continue
            if standard or "?" in sentence or _DOUBTS.search(clause):
                continue
            if _GENERAL.match(clause) or _REASON.match(clause):
                continue
            contrasts = bool(marker and marker["contrast"]) or not predicates
            named_move = _SUBJECT.search(clause) or first
            subject = named_move[0].replace("-", "") if named_move else ""
            if not move or subject == move or not _UCI.fullmatch(subject):
                yield Statement(legal, contrasts, bool(marker), subject)


def _is_legal_in(clause: str, predicate: "re.Match[str]") -> bool:
    """Whether a clause says that the move is legal; each negation inverts it."""
    inversions = [
        len(_NOT.findall(clause[: predicate.start()])) % 2 == 1,
        bool(predicate["cannot"]),
        bool(_DENIED.search(clause, predicate.end())),
        bool(predicate["illegal"] or predicate["no"]),
    ]
    return inversions.count(True) % 2 == 0


READERS = (_whole_line, _marked, _first_word, _stated)


def read_yes_no(reply: str, *, move: str = "", cut_off: bool = False) -> bool | None:
    """Read whether a reply says yes (the move is legal), no, or neither.

    Args:
        reply: the text of the reply.
        move: the move that was asked about, in UCI; statements about other moves then do not count.
        cut_off: whether a limit cut the reply off; an unfinished last sentence then says nothing.

    Returns:
        True for yes, False for no, None if the reply says neither or contradicts itself.

    >>> read_yes_no("**No**, because bishops move like knights."), read_yes_no("Perhaps.")
    (False, None)
    """
    text = _QUOTED.sub(" ", plain_text(reply))
    for reader in READERS:
        unfinished = cut_off and reader is _stated
        readings = reader(_finished_sentences(text) if unfinished else text, move)
        if readings:
            return readings.pop() if len(readings) == 1 else None
    return None


def _finished_sentences(text: str) -> str:
    ends = [match.end() for match in re.finditer(r"[.!?](?=\s|$)|\n", text)]
    return text[: ends[-1]] if ends else ""
