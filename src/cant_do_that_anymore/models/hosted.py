"""Any provider that Inspect AI reaches, through its ``get_model(...).generate(...)``."""

import re

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    ModelOutput,
    get_model,
)

from ..errors import BadInput, Problem
from .layout import as_text, user_first
from .model import CHAT_TOKENS, Answer, Message, Passing, Question, Settings, StopReason, Usage

_TEXT_PROVIDER = "openai-api-completions"  # Inspect's way to base models: one user message
_STOP_REASONS: dict[str, StopReason] = {
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "refused",
}


class HostedModel:
    """A model of a hosted provider, by its Inspect name such as ``anthropic/claude-...``."""

    endpoint = ""
    connections = 16
    max_tokens = CHAT_TOKENS

    def __init__(self, name: str) -> None:
        self.name = name
        self._provider = name.split("/")[0]
        try:
            self._model = get_model(name, config=GenerateConfig(max_retries=0))
        except ValueError as problem:
            raise BadInput(
                f"unknown model: {name!r} ({problem}); write PROVIDER/MODEL as Inspect AI names "
                "it, or give --base-url"
            ) from None
        except Exception as problem:  # Inspect says by its own exceptions what is missing
            raise BadInput(f"cannot use {name!r}: {_plain(str(problem))}") from None

    async def answer(self, question: Question, settings: Settings) -> Answer:
        """Ask the provider once."""
        config = GenerateConfig(
            max_tokens=settings.max_tokens,
            temperature=settings.temperature,
            max_connections=1000,  # how many are in flight is for `asking` to say
        )
        try:
            output = await self._model.generate(
                self._conversation(question.messages), config=config
            )
        except Exception as fault:  # every provider raises exceptions of its own
            raise self._what_it_means(fault) from None
        if output.error:
            return Answer("", stop_reason="error", error=output.error)
        return _answer_in(output)

    async def close(self) -> None:
        """Close the provider's connections."""
        await self._model.api.aclose()

    def _conversation(self, messages: tuple[Message, ...]) -> list[ChatMessage]:
        if self._provider == _TEXT_PROVIDER:
            return [ChatMessageUser(content=as_text(messages))]
        kinds = {
            "system": ChatMessageSystem,
            "user": ChatMessageUser,
            "assistant": ChatMessageAssistant,
        }
        return [kinds[message.role](content=message.content) for message in user_first(messages)]

    def _what_it_means(self, fault: Exception) -> Exception:
        status = getattr(fault, "status_code", None) or getattr(fault, "code", None)
        message = _plain(f"{type(fault).__name__}: {fault}")
        decision = self._model.api.should_retry(fault)
        if not decision or status in (400, 401, 403, 404):
            return Problem(f"{self.name} cannot answer ({message})")
        rate_limited = status in (429, 529) or getattr(decision, "kind", "") == "rate_limit"
        retry_after = getattr(decision, "retry_after", None)
        return Passing(message, retry_after=retry_after, overloaded=rate_limited)


def _answer_in(output: ModelOutput) -> Answer:
    usage = output.usage
    if usage:
        cached = (usage.input_tokens_cache_read or 0) + (usage.input_tokens_cache_write or 0)
        tokens = Usage(usage.input_tokens + cached, usage.output_tokens)
    else:
        tokens = Usage()
    return Answer(
        text=output.completion,
        stop_reason=_STOP_REASONS.get(output.stop_reason, "stop"),
        usage=tokens,
        version=output.model,
    )


def _plain(text: str) -> str:
    """One line without Inspect's markup."""
    return " ".join(re.sub(r"\[/?[a-z ]+\]|ERROR: ?", "", text).split())[:400]
