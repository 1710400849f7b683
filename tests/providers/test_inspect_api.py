"""Providers of Inspect AI: what they raise and return, as what it means here.

A provider is registered in the public way and does what the test says.
"""

import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

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

from cant_do_that_anymore import Spec, evaluate
from cant_do_that_anymore.client import client
from cant_do_that_anymore.errors import InvalidInput, UserError
from cant_do_that_anymore.game.position import shipped_pool, write_positions
from cant_do_that_anymore.providers.catalogue import EXTRAS, model_named
from cant_do_that_anymore.runs.results import Run
from cant_do_that_anymore.task.types import Outcome
from players import SPECIAL

ROOT = Path(__file__).parents[2]
KEY = "sk-planted-0123456789"
POOL = shipped_pool("pool")[:4]

Behaviour = Callable[[int, list[ChatMessage]], ModelOutput]


class ProviderError(Exception):
    def __init__(self, status_code: int, message: str = "the provider's words") -> None:
        super().__init__(message)
        self.status_code = status_code


class Provider(ModelAPI):
    behaviour: Behaviour
    calls = 0

    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        Provider.calls += 1
        return Provider.behaviour(Provider.calls, input)

    def should_retry(self, ex: Exception) -> bool:
        return isinstance(ex, ProviderError) and ex.status_code in (408, 429, 500, 503)


@modelapi("scripted")
def scripted() -> type[ModelAPI]:
    return Provider


def said(text: str, stop_reason: str = "stop") -> ModelOutput:
    choice = ChatCompletionChoice(
        message=ChatMessageAssistant(content=text),
        stop_reason=stop_reason,  # type: ignore[arg-type]
    )
    usage = ModelUsage(input_tokens=10, output_tokens=2, input_tokens_cache_read=5)
    return ModelOutput(model="scripted-1", choices=[choice], usage=usage)


def habit(messages: list[ChatMessage]) -> ModelOutput:
    turns = [message.text for message in messages if message.role != "system"]
    moves = tuple(turn for turn in turns if len(turn) <= 5)
    return said(SPECIAL[moves])


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(client, "FIRST_WAIT", 0.001)
    monkeypatch.setattr(client, "LONGEST_WAIT", 0.01)
    Provider.calls = 0
    yield


def measured(behaviour: Behaviour, folder: Path) -> Run:
    Provider.behaviour = staticmethod(behaviour)
    write_positions(folder / "positions.jsonl", POOL)
    spec = Spec(
        model="scripted/m",
        dataset=folder / "positions.jsonl",
        max_connections=1,
        max_error_rate=0.5,
    )
    return evaluate(spec, quiet=True)


def test_answers_with_usage_and_version(tmp_path: Path) -> None:
    run = measured(lambda _, messages: habit(messages), tmp_path)
    assert run.results.metrics["predicted_move_proportion"] == 1
    assert run.version == "scripted-1"
    assert run.results.metrics["usage_prompt_tokens"] == 15 * 8
    assert run.results.metrics["usage_cached_tokens"] == 5 * 8
    assert run.results.metrics["usage_completion_tokens"] == 2 * 8


@pytest.mark.parametrize("status", [408, 429, 500, 503, 529])
def test_a_passing_fault_is_retried(status: int, tmp_path: Path) -> None:
    def behaviour(call: int, messages: list[ChatMessage]) -> ModelOutput:
        if call in (1, 4):
            raise ProviderError(status)
        return habit(messages)

    assert measured(behaviour, tmp_path).results.metrics["n_samples"] == 4
    assert Provider.calls == 8 + 2


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_one_sentence_at_once(status: int, tmp_path: Path) -> None:
    def behaviour(call: int, messages: list[ChatMessage]) -> ModelOutput:
        if call == 3:
            raise ProviderError(status, "invalid x-api-key")
        return habit(messages)

    with pytest.raises(
        UserError, match=r"the provider of scripted/m refuses the key .*invalid x-ap"
    ):
        measured(behaviour, tmp_path)
    assert Provider.calls == 3


