"""Parse responses of OpenAI-compatible servers: text, reasoning, usage, errors."""

import json
import re
import time
from collections.abc import Iterable, Mapping
from email.utils import parsedate_to_datetime
from math import isnan
from typing import Any, NamedTuple

from .base import MAX_PLAUSIBLE_TOKENS, Answer, StopReason, Usage

# Longer reasoning is cut: nothing reads further, and a run keeps all its answers in memory.
MAX_REASONING = 20_000  # characters
MAX_FINGERPRINT = 300  # characters
_LETTERS_PER_TOKEN = 4
_COUNTING_TOLERANCE = 16  # servers disagree on how to count the tokens around a reply
_NAMES = r"(?:seed:)?(?:think|thinking|thought|thoughts|reasoning|analysis)"
_OPENING = rf"(?:<{_NAMES}(?:\s[^<>]*)?>|◁think▷|\[THINK\])"
_CLOSING = rf"(</{_NAMES}\s*>|◁/think▷|\[/THINK\]|<\|?/?thinking_end\|>)"
_TAG = re.compile(f"{_CLOSING}|{_OPENING}", re.IGNORECASE)
_OPENED = re.compile(rf"^[ \t]*{_OPENING}", re.IGNORECASE | re.MULTILINE)
_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)[^<]*<\|message\|>")
_MARK = re.compile(r"<\|(?:start|end|return|channel|message)\|>")


def split_reasoning(text: str) -> tuple[str, str]:
    """Split a text into its reasoning and the reply, which is the last part outside of tags.

    Many chat templates put the opening tag into the prompt, so the text may have only the closing
    tag. After a tag that opens at the start of a line and never closes, everything is reasoning.

    >>> split_reasoning("<think>The bishop?</think>c1g5")
    ('The bishop?', 'c1g5')
    """
    if _CHANNEL.search(text):
        return _split_channels(text)
    tags = _tags_in(text)
    if not tags:
        return "", text
    starts = [0, *(tag.end() for tag in tags)]
    ends = [*(tag.start() for tag in tags), len(text)]
    parts = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    is_opened = [False, *(not tag[1] for tag in tags)]
    is_closed = [*(bool(tag[1]) for tag in tags), False]
    replies = [
        n for n, part in enumerate(parts) if part.strip() and not (is_opened[n] or is_closed[n])
    ]
    reply = parts.pop(replies[-1]) if replies else ""
    return _join_parts(parts), reply


def _tags_in(text: str) -> list[re.Match[str]]:
    """Return the tags in a text; one that never closes counts only at the start of a line."""
    tags = list(_TAG.finditer(text))
    last_closing = max((tag.start() for tag in tags if tag[1]), default=-1)
    at_line_start = {tag.end() for tag in _OPENED.finditer(text)}
    return [tag for tag in tags if tag.start() <= last_closing or tag.end() in at_line_start]


def _split_channels(text: str) -> tuple[str, str]:
    """Split a text with channels: the final channel is the reply, all others are reasoning."""
    _, *parts = _CHANNEL.split(text)
    channels = list(zip(parts[::2], (_MARK.split(part)[0] for part in parts[1::2]), strict=True))
    reasoning = _join_parts(content for name, content in channels if name != "final")
    return reasoning, "".join(content for name, content in channels if name == "final")


def _join_parts(parts: Iterable[str]) -> str:
    return "\n".join(part.strip() for part in parts if part.strip())


def reasoning_in(message: Mapping[str, Any]) -> str:
    """Return the reasoning in the fields that servers use for it."""
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    fields = [message.get(name) for name in ("reasoning_content", "reasoning", "reasoning_details")]
    fields.append([part for part in parts if part.get("type") in ("thinking", "reasoning")])
    return next(filter(None, map(_text_in, fields)), "")


def _text_in(value: Any) -> str:
    """Return the text in a part of a message, which some servers nest."""
    if isinstance(value, dict):
        value = [value.get(name) for name in ("text", "summary", "thinking", "reasoning")]
    if isinstance(value, list):
        return _join_parts(map(_text_in, value))
    return value if isinstance(value, str) and value.strip() else ""


def token_count(counts: Mapping[str, Any], *names: str) -> int | None:
    """Return the first plausible token count under one of the names, or None."""
    for name in names:
        try:
            count = int(counts.get(name, -1))
        except (TypeError, ValueError, ArithmeticError):
            continue
        if 0 <= count < MAX_PLAUSIBLE_TOKENS:
            return count
    return None


