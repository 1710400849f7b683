"""Servers that accept a request only in another variant."""

import re
from pathlib import Path

import pytest
from aiohttp import web

from cant_do_that_anymore.errors import UserError
from cant_do_that_anymore.providers.base import Message, RequestVariant, Settings
from cant_do_that_anymore.providers.request_variants import (
    ASKED_ONCE,
    NO_SYSTEM,
    NO_TEMPERATURE,
    STOP_SEQUENCES,
    arrange_messages,
    as_text,
    effort_encodings,
    fallbacks,
    limit_of,
    variant_notes,
    with_reasoning_budget,
    with_user_turn,
)
from loopback import Fault
from testing import POOL, Body, Serve, error_when, habit, measure, moves_in, positions

ALTERNATE = "Conversation roles must alternate user/assistant"


def rejecting_fault(message: str, rejected: str) -> Fault:
    """Return a fault that rejects requests with the property named ``rejected``."""

    def is_rejected(request: Body, _: int) -> object:
        roles = [turn["role"] for turn in request["messages"]]
        properties = {
            "system": "system" in roles,
            "assistant first": roles[0] == "assistant" or roles[:2] == ["system", "assistant"],
            "max_tokens": "max_tokens" in request,
            "temperature": "temperature" in request,
            "hot": request.get("temperature", 0) > 2,
        }
        return properties[rejected]

    return error_when(is_rejected, message, 400)


@pytest.mark.usefixtures("no_retry_delay")
@pytest.mark.parametrize(
    ("rejected", "note", "message", "n_errors"),
    [
        ("max_tokens", "token", "Unsupported: 'max_tokens'. Use 'max_completion_tokens'.", 0),
        ("temperature", "support a temperature", "'temperature' does not support 1.", 0),
        ("assistant first", "user turn first", ALTERNATE, 0),
        ("system", "no system message", ALTERNATE, 0),
        ("system", "no system message", "System role not supported", 0),
        ("system", "no system message", "System role not supported", 3),
    ],
)
def test_a_rejected_request_is_changed_and_noted(
    rejected: str, note: str, message: str, n_errors: int, serve: Serve
) -> None:
    """A transient error while another variant is tried does not count as a rejection."""
    reject, errors_left = rejecting_fault(message, rejected), iter(range(n_errors))

    async def fault(request: Body, number: int) -> web.StreamResponse | None:
        rejection = await reject(request, number)
        fails_now = not rejection and next(errors_left, None) is not None
        return web.Response(status=503) if fails_now else rejection

    run = measure(serve(habit, fault=fault), dataset=positions(6))
    assert run.results.metrics["predicted_move_proportion"] == 1
    assert any(note in text for text in run.notes)


def test_an_invalid_value_is_an_error_for_the_user(serve: Serve) -> None:
    message = "Invalid 'temperature': decimal above maximum value. Expected a value <= 2."
    fault = rejecting_fault(message, "hot")
    with pytest.raises(UserError, match="decimal above maximum value"):
        measure(serve(habit, fault=fault), dataset=positions(2), temperature=5.0)


def test_a_content_filter_is_a_refusal(serve: Serve) -> None:
    async def fault(request: Body, _: int) -> web.Response | None:
        error = {"error": {"message": "filtered", "code": "content_filter"}}
        is_filtered = moves_in(request) == POOL[3].moves
        return web.json_response(error, status=400) if is_filtered else None

    run = measure(serve(habit, fault=fault), dataset=positions(6))
    assert run.results.outcomes["standard"]["refused"] == 1
    assert run.results.metrics["n_failed"] == 0


REJECTIONS = {
    "max_completion_tokens": ["no max_tokens", "use max_completion_tokens"],
    "no temperature": ["Unsupported: temperature"],
    "no seed": ["Unrecognized request argument supplied: seed"],
    "user first": ["must alternate", "first turn: user", "a user comes first", "must start: user"],
    "no system": ["must alternate", "only users", "Unexpected role: system"],
}
UNSUPPORTED = ["unsupported", "not supported", "does not work", "deprecated", "not allowed"]
UNSUPPORTED += ["not permitted", "removed", "unexpected"]
RANGES = ["above", "below", "between", "range", "less than", "greater than", "maximum", "minimum"]


def remedies(message: str, *variant: str, **options: object) -> list[RequestVariant]:
    return list(fallbacks(message, variant, Settings(**options)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        *((name, message) for name, messages in REJECTIONS.items() for message in messages),
        *(("no system", f"a system message is {word}") for word in UNSUPPORTED),
    ],
)
def test_the_message_of_a_rejection_decides_the_fallback(change: str, message: str) -> None:
    assert (change,) in remedies(message)
    assert (change,) in remedies(message.upper().replace(" ", "\n"))
    assert ("other", change) in remedies(message, "other")
    assert not [variant for variant in remedies(message, change) if variant.count(change) > 1]


@pytest.mark.parametrize("word", [*RANGES, "<", ">"])
def test_a_value_out_of_range_has_no_fallback(word: str) -> None:
    assert remedies(f"temperature {word} 2") == []


def test_the_reasoning_budget_is_halved_down_to_1000_or_raised_fourfold() -> None:
    too_large, too_small = "the context is too small", "must be greater than the thinking budget"
    assert remedies(too_large, reasoning_tokens=2_000) == [("room to think: 1000",)]
    assert remedies(too_large, reasoning_tokens=1_998) == []
    assert remedies(too_large) == remedies(too_small) == []
    assert remedies("too many tokens", "room to think: 4000", "a") == [("a", "room to think: 2000")]
    for message in (too_small, "the budget must be less than it", "budget: smaller than it"):
        assert remedies(message, reasoning_tokens=500) == [("room to think: 2000",)]
    assert remedies(too_large, reasoning_effort="low") == [("room to think: 8000",)]
    assert remedies(too_large, reasoning_effort="none") == []


