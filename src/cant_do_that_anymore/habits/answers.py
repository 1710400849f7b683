"""Read the answer that a reply gives to a short question.

A marked answer decides ("Answer: 8", a JSON field, bold on a line of its own), then a first or last
line that is nothing but an answer, then the last one that is stated ("the result is 63"), then the
only one that is named. A negated answer is never read. Under a change, neither is one that is about
other rules ("usually it would be 56"), nor the usual answer if it is merely named.
"""

import re
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Literal

from .markup import plain_text

_NUMBER = r"(?:(?<![\w)~])[-+])?(?<![\w.])\d{1,30}(?:\.\d{1,30})?(?!\w|\.\d)"
_ERROR = r"(?<![\w'])\w{0,40}(?:Error|error|exception)\b"
_SEPARATED = re.compile(r"(?<![\w.,])\d{1,3}(?:([,.'_ ])\d{3})(?:\1\d{3}){0,8}(?![\w,])")
_OPERAND = r"[-+]?\(?(?:\d(?:[\d.,]{0,30}\d)?|~)\)?"
_OPERATOR = (
    r"(?:[-+/x÷·^%*]{1,2}|minus|plus|times|(?:divided|multiplied) by|,?\s(?:and|or)|,(?=\s)|from"
    r"|by|with)"
)
_LABEL = (
    r"\b(?:ind(?:ex(?:ed)?|ices)|base|step|position|line|rule|python|version|remainder|carry|digit"
    r"|start(?:s|ed|ing)?|beg[iu]n(?:s|ning)?)[ -](?:(?:is|as|at|of|from|with|number|the) ){0,2}"
    r"[#\"'(]?-?\d+\b(?!\.\d)[:)]?"
)


def _replacements(*pairs: tuple[str, str]) -> list[tuple[re.Pattern[str], str]]:
    return [(re.compile(pattern, re.IGNORECASE), replacement) for pattern, replacement in pairs]


# Notation of numbers that `plain_text` would distort: it removes asterisks and normalizes Unicode.
_NOTATION = _replacements(
    (r"\\(?:times|cdot|div)\b|(?<=[\d)])\s?\*{1,2}\s?(?=[\d(])", " x "),
    (r"\{,\}|(?<=\d)\\,(?=\d)", ","),
    (r"\b(is|s|equals?) (?:minus|negative) (?=\d)", r"\1 -"),
    (r"(?<=[\d)])(?:_10(?!\d)|₁₀|_\{(?:10|ten)\})", " in decimal "),
    (r"(?<=[\d)])(?:_\d{1,2}(?!\d)|[₀-₉]{1,2}|_\{[^{}\n]{0,20}(?:\{[^{}\n]{0,20}\}\s?)?\})", ""),
)
# Numbers that are no answers: a tilde takes the place of lists, arguments, labels and operands.
_NO_ANSWERS = _replacements(
    (r"(?:\A|(?<=\n))\s{0,9}1[.)] +(?=\S)|(?<=\n)[ \t]{0,9}\d{1,2}[.)] +(?=\S)", ""),
    (r"[\[{][-+\d.,\s]{1,300},[-+\d.,\s]{1,300}[\]}]|(?<=\w)[\[(][-+\d.,:\s~]{1,300}[\])]", "~"),
    (r"\bbase[ -](?:10|ten)\b", "decimal"),
    (_LABEL, "~"),
    (rf"(?<![\w.,]){_OPERAND}(?:\s{{0,2}}{_OPERATOR}\s{{0,2}}{_OPERAND})+", "~"),
    (r":[ \t]*\n\s*", ": "),
)

