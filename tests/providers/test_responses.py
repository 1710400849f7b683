"""What servers send back, in all the ways they do: an answer or a fault, through both adapters."""

import json
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from cant_do_that_anymore.errors import UserError
from cant_do_that_anymore.providers import openai_api
from cant_do_that_anymore.providers.base import Answer, RequestRejected, TransientError, Usage
from cant_do_that_anymore.providers.catalog import model_named
from cant_do_that_anymore.providers.responses import (
    error_message,
    fingerprint_in,
    parse_completion,
    parse_retry_after,
    split_reasoning,
)
from faults import FAULTS
from testing import Body, Loopback, ask, serving

OWN, INSPECT = "m", "openai-api/loop/m"
"""The name of the served model for each adapter."""


@pytest.fixture(scope="module")
def shared() -> Iterator[Loopback]:
    with serving(lambda _: "e2e4") as server:
        yield server


@pytest.fixture
def answer(shared: Loopback, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Answer]:
    """Ask by way of an adapter; the server sends the body, or the response if it is one."""
    monkeypatch.setenv("LOOP_API_KEY", "test")
    monkeypatch.setenv("LOOP_BASE_URL", shared.url)
    shared.requests.clear()

    def asked(sent: Any, adapter: str = OWN) -> Answer:
        async def send(request: Body, number: int) -> web.StreamResponse | None:
            if callable(sent):
                response: web.StreamResponse = sent()
                return response
            text = sent if isinstance(sent, str) else json.dumps(sent)
            return web.Response(text=text, content_type="application/json")

        shared.fault = send
        return ask(model_named(adapter, shared.url if adapter == OWN else None), "e2e4")

    return asked


def reply(content: object = "e2e4", beside: Body | None = None, **choice: object) -> Body:
    """The body of a completion, with more in its choice or beside it."""
    message = {"message": {"content": content}, "finish_reason": "stop", **choice}
    return {"model": "m-1", "choices": [message], **(beside or {})}


def ended(reason: object, content: object = "e2e4") -> Body:
    return reply(content, finish_reason=reason)


def incomplete(content: object = "e2e4", details: object = None) -> Body:
    return reply(content, {"status": "incomplete", "incomplete_details": details})


def choices(*indices: int | None) -> Body:
    texts = ({"index": i, **reply(str(n))["choices"][0]} for n, i in enumerate(indices))
    return {"model": "m-1", "choices": list(texts)}


PARTS = [{"type": "text", "text": "e2"}, {"type": "output_text", "text": "e"}, {"text": "4"}]
ANSWERS: list[tuple[Any, dict[str, Any]]] = [
    (ended("stop"), {"stop_reason": "stop", "text": "e2e4", "version": "m-1", "conceded": ()}),
    (ended("stop", ""), {"stop_reason": "stop", "text": ""}),
    (ended("length"), {"stop_reason": "length", "text": "e2e4"}),
    (ended("content_filter"), {"stop_reason": "refused"}),
    (ended("a new one"), {"stop_reason": "stop"}),
    (ended("a new one", "<think>hm</think>"), {"reasoning": "hm", "text": ""}),
    (reply(beside={"status": "completed", "error": {}, "errors": []}), {"text": "e2e4"}),
    (reply(beside={"error": None, "errors": None, "type": "message"}), {"text": "e2e4"}),
    (reply(beside={"success": True, "code": 20_000}), {"text": "e2e4"}),
    (choices(1, 0), {"text": "1"}),
    (choices(1, 2), {"text": "0"}),
]
ANSWERS_TO_US: list[tuple[Any, dict[str, Any]]] = [
    *((ended(reason, ""), {"stop_reason": "stop"}) for reason in ("eos", "end_turn", "STOP")),
    *((ended(reason, ""), {"stop_reason": "stop"}) for reason in ("eos_token", "stop_sequence")),
    *((ended(reason), {"stop_reason": "length"}) for reason in ("max_tokens", "model_length")),
    (ended("max_output_tokens", ""), {"stop_reason": "length"}),
    (ended("model_context_window_exceeded", ""), {"stop_reason": "length"}),
    *(
        (reply(beside={"success": True, "code": code}), {"text": "e2e4"})
        for code in (None, 0, 200, "ok", "success")
    ),
    *(
        (reply(beside={"status": status}), {"text": "e2e4"})
        for status in (None, 200, "ok", "success", "incomplete")
    ),
    (incomplete(details="max_output_tokens"), {"stop_reason": "length"}),
    (incomplete("", {"reason": "max_output_tokens"}), {"stop_reason": "length"}),
    (incomplete("", {"reason": "content_filter"}), {"stop_reason": "refused"}),
    (
        reply(message={"content": None, "refusal": "I will not."}),
        {"text": "I will not.", "stop_reason": "refused"},
    ),
    (reply([*PARTS, {"type": "image", "text": "?"}]), {"text": "e2e4"}),
    (choices(None, None), {"text": "0"}),
    ({"choices": reply()["choices"]}, {"version": "m"}),
    *(
        (
            json.dumps(reply(beside={"usage": {"prompt_tokens": 0}})).replace("0", tokens),
            {"usage": Usage()},
        )
        for tokens in ("Infinity", "1e400", "9" * 400, "9" * 4300, '"many"', "-1")
    ),
]


