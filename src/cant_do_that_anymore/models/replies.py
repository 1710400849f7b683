"""What an OpenAI-compatible server sends back: completions, errors, and when to come again."""

import json
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from math import isnan
from typing import Any, Literal, NamedTuple

from .model import Answer, Form, StopReason, Usage
from .thoughts import count_in, shown_in, thinking_tokens, without_thoughts

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


def completion_in(body: bytes, api: Api, served_as: str, form: Form) -> Answer:
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
        text = _joined(message.get("content")) or refusal or ""
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


def _joined(content: Any) -> Any:
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
