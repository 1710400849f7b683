"""Adapter for every provider that Inspect AI reaches.

Retries belong to this package's client. The OpenAI and Anthropic SDK clients that Inspect AI
creates would also retry by themselves, unseen but billed, and time out after ten minutes.
"""

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    ContentReasoning,
    GenerateConfig,
    ModelOutput,
    ModelUsage,
    get_model,
)
from inspect_ai.model import Model as InspectModel
from pydantic import ValidationError

from ..errors import InvalidInput, UserError
from ..habits.base import Message
from ..habits.catalog import saved_change
from .access import Redactor
from .base import (
    Answer,
    Model,
    ModelInfo,
    Question,
    RequestRejected,
    Settings,
    TransientError,
    Usage,
)
from .catalog import BUILT_IN_MODELS, PROVIDERS
from .openai_api import (
    ACCESS_STATUSES,
    GATEWAY_TIMEOUT_STATUSES,
    MAX_RESPONSE_SECONDS,
    OUT_OF_TOKENS,
    OVERLOAD_STATUSES,
    REJECTED_STATUSES,
)
from .request_fields import (
    RENAMED_LIMIT,
    STOP_SEQUENCES,
    as_text,
    user_first,
)
from .responses import (
    MAX_REASONING,
    STOP_REASONS,
    plausible_count,
    split_reasoning,
    thinking_tokens,
)

_CLASSES = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}


def _answer_in(output: ModelOutput) -> Answer:
    """Convert Inspect's output to an answer.

    Raises:
        TransientError: if the output is empty or failed.
    """
    if output.error or not output.choices:
        raise TransientError(output.error or "a reply without choices", maybe_billed=True)
    if not output.completion and output.stop_reason == "unknown":
        raise TransientError("an empty reply that ended for an unknown reason", maybe_billed=True)
    content = output.choices[0].message.content
    parts = content if isinstance(content, list) else []
    blocks = [part for part in parts if isinstance(part, ContentReasoning)]
    shown = "\n".join(part.summary or "" if part.redacted else part.reasoning for part in blocks)
    reasoning, text = split_reasoning(output.completion)
    reasoning = shown.strip() or reasoning
    return Answer(
        text=text,
        stop_reason=STOP_REASONS.get(output.stop_reason, "stop"),
        usage=_usage(output.usage, reasoning, text),
        version=output.model,
        reasoning=reasoning[:MAX_REASONING],
    )


def _usage(usage: ModelUsage | None, reasoning: str, text: str) -> Usage:
    if not usage:
        return Usage()
    cached = (usage.input_tokens_cache_read or 0) + (usage.input_tokens_cache_write or 0)
    prompt = plausible_count(usage.input_tokens + cached)
    output = plausible_count(max(usage.output_tokens, usage.total_tokens - prompt))
    thinking = thinking_tokens(usage.reasoning_tokens or 0, output, reasoning, text)
    return Usage(prompt, output, thinking)


# What Inspect's providers raise for a malformed response body, such as one with null choices.
_BAD_BODY = (TypeError, LookupError, AttributeError, ValidationError)


