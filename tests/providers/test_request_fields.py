"""What rejections say about a request, and servers that accept it only in another form."""

from collections.abc import Callable

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
from faults import error
from testing import POOL, Body, Serve, error_when, habit, measure, moves_in, positions

PROPERTIES: dict[str, Callable[[Body], object]] = {
    "system": lambda request: request["messages"][0]["role"] == "system",
    "assistant first": lambda request: request["messages"][1]["role"] == "assistant",
    "max_tokens": lambda request: "max_tokens" in request,
    "temperature": lambda request: "temperature" in request,
    "hot": lambda request: request["temperature"] > 2,
    "effort": lambda request: "reasoning_effort" in request,
}


@pytest.mark.usefixtures("no_retry_delay")
@pytest.mark.parametrize(
    ("rejected", "note", "message"),
    [
        ("max_tokens", "token", "Unsupported: 'max_tokens' (code 1210)."),
        ("temperature", "support a temperature", "'temperature' does not support 1."),
        ("assistant first", "user turn first", "Conversation roles must alternate user/assistant"),
        ("system", "no system message", "Conversation roles must alternate user/assistant"),
    ],
)
def test_a_rejected_request_is_changed_and_noted(
    rejected: str, note: str, message: str, serve: Serve
) -> None:
    """A transient error of a changed request does not count as a rejection."""
    errors_left = iter(range(3))

    async def fault(request: Body, number: int) -> web.StreamResponse | None:
        if PROPERTIES[rejected](request):
            return error(400, message)
        return error(503, "loading") if next(errors_left, None) is not None else None

    server = serve(habit, fault=fault)
    run = measure(server, dataset=positions(6))
    assert run.results["predicted_move_proportion"].value == 1
    assert any(note in text for text in run.notes)
    assert not any("fewer tokens" in text for text in run.notes)
    again = measure(server, dataset=positions(6))
    assert again.samples == run.samples
    assert len(server.requests) <= 12 + 4 * 4 + 3 * 3  # few are rejected before one shows it


@pytest.mark.parametrize(
    ("message", "rejected", "options"),
    [
        ("Invalid 'temperature'. Expected a value <= 2.", "hot", {"temperature": 5.0}),
        ("'minimal' is not supported with the model", "effort", {"reasoning_effort": "minimal"}),
    ],
)
def test_an_invalid_value_is_an_error_for_the_user(
    message: str, rejected: str, options: dict[str, object], serve: Serve
) -> None:
    fault = error_when(lambda request, _: PROPERTIES[rejected](request), message, 400)
    server = serve(habit, fault=fault)
    with pytest.raises(UserError, match=message[-20:]):
        measure(server, dataset=positions(2), **options)
    assert len(server.requests) == 2  # the same, twice


def test_a_content_filter_is_a_refusal(serve: Serve) -> None:
    async def fault(request: Body, _: int) -> web.Response | None:
        filtered = {"error": {"message": "filtered", "code": "content_filter"}}
        is_filtered = moves_in(request) == POOL[3].moves
        return web.json_response(filtered, status=400) if is_filtered else None

    run = measure(serve(habit, fault=fault), dataset=positions(6))
    assert run.results.outcomes["standard"]["refused"] == 1
    assert run.results.failed == 0


UNSUPPORTED = ["unsupported", "deprecated", "not allowed", "not permitted", "removed", "unexpected"]
RANGES = ["above", "below", "between", "range", "less than", "greater than", "maximum", "<", ">"]
REJECTIONS: list[tuple[str, Adjustments, Adjustments | None]] = [
    ("no max_tokens", (), (RENAMED_LIMIT,)),
    ("use max_completion_tokens", (RENAMED_LIMIT,), None),
    ("`temperature` may only be set to 1 when thinking is enabled.", (), (NO_TEMPERATURE,)),
    ("must alternate", (), (USER_FIRST,)),
    ("must alternate", (USER_FIRST,), (USER_FIRST, NO_SYSTEM)),
    ("first turn: user", (), (USER_FIRST,)),
    ("it must start: user", (), (USER_FIRST,)),
    ("a user comes first", (NO_TEMPERATURE,), (NO_TEMPERATURE, USER_FIRST)),
    ("only users", (), (NO_SYSTEM,)),
    ("Unexpected role: system", (), (NO_SYSTEM,)),
    ("'messages[0].role' does not support 'system' with this", (), (NO_SYSTEM,)),
    *((f"a system message is {word}", (), (NO_SYSTEM,)) for word in UNSUPPORTED),
    *((f"temperature {word} 2", (), None) for word in RANGES),
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
