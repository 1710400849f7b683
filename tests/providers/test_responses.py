"""Responses of servers, through both adapters: as answers or as errors."""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from aiohttp import web

from cant_do_that_anymore.errors import UserError
from cant_do_that_anymore.providers.base import Answer, RequestRejected, TransientError, Usage
from cant_do_that_anymore.providers.catalog import parse_name
from cant_do_that_anymore.providers.responses import (
    error_message,
    parse_completion,
    parse_retry_after,
    split_reasoning,
)
from loopback import FAULTS
from testing import Body, Loopback, ask, serving

OWN, INSPECT = "m", "openai-api/loop/m"
"""The name of the served model for each adapter."""
KEY = "sk-planted-0123456789"


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    with serving(lambda _: "e2e4") as server:
        yield server


@pytest.fixture
def answer(server: Loopback, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Answer]:
    """Ask through an adapter; the server sends this body, or this response if it is a function."""
    monkeypatch.setenv("LOOP_API_KEY", KEY)
    monkeypatch.setenv("LOOP_BASE_URL", server.url)
    server.requests.clear()

    def answer_to(response: Any, adapter: str = OWN) -> Answer:
        async def send(request: Body, number: int) -> web.StreamResponse | None:
            if callable(response):
                result: web.StreamResponse = response()
                return result
            text = response if isinstance(response, str) else json.dumps(response)
            return web.Response(text=text, content_type="application/json")

        server.fault = send
        return ask(parse_name(adapter, server.url if adapter == OWN else None).load(), "e2e4")

    return answer_to


def reply(content: object = "e2e4", extra: Body | None = None, **choice: object) -> Body:
    """Return the body of a completion, with extra fields in its choice or at the top level."""
    first_choice = {"message": {"content": content}, "finish_reason": "stop", **choice}
    return {"model": "m-1", "choices": [first_choice], **(extra or {})}


def ending(reason: object, content: object = "e2e4") -> Body:
    return reply(content, finish_reason=reason)


def refusal(status: int, message: str = "no", **fields: str) -> Callable[[], web.Response]:
    return lambda: web.json_response({"error": {"message": message, **fields}}, status=status)


PARTS = [{"type": "text", "text": "e2"}, {"text": "e4"}, {"type": "image"}]
WITH_CACHE = {
    **{"prompt_tokens": 15, "completion_tokens": 2, "total_tokens": 17},
    "prompt_tokens_details": {"cached_tokens": 5},
}
ANSWERS: list[tuple[Any, dict[str, Any]]] = [
    (ending("stop"), {"stop_reason": "stop", "text": "e2e4", "version": "m-1"}),
    (ending("stop", ""), {"stop_reason": "stop", "text": ""}),
    (ending("length"), {"stop_reason": "length", "text": "e2e4"}),
    (ending("content_filter"), {"stop_reason": "refused"}),
    (ending("a new one"), {"stop_reason": "stop"}),
    (ending("a new one", "<think>hm</think>"), {"reasoning": "hm", "text": ""}),
    (reply(extra={"error": None, "errors": [], "type": "message"}), {"text": "e2e4"}),
    (lambda: web.json_response(reply(), status=201), {"text": "e2e4"}),
    (refusal(400, "Could not finish the message"), {"text": "", "stop_reason": "length"}),
    (reply(extra={"usage": WITH_CACHE}), {"usage": Usage(15, 2)}),
]
NO_USAGE = {"usage": Usage()}
REFUSAL = {"content": None, "refusal": "I will not."}
OWN_ADAPTER_ANSWERS: list[tuple[Any, dict[str, Any]]] = [
    *((ending(reason, ""), {"stop_reason": "stop"}) for reason in ("eos", "end_turn", "STOP")),
    *((ending(reason), {"stop_reason": "length"}) for reason in ("max_tokens", "model_length")),
    (reply(message=REFUSAL), {"text": "I will not.", "stop_reason": "refused"}),
    (reply(PARTS), {"text": "e2e4"}),
    (refusal(400, code="content_filter"), {"stop_reason": "refused"}),
    ({"choices": reply()["choices"]}, {"version": "m"}),
    (reply(message={"reasoning_content": "so"}), {"reasoning": "so"}),
    (reply(message={"reasoning_content": "", "reasoning": "so"}), {"reasoning": "so"}),
    (reply(message={"content": "<think>so</think>", "reasoning": "\n"}), {"reasoning": "so"}),
    *(
        (json.dumps(reply(extra={"usage": {"prompt_tokens": 0}})).replace("0", tokens), NO_USAGE)
        for tokens in ("Infinity", "9" * 4300, '"many"', "-1")
    ),
]
TOKENS = {"prompt_tokens": 10, "completion_tokens": 2}
REASONING_40 = {"completion_tokens_details": {"reasoning_tokens": 40}}
X96 = "x" * 96
USAGES: list[tuple[Any, str, Usage]] = [
    (TOKENS, "", Usage(10, 2)),
    (TOKENS | {"total_tokens": 20}, "", Usage(10, 10)),
    ({"total_tokens": 105}, "", Usage()),
    ("n/a", "", Usage()),
    (TOKENS | {"completion_tokens_details": {"reasoning_tokens": 6}}, "", Usage(10, 2)),
    (TOKENS | {"completion_tokens": 50}, X96, Usage(10, 50, 48)),
    (TOKENS | {"completion_tokens": 50} | REASONING_40, X96, Usage(10, 50, 40)),
    (TOKENS | {"completion_tokens": 50, "completion_tokens_details": 5}, X96, Usage(10, 50, 48)),
]
OWN_ADAPTER_ANSWERS += [
    (
        reply(extra={"usage": usage}, message={"content": "f1b5", "reasoning": reasoning}),
        {"text": "f1b5", "reasoning": reasoning, "usage": counted},
    )
    for usage, reasoning, counted in USAGES
]