SMALLER = with_reasoning_budget((), 8_000)
REAL_REJECTIONS = [
    ("temperature: Extra inputs are not permitted", (NO_TEMPERATURE,)),
    ("`temperature` may only be set to 1 when thinking is enabled.", (NO_TEMPERATURE,)),
    ("invalid temperature: only 1 is allowed for this model", (NO_TEMPERATURE,)),
    ("`temperature` is deprecated for this model.", (NO_TEMPERATURE,)),
    (
        "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) "
        "value is supported.",
        (NO_TEMPERATURE,),
    ),
    (
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
        "'max_completion_tokens' instead.",
        ("max_completion_tokens",),
    ),
    ("max_tokens is too large: 16016. This model supports at most 8192 completion tokens", SMALLER),
    (
        "This model's maximum context length is 8192 tokens. However, you requested 16200 tokens",
        SMALLER,
    ),
    (
        "`max_tokens` must be greater than `thinking.budget_tokens`.",
        with_reasoning_budget((), 64_000),
    ),
    ("Unsupported value: 'messages[0].role' does not support 'system' with this", (NO_SYSTEM,)),
    ("Unsupported value: 'minimal' is not supported with the 'gpt-5.1' model", None),
    ("Reasoning is mandatory for this endpoint and cannot be disabled.", None),
]


@pytest.mark.parametrize(("message", "fallback"), REAL_REJECTIONS)
def test_real_rejections_have_a_fallback(message: str, fallback: tuple[str, ...] | None) -> None:
    variants = remedies(message, reasoning_effort="minimal")
    assert fallback in variants if fallback else "effort" in str(variants)


ABOUT_EFFORT = ["effort", "reasons", "thinking", "unrecognised", "unrecognized", "unknown"]


@pytest.mark.parametrize("text", [*ABOUT_EFFORT, "extra x", "not permitted", "'low' is no value"])
def test_a_rejected_effort_is_sent_in_the_remaining_encodings(text: str) -> None:
    assert remedies(text, "a", reasoning_effort="low") == [("a", "effort as reasoning")]
    assert remedies(text, "effort as reasoning", reasoning_effort="low") == remedies(text) == []
    variants = remedies("effort", "effort as thinking", reasoning_effort="none")
    assert variants == [("effort as reasoning",), ("effort as nothing",)]


def test_the_fields_of_every_effort_encoding() -> None:
    default = {"reasoning_effort": {"reasoning_effort": "low"}}
    assert effort_encodings("low") == default | {"reasoning": {"reasoning": {"effort": "low"}}}
    assert effort_encodings("none") == {
        "reasoning_effort": {"reasoning_effort": "none"},
        "chat_template_kwargs": {
            "chat_template_kwargs": {"enable_thinking": False, "thinking": False}
        },
        "thinking": {"thinking": {"type": "disabled"}},
        "reasoning": {"reasoning": {"enabled": False}},
        "nothing": {},
    }


def test_a_variant_arranges_the_turns_and_sets_the_token_limit() -> None:
    turns = tuple(Message(role, role) for role in ("system", "assistant", "user"))
    assert arrange_messages(turns, ("a",)) == turns
    for change, roles in {
        "user first": "system user assistant",
        "no system": "user assistant",
    }.items():
        arranged = arrange_messages(turns, (change,))
        assert [turn.role for turn in arranged] == [*roles.split(), "user"]
    assert arrange_messages(turns, ("user first",))[1].content == "The game begins. You play White."
    settings = Settings(max_tokens=16, reasoning_tokens=100)
    assert (limit_of((), settings), limit_of(("room to think: 50",), settings)) == (116, 66)


def test_a_text_is_added_to_the_last_user_turn_or_as_a_new_one() -> None:
    system, user = Message("system", "s"), Message("user", "e2e4")
    assistant, question = Message("assistant", "e5"), Message("user", "Why?")
    assert with_user_turn((system, user), "Why?") == (system, Message("user", "e2e4\n\nWhy?"))
    assert with_user_turn((system, assistant), "Why?") == (system, assistant, question)


def test_base_models_get_a_transcript_and_stop_at_the_next_turn() -> None:
    turns = (Message("system", "Play."), Message("user", "e2e4"))
    assert as_text(turns) == "System: Play.\nUser: e2e4\nAssistant:"
    assert STOP_SEQUENCES == ("System:", "User:", "Assistant:", "-----")


def test_the_protocol_lists_all_variants_and_each_has_a_note() -> None:
    protocol = Path(__file__).parents[2] / "docs" / "protocol.md"
    table = protocol.read_text(encoding="utf-8").partition("| concession |")[2].partition("\n\n")[0]
    names = re.findall(r"^\| `(.*?)` \|", table, re.M)
    assert names == [*REJECTIONS, "room to think: N", "effort as W"]
    assert ASKED_ONCE == "asked once"
    assert variant_notes([*REJECTIONS, ASKED_ONCE]) == [
        "the server expects the token limit as max_completion_tokens",
        "the model does not support a temperature, so none was sent",
        "the model does not support a seed, so none was sent",
        "the server requires a user turn first, so one was added before White's first move",
        "the server supports no system message, so the task is in the first user turn",
        "reasoning model: it was not asked to reason aloud; use --reasoning-effort instead of cot/",
    ]
    variant = ["room to think: 8000", "effort as b", "effort as a", "room to think: 1000"]
    assert variant_notes(variant) == [
        "reasoning model: allowed up to 1,000 and then 8,000 reasoning tokens",
        "the effort was sent as a",
        "the effort was sent as b",
    ]