def test_a_key_that_the_provider_repeats_is_not_repeated_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def behaviour(call: int, messages: list[ChatMessage]) -> ModelOutput:
        raise ProviderError(401, f"Incorrect API key provided: {KEY}")

    monkeypatch.setattr(ModelAPI, "api_key", KEY, raising=False)
    monkeypatch.setattr(
        Provider, "__init__", lambda self, *_, **__: ModelAPI.__init__(self, "m", None, KEY)
    )
    with pytest.raises(UserError) as problem:
        measured(behaviour, tmp_path)
    assert "Incorrect API key provided: ***" in str(problem.value)


@pytest.mark.parametrize("status", [400, 404, 422])
def test_a_refusal_of_the_very_first_question_ends_the_run(status: int, tmp_path: Path) -> None:
    def behaviour(call: int, messages: list[ChatMessage]) -> ModelOutput:
        raise ProviderError(status, "no such model")

    with pytest.raises(UserError, match=r"scripted/m cannot answer \(.*no such model"):
        measured(behaviour, tmp_path)
    assert Provider.calls == 1


def test_a_refusal_of_one_question_is_an_error_of_that_question(tmp_path: Path) -> None:
    def behaviour(call: int, messages: list[ChatMessage]) -> ModelOutput:
        if call == 3:
            raise ProviderError(400, "this prompt trips our filter")
        return habit(messages)

    run = measured(behaviour, tmp_path)
    assert run.results.metrics["n_failed"] == 1
    assert "this prompt trips our filter" in run.samples[1].answers["standard"].error


def test_an_empty_account_is_not_waited_for(tmp_path: Path) -> None:
    def behaviour(call: int, messages: list[ChatMessage]) -> ModelOutput:
        raise ProviderError(429, "code: insufficient_quota")

    with pytest.raises(UserError, match="insufficient_quota"):
        measured(behaviour, tmp_path)
    assert Provider.calls == 1


@pytest.mark.parametrize(
    ("stop_reason", "outcome"),
    [
        ("max_tokens", "truncated"),
        ("model_length", "truncated"),
        ("content_filter", "refused"),
        ("stop", "unreadable"),
        ("unknown", "unreadable"),
    ],
)
def test_a_reply_without_a_move_is_what_its_end_says(
    stop_reason: str, outcome: Outcome, tmp_path: Path
) -> None:
    run = measured(lambda *_: said("well,", stop_reason), tmp_path)
    assert run.results.outcomes["standard"][outcome] == 4


def test_an_unknown_provider_or_a_missing_key_is_one_sentence() -> None:
    with pytest.raises(InvalidInput, match="unknown model: 'nobody/m'"):
        model_named("nobody/m")
    with pytest.raises(InvalidInput) as problem:
        model_named("anthropic/m")
    sentence = str(problem.value)
    assert sentence.startswith("cannot use 'anthropic/m': ")
    assert "ANTHROPIC_API_KEY" in sentence or "[anthropic]" in sentence
    assert all(mark not in sentence for mark in ("\n", "ERROR", "[bold"))


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [
        ("anthropic/m", "anthropic", "anthropic"),
        ("google/m", "google.genai", "google"),
        ("openai-api/some/m", "openai", "openai"),
    ],
)
def test_a_missing_package_is_told_with_the_extra_that_brings_it(
    name: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InvalidInput) as problem:
        model_named(name)
    assert str(problem.value).endswith(f"pip install 'cant-do-that-anymore[{extra}]'")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    inspect, needed, *_ = project["optional-dependencies"][extra]
    assert inspect == "cant-do-that-anymore[inspect]"
    assert EXTRAS[needed.partition(">")[0]] == extra


@pytest.mark.parametrize(
    ("name", "extra"),
    [("anthropic/m", "anthropic"), ("openai/azure/m", "openai"), ("mistral/m", "inspect")],
)
def test_so_is_inspect_itself(name: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "cant_do_that_anymore.providers.inspect_api", raising=False)
    monkeypatch.setitem(sys.modules, "inspect_ai.model", None)
    with pytest.raises(InvalidInput) as problem:
        model_named(name)
    needs = f"{name} needs Inspect AI: pip install 'cant-do-that-anymore[{extra}]'"
    assert str(problem.value) == needs
