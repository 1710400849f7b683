"""What passes between Inspect AI and us: settings, conversations, and what a model said."""

import json
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
)

from .concessions import NO_SYSTEM, NO_TEMPERATURE, RENAMED_LIMIT, effort_way, laid_out, limit_of
from .efforts import BY_EFFORT, ways_of
from .layout import STOP_SEQUENCES, as_text, user_first
from .model import Answer, Form, Message, Settings, StopReason, Usage
from .names import OUR_MODELS, TEXT_PROVIDER
from .providers import PROVIDERS
from .thoughts import thinking_tokens, without_thoughts

_STOP_REASONS: dict[str, StopReason] = {
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "refused",
}


def takes_text(name: str) -> bool:
    """Whether the model of that name is a base model."""
    return name.split("/")[0] == TEXT_PROVIDER


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
        stop_seqs=list(STOP_SEQUENCES) if takes_text(name) else None,
        reasoning_effort=effort,
        reasoning_tokens=settings.reasoning_tokens,
        extra_body=extra or None,
    )


def layout_for(name: str, messages: tuple[Message, ...], form: Form = ()) -> tuple[Message, ...]:
    """The conversation as the provider of that model takes it, in that form."""
    if takes_text(name):
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
    thinking = thinking_tokens(counts, output, thoughts, text)
    return Usage(asked, output, thinking, usage.input_tokens_cache_read or 0)
