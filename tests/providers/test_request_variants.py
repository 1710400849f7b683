"""Servers that take a request only in another form."""

import json
import re
from pathlib import Path

import pytest
from aiohttp import web

from cant_do_that_anymore import Run, Spec, evaluate
from cant_do_that_anymore.errors import UserError
from cant_do_that_anymore.game.position import shipped_pool, write_positions
from cant_do_that_anymore.providers.base import Message, RequestVariant, Settings
from cant_do_that_anymore.providers.request_variants import (
    ASKED_ONCE,
    arrange_messages,
    fallbacks,
    limit_of,
    variant_notes,
)
from loopback import Body, Fault, Loopback, moves_in, serving
from players import habit

POOL = shipped_pool("pool")[:12]


def refusing(message: str, refused: str) -> Fault:
    """A fault for requests of a form, told by a rule over the roles and keys of the request."""

    async def fault(request: Body, _: int) -> web.Response | None:
        roles = [turn["role"] for turn in request["messages"]]
        form = {
            "system": "system" in roles,
            "assistant first": roles[0] == "assistant" or roles[:2] == ["system", "assistant"],
            "max_tokens": "max_tokens" in request,
            "temperature": "temperature" in request,
            "hot": request.get("temperature", 0) > 2,
        }
        return (
            web.json_response({"error": {"message": message}}, status=400)
            if form[refused]
            else None
        )

    return fault


def measured(server: Loopback, folder: Path, **options: float) -> Run:
    write_positions(folder / "dataset.jsonl", POOL)
    spec = Spec(model="m", base_url=server.url, dataset=folder / "dataset.jsonl", **options)  # type: ignore[arg-type]
    return evaluate(spec, quiet=True)


@pytest.mark.parametrize(
    ("message", "refused", "note"),
    [
        (
            "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'.",
            "max_tokens",
            "token",
        ),
        ("Unsupported value: 'temperature' does not support 1.", "temperature", "no temperature"),
        ("Conversation roles must alternate user/assistant", "assistant first", "user turn first"),
        ("System role not supported", "system", "no system message"),
        ("Conversation roles must alternate user/assistant", "system", "no system message"),
    ],
)
def test_a_refused_form_is_changed_and_noted(
    tmp_path: Path, message: str, refused: str, note: str
) -> None:
    with serving(Loopback(habit, fault=refusing(message, refused))) as server:
        run = measured(server, tmp_path)
    assert run.results.metrics["predicted_move_proportion"] == 1
    assert any(note in sentence for sentence in run.notes)


@pytest.mark.usefixtures("impatient")
def test_trouble_while_another_form_is_tried_is_no_refusal_of_it(tmp_path: Path) -> None:
    refuse, troubles = refusing("System role not supported", "system"), iter(range(3))

    async def fault(request: Body, number: int) -> web.StreamResponse | None:
        refused = await refuse(request, number)
        in_trouble = not refused and next(troubles, None) is not None
        return web.Response(status=503) if in_trouble else refused

    with serving(Loopback(habit, fault=fault)) as server:
        run = measured(server, tmp_path)
    assert run.results.metrics["predicted_move_proportion"] == 1
    assert any("no system message" in sentence for sentence in run.notes)


def test_a_value_out_of_range_is_the_users_to_change(tmp_path: Path) -> None:
    message = "Invalid 'temperature': decimal above maximum value. Expected a value <= 2."
    fault = refusing(message, "hot")
    with (
        serving(Loopback(habit, fault=fault)) as server,
        pytest.raises(UserError, match="decimal above maximum value"),
    ):
        measured(server, tmp_path, temperature=5.0)


def test_a_content_filter_is_a_refusal(tmp_path: Path) -> None:
    async def fault(request: Body, _: int) -> web.Response | None:
        if moves_in(request) == POOL[3].moves:
            error = {"error": {"message": "filtered", "code": "content_filter"}}
            return web.json_response(error, status=400)
        return None

    with serving(Loopback(habit, fault=fault)) as server:
        run = measured(server, tmp_path)
    assert run.results.outcomes["standard"]["refused"] == 1
    assert run.results.metrics["n_failed"] == 0


def test_a_reply_in_parts_is_joined(tmp_path: Path) -> None:
    async def in_parts(request: Body, _: int) -> web.Response:
        completion = server.completion(request)
        text = completion["choices"][0]["message"]["content"]
        parts = [{"type": "text", "text": text[:2]}, {"type": "text", "text": text[2:]}]
        completion["choices"][0]["message"]["content"] = parts
        return web.Response(body=json.dumps(completion), content_type="application/json")

    with serving(Loopback(habit)) as server:
        server.fault = in_parts
        run = measured(server, tmp_path)
    assert run.results.metrics["predicted_move_proportion"] == 1


REFUSALS = {
    "max_completion_tokens": ["no max_tokens", "use max_completion_tokens"],
    "no temperature": ["Unsupported: temperature"],
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


OF_EFFORT = ["effort", "reasons", "thinking", "unrecognised", "unrecognized", "unknown", "extra x"]


@pytest.mark.parametrize("words", [*OF_EFFORT, "not permitted", "'low' is no value"])
def test_an_effort_that_is_refused_is_told_in_the_ways_that_are_left(words: str) -> None:
    assert forms(words, "a", reasoning_effort="low") == [("a", "effort as reasoning")]
    assert forms(words, "effort as reasoning", reasoning_effort="low") == forms(words) == []
    told = forms("effort", "effort as thinking", reasoning_effort="none")
    assert told == [("effort as reasoning",), ("effort as nothing",)]


def test_a_form_lays_out_the_turns_and_adds_its_room_to_the_limit() -> None:
    turns = tuple(Message(role, role) for role in ("system", "assistant", "user"))
    assert arrange_messages(turns, ("a",)) == turns
    assert [turn.role for turn in arrange_messages(turns, ("user first",))] == [
        "system",
        "user",
        "assistant",
        "user",
    ]
    assert [turn.role for turn in arrange_messages(turns, ("no system",))] == [
        "user",
        "assistant",
        "user",
    ]
    settings = Settings(max_tokens=16, reasoning_tokens=100)
    assert (limit_of((), settings), limit_of(("room to think: 50",), settings)) == (116, 66)


def test_every_concession_is_noted_and_named_as_in_the_protocol() -> None:
    protocol = Path(__file__).parents[2] / "docs" / "protocol.md"
    table = protocol.read_text(encoding="utf-8").partition("| concession |")[2].partition("\n\n")[0]
    names = re.findall(r"^\| `(.*?)` \|", table, re.M)
    assert names == [*REFUSALS, "room to think: N", "effort as W"]
    assert ASKED_ONCE == "asked once"
    assert len({*variant_notes([*REFUSALS, ASKED_ONCE])}) == 5
    rooms = ["room to think: 8000", "effort as b", "effort as a", "room to think: 1000"]
    assert variant_notes(rooms) == [
        "the model thinks before it replies: it was given 1,000 and then 8,000 tokens for that",
        "the effort was told by a",
        "the effort was told by b",
    ]
