"""What servers send back, in all the ways they do."""

import json
import time
from email.utils import formatdate

import pytest

from cant_do_that_anymore.providers.base import Answer, StopReason, Usage
from cant_do_that_anymore.providers.responses import (
    error_message,
    fingerprint_in,
    parse_completion,
    parse_retry_after,
)


def answer_in(content: object = "e2e4", usage: object = None, **choice: object) -> Answer:
    message = {"message": {"content": content}, "finish_reason": "stop", **choice}
    body = {"choices": [message], "usage": usage}
    return parse_completion(json.dumps(body).encode(), "chat", "served", ("a form",))


@pytest.mark.parametrize(
    "reason", ["stop", "eos", "eos_token", "end_turn", "stop_sequence", "STOP"]
)
def test_a_reply_that_ended_by_itself(reason: str) -> None:
    for text in ("e2e4", ""):
        ended = Answer(text, "stop", version="served", conceded=("a form",))
        assert answer_in(text, finish_reason=reason) == ended


@pytest.mark.parametrize(
    ("reason", "stopped"),
    [
        ("length", "length"),
        ("max_tokens", "length"),
        ("max_output_tokens", "length"),
        ("model_length", "length"),
        ("model_context_window_exceeded", "length"),
        ("content_filter", "refused"),
    ],
)
def test_a_reply_that_was_ended(reason: str, stopped: StopReason) -> None:
    for text in ("e2e4", ""):
        assert answer_in(text, finish_reason=reason).stop_reason == stopped


def test_an_unknown_reason_ends_a_text_and_excuses_no_silence() -> None:
    assert answer_in(finish_reason="a new one").stop_reason == "stop"
    assert answer_in("<think>hm</think>", finish_reason="a new one").reasoning == "hm"
    with pytest.raises(ValueError, match="ended with 'a new one'"):
        answer_in(" ", finish_reason="a new one")


@pytest.mark.parametrize(
    "reason",
    ["error", "Aborted", "cancelled", "failed", "timeout", "time-out", "insufficient memory"],
)
def test_a_reply_that_was_broken_off_is_none(reason: str) -> None:
    with pytest.raises(ValueError, match="ended with"):
        answer_in(finish_reason=reason)


def body_with(told: dict[str, object], text: str = "e2e4") -> bytes:
    choice = {"message": {"content": text}, "finish_reason": "stop"}
    return json.dumps({"choices": [choice], **told}).encode()


@pytest.mark.parametrize(
    "told",
    [
        *({"error": 1}, {"errors": [1]}, {"object": "error"}, {"type": "error"}),
        *({"status": status} for status in ("error", "failed", "FAILED", "cancelled", "canceled")),
        *({"success": False}, {"code": 500}, {"code": "429"}, {"status": 502}),
        {"status_code": 400},
    ],
)
def test_a_body_that_calls_itself_an_error_is_none(told: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="the server calls it an error"):
        parse_completion(body_with(told), "chat", "served", ())


@pytest.mark.parametrize(
    "told",
    [
        {"object": "chat.completion", "provider": "a", "service_tier": None, "error": None},
        {"status": "completed", "error": {}, "errors": []},
        *({"success": True, "code": code} for code in (None, 0, 200, "ok", 20_000, "success")),
        *({"status": status} for status in (None, 200, "ok", "success", "incomplete")),
        {"status": "incomplete", "incomplete_details": "max_output_tokens"},
    ],
)
def test_a_body_that_says_more_of_itself_is_an_answer(told: dict[str, object]) -> None:
    assert parse_completion(body_with(told), "chat", "served", ()).text == "e2e4"


def test_an_incomplete_body_says_why_it_is() -> None:
    told: dict[str, object] = {"status": "incomplete"}
    for reason, stopped in (("max_output_tokens", "length"), ("content_filter", "refused")):
        body = body_with(told | {"incomplete_details": {"reason": reason}}, "")
        assert parse_completion(body, "chat", "served", ()).stop_reason == stopped
    with pytest.raises(ValueError, match="the reply ended with None"):
        parse_completion(body_with(told, ""), "chat", "served", ())


def test_a_choice_that_holds_an_error_is_none() -> None:
    with pytest.raises(ValueError, match="ended with 'stop'"):
        answer_in(error={"code": 502})