_GAP = r"[\s\"'(\[{}:=~,>\\-]"
_NOUN = r"(?:answer|result|output|solution|conclusion)"
_MARK = re.compile(rf"(?i)(?<!\w){_NOUN}\b[^.:=\n\d]{{0,30}}[:=]{_GAP}{{0,12}}\Z")
_VERB = (
    r"(?:[=:]|->|(?:\b|(?<='))(?:is|are|be|equals?|print(?:s|ed|ing)?|returns?|outputs?|displays?"
    r"|shows?|gives?|gets?|got|have|yields?|makes?|becomes?|produces?|evaluates?|comes?|results? in"
    r"|obtain(?:s|ed)?|computed|totals?|means?|leaves?|s|says?|so|thus|hence|therefore|but"
    r"|(?:sum|total|value|result|answer|difference) of))"
)
_FILLER = (
    r"(?:the|an?|value|number|integer|result|answer|output|sum|total|difference|of|now|then|still"
    r"|item|actually|simply|just|also|therefore|thus|exactly|equal|to|be|out|as|element|following"
    r"|new|final|only|correct|instead|word|us|you|me)"
)
_STATED = re.compile(rf"(?i){_VERB}{_GAP}{{1,9}}(?:{_FILLER}{_GAP}{{1,9}}){{0,6}}\Z|[=:]\Z")
_CALLED_ANSWER = re.compile(
    rf"(?i)\W{{1,3}}(?:is|will be|would be) (?:the|my) (?:\w+ )?{_NOUN}\b(?! of [^~])"
)
_RAISED = re.compile(
    r"(?i)(?:\b(?:raises?|throws?|gives?|get|is|be|cause)(?: an?)?|[\n:]|\A)\W{0,4}\Z"
)
_SENTENCE_BEGINS = re.compile(r"(?:\A|[.!])[\s\"'(]*\Z")
_SENTENCE_ENDS = re.compile(
    r"[\"')%]{0,3}(?:\s?[.!,;(\n]|\s*\Z|\s(?:because|since|as|instead|rather|-))"
)
_NEGATED = re.compile(
    r"(?i)n't\b|\b(?:not|no longer|never|cannot|without|instead of|rather than|opposed to|nor"
    r"|neither|wrong|incorrect|invalid|avoid)\b"
)
# A vertical bar is the place of the answer.
_OTHER_RULES = re.compile(
    r"(?i)\b(?:(?<!as )(?:usual|normal|expect)|ordinar|everyday|standard|tradition|convention"
    r"|typical|regular|origin|previous|former|before|otherwise|without|seem|tempt|forget|old\b"
    r"|used to|(?<!I )would (?:say|have)|if\b.{1,60}\b(?:meant|were|was|had)"
    r"|(?<![\d~] in )decimal\W{1,3}(?:(?:is|value|sum|result|would|be)\W{1,3}){0,3}\|)"
    r"|\A\s*in decimal\b|\|\W{0,3}(?:in )?decimal"
)
_ASIDE = re.compile(r"\A\s?\(([^()\d~]{1,40})\)")
_UNSURE = re.compile(r"(?i)\b(?:if|would|could|may|might|can|unless)\b")
_QUESTION = re.compile(r"[^.!\n]{0,80}\?")
_SENTENCE_END = re.compile(
    r"(?i)[.!?;](?=\s|\Z)|\n|[,{]\s?\"|\b(?:unlike|contrary to)\b[^,.\n]*,"
    r"|\b(?:but|however|so|now|new:|here|whereas|while"
    r"|(?:under|with|by|and) the (?:new|changed))(?!\w)"
)
_CLAUSE_END = re.compile(
    r"[,(]|\b(?:and|because|since|as|although|hence|thus|therefore)\b|(?=\b(?:instead|rather)\b)"
)
AnswerKind = Literal["number", "word", "line"]
CONTEXT = 120  # at most so many characters tell whether an answer is marked, stated or denied
MAX_MENTIONS = 200  # of more, only the last ones count


@dataclass(frozen=True)
class _Mention:
    """A place in a reply that names an answer, with the words around it."""

    value: str
    before: str
    after: str

    def is_marked(self) -> bool:
        return bool(_MARK.search(self.before))

    def is_stated(self) -> bool:
        """Whether it follows "is" or the like, is called the answer, or is a whole sentence."""
        if self.value == "error":
            return bool(_RAISED.search(self.before))
        is_sentence = _SENTENCE_BEGINS.search(self.before) and _SENTENCE_ENDS.match(self.after)
        return bool(is_sentence or _STATED.search(self.before) or _CALLED_ANSWER.match(self.after))

    def is_denied(self) -> bool:
        """Whether it is negated, in question, or an error that is only possible."""
        clause = _CLAUSE_END.split(self._sentence())[-1]
        is_unsure = self.value == "error" and _UNSURE.search(self._sentence())
        negated = _NEGATED.search(f"{clause}|{self._rest_of_clause()}")
        return bool(negated or is_unsure or _QUESTION.match(self.after))

    def is_of_other_rules(self, usual: Container[str]) -> bool:
        """Whether its sentence, or the one before a bare equation of ``usual``, is about them."""
        *earlier, sentence = filter(str.strip, _SENTENCE_END.split(f"{self.before}|"))
        if self.value in usual and "=" in sentence and not re.search(r"\w", sentence):
            sentence = " ".join([*earlier[-1:], sentence])
        return bool(_OTHER_RULES.search(sentence + self._rest_of_clause()))

    def _sentence(self) -> str:
        return _SENTENCE_END.split(self.before)[-1]

    def _rest_of_clause(self) -> str:
        return _CLAUSE_END.split(_SENTENCE_END.split(_ASIDE.sub(r"\1", self.after))[0])[0]


