"""Find the request variant that a model accepts, and remember it.

Models differ in what they take, and names say little: so it is learnt from what they refuse and
from what they answer. A concession is made when the usual form is refused twice, another is taken,
and the usual one is refused after that still. A model that is seen to think gets room for that.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from ..errors import InvalidInput, UserError
from ..providers.base import (
    DEFAULT_REASONING_TOKENS,
    Answer,
    Model,
    Question,
    RequestRejected,
    RequestVariant,
    Settings,
    TransientError,
)
from ..providers.request_variants import (
    REASONING_GROWTH,
    fallbacks,
    later_effort_encodings,
    reasoning_budget,
    with_reasoning_budget,
)

RAISES = 3
"""So many times more room is tried for a reply that is cut off all the same."""

AskIn = Callable[[RequestVariant | None], Awaitable[Answer]]
"""Asks one question in a form, or in the one that is known."""


class VariantStore(Protocol):
    """Where it is kept what was learnt."""

    def form(self, settings: Settings) -> RequestVariant:
        """The form in which the model wants its questions, as far as known."""

    def set_variant(self, settings: Settings, form: RequestVariant) -> None:
        """Use that form from now on."""


class Negotiator:
    """The forms in which one model is asked."""

    def __init__(self, model: Model, memory: VariantStore) -> None:
        self._model = model
        self._memory = memory
        self._learning = asyncio.Lock()
        self._has_answered = False
        self._probe: asyncio.Event | None = None
        self._raises_left = RAISES

    async def answer(
        self, question: Question, settings: Settings, wanted: RequestVariant | None = None
    ) -> Answer:
        """Ask once, or again at once if the model wants the question in another form.

        The form is the one that is known, unless another is wanted.

        Raises:
            Passing, Problem: as the model does.
        """
        form = self._memory.form(settings) if wanted is None else wanted
        try:
            return await self._ask(question, settings, form)
        except RequestRejected as refused:
            if not any(fallbacks(refused.words, form, settings)):
                return self._given_up(refused)
        async with self._learning:  # what one question teaches, the others need not find out
            form = self._memory.form(settings) if wanted is None else wanted
            return await self._learnt(question, settings, form)

    async def _ask(self, question: Question, settings: Settings, form: RequestVariant) -> Answer:
        answer = await self._model.answer(question, settings, form)
        self._has_answered = True
        if answer.conceded != form:  # what was left out on the way
            self._memory.set_variant(settings, answer.conceded)
        return answer

    async def _learnt(
        self, question: Question, settings: Settings, usual: RequestVariant
    ) -> Answer:
        """The answer in a form that the model takes, by trying; the usual form again first.

        What is refused in passing is not refused twice, and a form that is not taken either is no
        remedy.
        """
        try:
            return await self._ask(question, settings, usual)
        except RequestRejected as fault:
            first = fault
        open_ends, tried = [(usual, first)], {frozenset(usual)}
        trouble: TransientError | None = None
        for known, refused in open_ends:
            for other in fallbacks(refused.words, known, settings):
                if frozenset(other) in tried:
                    continue
                tried.add(frozenset(other))
                try:
                    answer = await self._ask(question, settings, other)
                except RequestRejected as again:
                    open_ends.append((other, again))
                    continue
                except TransientError as passing:
                    trouble = passing
                    continue
                try:
                    return await self._ask(
                        question, settings, usual
                    )  # it was in passing, after all
                except RequestRejected:
                    self._memory.set_variant(settings, other)
                    return answer
        if trouble:  # a server in trouble has refused no form: it is to be asked again later
            raise trouble
        return self._given_up(first)

    def _given_up(self, refused: RequestRejected) -> Answer:
        if not self._has_answered:
            raise UserError(str(refused))
        return Answer("", stop_reason="error", error=str(refused))

    async def ask_until_accepted(self, ask: AskIn, settings: Settings) -> Answer:
        """Ask in the form that is known, and in others while an answer shows that they are needed.

        Raises:
            InvalidInput: if the model thinks and was told in every way not to.
        """
        answer = await ask(None)
        if self._probe and _is_prose(answer):
            await self._probe.wait()
        while form := self._next_variant(answer, settings):
            try:
                again = await ask(form)
            finally:
                if self._probe:
                    self._probe.set()
            settled = self._pick_answer(answer, again, settings)
            if settled is answer or set(settled.conceded) == set(answer.conceded):
                return settled
            answer = settled
        return answer

    def _next_variant(self, answer: Answer, settings: Settings) -> RequestVariant | None:
        """Another form to ask the same question in, if the answer shows that it is needed."""
        form, known = answer.conceded, self._memory.form(settings)
        if not self._model.may_think or answer.stop_reason == "error":
            return None
        cut_off, thinks = answer.stop_reason == "length", _thinks(answer)
        if settings.reasoning_effort == "none":
            return self._without_thinking(form, settings) if thinks else None
        room = reasoning_budget(form, settings)
        if room:
            raised = (
                cut_off and settings.reasoning_tokens is None and room <= DEFAULT_REASONING_TOKENS
            )
            return (
                with_reasoning_budget(form, REASONING_GROWTH * room)
                if raised and self._raises_left
                else None
            )
        if settings.reasoning_tokens is not None:
            return None
        roomy = (
            known
            if reasoning_budget(known, settings)
            else with_reasoning_budget(known, DEFAULT_REASONING_TOKENS)
        )
        if thinks and not cut_off:
            self._memory.set_variant(settings, roomy)
        if not cut_off:
            return None
        if not thinks and roomy != known:  # perhaps thoughts that nothing marks as such
            if self._probe:
                return None
            self._probe = asyncio.Event()
        return roomy

    def _pick_answer(self, before: Answer, after: Answer, settings: Settings) -> Answer:
        """Which of two answers counts, the second in the form that the first called for."""
        room = reasoning_budget(before.conceded, settings)
        if after.stop_reason == "error":  # more room was our own idea where there is an answer
            return before if room or _is_prose(before) else after
        if settings.reasoning_effort == "none":
            if not _thinks(after):
                self._memory.set_variant(settings, after.conceded)
            return after
        if not (_thinks(before) or after.is_thoughtful):
            return before  # it talks much, and does not think
        if after.stop_reason == "length":
            self._raises_left -= room > 0
        else:
            self._memory.set_variant(settings, after.conceded)
        return after

    def _without_thinking(self, form: RequestVariant, settings: Settings) -> RequestVariant:
        for other in later_effort_encodings(form, settings):
            return other
        raise InvalidInput(
            f"{self._model.name} thinks although --reasoning-effort none was asked for, in every "
            "way that is known; say it in the model's own way by --extra-body, or leave it out"
        )


def _is_prose(answer: Answer) -> bool:
    """Whether it was cut off in a text that nothing marks as thoughts."""
    return answer.stop_reason == "length" and not _thinks(answer)


def _thinks(answer: Answer) -> bool:
    """Whether it thought first: it shows that, or has spent all tokens before the first word."""
    return answer.is_thoughtful or (answer.stop_reason == "length" and not answer.text.strip())
