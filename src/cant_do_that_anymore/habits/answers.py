"""Read the answer that a reply gives to a short question.

Each answer that a reply names becomes one letter, which tells whether it is the right one under the
rules in force, the wrong one (right under the other rules), or a third one. Those that the reply
only mentions are hidden. In what is left, the first of the rules that finds an answer decides.
The patterns are used regardless of case, and ``^`` and ``$`` in them are the ends of a line.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Literal

from .markup import plain_text

AnswerKind = Literal["number", "word", "line"]

# Letters for answers: three ranges of a script that no reply uses, larger than any reply needs.
_LETTERS = "\U00020000-\U00028fff"
_RIGHT, _WRONG, _THIRD = (f"[{chr(n)}-{chr(n + 0x2FFF)}]" for n in (0x20000, 0x23000, 0x26000))
_X, _KNOWN = f"[{_LETTERS}]", f"{_RIGHT}|{_WRONG}"

# Numbers: a sign, unless it stands between two numbers; "1,000" and "1 000 000", also in LaTeX; no
# "1st", "x1", "1.2.3" or "1-based". An error takes the place of a number.
_SIGN = r"(?:(?<![\w)])(?<![\d)] )(?:[-+]|(?:minus|negative) ))?(?<![\w.])"
_THOUSANDS = r"\d{1,3}(?:(?:(?:[,'_]|\{,\}|\\,)\d{3}){1,9}|(?: \d{3}){2,9})"
_FRACTION = r"(?:\.\d{1,30})?(?:e-?\d{1,2})?"
_NUMBER = rf"{_SIGN}(?:{_THOUSANDS}|\d{{1,30}}){_FRACTION}(?!\w|\.\d|,\d{{3}}|-[a-z])"
_ERROR = r"(?<!\w)\w{0,40}(?:error|exception)\b(?:: .*)?"

# Notation that `plain_text` would distort, and what takes its place.
_NOTATION = {
    r"(?<=\d)\s?(?:[x×*]|\\times|\\cdot)\s?10\^\{?(-?\d{1,2})\}?(?!\d)": r"e\1",
    # A unit: "70kg".
    r"(?<=\d)(?=(?!(?:st|nd|rd|th|x|e-?\d+)\b)[a-zµ°]{1,4}(?:/[a-z]{1,3})?(?:\b|[²³^]))": " ",
    r"(?<=[a-z])(?:\^[23]|[²³])": "",
    r"\\(?:text|math)\w*\{([^{}\n]{0,80})\}": r"\1",
    r"\\(?:times|cdot|div)\b|(?<=\d)\s?\*{1,2}\s?(?=\d)": " x ",
    r"\bbase[ -](?:10|ten)\b|(?<=[\d)])(?:_10\b|_\{(?:10|ten)\}|₁₀)": " decimal",
    r"(?<=[\d)])(?:_\d{1,2}\b|_\{[^{}\n]{0,20}\}|[₀-₉]{1,2})": "",  # any other base
}

# Words that deny an answer, and words about other rules: usual, former and imagined ones.
_NOT = (
    r"(?:\b(?:no(?:t|body| longer)?|never|instead of|rather than|anything but|other than|unlike"
    r"|could|might)|n[o']t)\b"
)
_USUAL = r"(?<!is as )usual|normal|ordinar|standard|tradition|convention|typical|regular|decimal"
_FORMER = r"original|previous|former|before\b|otherwise|without\b|old\b|used to|would have|default"
_UNREAL = (
    r"(?:if|had)\b.{1,80}\bwould\b|would\b.{1,80}\bif\b|wrong|incorrect|mistake|tempt|forg"
    r"|(?:may|might|could) (?:think|say|expect|assume|guess)"
)
# What ends a statement about them: the end of its sentence (to which a bare equation with the wrong
# answer still belongs), the end of a field of JSON, and words of contrast.
_END = rf"(?!\s{{1,9}}~ = {_WRONG})(?:(?<=[.!?;])\s|(?<![:\n])\n|,\s\"|\b(?=(?:but|now|new)\b))"

_CONTRAST = (
    r"(?is)->|[.!?\n](?!.*\bwould\b)"
    r"|\b(?:but|now|so|however|instead|becomes?|therefore|thus|hence|actually|correct)\b"
)

# Answers that are only mentioned. A tilde takes their place, and that of a repeated question.
# Operands: "~ + 27", "3 x 5", "56 or 110".
_TERM = rf"[({{]?[~{_LETTERS}][)}}]?"
_OPERATOR = r"(?:[-+/x÷·^%]|minus|plus|times|(?:divided |multiplied )?by|,? ?and|or|from|to|with)"
_OPERANDS = rf"{_TERM}(?: {{0,2}}{_OPERATOR} {{0,2}}{_TERM})+"
# Lists: "[3, 5]", "3, 5, 8", "3, 5 and 8".
_LIST = rf"[\[{{]{_X}(?:,\s*{_X})+[\]}}]|{_TERM}(?:, ?{_TERM})+(?:, ?|,? (?:and|or) ){_TERM}"
# The numbers of a list's items ("2. "), and what comments in code say of other code.
_MARGIN = rf"(?:\A\s*{_THIRD}|(?<=\n)[ \t]*{_X})[.)](?= +\S)|#[^\n{_LETTERS}]{{0,60}}{_THIRD}"
# Places: "index 3", "base 9", "starts at 1", "x[3]".
_LABEL = r"(?:index|indices|base|step|position|line|remainder|carry|digit|starts?|starting)"
_PLACE = rf"\b{_LABEL}\W{{1,3}}(?:(?:as|at|of|from|with) )?{_X}|\w[\[(]{_X}[\])]"
# Numbers of things, and values in base 10: "3 items", "92 decimal".
_COUNT = rf"{_X}(?: (?:items|elements|numbers|digits|steps|times)\b|\W{{1,3}}(?:in\W+)?decimal)"
# Denied answers: "not 56", "no longer equal to 56"; "56, which is wrong", "56. That is not".
_DENIED = rf"{_NOT}\s+(?:(?!so|but)[a-z]+ ){{0,3}}(?:answer: )?\W?{_X}"
_REJECTED = rf"{_X}(?=\W{{0,2}}(?: which| that)? (?:is|was|does|would(?: be)?) ?(?:{_NOT}|wrong))"
_MENTIONED = (_MARGIN, _LIST, _PLACE, _OPERANDS, _COUNT, _DENIED, _REJECTED)

# Answers that are given: the last letter of what a pattern finds.
_NOUN = r"(?:answer|result|output|solution|conclusion)s?\b"
# "Answer: 56", '"answer": "56"', and marks that `plain_text` makes so.
_MARKED = rf"(?<![^\W_])(?<!# ){_NOUN}[^.:=\n{_LETTERS}]{{0,30}}[:=]\W{{0,12}}{_X}"
# "56" or "56 eggs" as the last line, but not below another one.
_LAST_LINE = rf"(?<!{_X}\n)(?<!{_X}\n\n)^[^\w\n=]*{_X}(?=(?: [a-z]+){{0,2}}\W*\Z)"
# A line that is "56", or begins with "56." or "56 because".
_LINE = rf"^[^\w\n=]*{_X}(?=[^\w\n]*$|[,.;!]| \(| because\b)"
# "is 56", "gives us 56", "a total of 56", "= 56".
_VERB = r"is|are|be|(?:get|give|make|print|output|equal|return|yield|remain|raise)s?"
_LEADS = r"so|hence|thus|(?:sum|total|value) of|(?:result|evaluate|come|add)s? (?:up )?(?:to|in)"
_STATED = rf"(?:\b(?:{_VERB}|{_LEADS})\b|'s|[=:>])\W{{0,9}}(?:[a-z]+ ){{0,2}}\W{{0,9}}{_X}"
# The same after "print" and the like: "prints the last item, which is 56"; and "56 is my answer".
_PRINTED = rf"\b(?=answer|output|print)[^.\n{_LETTERS}]{{0,60}}{_STATED}"
_RESULT = rf"{_PRINTED}|{_LINE}|{_X}(?=(?:,? which)? is (?:the|my) (?:\w+ )?{_NOUN}(?! of))"


def _all(pattern: str, text: str) -> list[str]:
    return [match[0][-1] for match in re.finditer(f"(?im){pattern}", text)]


def _sole(found: list[str], text: str) -> str:
    """The answer found, if it is one, and neither a right nor a wrong one is named after it."""
    answers = {*found, *_all(_KNOWN, text.partition(found[0])[2])} if found else set()
    return answers.pop() if len(answers) == 1 else ""


def _marked(text: str) -> str:
    """The last one after "Answer:" (or what `plain_text` makes so), or that is the last line."""
    return (_all(f"{_MARKED}|{_LAST_LINE}", text) or [""])[-1]


def _only(text: str) -> str:
    """The right one, if no other one is named."""
    return _sole(_all(_X, text), text) if re.search(_RIGHT, text) else ""


def _result(text: str) -> str:
    """The only one that is said to be printed, called the answer, or begins a line."""
    return _sole(_all(_RESULT, text), text)


def _stated(text: str) -> str:
    """The right one, if no wrong one is stated after it; else, if it isn't named, the last stated.

    A wrong one before it must be in contrast to it, or in another sentence. The last stated must be
    in the last line that names one, and agree with what the rule before finds.
    """
    known = [answer for answer in _all(_STATED, text) if not re.match(_THIRD, answer)]
    if re.search(_RIGHT, text):
        is_right = known and re.match(_RIGHT, known[-1])
        *wrong, since = re.split(_WRONG, text[: text.rindex(known[-1])]) if is_right else [""]
        return known[-1] if is_right and (not wrong or re.search(_CONTRAST, since)) else ""
    last_line = "".join(re.findall(f"(?m)^.*{_X}.*$", text)[-1:])
    return _sole(_all(_RESULT, text) + _all(_STATED, last_line)[-1:], text)


def read_answer(
    reply: str,
    *,
    question: str,
    usual: str | Sequence[str],
    right: str | Sequence[str],
    answer: str = "number",
    changed: bool = False,
) -> str | None:
    """Read the answer that a reply to a question gives.

    Args:
        reply: the text of the reply.
        question: the question; where the reply repeats it, it names no answer.
        usual: the usual answer, or several equally good ones.
        right: the answer that is right after the change, or several.
        answer: what an answer is: "number", "word" (or a short phrase) or "line".
        changed: whether the change is in force.

    Returns:
        The answer, spelled like the one of ``usual`` and ``right`` that it equals; otherwise a
        number without separators, "error" for an error instead of a number, or words or a line in
        lower case. None if the reply gives no answer, or more than one.

    >>> read_answer("83 - 27 = 110", question="83 - 27", usual="56", right="110", changed=True)
    '110'
    """
    key = {"number": _number, "word": _words, "line": _line}[answer]
    usuals, rights = ([each] if isinstance(each, str) else each for each in (usual, right))
    spelling = {key(each): each for each in (*rights, *usuals)}
    if answer == "line":
        return spelling.get(key(reply), key(reply)) or None
    in_force = {*map(key, rights if changed else usuals)}
    letters: dict[str, str] = {}

    def letter(match: re.Match[str]) -> str:
        value = key(match[0])
        letters_of = _RIGHT if value in in_force else _WRONG if value in spelling else _THIRD
        return letters.setdefault(value, chr(ord(letters_of[1]) + len(letters)))

    name = f"{_NUMBER}|{_ERROR}" if answer == "number" else _phrases(spelling)
    text, echo = (plain_text(_replaced(each, _NOTATION)) for each in (reply, question))
    text = re.sub(rf"(?<!\w){re.escape(echo) or '~'}(?!\w)", "~", text)
    text = _without_mentioned(re.sub(f"(?im){name}", letter, text), changed)
    found = next(filter(None, (rule(text) for rule in (_marked, _only, _result, _stated))), "")
    return {each: spelling.get(value, value) for value, each in letters.items()}.get(found)


def _replaced(text: str, replacements: Mapping[str, str]) -> str:
    for pattern, replacement in replacements.items():
        text = re.sub(f"(?im){pattern}", replacement, text)
    return text


def _without_mentioned(text: str, changed: bool) -> str:
    """Hide answers that are only mentioned: also in a question or, under a change, of other rules.

    Words about other rules concern their sentence; the right answer only if in the same clause.
    """
    text = _replaced(text, dict.fromkeys(_MENTIONED, "~"))
    rejected = rf"(?i)\?\Z|\b(?:{_USUAL}|{_FORMER}|{_UNREAL})" if changed else r"\?\Z"
    for end, hidden in ((_END, f"{_WRONG}|{_THIRD}"), (f"{_END}|,", _X)):
        parts = re.split(f"(?i)({end})", text)
        text = "".join(re.sub(hidden, "~", p) if re.search(rejected, p) else p for p in parts)
    return text


def _number(text: str) -> str:
    """Write a number without separators and needless zeros; "error" for anything else.

    >>> _number("+1,234.50"), _number("-0"), _number("IndexError")
    ('1234.5', '0', 'error')
    """
    text = re.sub(r"[,'_ %{}\\]", "", re.sub(r"(?i)minus |negative |\u2212", "-", text))
    if not re.fullmatch(r"[-+]?\d+\.?\d*(?:[eE][-+]?\d\d?)?", text):
        return "error"
    return re.sub(r"\.0*\Z|(\.\d*?)0+\Z", r"\1", f"{Decimal(text) or Decimal():f}")


def _words(text: str) -> str:
    """Write words in lower case, without punctuation.

    >>> _words('"Light-Blue."')
    'light blue'
    """
    return " ".join(re.findall(r"[^\W_]+", text.casefold()))


def _phrases(known: Iterable[str]) -> str:
    """A pattern of these phrases, longer ones first, and of others that end a line or a field."""
    longest_first = sorted(known, key=len, reverse=True)
    any_known = "|".join(r"[\W_]{1,3}".join(each.split()) for each in longest_first)
    words = rf"[a-z][a-z']{{0,40}}(?:[ -][a-z']{{1,40}}){{0,{longest_first[0].count(' ')}}}"
    return rf"(?<!\w)(?:{any_known})(?!\w)|(?:\A\W{{0,9}}|(?<=[:\"] )|(?<=\")){words}(?=[^\w:]*\Z)"


def _line(text: str) -> str:
    """The last line that is not empty, without code marks, bold and regard to case."""
    return text.strip("` \t\n").rsplit("\n", 1)[-1].strip("*_` \t").casefold()


def normalized(answer: str, kind: AnswerKind) -> str:
    """Write equal answers alike; "" if it is not an answer of this kind."""
    written = {"number": _number(answer), "word": _words(answer), "line": _line(answer)}[kind]
    if kind == "number":  # one that a reply can contain, and no comma but between thousands
        is_readable = re.fullmatch(_NUMBER, written) and not re.search(r",(?!\d{3}(?!\d))", answer)
        return written if is_readable else ""
    return written
