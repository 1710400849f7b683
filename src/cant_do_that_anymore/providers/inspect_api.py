"""Adapter for every provider that Inspect AI reaches."""

import json
import re
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    ContentReasoning,
    GenerateConfig,
    Model,
    ModelAPI,
    ModelCall,
    ModelOutput,
    ModelUsage,
    get_model,
)
from pydantic import ValidationError

from ..errors import InvalidInput, UserError
from .base import (
    CHAT_TOKENS,
    Answer,
    Message,
    Question,
    RequestRejected,
    RequestVariant,
    Settings,
    StopReason,
    TransientError,
    Usage,
)
from .catalogue import EXTRAS, OUR_MODELS, PROVIDERS, TEXT_PROVIDER, inspect_identity
from .http import disable_client_retries, unwrap_error, wait_long, was_sent
from .openai_api import BASE_MODEL_TOKENS, FORM_REFUSED, GATEWAY_GAVE_UP, OVERLOADED, UNFINISHED
from .redact import Redactor
from .request_variants import (
    BY_EFFORT,
    NO_SYSTEM,
    NO_TEMPERATURE,
    RENAMED_LIMIT,
    STOP_SEQUENCES,
    arrange_messages,
    as_text,
    effort_way,
    limit_of,
    user_first,
    ways_of,
)
from .responses import is_error, thinking_tokens, without_thoughts

_STOP_REASONS: dict[str, StopReason] = {
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "refused",
}


def takes_text(name: str) -> bool:
    """Whether the model of that name is a base model."""
    return name.split("/")[0] == TEXT_PROVIDER


def config_for(name: str, settings: Settings, form: RequestVariant = ()) -> GenerateConfig:
    """The settings as Inspect takes them for the model of that name, in that form."""
    extra: dict[str, Any] = json.loads(settings.extra_body or "{}")
    effort, way = settings.reasoning_effort, effort_way(form, settings)
    if effort and way != BY_EFFORT:  # Inspect has no word for it
        extra = ways_of(effort)[way] | extra
        effort = None
    limit: int | None = limit_of(form, settings)
    if RENAMED_LIMIT in form:
        extra, limit = extra | {RENAMED_LIMIT: limit}, None
    return GenerateConfig(
        max_tokens=limit,
        temperature=None if NO_TEMPERATURE in form else settings.temperature,
        stop_seqs=list(STOP_SEQUENCES) if takes_text(name) else None,
        reasoning_effort=effort,
        reasoning_tokens=settings.reasoning_tokens,
        extra_body=extra or None,
    )


def layout_for(
    name: str, messages: tuple[Message, ...], form: RequestVariant = ()
) -> tuple[Message, ...]:
    """The conversation as the provider of that model takes it, in that form."""
    if takes_text(name):
        return (Message("user", as_text(messages)),)
    messages = arrange_messages(messages, form)
    if name in OUR_MODELS or name.split("/")[0] in PROVIDERS or NO_SYSTEM in form:
        return messages  # as when they are asked without Inspect
    return user_first(messages)


def as_chat(messages: tuple[Message, ...]) -> list[ChatMessage]:
    """Messages as Inspect's."""
    kinds = {
        "system": ChatMessageSystem,
        "user": ChatMessageUser,
        "assistant": ChatMessageAssistant,
    }
    return [kinds[message.role](content=message.content) for message in messages]


def answer_in(output: ModelOutput) -> Answer:
    """What a model said to Inspect, as an answer; a fault is no answer whatever it looks like."""
    fault = output.error or ("" if output.choices else "a reply without choices")
    if not fault and not output.completion and output.stop_reason == "unknown":
        fault = "an empty reply that ended for an unknown reason"
    if fault:
        return Answer("", stop_reason="error", error=fault)
    content = output.choices[0].message.content
    parts = content if isinstance(content, list) else []
    told = [part for part in parts if isinstance(part, ContentReasoning)]
    shown = "\n".join(part.summary or "" if part.redacted else part.reasoning for part in told)
    thoughts, text = without_thoughts(output.completion)
    thoughts = shown.strip() or thoughts
    return Answer(
        text=text,
        stop_reason=_STOP_REASONS.get(output.stop_reason, "stop"),
        usage=_usage(output.usage, thoughts, text),
        version=output.model,
        reasoning=thoughts,
    )