REASONING: list[Body] = [
    {"reasoning_content": "so"},
    {"reasoning": "so"},
    {"reasoning": "so", "reasoning_details": [{"type": "reasoning.text", "text": "no"}]},
    {"reasoning": None, "reasoning_details": [{"type": "reasoning.summary", "summary": "so"}]},
    {"reasoning_content": "", "reasoning": "so"},
    {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "so"}]}]},
    {"content": [{"type": "reasoning", "reasoning": "so"}]},
    {"content": [{"type": "thinking", "thinking": "so"}, {"type": "text", "text": "f1b5"}]},
    {"reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}, {"text": "so"}, 3]},
]
PAID = {"prompt_tokens": 10, "completion_tokens": 2}
THINKING = {"completion_tokens_details": {"reasoning_tokens": 40}}
X96 = "x" * 96
USAGES: list[tuple[Any, str, Usage]] = [
    (PAID | {"total_tokens": 12}, "", Usage(10, 2)),
    (PAID | {"total_tokens": 20}, "", Usage(10, 10)),
    (PAID, "", Usage(10, 2)),
    ({"prompt_tokens": 10, "completion_tokens": None, "total_tokens": "30"}, "", Usage(10, 20)),
    ({"prompt_tokens": -10, "completion_tokens": None, "total_tokens": "3"}, "", Usage()),
    ({"prompt_tokens": -1, "completion_tokens": 2, "total_tokens": 105}, "", Usage(0, 2)),
    ({"total_tokens": 105}, "", Usage()),
    ({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 105}, "", Usage()),
    ({"input_tokens": 10, "output_tokens": 2}, "", Usage(10, 2)),
    ({"prompt_tokens": "n/a", "input_tokens": 10, "output_tokens": 2.0}, "", Usage(10, 2)),
    ({"prompt_tokens": 10, "prompt_cache_hit_tokens": 7}, "", Usage(10, cached_tokens=7)),
    ({"prompt_tokens": 10, "input_tokens_details": {"cached_tokens": 1}}, "", Usage(10, 0, 0, 1)),
    ({"prompt_tokens": 10, "cached_tokens": 70}, "", Usage(10, cached_tokens=10)),
    (
        {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 0}, "cached_tokens": 6},
        "",
        Usage(9, cached_tokens=6),
    ),
    (PAID | {"prompt_tokens_details": 5}, "", Usage(10, 2)),
    *(
        (PAID | {"prompt_tokens_details": {"cached_tokens": cached}}, "", Usage(10, 2))
        for cached in (None, "many", -3, 10**16)
    ),
    (None, "", Usage()),
    ("n/a", "", Usage()),
    ([], "", Usage()),
    # thoughts that only the total counts are what it has more
    (PAID | {"total_tokens": 1_012}, "", Usage(10, 1_002, 1_000)),
    *(
        ({"prompt_tokens": 10, "completion_tokens": 5, **more}, "", Usage(10, 5))
        for thinking in (-1, 6, 10**9, 10**16, "lots", [1], None, float("inf"))
        for more in (
            {"completion_tokens_details": {"reasoning_tokens": thinking}},
            {"output_tokens_details": {"thinking_tokens": thinking}},
            {"reasoning_tokens": thinking},
        )
    ),
    (PAID | {"completion_tokens": 50}, X96, Usage(10, 50, 48)),
    (PAID | {"completion_tokens": 50} | THINKING, X96, Usage(10, 50, 40)),
    (PAID | {"total_tokens": 52} | THINKING, X96, Usage(10, 42, 40)),
    (PAID | {"completion_tokens": 50, "reasoning_tokens": 30}, X96, Usage(10, 50, 30)),
    (PAID | {"total_tokens": 112}, X96, Usage(10, 102, 100)),
    (PAID | {"completion_tokens": 50, "total_tokens": 61}, X96, Usage(10, 51, 49)),
    (PAID | {"completion_tokens": 50, "output_tokens_details": None}, X96, Usage(10, 50, 48)),
    ({"prompt_tokens": 10}, X96, Usage(10, 0, 24)),
]
ANSWERS_TO_US += [
    *((reply(message=message), {"reasoning": "so"}) for message in REASONING),
    *(
        (
            reply(beside={"usage": usage}, message={"content": "f1b5", "reasoning": reasoning}),
            {"text": "f1b5", "reasoning": reasoning, "usage": paid},
        )
        for usage, reasoning, paid in USAGES
    ),
]