@pytest.mark.parametrize(
    ("body", "fields", "adapter"),
    [
        *((*row, adapter) for row in ANSWERS for adapter in (OWN, INSPECT)),
        *((*row, OWN) for row in OWN_ADAPTER_ANSWERS),
    ],
)
def test_a_response_is_read_as_an_answer(
    body: Any, fields: dict[str, object], adapter: str, answer: Callable[..., Answer]
) -> None:
    result = answer(body, adapter)
    assert {name: getattr(result, name) for name in fields} == fields


MALFORMED = [name for name in FAULTS if not name.startswith("HTTP")]
MALFORMED_FOR_INSPECT = ["reset", "cut off", "silence", "no JSON", "no choice", "choices of null"]
ERROR_FIELDS: list[Body] = [{"error": 1}, {"errors": [1]}, {"object": "error"}]
ABORT_REASONS = ["error", "Aborted", "cancelled", "failed", "time-out"]
LOST_ANSWERS: list[tuple[str, Any, str]] = [
    *((OWN, reply(extra=fields), "the response is not a completion: ") for fields in ERROR_FIELDS),
    *((OWN, ending(reason), "") for reason in (*ABORT_REASONS, "insufficient memory")),
    (OWN, ending("a new one", " "), ""),
    (INSPECT, ending("a new one", ""), "ended for an unknown reason"),
    (INSPECT, reply(extra={"model": [KEY]}), r"not a completion .*'\*\*\*'"),
    (OWN, reply(error={"code": 502}), ""),
    (OWN, reply({"text": "e2e4"}), ""),
    *((OWN, FAULTS[name], "") for name in ("HTTP 408", *MALFORMED)),
    *((INSPECT, FAULTS[name], "") for name in ("HTTP 408", *MALFORMED_FOR_INSPECT)),
    (OWN, lambda: web.json_response({"id": "later"}, status=202), ""),
    (OWN, lambda: web.Response(status=204), "an empty body"),
    (OWN, lambda: web.Response(status=499), "HTTP 499"),
]


