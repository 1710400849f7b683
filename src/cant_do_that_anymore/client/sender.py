"""Send requests in the form that one model accepts, as its answers and rejections show.

A server's first request has room for reasoning, and the first answers show whether that is needed.
A reply that is cut off while the model reasons raises the limit for good. What a rejection names is
left out, renamed or made smaller, and the request is sent again.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf

from ..errors import InvalidInput
from ..providers.base import (
    REASONING_TOKENS,
    REPLY_TOKENS,
    Adjustments,
    Answer,
    Model,
    Question,
    RequestRejected,
    Settings,
)
from ..providers.request_fields import (
    ASKED_ONCE,
    LEAST_LIMIT,
    RENAMED_LIMIT,
    SMALLER_LIMIT,
    adjusted,
    is_about_limit,
    named_limit,
    with_adjustments,
)
from .pricing import CHARACTERS_PER_TOKEN, rough_tokens

# A rejection that passes within this time changes nothing.
SECONDS_BEFORE_REPEAT = 0.2
# A prompt has at most so many times its rough number of tokens.
MAX_ROUGH_FACTOR = 2


@dataclass(frozen=True)
class Form:
    """The form of requests that a model accepts.

    Attributes:
        adjustments: what is left out or sent differently.
        context: the tokens that the server grants for a prompt and its reply.
    """

    adjustments: Adjustments = ()
    context: float = inf


class Sender:
    """Sends requests to one model, and learns its token limit and its form for one command.

    Attributes:
        limit: the token limit of a reply that the answers settled; None before that.
    """

    def __init__(self, model: Model, limit: int | None = None) -> None:
        self._model = model
        self.limit = model.info.max_tokens or limit
        self._form = Form()

    def wanted(self, settings: Settings, tokens: int = 0) -> int:
        """Return the token limit to request: the user's or what was learned, or the request's."""
        return max(settings.max_tokens or self.limit or REASONING_TOKENS, tokens)

    async def send(self, question: Question, settings: Settings, tokens: int = 0) -> Answer:
        """Send one request, and again in another form if the model rejects it twice.

        A form is learned once it is accepted. A rejection that does not happen twice says nothing.

        Raises:
            RequestRejected: if no form is accepted.
            TransientError, UserError: as the model does.
        """
        base_tokens = question.rules.its_habit.base_tokens if self._model.info.is_base else 0
        wanted = self.wanted(settings, max(tokens, 0 if settings.max_tokens else base_tokens))
        form, changed = self._form, None
        prompt = MAX_ROUGH_FACTOR * rough_tokens(question.messages)
        while True:
            limit = int(min(wanted, max(LEAST_LIMIT, form.context - prompt)))
            sent = replace(settings, max_tokens=limit)
            try:
                answer = await self._answer(*with_adjustments(question, sent, form.adjustments))
                break
            except RequestRejected as rejected:
                form = changed = _next_form(form, rejected, limit, prompt)
        if changed:
            self._form = changed
        smaller = (SMALLER_LIMIT,) if limit < wanted else ()
        made = (*form.adjustments, *answer.adjustments, *smaller)
        answer = replace(answer, limit=limit, adjustments=made)
        return _first_line_of(answer) if base_tokens else answer

    async def _answer(self, question: Question, settings: Settings) -> Answer:
        """Send a request, and the same again if it is rejected: that may pass."""
        with suppress(RequestRejected):
            return await self._model.answer(question, settings)
        await asyncio.sleep(SECONDS_BEFORE_REPEAT)
        return await self._model.answer(question, settings)

    def learn(self, answer: Answer, settings: Settings) -> bool:
        """Learn the token limit from an answer.

        Returns whether the limit rose, so that replies that were cut off below it are asked again.

        Raises:
            InvalidInput: if the model reasons although it was told not to.
        """
        if settings.reasoning_effort == "none" and answer.has_reasoning:
            raise InvalidInput(
                f"{self._model.info.name} reasons despite --reasoning-effort none; turn it off as "
                "its server does, for example with --extra-body "
                """'{"chat_template_kwargs": {"enable_thinking": false}}'"""
            )
        if settings.max_tokens or self._model.info.max_tokens:
            return False
        chain_of_thought = self._model.info.thinking_tokens > 0
        asked_to_reason = chain_of_thought and ASKED_ONCE not in answer.adjustments
        by_itself = answer.ended_in_reasoning and not asked_to_reason
        if by_itself and not _had_room(answer, REASONING_TOKENS):
            self.limit = REASONING_TOKENS
            return True
        if self.limit is None:
            self.limit = _settled_limit(answer, asked_to_reason=asked_to_reason)
        return False

    def is_too_short(self, answer: Answer, settings: Settings, tokens: int = 0) -> bool:
        """Whether an answer was cut off below the limit that is known now."""
        cut_off = answer.stop_reason == "length"
        return cut_off and not _had_room(answer, self.wanted(settings, tokens))


def _first_line_of(answer: Answer) -> Answer:
    """Return an answer without what follows its first line."""
    line, end, _ = answer.text.lstrip().partition("\n")
    return replace(answer, text=line, stop_reason="stop") if end else answer


def _had_room(answer: Answer, limit: int) -> bool:
    """Whether a reply had so many tokens, or as many as the server grants."""
    return answer.limit >= limit or SMALLER_LIMIT in answer.adjustments


def _settled_limit(answer: Answer, *, asked_to_reason: bool) -> int | None:
    """Return the limit that the first answers show to be enough; None if one shows nothing."""
    if answer.has_reasoning and not asked_to_reason:
        return REASONING_TOKENS
    usage = answer.usage
    reasoning = usage.thinking_tokens if asked_to_reason else 0
    tokens = usage.output_tokens - reasoning or len(answer.text) // CHARACTERS_PER_TOKEN
    is_short = answer.stop_reason == "stop" and answer.text.strip() and tokens <= REPLY_TOKENS
    return REPLY_TOKENS if is_short else None


def _next_form(form: Form, rejected: RequestRejected, limit: int, prompt: int) -> Form:
    """Return the form to try after a rejection of this token limit.

    Raises:
        RequestRejected: the same, if there is none.
    """
    message = rejected.server_message
    context = named_limit(message, limit)
    # A lower number is the length of the prompt.
    if form.context == inf and context and context > prompt:
        return replace(form, context=context)
    may_halve = is_about_limit(message) and limit > LEAST_LIMIT
    more = adjusted(message, form.adjustments)
    if more and not (may_halve and more[-1] == RENAMED_LIMIT):
        return Form(more)  # the number was about something else, or is named again
    if may_halve:
        return replace(form, context=prompt + max(LEAST_LIMIT, limit // 2))
    raise rejected
