"""Providers of Inspect AI: how their errors and outputs are read, and what they are sent.

The tests register a provider through the public API and script its behavior.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    modelapi,
)
from inspect_ai.tool import ToolChoice, ToolInfo

from cant_do_that_anymore.errors import InvalidInput, UserError
from cant_do_that_anymore.providers.base import Settings, TransientError, Usage
from cant_do_that_anymore.providers.catalog import parse_name
from testing import Loopback, ask

ROOT = Path(__file__).parents[2]
KEY = "sk-planted-0123456789"

Behavior = Callable[[list[ChatMessage]], ModelOutput]


class InvalidKey(Exception):
    status_code = 401


class Provider(ModelAPI):
    behavior: Behavior

    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        return Provider.behavior(input)


@modelapi("scripted")
def scripted() -> type[ModelAPI]:
    return Provider


def output_of(text: str, stop_reason: Any = "stop", tokens: int = 10) -> ModelOutput:
    message = ChatMessageAssistant(content=text)
    choice = ChatCompletionChoice(message=message, stop_reason=stop_reason)
    usage = ModelUsage(input_tokens=tokens, output_tokens=2, input_tokens_cache_read=5)
    return ModelOutput(model="scripted-1", choices=[choice], usage=usage)


@pytest.mark.parametrize(("reported", "counted"), [(10, 15), (-20, 0)])
def test_answers_with_usage_and_version(reported: int, counted: int) -> None:
    Provider.behavior = staticmethod(lambda *_: output_of("e7e5", tokens=reported))
    answer = ask(parse_name("scripted/m").load(), "e2e4")
    assert (answer.text, answer.version, answer.usage) == ("e7e5", "scripted-1", Usage(counted, 2))


def test_a_key_in_a_provider_error_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> ModelOutput:
        raise InvalidKey(f"Incorrect API key provided: {KEY}")

    Provider.behavior = staticmethod(refuse)
    monkeypatch.setattr(ModelAPI, "api_key", KEY, raising=False)
    monkeypatch.setattr(
        Provider, "__init__", lambda self, *_, **__: ModelAPI.__init__(self, "m", None, KEY)
    )
    with pytest.raises(UserError, match=r"Incorrect API key provided: \*\*\*"):
        ask(parse_name("scripted/m").load(), "e2e4")


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (ModelOutput(model="m", error="overrun"), "overrun"),
        (ModelOutput(model="m", choices=[]), "a reply without choices"),
        (output_of("", "unknown"), "ended for an unknown reason"),
    ],
)
def test_an_unusable_output_counts_as_possibly_billed(output: ModelOutput, message: str) -> None:
    Provider.behavior = staticmethod(lambda *_: output)
    with pytest.raises(TransientError, match=message) as error:
        ask(parse_name("scripted/m").load(), "e2e4")
    assert error.value.maybe_billed


@pytest.fixture
def loop(server: Loopback, monkeypatch: pytest.MonkeyPatch) -> Loopback:
    monkeypatch.setenv("LOOP_API_KEY", "test")
    monkeypatch.setenv("LOOP_BASE_URL", server.url)
    server.respond = lambda _: "e7e5"
    return server


def test_requests_to_a_chat_model_and_a_base_model(loop: Loopback) -> None:
    for name in ("openai-api/loop/m", "openai-api-completions/loop/m"):
        model = parse_name(name).load()
        ask(model, "e2e4", "e7e5", settings=Settings(0.0, model.info.max_tokens))
    chat, base = loop.requests
    roles = [message["role"] for message in chat["messages"]]
    assert roles == ["system", "user", "assistant", "user"]  # a user turn was added first
    assert base["prompt"].endswith("Assistant: e2e4\nUser: e7e5\nAssistant:")
    assert base["max_tokens"] == 4
    assert "User:" in base["stop"]


def test_the_timeout_is_half_an_hour(loop: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("INSPECT_HTTP_REQUEST_TIMEOUT", raising=False)
    model: Any = parse_name("openai-api/loop/m").load()
    assert model._model.api.client.timeout.read >= 1800


def test_an_unknown_provider_or_missing_key_gives_a_one_sentence_error() -> None:
    with pytest.raises(InvalidInput, match="cannot use 'nobody/m': Model API nobody"):
        parse_name("nobody/m").load()
    with pytest.raises(InvalidInput) as error:
        parse_name("anthropic/m").load()
    message = str(error.value)
    assert message.startswith("cannot use 'anthropic/m': ")
    assert "ANTHROPIC_API_KEY" in message or "pip install anthropic" in message
    assert all(mark not in message for mark in ("\n", "ERROR", "[bold"))


def test_missing_inspect_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "cant_do_that_anymore.providers.inspect_api", raising=False)
    monkeypatch.setitem(sys.modules, "inspect_ai.model", None)
    extras = {"anthropic": "anthropic", "openai/azure": "openai", "mistral": "inspect"}
    for provider, extra in extras.items():
        with pytest.raises(InvalidInput) as error:
            parse_name(f"{provider}/m").load()
        pip = f"pip install 'cant-do-that-anymore[{extra}]'"
        assert str(error.value) == f"{provider}/m needs Inspect AI: {pip}"