def _usage(usage: ModelUsage | None, thoughts: str, text: str) -> Usage:
    if not usage:
        return Usage(thinking_tokens=thinking_tokens({}, 0, thoughts, text))
    cached = (usage.input_tokens_cache_read or 0) + (usage.input_tokens_cache_write or 0)
    asked = usage.input_tokens + cached
    output = max(usage.output_tokens, usage.total_tokens - asked)
    counts = {"reasoning_tokens": usage.reasoning_tokens}
    thinking = thinking_tokens(counts, output, thoughts, text)
    return Usage(asked, output, thinking, usage.input_tokens_cache_read or 0)


_PACKAGE = re.compile(rf"pip install (?:--upgrade )?({'|'.join(EXTRAS)})\b(?!=)")
_BAD_BODY = (TypeError, LookupError, AttributeError, ValidationError)
"""What providers raise over a body that is no completion, such as choices of null."""


class HostedModel:
    """A model of a hosted provider, by its Inspect name such as ``anthropic/claude-...``."""

    connections = 16

    def __init__(
        self, name: str, *, tag: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.provider = name.split("/")[0]
        self.max_tokens = BASE_MODEL_TOKENS if takes_text(name) else CHAT_TOKENS
        self.may_think = not takes_text(name)
        wait_long()
        try:
            self._model = get_model(
                name,
                config=GenerateConfig(max_retries=0),
                memoize=False,  # it is closed when it was asked enough
            )
        except ValueError as problem:
            raise InvalidInput(
                f"unknown model: {name!r} ({problem}); write PROVIDER/MODEL as Inspect AI names "
                "it, or give --base-url"
            ) from None
        except Exception as problem:  # Inspect says by its own exceptions what is missing
            told = _PACKAGE.sub(_extra, _plain(str(problem)))
            raise InvalidInput(f"cannot use {name!r}: {told}") from None
        self.endpoint = self._model.api.base_url or ""
        self._headers = dict(headers or {})
        self._hiding = Redactor(
            self._model.api.api_key or "", *self._headers.values(), shown=self.name
        )
        self._version = self.name.partition("/")[2]
        disable_client_retries(self._model.api)
        watch_calls(self._model.api)
        self.identity = inspect_identity(name, tag=tag)

    async def answer(
        self, question: Question, settings: Settings, form: RequestVariant = ()
    ) -> Answer:
        """Ask the provider once."""
        config = config_for(self.name, settings, form)
        config.max_connections = 1000  # how many are in flight is for the client to say
        config.extra_headers = self._headers or None
        messages = layout_for(self.name, question.messages, form)
        try:
            answer, output = await said_by(self._model, as_chat(messages), config, form)
        except TransientError:
            raise
        except Exception as fault:  # every provider raises exceptions of its own
            raise self._fault(unwrap_error(fault)) from None
        if not output:
            return replace(answer, version=self._version)
        answer = self._hiding.in_answer(answer)
        self._version = answer.version
        return answer

    async def close(self) -> None:
        """Close the provider's connections."""
        await self._model.api.aclose()

    def _fault(self, fault: Exception) -> TransientError | UserError | RequestRejected:
        """What an exception means."""
        api = self._model.api
        status = _status(fault)
        words = f"{type(fault).__name__}: {fault}"
        message = _plain(self._hiding(words))
        if api.is_auth_failure(fault) or status in (401, 403):
            return UserError(f"the provider of {self.name} refuses the key ({message})")
        decision = api.should_retry(fault)
        overloaded = status in OVERLOADED or getattr(decision, "kind", "") == "rate_limit"
        told = f"{message} {getattr(fault, 'code', '')}"
        out_of_money = status == 402 or "insufficient_quota" in told
        if (decision or overloaded) and not out_of_money:
            retry_after = getattr(decision, "retry_after", None)
            answered = isinstance(status, int)
            maybe_billed = status in GATEWAY_GAVE_UP if answered else was_sent(fault)
            return TransientError(
                message, retry_after=retry_after, overloaded=overloaded, maybe_billed=maybe_billed
            )
        refused = f"{self.name} cannot answer ({message})"
        if out_of_money or status == 404:
            return UserError(refused)
        return RequestRejected(refused, refusal_in(fault))


_CALLS: ContextVar[list[ModelCall]] = ContextVar("calls")
"""What passed between us and providers for the question that is being asked."""


async def said_by(
    model: Model, chat: list[ChatMessage], config: GenerateConfig, form: RequestVariant
) -> tuple[Answer, ModelOutput | None]:
    """What a model whose calls are watched says when Inspect asks it once, put in that form.

    There is no output of one whose thoughts took all tokens.

    Raises:
        TransientError: if a fault comes in the shape of an answer.
        Exception: whatever the provider raises otherwise.
    """
    calls: list[ModelCall] = []
    _CALLS.set(calls)
    try:
        output = await model.generate(chat, config=config)
    except Exception as fault:
        if _is_unfinished(fault):
            return Answer("", stop_reason="length", conceded=form), None
        if isinstance(unwrap_error(fault), _BAD_BODY):
            raise TransientError(
                f"no completion ({unwrap_error(fault)})", maybe_billed=True
            ) from None
        raise
    try:
        answer = answer_in(output)
    except ValueError as fault:
        raise TransientError(f"a reply that cannot be: {fault}", maybe_billed=True) from None
    if answer.error or (calls and is_error(calls[-1].response or {})):
        raise TransientError(answer.error or "the provider calls it an error", maybe_billed=True)
    asked_for = config.temperature is not None and calls
    dropped = asked_for and not _has_temperature(calls[-1].request)
    return replace(answer, conceded=(*form, NO_TEMPERATURE) if dropped else form), output


def watch_calls(api: ModelAPI) -> None:
    """Note what is really sent and what comes back.

    Some providers leave settings out and only log that they do, or pass over errors.
    """
    generate = api.generate
    if hasattr(generate, "watched"):
        return

    async def noting(*args: Any, **kwargs: Any) -> Any:
        result = await generate(*args, **kwargs)
        if isinstance(result, tuple) and (calls := _CALLS.get(None)) is not None:
            calls.append(result[1])
        return result

    noting.watched = True  # type: ignore[attr-defined]
    api.generate = noting  # type: ignore[method-assign]


def _has_temperature(request: object) -> bool:
    """Whether it holds a temperature at any depth."""
    if isinstance(request, dict):
        return "temperature" in request or any(map(_has_temperature, request.values()))
    return False


def _is_unfinished(fault: Exception) -> bool:
    """Whether it only says that thoughts took all tokens."""
    return UNFINISHED.decode() in str(unwrap_error(fault))


def refusal_in(fault: Exception) -> str:
    """The words in which a provider refuses the form of a question; "" if it does not."""
    return f"{type(fault).__name__}: {fault}" if _status(fault) in FORM_REFUSED else ""


def _status(fault: Exception) -> object:
    return getattr(fault, "status_code", None) or getattr(fault, "code", None)


def _extra(found: re.Match[str]) -> str:
    return f"pip install 'cant-do-that-anymore[{EXTRAS[found[1]]}]'"


def _plain(text: str) -> str:
    """One line without Inspect's markup."""
    unmarked = re.sub(r"\[/?[a-z ]+\]", "", text).replace("ERROR: ", "")
    return " ".join(unmarked.split())[:400]
