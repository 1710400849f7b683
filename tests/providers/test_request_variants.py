"""Servers that take a request only in another form."""

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
from testing import POOL, Body, Serve, fails, habit, measure, moves_in, positions

ALTERNATE = "Conversation roles must alternate user/assistant"


def refusing(message: str, refused: str) -> Fault:
    """A fault for requests of a form, told by a rule over the roles and keys of the request."""

    def holds(request: Body, _: int) -> object:
        roles = [turn["role"] for turn in request["messages"]]
        form = {
            "system": "system" in roles,
            "assistant first": roles[0] == "assistant" or roles[:2] == ["system", "assistant"],
            "max_tokens": "max_tokens" in request,
            "temperature": "temperature" in request,
            "hot": request.get("temperature", 0) > 2,
        }
        return form[refused]

    return fails(holds, message, 400)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("refused", "note", "message", "troubles"),
    [
        ("max_tokens", "token", "Unsupported: 'max_tokens'. Use 'max_completion_tokens'.", 0),
        ("temperature", "support a temperature", "'temperature' does not support 1.", 0),
        ("assistant first", "user turn first", ALTERNATE, 0),
        ("system", "no system message", ALTERNATE, 0),
        ("system", "no system message", "System role not supported", 0),
        ("system", "no system message", "System role not supported", 3),
    ],
)
def test_a_refused_form_is_changed_and_noted(
    refused: str, note: str, message: str, troubles: int, serve: Serve
) -> None:
    """Trouble while another form is tried is no refusal of it."""
    refuse, left = refusing(message, refused), iter(range(troubles))

    async def fault(request: Body, number: int) -> web.StreamResponse | None:
        answer = await refuse(request, number)
        in_trouble = not answer and next(left, None) is not None
        return web.Response(status=503) if in_trouble else answer

    run = measure(serve(habit, fault=fault), dataset=positions(6))
    assert run.results.metrics["predicted_move_proportion"] == 1
    assert any(note in sentence for sentence in run.notes)


def test_a_value_out_of_range_is_the_users_to_change(serve: Serve) -> None:
    message = "Invalid 'temperature': decimal above maximum value. Expected a value <= 2."
    with pytest.raises(UserError, match="decimal above maximum value"):
        measure(serve(habit, fault=refusing(message, "hot")), dataset=positions(2), temperature=5.0)


def test_a_content_filter_is_a_refusal(serve: Serve) -> None:
    async def fault(request: Body, _: int) -> web.Response | None:
        error = {"error": {"message": "filtered", "code": "content_filter"}}
        refused = moves_in(request) == POOL[3].moves
        return web.json_response(error, status=400) if refused else None

    run = measure(serve(habit, fault=fault), dataset=positions(6))
    assert run.results.outcomes["standard"]["refused"] == 1
    assert run.results.metrics["n_failed"] == 0


REFUSALS = {
    "max_completion_tokens": ["no max_tokens", "use max_completion_tokens"],
    "no temperature": ["Unsupported: temperature"],
    "no seed": ["Unrecognized request argument supplied: seed"],
    "user first": ["must alternate", "first turn: user", "a user comes first", "must start: user"],
    "no system": ["must alternate", "only users", "Unexpected role: system"],
}
NOT = ["unsupported", "not supported", "does not work", "deprecated", "not allowed"]
NOT += ["not permitted", "removed", "unexpected"]
RANGES = ["above", "below", "between", "range", "less than", "greater than", "maximum", "minimum"]