class InspectAdapter(Model):
    """A model by way of Inspect AI, under its Inspect name."""

    def __init__(
        self, info: ModelInfo, model: InspectModel, name: str, headers: Iterable[str] = ()
    ) -> None:
        self.info = info
        self._model = model
        self._name = name
        self._redact = Redactor(model.api.api_key or "", *headers, shown=name)

    async def answer(self, question: Question, settings: Settings) -> Answer:
        """Send one request through Inspect."""
        chat = self._chat(question, settings.seed)
        try:
            output = await self._model.generate(chat, config=self._config(settings))
        except Exception as raised:  # every provider raises its own exceptions
            fault = _unwrap(raised)
            if OUT_OF_TOKENS.decode() in str(fault):
                return Answer(stop_reason="length")
            if isinstance(fault, _BAD_BODY):
                message = _plain(self._redact(str(fault)))
                raise TransientError(f"not a completion ({message})", maybe_billed=True) from None
            raise self._error(fault) from None
        return self._received(self._redact.in_answer(_answer_in(output)), chat, output)

    def _chat(self, question: Question, seed: int) -> list[ChatMessage]:
        """Return the messages for the model's provider, as Inspect's classes."""
        messages = question.messages
        as_without_inspect = self._name in BUILT_IN_MODELS or self._name.split("/")[0] in PROVIDERS
        if self.info.is_base:
            messages = (Message("user", as_text(messages)),)
        elif not as_without_inspect:
            messages = user_first(messages)
        chat = [_CLASSES[message.role](content=message.content) for message in messages]
        # For our own models, which need more than the text; other providers never see it.
        rules, item = saved_change(question.rules), question.item.to_json()
        chat[0].metadata = {"rules": rules, "item": item, "about": question.about, "seed": seed}
        return chat

    def _config(self, settings: Settings) -> GenerateConfig:
        """Return Inspect's configuration for the settings of a request."""
        extra, limit = json.loads(settings.extra_body or "{}"), settings.max_tokens
        if RENAMED_LIMIT in extra:
            extra, limit = extra | {RENAMED_LIMIT: limit}, None
        return GenerateConfig(
            max_tokens=limit,
            temperature=settings.temperature,
            stop_seqs=list(STOP_SEQUENCES) if self.info.is_base else None,
            reasoning_effort=settings.reasoning_effort,
            extra_body=extra or None,
        )

    def _error(self, fault: Exception) -> Exception:
        """Return a provider's exception as an error of `Model.answer`, or as it is.

        Here, only a rejection of the request is one.
        """
        if _status(fault) not in REJECTED_STATUSES:
            return fault
        words = f"{type(fault).__name__}: {fault}"
        return RequestRejected(f"{self._name} cannot answer ({self._redact(str(fault))})", words)

    def _received(self, answer: Answer, chat: list[ChatMessage], output: ModelOutput) -> Answer:
        """Return the answer, after taking note of it."""
        return answer


class HostedModel(InspectAdapter):
    """A hosted provider's model, by its Inspect name such as ``anthropic/claude-...``."""

    def __init__(self, info: ModelInfo, headers: Mapping[str, str]) -> None:
        name = info.name
        # for the clients that Inspect creates from now on, unless the user set it
        os.environ.setdefault("INSPECT_HTTP_REQUEST_TIMEOUT", str(MAX_RESPONSE_SECONDS))
        # The client retries and limits concurrency.
        config = GenerateConfig(
            max_retries=0, max_connections=1000, extra_headers=dict(headers) or None
        )
        try:
            model = get_model(name, config=config, memoize=False)  # so that `close` closes it
        except Exception as problem:  # an unknown name, a missing key or package
            raise InvalidInput(f"cannot use {name!r}: {_plain(str(problem))}") from None
        info = replace(info, endpoint=model.api.base_url or "")
        super().__init__(info, model, name, headers.values())
        client: Any = getattr(model.api, "client", None)
        if hasattr(client, "max_retries"):
            client.max_retries = 0

    async def close(self) -> None:
        """Close the provider's connections."""
        await self._model.api.aclose()

    def _error(self, fault: Exception) -> Exception:
        api, status = self._model.api, _status(fault)
        words = f"{type(fault).__name__}: {fault}"
        message = _plain(self._redact(words))
        refused = f"{self.info.name} cannot answer ({message})"
        if api.is_auth_failure(fault) or status in ACCESS_STATUSES:
            return UserError(f"the provider of {self.info.name} refuses the key ({message})")
        message_and_code = f"{message} {getattr(fault, 'code', '')}"
        if status in (402, 404) or "insufficient_quota" in message_and_code:
            return UserError(refused)
        decision = api.should_retry(fault)
        overloaded = status in OVERLOAD_STATUSES or getattr(decision, "kind", "") == "rate_limit"
        if decision or overloaded:
            # Without a status, the request may have been sent.
            return TransientError(
                message,
                retry_after=getattr(decision, "retry_after", None),
                overloaded=overloaded,
                maybe_billed=not isinstance(status, int) or status in GATEWAY_TIMEOUT_STATUSES,
            )
        return RequestRejected(refused, words if status in REJECTED_STATUSES else "")


def _status(fault: Exception) -> object:
    return getattr(fault, "status_code", None) or getattr(fault, "code", None)


def _plain(text: str) -> str:
    """Return a text as one line without Inspect's markup."""
    unmarked = re.sub(r"\[/?[a-z ]+\]", "", text).replace("ERROR: ", "")
    return " ".join(unmarked.split())[:400]


def _unwrap(fault: Exception) -> Exception:
    """Return the provider's exception, which Inspect and its retries may have wrapped."""
    cause = fault.__cause__
    is_wrapper = type(fault).__module__.startswith(("inspect_ai", "tenacity"))
    return _unwrap(cause) if is_wrapper and isinstance(cause, Exception) else fault
