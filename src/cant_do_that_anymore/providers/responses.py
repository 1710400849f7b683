"""Parse responses of OpenAI-compatible servers: text, reasoning, usage, errors."""

import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from itertools import pairwise
from math import isnan
from typing import Any, Literal, NamedTuple

from .base import MOST_TOKENS, Answer, RequestVariant, StopReason, Usage

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


Api = Literal["chat", "completions"]

LONGEST_RETRY_AFTER = 600.0
STOP_REASONS: dict[object, StopReason] = {
    "stop": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",
    "model_context_window_exceeded": "length",
    "content_filter": "refused",
}
"""Why an answer ended, as servers say it. An empty text with any other reason is no answer."""
_BROKEN_OFF = re.compile("error|abort|cancel|fail|time.?out|insufficient")
"""Reasons that make no answer of any text."""
_FAILED = {"error", "errored", "failed", "failure", "cancelled", "canceled", "aborted"}
"""What a body is that holds no answer; an incomplete one was ended by a limit or a filter."""
_FAULT_CODE = re.compile("[45][0-9]{2}")


class Response(NamedTuple):
    """What a server sent back to one request."""

    status: int
    retry_after: float | None
    body: bytes

    @property
    def is_success(self) -> bool:
        """Whether the server says that it did what it was asked to."""
        return 200 <= self.status < 300


def completion_in(body: bytes, api: Api, served_as: str, form: RequestVariant) -> Answer:
    """The answer in the body of a successful response.

    Raises:
        ValueError: if there is none, whatever the status said.
    """
    try:
        reply = json.loads(body)
        if is_error(reply):
            raise ValueError("the server calls it an error")
        choice = _first(reply["choices"])
        message = choice["message"] if api == "chat" else {"content": choice["text"]}
        refusal = message.get("refusal")
        text = _joined_content(message.get("content")) or refusal or ""
        if not isinstance(text, str):
            raise ValueError("the reply is no text")
        thoughts = ""
        if api == "chat":
            thoughts, text = without_thoughts(text)
            thoughts = shown_in(message) or thoughts
        return Answer(
            text=text,
            stop_reason="refused" if refusal else _stop_reason(reply, choice, text or thoughts),
            usage=_usage(reply.get("usage"), thoughts, text),
            version=str(reply.get("model") or served_as),
            reasoning=thoughts,
            conceded=form,
        )
    except (LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as fault:
        raise ValueError(f"no completion: {fault}") from None


def is_error(reply: Mapping[str, Any]) -> bool:
    """Whether a body says at its top that it is an error, whatever choices stand below."""
    kinds = {str(reply.get(key)).lower() for key in ("object", "type", "status")}
    codes = [str(reply.get(key)) for key in ("code", "status", "status_code")]
    return (
        bool(reply.get("error") or reply.get("errors") or kinds & _FAILED)
        or reply.get("success") is False
        or any(map(_FAULT_CODE.fullmatch, codes))
    )


def fingerprint_in(body: bytes) -> str:
    """What a completion says of the state of its service, if anything."""
    if b"system_fingerprint" not in body:
        return ""
    return str(json.loads(body).get("system_fingerprint") or "")[:300]


def error_message(body: bytes) -> str:
    """The server's own words, in one line."""
    try:
        error = json.loads(body)
        for key in ("error", "message", "detail"):
            if isinstance(error, dict) and key in error:
                error = error[key]
        text = error if isinstance(error, str) else json.dumps(error)
    except (ValueError, RecursionError):
        text = body.decode("utf-8", "replace")
    return " ".join(text.split())


def _usage(told: Any, thoughts: str, text: str) -> Usage:
    """The tokens that are paid: some servers count thoughts in the total alone.

    Of a total alone nobody knows what it is made of.
    """
    counts = told if isinstance(told, dict) else {}
    asked = count_in(counts, "prompt_tokens", "input_tokens") or 0
    replied = count_in(counts, "completion_tokens", "output_tokens")
    total = count_in(counts, "total_tokens") or 0
    output = max(replied or 0, total - asked if asked else 0)
    uncounted = 0 if replied is None else output - replied
    thinking = thinking_tokens(counts, output, thoughts, text, uncounted=uncounted)
    return Usage(asked, output, thinking, min(_cached(counts), asked))


def _cached(counts: dict[str, Any]) -> int:
    """How much of the input came from a cache; what is no such number is none."""
    details = counts.get("prompt_tokens_details") or counts.get("input_tokens_details")
    told = details.get("cached_tokens") if isinstance(details, dict) else None
    for found in (told, counts.get("prompt_cache_hit_tokens"), counts.get("cached_tokens")):
        if isinstance(found, int) and found > 0:
            return found
    return 0


def _first(choices: list[Any]) -> Any:
    """The first of the choices, by their own number, if they have one."""
    return next((choice for choice in choices if choice.get("index") == 0), choices[0])


def _joined_content(content: Any) -> Any:
    """The text of a reply; some servers give it in parts."""
    if not isinstance(content, list):
        return content
    texts = ("text", "output_text", None)
    return "".join(part["text"] for part in content if part.get("type") in texts)


def _stop_reason(reply: dict[str, Any], choice: dict[str, Any], text: str) -> StopReason:
    reason = choice.get("finish_reason")
    if reason == "stop" and reply.get("status") == "incomplete":  # then it says elsewhere why
        details = reply.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, dict) else details
    told = str(reason).lower()
    if told in STOP_REASONS and not choice.get("error"):
        return STOP_REASONS[told]
    if _BROKEN_OFF.search(told) or choice.get("error") or not text.strip():
        raise ValueError(f"the reply ended with {reason!r}")
    return "stop"


def seconds_of(retry_after: str | None) -> float | None:
    """How long to wait by a Retry-After header: a number of seconds or a date."""
    if not retry_after:
        return None
    try:
        seconds = float(retry_after)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(retry_after).timestamp() - time.time()
        except (ValueError, OverflowError):
            return None
    return None if isnan(seconds) else min(max(seconds, 0.0), LONGEST_RETRY_AFTER)
