"""Parse responses of OpenAI-compatible servers: text, reasoning, usage, errors."""

import json
import re
from collections.abc import Mapping
from math import isnan
from typing import Any, NamedTuple

from .base import Answer, StopReason, Usage

# Longer reasoning is cut: nothing reads further, and a run keeps all its answers in memory.
MAX_REASONING = 20_000  # characters
MAX_PLAUSIBLE_TOKENS = 10**15  # a server that reports more is wrong
_NAMES = r"(?:seed:)?(?:think|thinking|thought|thoughts|reasoning|analysis)"
_CHANNEL = r"(?:<\|end\|>)?(?:<\|start\|>assistant)?<\|channel\|>{}<\|message\|>"
_OPENING = re.compile(
    rf"^[ \t]*(?:<{_NAMES}>|◁think▷|\[THINK\]|{_CHANNEL.format('analysis')})",
    re.IGNORECASE | re.MULTILINE,
)
_CLOSING = re.compile(rf"</{_NAMES}>|◁/think▷|\[/THINK\]|{_CHANNEL.format('final')}", re.IGNORECASE)


def split_reasoning(text: str) -> tuple[str, str]:
    """Split a text into its reasoning and the reply, which follows the last closing tag.

    Many chat templates put the opening tag into the prompt, so the text may have only the closing
    tag. After a tag that opens at the start of a line and never closes, everything is reasoning.

    >>> split_reasoning("<think>The bishop?</think>c1g5")
    ('The bishop?', 'c1g5')
    """
    *closed, last = _CLOSING.split(text)
    reply, *unclosed = _OPENING.split(last, maxsplit=1)
    reasoning = _OPENING.sub("", "\n".join([*closed, *unclosed]))
    return reasoning.strip(), reply


def thinking_tokens(reported: int, output: int, reasoning: str, text: str) -> int:
    """Return the number of reasoning tokens as reported, unless that exceeds the whole output.

    Without it, they are the output in proportion to the letters.
    """
    if 0 < reported <= output:
        return reported
    return round(output * len(reasoning) / max(1, len(reasoning) + len(text)))


MAX_RETRY_AFTER = 600.0  # seconds
# Stop reasons that servers send. With any other one, an empty text is not an answer.
STOP_REASONS: dict[str, StopReason] = {
    **dict.fromkeys(("stop", "eos", "eos_token", "end_turn", "stop_sequence"), "stop"),
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens", "model_length"), "length"),
    "content_filter": "refused",
}
# With one of these stop reasons, no text is an answer.
_FAILED_REASON = re.compile("error|abort|cancel|fail|time.?out|insufficient")


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
        choice = reply["choices"][0]
        errors = reply.get("error"), reply.get("errors"), choice.get("error")
        if any(errors) or reply.get("object") == "error":
            raise ValueError("the server reports an error")
        message = choice["message"] if is_chat else {"content": choice["text"]}
        refusal = message.get("refusal")
        text = _joined(message.get("content")) or refusal or ""
        if not isinstance(text, str):
            raise ValueError("the reply is not text")
        reasoning = ""
        if is_chat:
            reasoning, text = split_reasoning(text)
            reasoning = _reasoning_field(message) or reasoning
        return Answer(
            text=text,
            stop_reason="refused" if refusal else _stop_reason(choice, text or reasoning),
            usage=_usage(reply.get("usage"), reasoning, text),
            version=str(reply.get("model") or served_as),
            reasoning=reasoning[:MAX_REASONING],
        )
    except (LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as fault:
        raise ValueError(f"not a completion: {fault}") from None


def _joined(content: Any) -> Any:
    """Join the text of a reply, which some servers send in parts."""
    if not isinstance(content, list):
        return content
    return "".join(part.get("text", "") for part in content)


def _reasoning_field(message: Mapping[str, Any]) -> str:
    """Return the reasoning that a server sends beside the reply."""
    text = message.get("reasoning_content") or message.get("reasoning")
    return text.strip() if isinstance(text, str) else ""


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
    details = counts.get("completion_tokens_details")
    prompt = plausible_count(counts.get("prompt_tokens"))
    total = plausible_count(counts.get("total_tokens"))
    completion = plausible_count(counts.get("completion_tokens"))
    output = max(completion, total - prompt if prompt else 0)
    reported = plausible_count(details.get("reasoning_tokens") if isinstance(details, dict) else 0)
    return Usage(prompt, output, thinking_tokens(reported, output, reasoning, text))


def plausible_count(count: object) -> int:
    """Return a token count; 0 if it is missing or implausible."""
    return count if isinstance(count, int) and 0 <= count < MAX_PLAUSIBLE_TOKENS else 0


def _stop_reason(choice: Mapping[str, Any], text: str) -> StopReason:
    reason = str(choice.get("finish_reason")).lower()
    if reason not in STOP_REASONS and (_FAILED_REASON.search(reason) or not text.strip()):
        raise ValueError(f"the reply ended with {reason}")
    return STOP_REASONS.get(reason, "stop")


def parse_retry_after(retry_after: str | None) -> float | None:
    """Parse a Retry-After header in seconds."""
    try:
        seconds = float(retry_after or "nan")
    except ValueError:
        return None
    return None if isnan(seconds) else min(max(seconds, 0.0), MAX_RETRY_AFTER)
