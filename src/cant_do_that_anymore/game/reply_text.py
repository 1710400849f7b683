"""Convert a reply to plain text, without markup, reasoning, struck-out text and other speakers."""

import re
import unicodedata


def any_case(pattern: str) -> re.Pattern[str]:
    """Compile a pattern that matches upper and lower case."""
    return re.compile(pattern, re.IGNORECASE)


MOVE_NUMBER = r"(?<![\w.])\d{1,3}\)+"  # in plain text: "7)" for White, "7))" for Black
_MOVE = r"(?:[\"'(]*(?:[A-Z]?[a-h]?[1-8]?x?[a-h][1-8]|[A-H][1-8]|[O0o]-[O0o]))"
# Applied after compatibility normalization, which leaves one kind of space.
_CHARACTERS = str.maketrans("×♔♕♖♗♘♚♛♜♝♞", "xKQRBNKQRBN") | str.maketrans(
    dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\ufe0e\ufe0f\u00ad*`$♙♟", "")
    | dict.fromkeys("\u2010\u2012\u2013\u2014\u2015\u2212", "-")
    | dict.fromkeys("‘’‚", "'")
    | dict.fromkeys("“”„«»", '"')
    | dict.fromkeys("→⇒➔➜➡⟶↦", "->")
    | dict.fromkeys("\r\u2028\u2029\v\f", "\n")
)
_REASONING = r"(?:think(?:ing)?|thoughts?|reasoning|analysis|reflection|scratchpad)"
_SUBSTITUTIONS = [
    (re.compile(pattern, re.IGNORECASE | re.DOTALL), replacement)
    for pattern, replacement in (
        (rf"^.*</{_REASONING}>(?=.*\w)", ""),
        (rf"<{_REASONING}>.*", ""),
        (r"<\|[^|<>]{0,40}\|>", "\n"),
        (r"~~[^~]{1,200}~~|<(s|del|strike)>.{0,200}?</\1>", " "),
        (r"```[a-z_+-]*[ \t]*(?=\n|$)", ""),
        (r"</?(?:b|i|u|em|strong|code|pre|p|span|kbd)>", ""),
        (r"<br ?/?>", "\n"),
        (r"\\(?:text\w*|math\w+|mbox)\s*\{([^{}]*)\}", r"\1"),
        (r"\\([()\[\]_#])", r"\1"),
        (
            r"[\"']from[\"']\s*:\s*[\"']([a-h][1-8])[\"']\s*,\s*[\"']to[\"']\s*:\s*[\"']"
            r"([a-h][1-8])(?:[\"']\s*,\s*[\"']promotion[\"']\s*:\s*[\"']([nbrq]))?",
            r'"move": "\1\2\3',
        ),
        (r"\be\.\s?g\b\.?", "eg"),
        (r"\bi\.\s?e\b\.?", "ie"),
    )
]
_NUMBER = re.compile(rf"(?<![\w.])(\d{{1,3}})[ ]?\.(\.\.?)?[ ]*(?={_MOVE})")
_DOTS = re.compile(r"(?<![\w.])\.{2,3}[ ]?(?=[KQRBNa-hO0])")
_OTHER_SPEAKER = re.compile(
    r"(?<=\S)\s*\n\W{0,9}(?:user|human|player|you|opponent|question|system|instruction)\W{0,9}:.*",
    re.IGNORECASE | re.DOTALL,
)
# Words of a language, two of which must occur, and pairs of its piece letters and the English ones.
_LANGUAGES = (
    (r"ich|mein|meine|zug|spiele|ziehe|nicht|läufer|springer|ist", "SN LB TR DQ"),
    (r"je|joue|mon|coup|le|cavalier|fou|tour|dame|est", "CN FB TR DQ RK"),
    (r"juego|mi|jugada|muevo|el|caballo|alfil|torre|es", "CN AB TR DQ RK"),
    (r"gioco|mia|mossa|muovo|il|cavallo|alfiere|torre|è", "CN AB TR DQ RK"),
)


def plain_text(reply: str) -> str:
    """Remove markup, reasoning, struck-out text and other speakers from a reply.

    >>> plain_text("**Move:** `e2\u2013e4` ~~d2d4~~\\n```\\n")
    'Move: e2-e4'
    """
    text = reply
    for pattern, replacement in _SUBSTITUTIONS:
        text = pattern.sub(replacement, text)
    text = unicodedata.normalize("NFKC", text).translate(_CHARACTERS)
    text = _NUMBER.sub(lambda m: f"{m[1]}{'))' if m[2] else ')'} ", text)
    return _OTHER_SPEAKER.sub("", _DOTS.sub("", text)).strip()


def piece_letters(text: str) -> dict[str, str]:
    """Return the piece letters of the one foreign language that a text is in, if any."""
    matches = [
        letters
        for words, letters in _LANGUAGES
        if len(set(re.findall(rf"\b(?:{words})\b", text.lower()))) > 1
    ]
    return {pair[0]: pair[1] for pair in matches[0].split()} if len(set(matches)) == 1 else {}
