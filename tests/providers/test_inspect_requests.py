"""What a server is sent through Inspect's OpenAI-compatible providers."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from aiohttp import web

from cant_do_that_anymore.errors import UserError
from cant_do_that_anymore.providers.base import Answer, Settings, TransientError
from cant_do_that_anymore.providers.catalogue import model_named
from faults import FAULTS
from loopback import Body, Loopback, serving
from questions import question


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    with serving(Loopback(lambda _: "e7e5", model="someone-1")) as server:
        monkeypatch.setenv("LOOP_API_KEY", "test")
        monkeypatch.setenv("LOOP_BASE_URL", server.url)
        yield server


def answer(name: str, *moves: str) -> Answer:
    async def asked() -> Answer:
        model = model_named(f"inspect/{name}")
        settings = Settings(0.0, model.info.max_tokens)
        try:
            return await model.answer(question(moves), settings)
        finally:
            await model.close()

    return asyncio.run(asked())


def test_conversation_starts_with_the_user_when_white_is_to_move(server: Loopback) -> None:
    answer("openai-api/loop/someone", "e2e4", "e7e5")
    roles = [message["role"] for message in server.requests[0]["messages"]]
    assert roles == ["system", "user", "assistant", "user"]


def test_base_model_gets_one_text_four_tokens_and_a_stop(server: Loopback) -> None:
    answer("openai-api-completions/loop/someone", "e2e4")
    request = server.requests[0]
    assert request["prompt"].endswith("User: e2e4\nAssistant:")
    assert request["max_tokens"] == 4
    assert "User:" in request["stop"]


def test_model_can_be_asked_again_after_it_was_closed(server: Loopback) -> None:
    assert answer("openai-api/loop/someone", "e2e4") == answer("openai-api/loop/someone", "e2e4")


@pytest.mark.parametrize(
    ("fault", "maybe_billed"),
    [
        ("HTTP 408", True),
        ("HTTP 429", False),
        ("HTTP 500", False),
        ("reset", True),
        ("cut off", True),
        ("silence", True),
        ("no JSON", True),
        ("no choice", True),
        ("choices of null", True),
        ("a 200 with an error body", True),
        ("an error beside a choice", True),
    ],
)
def test_a_provider_is_asked_once_and_what_may_have_been_answered_is_known(
    fault: str, maybe_billed: bool, server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client would ask three times, and tell nobody."""

    async def failing(request: Body, number: int) -> web.StreamResponse | None:
        return FAULTS[fault]()

    server.fault = failing
    monkeypatch.setenv("INSPECT_HTTP_REQUEST_TIMEOUT", "0.5")
    with pytest.raises(TransientError) as passing:
        answer("openai-api/loop/someone", "e2e4")
    assert len(server.requests) == 1
    assert passing.value.maybe_billed == maybe_billed


def test_an_empty_account_is_known_by_the_code_of_the_fault(server: Loopback) -> None:
    """The client's exception holds the word as a code, not in its text."""
    error = {"message": "Add a card", "type": "billing", "code": "insufficient_quota"}

    async def broke(request: Body, number: int) -> web.StreamResponse | None:
        return web.json_response({"error": error}, status=429)

    server.fault = broke
    with pytest.raises(UserError, match="Add a card"):
        answer("openai-api/loop/someone", "e2e4")
    assert len(server.requests) == 1


def test_a_server_that_is_not_there_was_asked_nothing(server: Loopback) -> None:
    with serving(Loopback(lambda _: "e7e5")) as gone:
        pass
    with pytest.MonkeyPatch.context() as patch, pytest.raises(TransientError) as passing:
        patch.setenv("LOOP_BASE_URL", gone.url)
        answer("openai-api/loop/someone", "e2e4")
    assert not passing.value.maybe_billed


def test_a_provider_may_think_for_half_an_hour(
    server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("INSPECT_HTTP_REQUEST_TIMEOUT", raising=False)
    model: Any = model_named("openai-api/loop/someone")
    client = model._model.api.client
    assert client.timeout.read >= 1800
