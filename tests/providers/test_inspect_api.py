"""Providers of Inspect AI: what they are sent, and what they need."""

import sys
from typing import Any

import pytest

from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.providers.base import Settings
from cant_do_that_anymore.providers.catalog import parse_name
from testing import Loopback, ask


def test_requests_to_a_chat_model_and_a_base_model(
    server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOOP_API_KEY", "test")
    monkeypatch.setenv("LOOP_BASE_URL", server.url)
    monkeypatch.delenv("INSPECT_HTTP_REQUEST_TIMEOUT", raising=False)
    for name in ("openai-api/loop/m", "openai-api-completions/loop/m"):
        model: Any = parse_name(name).load()
        ask(model, "e2e4", "e7e5", settings=Settings(0.0, model.info.max_tokens))
        assert model._model.api.client.timeout.read >= 1800
    chat, base = server.requests
    roles = [message["role"] for message in chat["messages"]]
    assert roles == ["system", "user", "assistant", "user"]  # a user turn was added first
    assert base["prompt"].endswith("Assistant: e2e4\nUser: e7e5\nAssistant:")
    assert base["max_tokens"] == 4
    assert "User:" in base["stop"]


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