@pytest.mark.parametrize(
    ("body", "fields", "adapter"),
    [
        *((*row, adapter) for row in ANSWERS for adapter in (OWN, INSPECT)),
        *((*row, OWN) for row in ANSWERS_TO_US),
    ],
)
def test_an_answer(
    body: Any, fields: dict[str, object], adapter: str, answer: Callable[..., Answer]
) -> None:
    given = answer(body, adapter)
    assert {name: getattr(given, name) for name in fields} == fields


ERRORS: list[Body] = [
    *({"error": 1}, {"errors": [1]}, {"object": "error"}, {"type": "error"}),
    *({"status": status} for status in ("error", "failed", "FAILED", "cancelled", "canceled")),
    *({"status": status} for status in ("errored", "failure", "aborted")),
    *({"success": False}, {"code": 500}, {"code": "429"}, {"status": 502}, {"status_code": 400}),
]
BROKEN_OFF = ["error", "Aborted", "cancelled", "failed", "timeout", "time-out"]
NO_ANSWERS: list[tuple[str, Any, str]] = [
    *((OWN, reply(beside=told), "the response is not a completion: ") for told in ERRORS),
    *((INSPECT, reply(beside=told), "") for told in (ERRORS[0], ERRORS[5], ERRORS[-1])),
    *((OWN, ended(reason), "") for reason in (*BROKEN_OFF, "insufficient memory")),
    (OWN, ended("a new one", " "), ""),
    (INSPECT, ended("a new one", ""), "ended for an unknown reason"),
    (OWN, reply(error={"code": 502}), ""),
    (OWN, incomplete(""), ""),
    (OWN, reply({"text": "e2e4"}), ""),
    *(
        (OWN, FAULTS[name], "")
        for name in FAULTS
        if name not in ("HTTP 409", "HTTP 429", "HTTP 500", "HTTP 502", "HTTP 503", "HTTP 529")
    ),
    *(
        (INSPECT, FAULTS[name], "")
        for name in (
            *("HTTP 408", "reset", "cut off", "silence", "no JSON", "no choice"),
            *("choices of null", "a 200 with an error body", "an error beside a choice"),
        )
    ),
    (OWN, lambda: web.json_response({"id": "later"}, status=202), ""),
    (OWN, lambda: web.Response(status=204), "an empty body"),
    (OWN, lambda: web.Response(status=499), "HTTP 499"),
    (OWN, lambda: web.Response(text="x" * 20_000), "a response of more than 10000 bytes"),
]