def forms(words: str, *made: str, **options: object) -> list[RequestVariant]:
    return list(fallbacks(words, made, Settings(**options)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("concession", "words"),
    [
        *((name, words) for name, refusals in REFUSALS.items() for words in refusals),
        *(("no system", f"a system message is {word}") for word in NOT),
    ],
)
def test_the_words_of_a_refusal_call_for_a_concession(concession: str, words: str) -> None:
    assert (concession,) in forms(words)
    assert (concession,) in forms(words.upper().replace(" ", "\n"))
    assert ("other", concession) in forms(words, "other")
    assert not [form for form in forms(words, concession) if form.count(concession) > 1]


@pytest.mark.parametrize("word", [*RANGES, "<", ">"])
def test_of_a_range_nothing_is_conceded(word: str) -> None:
    assert forms(f"temperature {word} 2") == []


def test_the_room_to_think_is_halved_to_a_thousand_or_four_times_as_large() -> None:
    small, large = "the context is too small", "must be greater than the thinking budget"
    assert forms(small, reasoning_tokens=2_000) == [("room to think: 1000",)]
    assert forms(small, reasoning_tokens=1_998) == forms(small) == forms(large) == []
    assert forms("too many tokens", "room to think: 4000", "a") == [("a", "room to think: 2000")]
    for words in (large, "the budget must be less than it", "budget: smaller than it"):
        assert forms(words, reasoning_tokens=500) == [("room to think: 2000",)]
    assert forms(small, reasoning_effort="low") == [("room to think: 8000",)]
    assert forms(small, reasoning_effort="none") == []


SMALLER = with_reasoning_budget((), 8_000)
KNOWN_REFUSALS = [
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


@pytest.mark.parametrize(("words", "remedy"), KNOWN_REFUSALS)
def test_every_known_refusal_has_its_remedy(words: str, remedy: tuple[str, ...] | None) -> None:
    found = forms(words, reasoning_effort="minimal")
    assert remedy in found if remedy else any("effort" in each for form in found for each in form)


OF_EFFORT = ["effort", "reasons", "thinking", "unrecognised", "unrecognized", "unknown", "extra x"]


@pytest.mark.parametrize("words", [*OF_EFFORT, "not permitted", "'low' is no value"])
def test_an_effort_that_is_refused_is_told_in_the_ways_that_are_left(words: str) -> None:
    assert forms(words, "a", reasoning_effort="low") == [("a", "effort as reasoning")]
    assert forms(words, "effort as reasoning", reasoning_effort="low") == forms(words) == []
    told = forms("effort", "effort as thinking", reasoning_effort="none")
    assert told == [("effort as reasoning",), ("effort as nothing",)]


def test_the_fields_of_every_encoding_of_an_effort() -> None:
    usual = {"reasoning_effort": {"reasoning_effort": "low"}}
    assert effort_encodings("low") == usual | {"reasoning": {"reasoning": {"effort": "low"}}}
    assert effort_encodings("none") == {
        "reasoning_effort": {"reasoning_effort": "none"},
        "chat_template_kwargs": {
            "chat_template_kwargs": {"enable_thinking": False, "thinking": False}
        },
        "thinking": {"thinking": {"type": "disabled"}},
        "reasoning": {"reasoning": {"enabled": False}},
        "nothing": {},
    }


def test_a_form_lays_out_the_turns_and_adds_its_room_to_the_limit() -> None:
    turns = tuple(Message(role, role) for role in ("system", "assistant", "user"))
    assert arrange_messages(turns, ("a",)) == turns
    for form, roles in {
        "user first": "system user assistant",
        "no system": "user assistant",
    }.items():
        arranged = arrange_messages(turns, (form,))
        assert [turn.role for turn in arranged] == [*roles.split(), "user"]
    assert arrange_messages(turns, ("user first",))[1].content == "The game begins. You play White."
    settings = Settings(max_tokens=16, reasoning_tokens=100)
    assert (limit_of((), settings), limit_of(("room to think: 50",), settings)) == (116, 66)


def test_a_text_is_added_to_the_last_user_turn_or_as_a_new_one() -> None:
    system, move, reply = (
        Message("system", "s"),
        Message("user", "e2e4"),
        Message("assistant", "e5"),
    )
    question = Message("user", "Why?")
    assert with_user_turn((system, move), "Why?") == (system, Message("user", "e2e4\n\nWhy?"))
    assert with_user_turn((system, reply), "Why?") == (system, reply, question)


def test_a_base_model_gets_a_transcript_and_stops_at_the_next_turn() -> None:
    turns = (Message("system", "Play."), Message("user", "e2e4"))
    assert as_text(turns) == "System: Play.\nUser: e2e4\nAssistant:"
    assert STOP_SEQUENCES == ("System:", "User:", "Assistant:", "-----")


def test_every_concession_is_noted_and_named_as_in_the_protocol() -> None:
    protocol = Path(__file__).parents[2] / "docs" / "protocol.md"
    table = protocol.read_text(encoding="utf-8").partition("| concession |")[2].partition("\n\n")[0]
    names = re.findall(r"^\| `(.*?)` \|", table, re.M)
    assert names == [*REFUSALS, "room to think: N", "effort as W"]
    assert ASKED_ONCE == "asked once"
    assert variant_notes([*REFUSALS, ASKED_ONCE]) == [
        "the server expects the token limit as max_completion_tokens",
        "the model does not support a temperature, so none was sent",
        "the model does not support a seed, so none was sent",
        "the server requires a user turn first, so one was added before White's first move",
        "the server supports no system message, so the task is in the first user turn",
        "reasoning model: it was not asked to reason aloud; use --reasoning-effort instead of cot/",
    ]
    rooms = ["room to think: 8000", "effort as b", "effort as a", "room to think: 1000"]
    assert variant_notes(rooms) == [
        "reasoning model: allowed up to 1,000 and then 8,000 reasoning tokens",
        "the effort was sent as a",
        "the effort was sent as b",
    ]
