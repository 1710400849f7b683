"""What rejections say about a request, and servers that accept it only in another form."""

import json

import pytest
from aiohttp import web

from cant_do_that_anymore.errors import UserError
from cant_do_that_anymore.habits.base import Message
from cant_do_that_anymore.habits.chess.rules import STANDARD
from cant_do_that_anymore.providers.base import Adjustments, Question, Settings
from cant_do_that_anymore.providers.request_fields import (
    NO_SYSTEM,
    NO_TEMPERATURE,
    RENAMED_LIMIT,
    USER_FIRST,
    adjusted,
    with_adjustments,
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
            "effort": "reasoning_effort" in request,
        }
        return properties[rejected]

    return error_when(is_rejected, message, 400)


@pytest.mark.usefixtures("no_retry_delay")
@pytest.mark.parametrize("n_errors", [0, 3])
@pytest.mark.parametrize(
    ("rejected", "note", "message"),
    [
        ("max_tokens", "token", "Unsupported: 'max_tokens'. Use 'max_completion_tokens'."),
        ("max_tokens", "token", "Unsupported: 'max_tokens' (code 1210)."),
        ("temperature", "support a temperature", "'temperature' does not support 1."),
        ("assistant first", "user turn first", ALTERNATE),
        ("system", "no system message", ALTERNATE),
        ("system", "no system message", "System role not supported"),
    ],
)
def test_a_rejected_request_is_changed_and_noted(
    rejected: str, note: str, message: str, n_errors: int, serve: Serve
) -> None:
    """A transient error of a changed request does not count as a rejection."""
    reject, errors_left = rejecting_fault(message, rejected), iter(range(n_errors))

    async def fault(request: Body, number: int) -> web.StreamResponse | None:
        rejection = await reject(request, number)
        fails_now = not rejection and next(errors_left, None) is not None
        return web.Response(status=503) if fails_now else rejection

    server = serve(habit, fault=fault)
    run = measure(server, dataset=positions(6))
    assert run.results["predicted_move_proportion"].value == 1
    assert any(note in text for text in run.notes)
    assert not any("fewer tokens" in text for text in run.notes)
    again = measure(server, dataset=positions(6))
    assert again.samples == run.samples
    assert len(server.requests) <= 12 + 4 * 4 + n_errors * 3  # few are rejected before one shows it


@pytest.mark.parametrize(
    ("message", "rejected", "options"),
    [
        (
            "Invalid 'temperature': decimal above maximum value. Expected a value <= 2.",
            "hot",
            {"temperature": 5.0},
        ),
        (
            "Unsupported value: 'minimal' is not supported with the 'gpt-5.1' model",
            "effort",
            {"reasoning_effort": "minimal"},
        ),
    ],
)
def test_an_invalid_value_is_an_error_for_the_user(
    message: str, rejected: str, options: dict[str, object], serve: Serve
) -> None:
    server = serve(habit, fault=rejecting_fault(message, rejected))
    with pytest.raises(UserError, match=message[-30:]):
        measure(server, dataset=positions(2), **options)
    assert len(server.requests) == 2  # the same, twice


def test_a_content_filter_is_a_refusal(serve: Serve) -> None:
    async def fault(request: Body, _: int) -> web.Response | None:
        error = {"error": {"message": "filtered", "code": "content_filter"}}
        is_filtered = moves_in(request) == POOL[3].moves
        return web.json_response(error, status=400) if is_filtered else None

    run = measure(serve(habit, fault=fault), dataset=positions(6))
    assert run.results.outcomes["standard"]["refused"] == 1
    assert run.results.failed == 0


UNSUPPORTED = ["unsupported", "not supported", "does not work", "deprecated", "not allowed"]
UNSUPPORTED += ["not permitted", "removed", "unexpected"]
RANGES = ["above", "below", "between", "range", "less than", "greater than", "maximum", "minimum"]
REJECTIONS: list[tuple[str, Adjustments, Adjustments | None]] = [
    ("no max_tokens", (), (RENAMED_LIMIT,)),
    ("use max_completion_tokens", (), (RENAMED_LIMIT,)),
    ("use max_completion_tokens", (RENAMED_LIMIT,), None),
    ("`temperature` may only be set to 1 when thinking is enabled.", (), (NO_TEMPERATURE,)),
    ("`temperature` is deprecated for this model.", (), (NO_TEMPERATURE,)),
    ("must alternate", (), (USER_FIRST,)),
    ("must alternate", (USER_FIRST,), (USER_FIRST, NO_SYSTEM)),
    *((message, (), (USER_FIRST,)) for message in ("first turn: user", "it must start: user")),
    ("a user comes first", (NO_TEMPERATURE,), (NO_TEMPERATURE, USER_FIRST)),
    *((message, (), (NO_SYSTEM,)) for message in ("only users", "Unexpected role: system")),
    ("'messages[0].role' does not support 'system' with this", (), (NO_SYSTEM,)),
    *((f"a system message is {word}", (), (NO_SYSTEM,)) for word in UNSUPPORTED),
    *((f"temperature {word} 2", (), None) for word in (*RANGES, "<", ">")),
    ("Reasoning is mandatory for this endpoint and cannot be disabled.", (), None),
]


@pytest.mark.parametrize(("message", "made", "expected"), REJECTIONS)
def test_the_message_of_a_rejection_decides(
    message: str, made: Adjustments, expected: Adjustments | None
) -> None:
    assert adjusted(message, made) == expected
    assert adjusted(message.upper().replace(" ", "\n"), made) == expected


def arranged(messages: tuple[Message, ...], made: Adjustments) -> tuple[Message, ...]:
    question = Question(STANDARD, POOL[0], messages)
    return with_adjustments(question, Settings(), made)[0].messages


def test_adjustments_arrange_the_turns() -> None:
    turns = tuple(Message(role, role) for role in ("system", "assistant", "user"))
    roles = {
        (): "system assistant user",
        (USER_FIRST,): "system user assistant user",
        (NO_SYSTEM,): "user assistant user",
        (USER_FIRST, NO_SYSTEM): "user assistant user",
    }
    for made, expected in roles.items():
        assert " ".join(turn.role for turn in arranged(turns, made)) == expected
    assert arranged(turns, (USER_FIRST,))[1].content == "The game begins. You play White."
    user_only = (Message("user", "e2e4"),)
    assert {arranged(user_only, made) for made in roles} == {user_only}
    system, question = Message("system", "Play."), Message("user", "e2e4")
    assert arranged((system, question), (USER_FIRST,)) == (system, question)
    assert arranged((system, question), (NO_SYSTEM,)) == (Message("user", "Play.\n\ne2e4"),)


def test_adjustments_change_the_settings() -> None:
    question, settings = Question(STANDARD, POOL[0], ()), Settings(1.0, 9, extra_body='{"a": 1}')
    assert with_adjustments(question, settings, ()) == (question, settings)
    _, changed = with_adjustments(question, settings, (NO_TEMPERATURE, RENAMED_LIMIT))
    assert (changed.temperature, changed.max_tokens) == (None, 9)
    assert json.loads(changed.extra_body) == {"a": 1, RENAMED_LIMIT: 9}
