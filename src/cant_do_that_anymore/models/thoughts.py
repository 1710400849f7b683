"""The thoughts in what a model sends: in fields of their own, or between tags in the text."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import pairwise
from typing import Any

from .model import MOST_TOKENS

_LETTERS_A_TOKEN = 4
_A_FEW = 16
"""Servers do not agree on how to count the tokens around a reply."""
_NAMES = r"(?:seed:)?(?:think|thinking|thought|thoughts|reasoning|analysis)"
_OPENING = rf"(?:<{_NAMES}(?:\s[^<>]*)?>|◁think▷|\[THINK\])"
_CLOSING = rf"(</{_NAMES}\s*>|◁/think▷|\[/THINK\]|<\|?/?thinking_end\|>)"
_TAG = re.compile(f"{_CLOSING}|{_OPENING}", re.IGNORECASE)
_OPENED = re.compile(rf"^[ \t]*{_OPENING}", re.IGNORECASE | re.MULTILINE)
_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)[^<]*<\|message\|>")
_MARK = re.compile(r"<\|(?:start|end|return|channel|message)\|>")


def without_thoughts(text: str) -> tuple[str, str]:
    """The thoughts in a text, and the reply after them.

    Many templates open the thoughts in the question, so that only their end is in the text. What
    is opened at the beginning of a line and never closed is thought to its end. Where nothing comes
    after them, the reply is what stands before such a beginning, or else between two thoughts.

    >>> without_thoughts("<think>The bishop?</think>c1g5")
    ('The bishop?', 'c1g5')
    """
    if _CHANNEL.search(text):
        return _by_channel(text)
    closings = [tag for tag in _TAG.finditer(text) if tag[1]]
    opened = _OPENED.search(text)
    if not closings:
        return (text[opened.end() :].strip(), text[: opened.start()]) if opened else ("", text)
    first, last = closings[0], closings[-1]
    unfinished, after = without_thoughts(text[last.end() :])
    thoughts, before = text[: last.start()], ""
    if opened and opened.start() < first.start():
        before = text[: opened.start()]
        if not (before.strip() and after.strip()):
            thoughts = text[opened.end() : last.start()]
    reply = after if after.strip() else before
    if not reply.strip():
        thoughts, reply = _parted(thoughts.strip())
    return _joined(thoughts.strip(), unfinished), reply


def _parted(thoughts: str) -> tuple[str, str]:
    """Several thoughts, and what stands between the end of one and the beginning of another."""
    parts = _TAG.split(thoughts)
    ends = parts[1::2]
    between = [bool(end and not other) for end, other in pairwise((None, *ends, thoughts))]
    pieces = list(zip(parts[::2], between, strict=True))
    thought, said = ([part for part, is_said in pieces if is_said == kind] for kind in (0, 1))
    return _joined(*thought), _joined(*said)


def _joined(*parts: str) -> str:
    return "\n".join(part for part in parts if part.strip())


def _by_channel(text: str) -> tuple[str, str]:
    """The same where a model says on what channel it speaks; only the final one is the reply."""
    _, *parts = _CHANNEL.split(text)
    said = list(zip(parts[::2], (_MARK.split(part)[0] for part in parts[1::2]), strict=True))
    thoughts = "\n".join(words.strip() for name, words in said if name != "final")
    return thoughts, "".join(words for name, words in said if name == "final")


def shown_in(message: Mapping[str, Any]) -> str:
    """The thoughts in the fields that servers have for them."""
    for field in ("reasoning_content", "reasoning"):
        words = "\n".join(_words([{"text": message.get(field)}, message.get(field)]))
        if words.strip():
            return words
    details, content = message.get("reasoning_details"), message.get("content")
    parts = [*(details if isinstance(details, list) else ())]
    parts += [part for part in content if _is_thought(part)] if isinstance(content, list) else []
    return "\n".join(_words(parts))


def _is_thought(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") in ("thinking", "reasoning")


def _words(parts: Iterable[Any]) -> Iterator[str]:
    """The texts in parts of a message, which some servers put into further parts."""
    for part in parts:
        for name in ("text", "summary", "thinking", "reasoning") if isinstance(part, dict) else ():
            inner = part.get(name)
            if isinstance(inner, list):
                yield from _words(inner)
            elif isinstance(inner, str):
                yield inner


def count_in(counts: Mapping[str, Any], *names: str) -> int | None:
    """A number of tokens by the first of its names that has one; what cannot be one is none."""
    for name in names:
        with suppress(TypeError, ValueError, ArithmeticError):
            if 0 <= (count := int(counts.get(name, -1))) < MOST_TOKENS:
                return count
    return None


def thinking_tokens(
    counts: Mapping[str, Any], output: int, thoughts: str, text: str, *, uncounted: int = 0
) -> int:
    """How many tokens the thoughts took; a count of more than all output is not believed.

    Where they are not counted apart, they are what the completion leaves out of all output, if that
    is more than a few; else their share of the output is that of their letters; where nothing is
    counted, four letters are taken for a token.
    """
    for place in (*map(counts.get, ("completion_tokens_details", "output_tokens_details")), counts):
        if isinstance(place, Mapping):
            told = count_in(place, "reasoning_tokens") or count_in(place, "thinking_tokens")
            if told and told <= output:
                return told
    if uncounted > _A_FEW:
        return uncounted
    if not thoughts:
        return 0
    if not output:
        return max(1, len(thoughts) // _LETTERS_A_TOKEN)
    return max(1, round(output * len(thoughts) / (len(thoughts) + len(text))))
