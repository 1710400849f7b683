"""Any provider that Inspect AI reaches, through its ``get_model(...).generate(...)``."""

import re
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from inspect_ai.model import (
    ChatMessage,
    GenerateConfig,
    Model,
    ModelAPI,
    ModelCall,
    ModelOutput,
    get_model,
)
from pydantic import ValidationError

from ..errors import InvalidInput, UserError
from .clients import ask_once, own_fault, wait_long, was_sent
from .concessions import NO_TEMPERATURE
from .hiding import Hiding
from .inspected import answer_in, as_chat, config_for, layout_for, takes_text
from .model import CHAT_TOKENS, Answer, Form, Passing, Question, Refused, Settings
from .names import inspect_identity
from .providers import EXTRAS
from .replies import is_error
from .server import (
    BASE_MODEL_TOKENS,
    FORM_REFUSED,
    GATEWAY_GAVE_UP,
    OVERLOADED,
    UNFINISHED,
)

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
        self._hiding = Hiding(
            self._model.api.api_key or "", *self._headers.values(), shown=self.name
        )
        self._version = self.name.partition("/")[2]
        ask_once(self._model.api)
        watch_calls(self._model.api)
        self.identity = inspect_identity(name, tag=tag)

    async def answer(self, question: Question, settings: Settings, form: Form = ()) -> Answer:
        """Ask the provider once."""
        config = config_for(self.name, settings, form)
        config.max_connections = 1000  # how many are in flight is for `asking` to say
        config.extra_headers = self._headers or None
        messages = layout_for(self.name, question.messages, form)
        try:
            answer, output = await said_by(self._model, as_chat(messages), config, form)
        except Passing:
            raise
        except Exception as fault:  # every provider raises exceptions of its own
            raise self._fault(own_fault(fault)) from None
        if not output:
            return replace(answer, version=self._version)
        answer = self._hiding.in_answer(answer)
        self._version = answer.version
        return answer

    async def close(self) -> None:
        """Close the provider's connections."""
        await self._model.api.aclose()

    def _fault(self, fault: Exception) -> Passing | UserError | Refused:
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
            return Passing(
                message, retry_after=retry_after, overloaded=overloaded, maybe_billed=maybe_billed
            )
        refused = f"{self.name} cannot answer ({message})"
        if out_of_money or status == 404:
            return UserError(refused)
        return Refused(refused, refusal_in(fault))


_CALLS: ContextVar[list[ModelCall]] = ContextVar("calls")
"""What passed between us and providers for the question that is being asked."""


async def said_by(
    model: Model, chat: list[ChatMessage], config: GenerateConfig, form: Form
) -> tuple[Answer, ModelOutput | None]:
    """What a model whose calls are watched says when Inspect asks it once, put in that form.

    There is no output of one whose thoughts took all tokens.

    Raises:
        Passing: if a fault comes in the shape of an answer.
        Exception: whatever the provider raises otherwise.
    """
    calls: list[ModelCall] = []
    _CALLS.set(calls)
    try:
        output = await model.generate(chat, config=config)
    except Exception as fault:
        if _is_unfinished(fault):
            return Answer("", stop_reason="length", conceded=form), None
        if isinstance(own_fault(fault), _BAD_BODY):
            raise Passing(f"no completion ({own_fault(fault)})", maybe_billed=True) from None
        raise
    try:
        answer = answer_in(output)
    except ValueError as fault:
        raise Passing(f"a reply that cannot be: {fault}", maybe_billed=True) from None
    if answer.error or (calls and is_error(calls[-1].response or {})):
        raise Passing(answer.error or "the provider calls it an error", maybe_billed=True)
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
    return UNFINISHED.decode() in str(own_fault(fault))


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