@pytest.mark.usefixtures("short_timeout")
@pytest.mark.parametrize(("adapter", "response", "message"), LOST_ANSWERS)
def test_a_lost_answer_counts_as_possibly_billed(
    adapter: str,
    response: Any,
    message: str,
    answer: Callable[..., Answer],
    server: Loopback,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Inspect's own client would silently send three requests."""
    monkeypatch.setenv("INSPECT_HTTP_REQUEST_TIMEOUT", "0.3")
    with pytest.raises(TransientError, match=message or None) as error:
        answer(response, adapter)
    assert error.value.maybe_billed and KEY not in str(error.value)
    assert len(server.requests) == 1


QUOTA = {"type": "billing", "code": "insufficient_quota"}


@pytest.mark.parametrize(
    ("adapter", "response", "error_type", "message"),
    [
        *(
            (OWN, refusal(status), TransientError, f"HTTP {status}: no")
            for status in (409, 425, 429, 500, 502, 503, 529)
        ),
        *((INSPECT, refusal(status), TransientError, "no") for status in (429, 500, 503, 529)),
        (OWN, refusal(403), UserError, r"needs a key \(HTTP 403: no\)"),
        *((INSPECT, refusal(status), UserError, "refuses the key") for status in (401, 403)),
        (OWN, refusal(404), UserError, r"refuses 'm' \(HTTP 404: no\)"),
        (INSPECT, refusal(401, f"Incorrect: {KEY}"), UserError, r"Incorrect: \*\*\*"),
        (INSPECT, refusal(404), UserError, "openai-api/loop/m cannot answer"),
        (OWN, refusal(402), UserError, r"requires payment \(HTTP 402: no\)"),
        (OWN, refusal(429, **QUOTA), UserError, "requires payment"),
        (OWN, refusal(429, "You exceeded your current quota"), TransientError, "HTTP 429: You"),
        (INSPECT, refusal(422), RequestRejected, "cannot answer"),
        (INSPECT, refusal(429, "Add a card", **QUOTA), UserError, "Add a card"),
        (OWN, refusal(400), RequestRejected, r"refuses 'm' \(HTTP 400: no\)"),
        # A token limit may be refused with any status.
        (OWN, refusal(402, "This requires fewer max_tokens"), RequestRejected, "fewer max"),
        (OWN, refusal(413, "Request too large for m"), RequestRejected, "too large"),
        (OWN, refusal(429, "Request too large for m"), RequestRejected, "too large"),
        (INSPECT, refusal(400), RequestRejected, "cannot answer"),
    ],
)
def test_a_refusal_is_not_billed(
    adapter: str,
    response: Callable[[], web.Response],
    error_type: type[Exception],
    message: str,
    answer: Callable[..., Answer],
    server: Loopback,
) -> None:
    with pytest.raises(error_type, match=message) as error:
        answer(response, adapter)
    assert not getattr(error.value, "maybe_billed", False)
    assert len(server.requests) == 1


REASONING_IN_TEXT = [
    ("<think>e4e5? d2d4?</think>f1b5", "e4e5? d2d4?", "f1b5"),
    ("e4e5? d2d4?</think>f1b5", "e4e5? d2d4?", "f1b5"),
    ("<think>\nf1b5\n", "f1b5", ""),
    ("◁think▷a◁/think▷f1b5", "a", "f1b5"),
    ("[THINK]a[/THINK]f1b5", "a", "f1b5"),
    ("<seed:think>a</seed:think>f1b5", "a", "f1b5"),
    ("<|channel|>analysis<|message|>a<|end|><|channel|>final<|message|>f1b5", "a", "f1b5"),
    ("<|channel|>analysis<|message|>a f1b5", "a f1b5", ""),
    ("d2d4? I close my <think> block.</think>f1b5", "d2d4? I close my <think> block.", "f1b5"),
    ("<think>a</think>b\n<think>c</think>f1b5", "a\nb\nc", "f1b5"),
    ("<think>a</think>f1b5\n<think>because e2", "a\nbecause e2", "f1b5\n"),
    ("f1b5, without a <think> tag", "", "f1b5, without a <think> tag"),
]


@pytest.mark.parametrize(("text", "reasoning", "rest"), REASONING_IN_TEXT)
def test_reasoning_between_tags_is_not_the_reply(text: str, reasoning: str, rest: str) -> None:
    assert split_reasoning(text) == (reasoning, rest)


def test_a_megabyte_of_tags_or_lines_is_split_quickly() -> None:
    lines = 1_000_000 * "\n"
    start = time.process_time()
    assert split_reasoning(100_000 * "</think>") == ("", "")
    assert split_reasoning(100_000 * "<think>") == (99_998 * "<think>", "")
    assert split_reasoning(lines) == ("", lines)
    assert time.process_time() - start < 2


def test_the_text_of_a_base_model_is_not_split() -> None:
    body = {"choices": [{"text": "<think>a</think>e2e4", "finish_reason": "stop"}], "model": "v1"}
    answer = parse_completion(json.dumps(body).encode(), "served", is_chat=False)
    assert (answer.text, answer.reasoning, answer.version) == ("<think>a</think>e2e4", "", "v1")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('{"error": {"message": "no\\n memory"}}', "no memory"),
        ('{"detail": "no"}', "no"),
        ('{"error": {"code": 3}}', '{"code": 3}'),
        ("<html>  no", "<html> no"),
        ("[" * 100_000, "[" * 100_000),
    ],
)
def test_error_messages_are_found(body: str, message: str) -> None:
    assert error_message(body.encode()) == message


def test_retry_after_is_parsed() -> None:
    headers = [None, "nan", "Thu, 01 Jan 1970 00:00:00 GMT", "0.5", "-3", "inf"]
    assert list(map(parse_retry_after, headers)) == [None, None, None, 0.5, 0, 600]
