"""What a server is sent through Inspect's OpenAI-compatible providers."""

import asyncio
from collections.abc import Iterator

import pytest

from cant_do_that_anymore.models.hosted import HostedModel
from cant_do_that_anymore.models.model import Answer, Settings
from loopback import Loopback, serving
from questions import question


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    with serving(Loopback(lambda _: "e7e5", model="someone-1")) as server:
        monkeypatch.setenv("LOOP_API_KEY", "test")
        monkeypatch.setenv("LOOP_BASE_URL", server.url)
        yield server


def answer(name: str, *moves: str) -> Answer:
    async def asked() -> Answer:
        model = HostedModel(name)
        settings = Settings(0.0, model.max_tokens)
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