class _Reply:
    """A reply as plain text, and the answers that it names."""

    def __init__(self, text: str, name: str, key: Callable[[str], str]) -> None:
        lines = [line for line in text.split("\n") if re.search(r"\w", line)]
        alone = [re.fullmatch(rf"[^\w=]*?({name})\W*", line) for line in lines]
        self._lines = [match and key(match[1]) for match in alone]
        self._mentions = [
            _Mention(
                key(match[0]),
                text[max(0, match.start() - CONTEXT) : match.start()],
                text[match.end() : match.end() + CONTEXT],
            )
            for match in list(re.finditer(name, text))[-MAX_MENTIONS:]
        ]

    def answer(self, usual: Container[str], known: set[str], changed: bool) -> str | None:
        """The answer that is marked, alone on the last or first line, stated or the only one."""
        named = [mention for mention in self._mentions if not mention.is_denied()]
        if changed:
            named = [mention for mention in named if not mention.is_of_other_rules(usual)]
        marked = [mention.value for mention in named if mention.is_marked()]
        if marked or self._alone():
            return marked[-1] if marked else self._alone()
        stated = [at for at, mention in enumerate(named) if mention.is_stated()]
        if stated:
            rest = [mention.value for mention in named[stated[-1] :]]
            return rest[0] if len(known.intersection(rest)) <= 1 else None
        values = {mention.value for mention in named} - {"error"}
        only = values.pop() if len(values) == 1 else None
        return None if changed and only in usual else only

    def _alone(self) -> str | None:
        """The answer that is the last line, or else the first; several lines of them are a list."""
        if self._lines and self._lines[-1] and self._lines[-2:-1] in ([], [None], self._lines[-1:]):
            return self._lines[-1]
        return None if any(self._lines[1:]) or not self._lines else self._lines[0]


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
        number without separators, "error" for an error instead of a number, words in lower case,
        or a line. None if the reply gives no answer, or more than one.

    >>> read_answer("83 - 27 = 110", question="83 - 27", usual="56", right="110", changed=True)
    '110'
    """
    key = {"number": _number, "word": _words, "line": str.casefold}[answer]
    usuals, rights = ([each] if isinstance(each, str) else each for each in (usual, right))
    spelling = {key(each): each for each in (*rights, *usuals)}
    if answer == "line":
        found = _last_line(reply)
        return spelling.get(key(found), found) or None
    text = _plain(reply, question, spelling)
    name = f"{_NUMBER}|{_ERROR}" if answer == "number" else _any_phrase(spelling)
    only_usual = {key(each) for each in usuals} - {key(each) for each in rights}
    read = _Reply(text, name, key).answer(only_usual, set(spelling), changed)
    if read is None and answer == "word":
        read = _other_words(text, spelling)
    return spelling.get(read or "", read)


def _plain(reply: str, question: str, known: Container[str]) -> str:
    """Remove markup, reasoning, the question, and numbers that are no answers from a reply."""

    def joined(match: re.Match[str]) -> str:
        digits = re.sub(r"\D", "", match[0])
        return digits if match[1] in ",'_" or digits in known else match[0]

    reply, question = (plain_text(_replace(each, _NOTATION)) for each in (reply, question))
    if question:
        reply = re.sub(rf"(?<!\w){re.escape(question)}(?!\w)", "~", reply)
    return _replace(_SEPARATED.sub(joined, reply), _NO_ANSWERS)


def _replace(text: str, replacements: Iterable[tuple[re.Pattern[str], str]]) -> str:
    for pattern, replacement in replacements:
        text = pattern.sub(replacement, text)
    return text


def _number(text: str) -> str:
    """Write a number without separators and needless zeros; "error" for anything else.

    >>> _number("+1,234.50"), _number("-0"), _number("IndexError")
    ('1234.5', '0', 'error')
    """
    try:
        value = Decimal(re.sub(r"[,'_ %]", "", text).replace("\u2212", "-")) or Decimal()
    except InvalidOperation:
        return "error"
    return re.sub(r"\.?0+\Z", "", f"{value:f}") if "." in text else f"{value:f}"


def _words(text: str) -> str:
    """Write words in lower case, without punctuation.

    >>> _words('"Light-Blue."')
    'light blue'
    """
    return " ".join(re.findall(r"[^\W_]+", text.casefold()))


def _any_phrase(phrases: Iterable[str]) -> str:
    """A pattern of any of these phrases: the longest one if several fit."""
    spaced = (r"[\W_]{1,3}".join(each.split()) for each in sorted(phrases, key=len, reverse=True))
    return rf"(?i:(?<!\w)(?:{'|'.join(spaced)})(?!\w))"


def _other_words(text: str, known: Iterable[str]) -> str | None:
    """The words that end a reply, alone or marked, if they are as few as a known answer's."""
    others = max(len(phrase.split()) for phrase in known) - 1
    words = rf"(?:the |an? )?([^\W_][\w']{{0,40}}(?:[ -]\w[\w']{{0,40}}){{0,{others}}})"
    last_line = text.rstrip().rsplit("\n", 1)[-1][-CONTEXT:]
    found = re.fullmatch(rf"(?i)(?:.{{0,60}}[:=])?\W*{words}\W*", last_line)
    return _words(found[1]) if found else None


def _last_line(reply: str) -> str:
    """The last line that is not empty, without a fence, code marks or bold."""
    lines = [line.strip() for line in reply.split("\n") if line.strip().strip("`")]
    return re.sub(r"^(\*\*|`|\*|__)(.+)\1$", r"\2", lines[-1]) if lines else ""


def normalized(answer: str, kind: AnswerKind) -> str:
    """Write equal answers alike; "" if it is not an answer of this kind."""
    if kind == "number":
        text = _number(answer)
        return "" if text == "error" else text
    return _words(answer) if kind == "word" else answer.strip()
