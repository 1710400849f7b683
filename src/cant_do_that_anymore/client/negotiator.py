"""Find the request variant that a model accepts, and remember it.

Models differ in the parameters they accept, and their names say little. So the negotiator learns
from rejections and answers. It switches to another variant when the model rejects the usual one
twice, accepts the other, and then rejects the usual one again. A model that is seen to reason gets
a reasoning budget. A reply that is cut off may be unmarked reasoning, so one such request is sent
again with a budget (the probe), unless other replies end within the usual limit.
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

# How often the reasoning budget is raised for answers that are still cut off.
MAX_BUDGET_RAISES = 3
# Seconds after which the first probe is given up, if no other request is open that could decide.
LONE_PROBE_TIMEOUT = 60.0

# Sends one request in a variant, or in the current one for None.
AskWith = Callable[[RequestVariant | None], Awaitable[Answer]]


class VariantStore(Protocol):
    """Remembers the request variant that a model accepts."""

    def variant(self, settings: Settings) -> RequestVariant:
        """Return the request variant that the model accepts, as far as known."""

    def set_variant(self, settings: Settings, variant: RequestVariant) -> None:
        """Use that request variant from now on."""


class Negotiator:
    """Negotiates the request variant of one model.

    Attributes:
        probe_started: set once a request has been sent again to see whether the model reasons.
    """

    def __init__(self, model: Model, store: VariantStore) -> None:
        self._model = model
        self._store = store
        self._negotiating = asyncio.Lock()
        self._has_answered = False
        self.probe_started = asyncio.Event()
        self._probe_decided = asyncio.Event()
        self._timeout: float | None = LONE_PROBE_TIMEOUT
        self._open = 0
        self._raises_left = MAX_BUDGET_RAISES

    async def answer(
        self, question: Question, settings: Settings, wanted: RequestVariant | None = None
    ) -> Answer:
        """Send one request, or more if the model accepts only another variant.

        The variant is the current one, unless ``wanted`` is given.

        Raises:
            TransientError, UserError: as the model does.
        """
        variant = self._store.variant(settings) if wanted is None else wanted
        try:
            return await self._ask(question, settings, variant)
        except RequestRejected as rejected:
            if not any(fallbacks(rejected.server_message, variant, settings)):
                return self._failed_answer(rejected)
        async with self._negotiating:  # one request negotiates; the others use the result
            variant = self._store.variant(settings) if wanted is None else wanted
            return await self._find_accepted(question, settings, variant, learn=wanted is None)

    async def _ask(self, question: Question, settings: Settings, variant: RequestVariant) -> Answer:
        answer = await self._model.answer(question, settings, variant)
        self._has_answered = True
        if answer.conceded != variant:  # the model adapter left something out
            self._store.set_variant(settings, answer.conceded)
        return answer

    async def _find_accepted(
        self, question: Question, settings: Settings, usual: RequestVariant, *, learn: bool
    ) -> Answer:
        """Return an answer in a variant that the model accepts, trying the usual one first.

        A transient rejection does not happen twice, and a variant that is also rejected is no
        fallback. With ``learn``, later requests use the variant that was accepted.
        """
        try:
            return await self._ask(question, settings, usual)
        except RequestRejected as rejection:
            first_rejection = rejection
        rejections, tried = [(usual, first_rejection)], {frozenset(usual)}
        transient: TransientError | None = None
        for variant, rejected in rejections:
            for fallback in fallbacks(rejected.server_message, variant, settings):
                if frozenset(fallback) in tried:
                    continue
                tried.add(frozenset(fallback))
                try:
                    answer = await self._ask(question, settings, fallback)
                except RequestRejected as rejected_again:
                    rejections.append((fallback, rejected_again))
                    continue
                except TransientError as error:
                    transient = error
                    continue
                try:
                    return await self._ask(question, settings, usual)  # the rejection was transient
                except RequestRejected:
                    if learn:
                        self._store.set_variant(settings, fallback)
                    return answer
        if transient:  # a server in trouble has rejected no variant: retry later
            raise transient
        return self._failed_answer(first_rejection)

    def _failed_answer(self, rejected: RequestRejected) -> Answer:
        if not self._has_answered:
            raise UserError(str(rejected))
        return Answer("", stop_reason="error", error=str(rejected))

    async def ask_until_accepted(self, ask: AskWith, settings: Settings) -> Answer:
        """Send a request in the current variant, then in others while the answer calls for them.

        Raises:
            InvalidInput: if the model reasons although every variant told it not to.
        """
        self._open += 1
        try:
            answer = await ask(None)
            self.observe(answer, settings)
            if self.probe_started.is_set() and _is_cut_off_text(answer):
                await self._probe_decided.wait()
            while variant := self._next_variant(answer, settings):
                again = await self._ask_again(ask, variant, answer, settings)
                picked = self._pick_answer(answer, again, settings, requested=variant)
                if picked is answer or set(picked.conceded) == set(answer.conceded):
                    return picked
                answer = picked
            return answer
        finally:
            self._open -= 1

    def observe(self, answer: Answer, settings: Settings) -> None:
        """Learn from an answer, new or cached, that the model replies within the usual limit."""
        if not reasoning_budget(answer.conceded, settings) and _is_short_reply(answer):
            self._probe_decided.set()

    async def _ask_again(
        self, ask: AskWith, variant: RequestVariant, before: Answer, settings: Settings
    ) -> Answer:
        """Send a request in another variant; a probe ends when another reply has decided."""
        had_budget = reasoning_budget(before.conceded, settings) > 0
        if had_budget or not _is_cut_off_text(before) or self._probe_decided.is_set():
            return await ask(variant)
        probe = asyncio.ensure_future(ask(variant))
        decided = asyncio.ensure_future(self._probe_decided.wait())
        try:
            while not (probe.done() or decided.done()):
                await asyncio.wait(
                    (probe, decided), timeout=self._timeout, return_when=asyncio.FIRST_COMPLETED
                )
                if self._open == 1 and not probe.done():
                    self.probe_started.clear()  # a later reply that is cut off is probed again
                    self._timeout = None
                    return before
            return probe.result() if probe.done() else before
        finally:
            if self.probe_started.is_set():
                self._probe_decided.set()
            probe.cancel()
            decided.cancel()

    def _next_variant(self, answer: Answer, settings: Settings) -> RequestVariant | None:
        """Return another variant for the same request, if the answer calls for one."""
        variant, current = answer.conceded, self._store.variant(settings)
        if not self._model.info.may_reason or answer.stop_reason == "error":
            return None
        cut_off, reasons = answer.stop_reason == "length", _reasons(answer)
        if settings.reasoning_effort == "none":
            return self._without_reasoning(variant, settings) if reasons else None
        if settings.reasoning_tokens is not None:
            return None
        if budget := reasoning_budget(variant, settings):
            may_raise = cut_off and budget <= DEFAULT_REASONING_TOKENS and self._raises_left > 0
            larger = with_reasoning_budget(variant, REASONING_GROWTH * budget)
            return larger if may_raise else None
        with_budget = current
        if not reasoning_budget(current, settings):
            with_budget = with_reasoning_budget(current, DEFAULT_REASONING_TOKENS)
        if reasons and not cut_off:
            self._store.set_variant(settings, with_budget)
        if not cut_off:
            return None
        if not reasons and with_budget != current:  # perhaps unmarked reasoning
            if self.probe_started.is_set() or self._probe_decided.is_set():
                return None
            self.probe_started.set()
        return with_budget

    def _pick_answer(
        self, before: Answer, after: Answer, settings: Settings, *, requested: RequestVariant
    ) -> Answer:
        """Return the answer that counts; the second is in the variant the first called for.

        The model may have accepted only a smaller budget than was asked.
        """
        budget = reasoning_budget(before.conceded, settings)
        if after.stop_reason == "error":  # the larger budget was our choice: a text stands
            return before if budget or _is_cut_off_text(before) else after
        if settings.reasoning_effort == "none":
            if not _reasons(after):
                self._store.set_variant(settings, after.conceded)
            return after
        if not (_reasons(before) or after.has_reasoning):
            return before  # long text, but no reasoning
        if after.stop_reason == "length":
            self._raises_left -= budget > 0
        if after.stop_reason != "length" or set(after.conceded) != set(requested):
            self._store.set_variant(settings, after.conceded)
        return after

    def _without_reasoning(self, variant: RequestVariant, settings: Settings) -> RequestVariant:
        for alternative in later_effort_encodings(variant, settings):
            return alternative
        raise InvalidInput(
            f"{self._model.info.name} reasons despite --reasoning-effort none, however it is "
            "sent; use the model's own setting with --extra-body, or leave out "
            "--reasoning-effort"
        )


def _is_short_reply(answer: Answer) -> bool:
    """Whether the answer is a reply that ended by itself, without reasoning."""
    return answer.stop_reason == "stop" and bool(answer.text.strip()) and not _reasons(answer)


def _is_cut_off_text(answer: Answer) -> bool:
    """Whether the answer was cut off in a text that is not marked as reasoning."""
    return answer.stop_reason == "length" and not _reasons(answer)


def _reasons(answer: Answer) -> bool:
    """Whether the model reasoned first: visibly, or by using all tokens before any text."""
    return answer.has_reasoning or (answer.stop_reason == "length" and not answer.text.strip())
