"""Replies as plain text: markup, reasoning and invented turns are removed."""

import re
import unicodedata

_FIGURINES = str.maketrans("×♔♕♖♗♘♚♛♜♝♞", "xKQRBNKQRBN")
_INVISIBLE = "[\u200b-\u200d\u2060\ufeff\ufe0e\ufe0f\u00ad♙♟]"
_REASONING = r"(?:think(?:ing)?|thoughts?|reasoning|analysis|reflection|scratchpad)"
_ANSWER_TAG = r"</?(?:answer|move|uci|final(?:_answer)?|best_?move|output|response|result)>"
_SPEAKER = (
    r"(?<=\S)\s{0,9}\n[^\w\n]{0,9}(?:user|human|system|assistant|player|opponent|question)"
    r"[^\w\n]{0,9}[:\n].*"
)
# Patterns of markup, and what takes their place. The marks of an answer become "Answer:".
_MARKUP = [
    (re.compile(pattern, re.IGNORECASE | re.DOTALL | re.MULTILINE), replacement)
    for pattern, replacement in (
        (_INVISIBLE, ""),
        ("[\u2010-\u2015\u2212]", "-"),
        ("[→⇒➔➜➡⟶↦]", "->"),
        ("[‘’‚]", "'"),
        ("[“”„«»]", '"'),
        (rf"\A.*</{_REASONING}>(?=.*\w)|<{_REASONING}>.*", ""),
        (r"~~[^~\n]{1,200}~~", " "),
        (_ANSWER_TAG, "\nAnswer: "),
        (r"\\boxed\s?\{(?:\\\w+\{)?([^{}]{0,80})\}+", r"\nAnswer: \1\n"),
        (r"```(?:\w*\n)?|</?\w{1,10}>|<\|[^|<>]{0,40}\|>", "\n"),
        (r"^#+[ \t]*([^\n]{1,80}?):?[ \t]*$", r"\1:"),
        (r"(?<!:\n)(?<!:\n\n)^[ \t]*\*\*([^*\n]{1,12})\*\*[.!]?[ \t]*$", r"Answer: \1"),
        (r"[*`$]", ""),
        (_SPEAKER, ""),
    )
]


# Of a longer reply, only the beginning and the end are read.
MAX_CHARACTERS = 20_000


def plain_text(reply: str) -> str:
    """Remove markup and reasoning from a reply; marks of an answer become "Answer:".

    >>> plain_text("<think>d4?</think>Hm.\\n**e2\u2013e4**\\n")
    'Hm.\\nAnswer: e2-e4'
    """
    if len(reply) > MAX_CHARACTERS:
        reply = f"{reply[: MAX_CHARACTERS // 2]}\n{reply[-MAX_CHARACTERS // 2 :]}"
    text = unicodedata.normalize("NFKC", reply).translate(_FIGURINES)
    for pattern, replacement in _MARKUP:
        text = pattern.sub(replacement, text)
    return text.strip()