@pytest.mark.parametrize(("adapter", "sent", "words"), NO_ANSWERS)
def test_no_answer_and_perhaps_a_bill(
    adapter: str,
    sent: Any,
    words: str,
    answer: Callable[..., Answer],
    shared: Loopback,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Inspect's client would ask three times, and tell nobody."""
    monkeypatch.setattr(openai_api, "TIME_OUT", aiohttp.ClientTimeout(total=0.3))
    monkeypatch.setattr(openai_api, "MAX_RESPONSE_BYTES", 10_000)
    monkeypatch.setenv("INSPECT_HTTP_REQUEST_TIMEOUT", "0.3")
    with pytest.raises(TransientError, match=words or None) as fault:
        answer(sent, adapter)
    assert fault.value.maybe_billed
    assert len(shared.requests) == 1


def refused(status: int, message: str = "no", **more: str) -> Callable[[], web.Response]:
    return lambda: web.json_response({"error": {"message": message, **more}}, status=status)


QUOTA = {"type": "billing", "code": "insufficient_quota"}


@pytest.mark.parametrize(
    ("adapter", "sent", "kind", "words"),
    [
        *(
            (OWN, refused(status), TransientError, f"HTTP {status}: no")
            for status in (409, 425, 429, 500, 502, 503, 529)
        ),
        *((INSPECT, refused(status), TransientError, "no") for status in (429, 500, 503, 529)),
        (OWN, refused(403), UserError, r"needs a key, and none was sent \(HTTP 403: no\)"),
        *((INSPECT, refused(status), UserError, "refuses the key") for status in (401, 403)),
        (OWN, refused(404), UserError, r"refuses 'm' \(HTTP 404: no\)"),
        (INSPECT, refused(404), UserError, "openai-api/loop/m cannot answer"),
        (OWN, refused(402), UserError, r"requires payment \(HTTP 402: no\)"),
        (OWN, refused(429, **QUOTA), UserError, "requires payment"),
        (OWN, refused(429, "You exceeded your current quota"), TransientError, "HTTP 429: You"),
        (INSPECT, refused(422), RequestRejected, "cannot answer"),
        (INSPECT, refused(429, "Add a card", **QUOTA), UserError, "Add a card"),
        (OWN, refused(400), RequestRejected, r"refuses 'm' \(HTTP 400: no\)"),
        (INSPECT, refused(400), RequestRejected, "cannot answer"),
    ],
)
def test_a_refusal_that_cost_nothing(
    adapter: str,
    sent: Callable[[], web.Response],
    kind: type[Exception],
    words: str,
    answer: Callable[..., Answer],
    shared: Loopback,
) -> None:
    with pytest.raises(kind, match=words) as fault:
        answer(sent, adapter)
    assert not getattr(fault.value, "maybe_billed", False)
    assert len(shared.requests) == 1


@pytest.mark.parametrize("adapter", [OWN, INSPECT])
def test_an_error_that_is_an_answer(adapter: str, answer: Callable[..., Answer]) -> None:
    created = answer(lambda: web.json_response(reply(), status=201), adapter)
    assert created.text == "e2e4"
    spent = answer(refused(400, "Could not finish the message because"), adapter)
    assert (spent.text, spent.stop_reason, spent.conceded) == ("", "length", ())
    if adapter == OWN:  # Inspect's providers know by themselves
        assert answer(refused(400, code="content_filter")).stop_reason == "refused"


THOUGHTS = [
    ("f1b5", "", "f1b5"),
    ("<think>e4e5? d2d4?</think>f1b5", "e4e5? d2d4?", "f1b5"),
    ("<think>\n\n</think>\n\nf1b5", "", "\n\nf1b5"),
    ("e4e5? d2d4?</think>f1b5", "e4e5? d2d4?", "f1b5"),
    ("<think>\nf1b5\n", "f1b5", ""),
    ("\n<Thinking>a</Thinking> f1b5", "a", " f1b5"),
    ("<think>a</think>b<think>c</think>f1b5", "a</think>b<think>c", "f1b5"),
    ("<think >a</think >f1b5", "a", "f1b5"),
    ('<analysis type="brief">a</analysis>f1b5', "a", "f1b5"),
    ("◁think▷a◁/think▷f1b5", "a", "f1b5"),
    ("[THINK]a[/THINK]f1b5", "a", "f1b5"),
    ("<seed:think>a</seed:think>f1b5", "a", "f1b5"),
    (
        "<|channel|>analysis<|message|>a<|end|><|start|>assistant"
        "<|channel|>final<|message|>f1b5<|return|>",
        "a",
        "f1b5",
    ),
    ("<|channel|>analysis<|message|>a f1b5", "a f1b5", ""),
    (
        "<|channel|>analysis<|message|>a<|end|><|channel|>commentary<|message|>b<|end|>"
        "<|channel|>final<|message|>f1<|end|><|channel|>final<|message|>b5",
        "a\nb",
        "f1b5",
    ),
    ("I think f1b5 is <best>", "", "I think f1b5 is <best>"),
    ("f1b5\n<think>a e2e4</think>", "a e2e4", "f1b5\n"),
    ("d2d4? I close my <think> block.</think>f1b5", "d2d4? I close my <think> block.", "f1b5"),
    ("d2d4\n<think>a</think>f1b5", "d2d4\n<think>a", "f1b5"),
    ("d2d4\n<think>a</think>b<think>c</think>f1b5", "d2d4\n<think>a</think>b<think>c", "f1b5"),
    ("<think>a</think>f1b5<think>c</think>", "a\nc", "f1b5"),
    ("a</think>f1b5<think>c</think>\n", "a\nc", "f1b5"),
    ("a</think>f1b5\n<think>c</think>", "a\nc", "f1b5\n"),
    ("<think>a <think> b</think> c</think>", "a \n b\n c", ""),
    ("f1b5\n<think>because e2", "because e2", "f1b5\n"),
    ("<think>a</think>f1b5\n<think>because e2", "a\nbecause e2", "f1b5\n"),
    ("f1b5, without a <think> tag", "", "f1b5, without a <think> tag"),
]


@pytest.mark.parametrize(("text", "reasoning", "rest"), THOUGHTS)
def test_reasoning_between_tags_is_not_the_reply(text: str, reasoning: str, rest: str) -> None:
    assert split_reasoning(text) == (reasoning, rest)


def test_a_megabyte_of_tags_or_lines_is_parted_at_once() -> None:
    lines = 1_000_000 * "\n"
    began = time.process_time()
    assert split_reasoning(100_000 * "</think>") == ("", "")
    assert split_reasoning(100_000 * "<think>") == (99_999 * "<think>", "")
    assert split_reasoning(lines) == ("", lines)
    assert time.process_time() - began < 2


def test_a_text_of_a_base_model_is_taken_as_it_is() -> None:
    body = {"choices": [{"text": "<think>a</think>e2e4", "finish_reason": "stop"}], "model": "v1"}
    given = parse_completion(json.dumps(body).encode(), "completions", "served", ())
    assert (given.text, given.reasoning, given.version) == ("<think>a</think>e2e4", "", "v1")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('{"error": {"message": "no\\n memory"}}', "no memory"),
        ('{"message": "no"}', "no"),
        ('{"detail": "no"}', "no"),
        ('{"error": {"code": 3}}', '{"code": 3}'),
        ('{"error": "no"}', "no"),
        ("<html>  no", "<html> no"),
        ("[" * 100_000, "[" * 100_000),
    ],
)
def test_the_words_of_an_error_are_found(body: str, words: str) -> None:
    assert error_message(body.encode()) == words
    assert error_message(b"\xff no") == "\N{REPLACEMENT CHARACTER} no"


def test_a_fingerprint_is_short_or_there_is_none() -> None:
    told = [{"system_fingerprint": 400 * "f"}, {"system_fingerprint": None}, {}]
    assert [fingerprint_in(json.dumps(each).encode()) for each in told] == [300 * "f", "", ""]


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        *((None, None), ("", None), ("soon", None), ("nan", None)),
        *(("0.5", 0.5), ("-3", 0), ("601", 600), ("inf", 600)),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("Mon, 01 Jan 0001 00:00:00 -0000", 0),
        ("Thu, 01 Jan 99999 00:00:00 GMT", None),
    ],
)
def test_when_to_come_again(header: str | None, seconds: float | None) -> None:
    assert parse_retry_after(header) == seconds
    in_five_minutes = formatdate(time.time() + 300, usegmt=True)
    assert parse_retry_after(in_five_minutes) == pytest.approx(300, abs=5)
