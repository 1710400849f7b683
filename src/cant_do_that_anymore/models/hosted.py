"""Any provider that Inspect AI reaches, through its ``get_model(...).generate(...)``."""

import json
import re
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
    ModelAPI,
    ModelOutput,
    ModelUsage,
    get_model,
)

from ..errors import BadInput, Problem
from .clients import ask_once, own_fault, wait_long, was_sent
from .concessions import NO_SYSTEM, NO_TEMPERATURE, RENAMED_LIMIT, effort_way, laid_out, limit_of
from .efforts import BY_EFFORT, ways_of
from .layout import STOP_SEQUENCES, as_text, user_first
from .model import (
    CHAT_TOKENS,
    Answer,
    Form,
    Message,
    Passing,
    Question,
    Refused,
    Settings,
    StopReason,
    Usage,
)
from .names import OUR_MODELS, PROVIDERS, TEXT_PROVIDER, inspect_identity
from .server import (
    BASE_MODEL_TOKENS,
    FORM_REFUSED,
    GATEWAY_GAVE_UP,
    OVERLOADED,
    SHORTEST_SECRET,
    UNFINISHED,
)
from .thoughts import thinking_tokens, without_thoughts

_STOP_REASONS: dict[str, StopReason] = {
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "refused",
}


class HostedModel:
    """A model of a hosted provider, by its Inspect name such as ``anthropic/claude-...``."""

    connections = 16

    def __init__(self, name: str, base_url: str | None = None, **model_args: Any) -> None:
        self.name = name
        self.provider = name.split("/")[0]
        self.max_tokens = BASE_MODEL_TOKENS if _takes_text(name) else CHAT_TOKENS
        self.may_think = not _takes_text(name)
        wait_long()
        try:
            self._model = get_model(
                name,
                config=GenerateConfig(max_retries=0),
                base_url=base_url,
                memoize=False,  # it is closed when it was asked enough
                **model_args,
            )
        except ValueError as problem:
            raise BadInput(
                f"unknown model: {name!r} ({problem}); write PROVIDER/MODEL as Inspect AI names "
                "it, or give --base-url"
            ) from None
        except Exception as problem:  # Inspect says by its own exceptions what is missing
            raise BadInput(f"cannot use {name!r}: {_plain(str(problem))}") from None
        self.endpoint = self._model.api.base_url or ""
        self._version = self.name.partition("/")[2]
        ask_once(self._model.api)
        _watch_requests(self._model.api)
        self.identity = inspect_identity(name, base_url, model_args)

    async def answer(self, question: Question, settings: Settings, form: Form = ()) -> Answer:
        """Ask the provider once."""
        config = config_for(self.name, settings, form)
        config.max_connections = 1000  # how many are in flight is for `asking` to say
        messages = layout_for(self.name, question.messages, form)
        sent: list[object] = []
        _SENT.set(sent)
        try:
            output = await self._model.generate(as_chat(messages), config=config)
        except Exception as fault:  # every provider raises exceptions of its own
            if is_unfinished(fault):
                return Answer("", stop_reason="length", version=self._version, conceded=form)
            raise self._fault(own_fault(fault)) from None
        answer = answer_in(output)
        if answer.error:
            raise Passing(answer.error, given_up=True)
        self._version = answer.version
        dropped = config.temperature is not None and sent and not _has_temperature(sent[-1])
        return replace(answer, conceded=(*form, NO_TEMPERATURE) if dropped else form)

    async def close(self) -> None:
        """Close the provider's connections."""
        await self._model.api.aclose()

    def _fault(self, fault: Exception) -> Passing | Problem | Refused:
        """What an exception means."""
        api = self._model.api
        status = _status(fault)
        words = f"{type(fault).__name__}: {fault}"
        key = api.api_key or ""
        message = _plain(words.replace(key, "***") if len(key) >= SHORTEST_SECRET else words)
        if api.is_auth_failure(fault) or status in (401, 403):
            return Problem(f"the provider of {self.name} refuses the key ({message})")
        decision = api.should_retry(fault)
        overloaded = status in OVERLOADED or getattr(decision, "kind", "") == "rate_limit"
        out_of_money = status == 402 or "insufficient_quota" in message
        if (decision or overloaded) and not out_of_money:
            retry_after = getattr(decision, "retry_after", None)
            answered = isinstance(status, int)
            given_up = status in GATEWAY_GAVE_UP if answered else was_sent(fault)
            return Passing(
                message, retry_after=retry_after, overloaded=overloaded, given_up=given_up
            )
        refused = f"{self.name} cannot answer ({message})"
        if out_of_money or status == 404:
            return Problem(refused)
        return Refused(refused, refusal_in(fault))


_SENT: ContextVar[list[object]] = ContextVar("sent")
"""What providers sent for the question that is being asked."""


def _watch_requests(api: ModelAPI) -> None:
    """Note what is really sent: some providers leave settings out and only log that they do."""
    generate = api.generate

    async def noting(*args: Any, **kwargs: Any) -> Any:
        result = await generate(*args, **kwargs)
        if isinstance(result, tuple) and (sent := _SENT.get(None)) is not None:
            sent.append(result[1].request)
        return result

    api.generate = noting  # type: ignore[method-assign]


def _has_temperature(request: object) -> bool:
    """Whether it holds a temperature at any depth."""
    if isinstance(request, dict):
        return "temperature" in request or any(map(_has_temperature, request.values()))
    return False


def config_for(name: str, settings: Settings, form: Form = ()) -> GenerateConfig:
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
        stop_seqs=list(STOP_SEQUENCES) if _takes_text(name) else None,
        reasoning_effort=effort,
        reasoning_tokens=settings.reasoning_tokens,
        extra_body=extra or None,
    )


def layout_for(name: str, messages: tuple[Message, ...], form: Form = ()) -> tuple[Message, ...]:
    """The conversation as the provider of that model takes it, in that form."""
    if _takes_text(name):
        return (Message("user", as_text(messages)),)
    messages = laid_out(messages, form)
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
    return Usage(asked, output, thinking_tokens(counts, output, thoughts, text))


def is_unfinished(fault: Exception) -> bool:
    """Whether it only says that thoughts took all tokens."""
    return UNFINISHED.decode() in str(own_fault(fault))


def refusal_in(fault: Exception) -> str:
    """The words in which a provider refuses the form of a question; "" if it does not."""
    return f"{type(fault).__name__}: {fault}" if _status(fault) in FORM_REFUSED else ""


def _status(fault: Exception) -> object:
    return getattr(fault, "status_code", None) or getattr(fault, "code", None)


def _takes_text(name: str) -> bool:
    return name.split("/")[0] == TEXT_PROVIDER


def _plain(text: str) -> str:
    """One line without Inspect's markup."""
    unmarked = re.sub(r"\[/?[a-z ]+\]", "", text).replace("ERROR: ", "")
    return " ".join(unmarked.split())[:400]