def test_a_refusal_is_the_text_and_parts_are_joined() -> None:
    refused = answer_in(message={"content": None, "refusal": "I will not."})
    assert (refused.text, refused.stop_reason) == ("I will not.", "refused")
    parts: list[object] = [{"type": "text", "text": "e2"}, {"type": "output_text", "text": "e"}]
    assert answer_in([*parts, {"text": "4"}, {"type": "image", "text": "?"}]).text == "e2e4"
    with pytest.raises(ValueError, match="the reply is no text"):
        answer_in({"text": "e2e4"})


def test_a_text_of_a_base_model_is_taken_as_it_is() -> None:
    body = {"choices": [{"text": "<think>a</think>e2e4", "finish_reason": "stop"}], "model": "v1"}
    answer = parse_completion(json.dumps(body).encode(), "completions", "served", ())
    assert (answer.text, answer.reasoning, answer.version) == ("<think>a</think>e2e4", "", "v1")


@pytest.mark.parametrize(
    ("told", "usage"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}, Usage(10, 2)),
        ({"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 20}, Usage(10, 10)),
        ({"prompt_tokens": 10, "completion_tokens": 2}, Usage(10, 2)),
        ({"prompt_tokens": 10, "completion_tokens": None, "total_tokens": "30"}, Usage(10, 20)),
        ({"prompt_tokens": -10, "completion_tokens": None, "total_tokens": "3"}, Usage()),
        ({"prompt_tokens": -1, "completion_tokens": 2, "total_tokens": 105}, Usage(0, 2)),
        ({"total_tokens": 105}, Usage()),
        ({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 105}, Usage()),
        ({"input_tokens": 10, "output_tokens": 2}, Usage(10, 2)),
        ({"prompt_tokens": "n/a", "input_tokens": 10, "output_tokens": 2.0}, Usage(10, 2)),
        ({"prompt_tokens": 10, "prompt_cache_hit_tokens": 7}, Usage(10, cached_tokens=7)),
        ({"prompt_tokens": 10, "input_tokens_details": {"cached_tokens": 1}}, Usage(10, 0, 0, 1)),
        ({"prompt_tokens": 10, "cached_tokens": 70}, Usage(10, cached_tokens=10)),
        (
            {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 0}, "cached_tokens": 6},
            Usage(9, cached_tokens=6),
        ),
        (None, Usage()),
        ("n/a", Usage()),
        ([], Usage()),
    ],
)
def test_tokens_are_counted_as_they_are_paid(told: object, usage: Usage) -> None:
    assert answer_in(usage=told).usage == usage


def test_thoughts_that_only_the_total_counts_are_what_it_has_more() -> None:
    told = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 1_012}
    assert answer_in(usage=told).usage == Usage(10, 1_002, 1_000)


@pytest.mark.parametrize("thinking", [-1, 6, 10**9, 10**16, "lots", [1], None, float("inf")])
def test_thoughts_of_a_number_that_cannot_be_are_not_counted(thinking: object) -> None:
    told: dict[str, object] = {"prompt_tokens": 10, "completion_tokens": 5}
    for more in (
        {"completion_tokens_details": {"reasoning_tokens": thinking}},
        {"output_tokens_details": {"thinking_tokens": thinking}},
        {"reasoning_tokens": thinking},
    ):
        assert answer_in(usage=told | more).usage == Usage(10, 5)


@pytest.mark.parametrize(("indices", "text"), [((1, 0), "1"), ((1, 2), "0"), ((None, None), "0")])
def test_of_several_choices_the_first_by_its_number_is_the_answer(
    indices: tuple[int | None, int | None], text: str
) -> None:
    choices = [
        {"index": index, "message": {"content": str(place)}, "finish_reason": "stop"}
        for place, index in enumerate(indices)
    ]
    body = json.dumps({"choices": choices}).encode()
    assert parse_completion(body, "chat", "served", ()).text == text


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
        ("Thu, 01 Jan 99999 00:00:00 GMT", None),
    ],
)
def test_when_to_come_again(header: str | None, seconds: float | None) -> None:
    assert parse_retry_after(header) == seconds


def test_when_to_come_again_may_be_a_date() -> None:
    assert parse_retry_after(formatdate(time.time() + 100, usegmt=True)) == pytest.approx(
        100, abs=5
    )