def thinking_tokens(
    counts: Mapping[str, Any], output: int, reasoning: str, text: str, *, uncounted: int = 0
) -> int:
    """Return the number of reasoning tokens, reported or estimated.

    A reported number greater than all output is ignored. Without one, it is the output that the
    completion tokens leave out (``uncounted``), if that is more than a few tokens; otherwise the
    output in proportion to the letters; without any output count, one token per four letters.
    """
    for part in (*map(counts.get, ("completion_tokens_details", "output_tokens_details")), counts):
        if isinstance(part, dict):
            reported = token_count(part, "reasoning_tokens") or token_count(part, "thinking_tokens")
            if reported and reported <= output:
                return reported
    if uncounted > _COUNTING_TOLERANCE:
        return uncounted
    if not reasoning:
        return 0
    if not output:
        return max(1, len(reasoning) // _LETTERS_PER_TOKEN)
    return max(1, round(output * len(reasoning) / (len(reasoning) + len(text))))


MAX_RETRY_AFTER = 600.0  # seconds
# Stop reasons that servers send. With any other one, an empty text is not an answer.
_ENDED = ("stop", "eos", "eos_token", "end_turn", "stop_sequence")
_CUT_OFF = ("length", "max_tokens", "max_output_tokens", "model_length")
STOP_REASONS: dict[object, StopReason] = {
    **dict.fromkeys(_ENDED, "stop"),
    **dict.fromkeys((*_CUT_OFF, "model_context_window_exceeded"), "length"),
    "content_filter": "refused",
}
# With one of these stop reasons, no text is an answer.
_FAILED_REASON = re.compile("error|abort|cancel|fail|time.?out|insufficient")
# Types and states of a body without an answer; an incomplete one ended at a limit or a filter.
_FAILED_STATES = {"error", "errored", "failed", "failure", "cancelled", "canceled", "aborted"}
_ERROR_STATUS = re.compile("[45][0-9]{2}")


class Response(NamedTuple):
    """A server's response to one request."""

    status: int
    retry_after: float | None
    body: bytes


def parse_completion(body: bytes, served_as: str, *, is_chat: bool) -> Answer:
    """Parse the body of a successful response.

    Raises:
        ValueError: if it contains no answer, in spite of the status.
    """
    try:
        reply = json.loads(body)
        if is_error(reply):
            raise ValueError("the server reports an error")
        choices = reply["choices"]
        choice = next((choice for choice in choices if choice.get("index") == 0), choices[0])
        message = choice["message"] if is_chat else {"content": choice["text"]}
        refusal = message.get("refusal")
        text = _join_content(message.get("content")) or refusal or ""
        if not isinstance(text, str):
            raise ValueError("the reply is not text")
        reasoning = ""
        if is_chat:
            reasoning, text = split_reasoning(text)
            reasoning = reasoning_in(message) or reasoning
        return Answer(
            text=text,
            stop_reason="refused" if refusal else _stop_reason(reply, choice, text or reasoning),
            usage=_usage(reply.get("usage"), reasoning, text),
            version=str(reply.get("model") or served_as),
            fingerprint=str(reply.get("system_fingerprint") or "")[:MAX_FINGERPRINT],
            reasoning=reasoning[:MAX_REASONING],
        )
    except (LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as fault:
        raise ValueError(f"not a completion: {fault}") from None


def is_error(reply: Mapping[str, Any]) -> bool:
    """Whether a body is marked as an error at its top level, even if it has choices."""
    kinds = {str(reply.get(key)).lower() for key in ("object", "type", "status")}
    codes = [str(reply.get(key)) for key in ("code", "status", "status_code")]
    return (
        bool(reply.get("error") or reply.get("errors") or kinds & _FAILED_STATES)
        or reply.get("success") is False
        or any(map(_ERROR_STATUS.fullmatch, codes))
    )


def error_message(body: bytes) -> str:
    """Return the server's error message in one line."""
    try:
        error = json.loads(body)
        for key in ("error", "message", "detail"):
            if isinstance(error, dict) and key in error:
                error = error[key]
        text = error if isinstance(error, str) else json.dumps(error)
    except (ValueError, RecursionError):
        text = body.decode("utf-8", "replace")
    return " ".join(text.split())


def _usage(usage: Any, reasoning: str, text: str) -> Usage:
    """Return the billed tokens; some servers count the reasoning only in the total.

    A total without prompt tokens is ignored, since it cannot be split into input and output.
    """
    counts = usage if isinstance(usage, dict) else {}
    prompt = token_count(counts, "prompt_tokens", "input_tokens") or 0
    completion = token_count(counts, "completion_tokens", "output_tokens")
    total = token_count(counts, "total_tokens") or 0
    output = max(completion or 0, total - prompt if prompt else 0)
    uncounted = 0 if completion is None else output - completion
    thinking = thinking_tokens(counts, output, reasoning, text, uncounted=uncounted)
    return Usage(prompt, output, thinking, min(_cached_tokens(counts), prompt))


def _cached_tokens(counts: dict[str, Any]) -> int:
    """Return how many input tokens came from the provider's prompt cache."""
    details = counts.get("prompt_tokens_details") or counts.get("input_tokens_details")
    detailed = token_count(details, "cached_tokens") if isinstance(details, dict) else None
    hit = detailed or token_count(counts, "prompt_cache_hit_tokens")
    return hit or token_count(counts, "cached_tokens") or 0


def _join_content(content: Any) -> Any:
    """Join the text of a reply, which some servers send in parts."""
    if not isinstance(content, list):
        return content
    texts = ("text", "output_text", None)
    return "".join(part["text"] for part in content if part.get("type") in texts)


def _stop_reason(reply: dict[str, Any], choice: dict[str, Any], text: str) -> StopReason:
    reason = choice.get("finish_reason")
    if reason == "stop" and reply.get("status") == "incomplete":  # the reason is elsewhere then
        details = reply.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, dict) else details
    name = str(reason).lower()
    if name in STOP_REASONS and not choice.get("error"):
        return STOP_REASONS[name]
    if _FAILED_REASON.search(name) or choice.get("error") or not text.strip():
        raise ValueError(f"the reply ended with {reason!r}")
    return "stop"


def parse_retry_after(retry_after: str | None) -> float | None:
    """Parse a Retry-After header, a number of seconds or a date, to seconds."""
    if not retry_after:
        return None
    try:
        seconds = float(retry_after)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(retry_after).timestamp() - time.time()
        except (ValueError, OverflowError):
            return None
    return None if isnan(seconds) else min(max(seconds, 0.0), MAX_RETRY_AFTER)
