"""Chain of thought for any model: one request to reason, one for the move."""

from dataclasses import replace

from .base import (
    Answer,
    Message,
    Model,
    ModelInfo,
    Question,
    RequestVariant,
    Settings,
    TransientError,
)
from .request_variants import ASKED_ONCE, with_user_turn

THINKING_TOKENS = 1024

THINK = (
    "Before you reply, think aloud, step by step, about the position and the rules of this game. "
    "What you write now is for yourself only and is not your reply."
)
CONCLUDE = "Now give your reply, in exactly the form that was asked for."


def with_chain_of_thought(inner: ModelInfo, thinking_tokens: int = THINKING_TOKENS) -> ModelInfo:
    """Return what is known about a model with chain of thought.

    It has its own name and versions, since its moves may differ from those of the model without
    chain of thought, and no provider, so that it gets no dataset of that model.
    """
    prefix = "cot" if thinking_tokens == THINKING_TOKENS else f"cot-{thinking_tokens}"
    name = f"{prefix}/{inner.name}"
    thinking = {"thinking_tokens": thinking_tokens, "think": THINK, "conclude": CONCLUDE}
    return replace(
        inner,
        name=name,
        identity={**inner.identity, **thinking},
        provider="",
        may_reason=False,  # until the inner model turns out to be a reasoning model
        thinking_tokens=thinking_tokens,
    )


class ChainOfThought(Model):
    """A model with chain of thought: one request for the reasoning, one for the reply."""

    def __init__(self, inner: Model, thinking_tokens: int = THINKING_TOKENS) -> None:
        self.info = with_chain_of_thought(inner.info, thinking_tokens)
        self._inner = inner
        self._prefix = self.info.name.partition("/")[0]

    async def answer(
        self, question: Question, settings: Settings, variant: RequestVariant = ()
    ) -> Answer:
        """Send two requests, for the reasoning and the reply; one if it is a reasoning model."""
        if ASKED_ONCE in variant:
            self.info = replace(self.info, may_reason=True)
            reply = await self._inner.answer(question, settings, variant)
            return replace(reply, version=f"{self._prefix}/{reply.version}")
        reasoning_prompt = with_user_turn(question.messages, THINK)
        longer = replace(settings, max_tokens=max(self.info.thinking_tokens, settings.max_tokens))
        reasoning = await self._inner.answer(
            replace(question, messages=reasoning_prompt), longer, variant
        )
        silent = reasoning.stop_reason == "length" and not reasoning.text.strip()
        if self._inner.info.may_reason and (reasoning.has_reasoning or silent):
            return await self.answer(question, settings, (*variant, ASKED_ONCE))
        turn = Message("assistant", reasoning.text.strip() or "...")  # some reject an empty turn
        conclude = with_user_turn((*reasoning_prompt, turn), CONCLUDE)
        try:
            reply = await self._inner.answer(
                replace(question, messages=conclude), settings, variant
            )
        except TransientError as fault:
            fault.maybe_billed = True  # the reasoning was
            raise
        usage = reasoning.usage + reply.usage
        return replace(
            reply,
            reasoning=reasoning.text,
            usage=replace(usage, thinking_tokens=reasoning.usage.output_tokens),
            version=f"{self._prefix}/{reply.version}",
        )

    async def fingerprints(self) -> dict[str, str]:
        """Return what identifies the inner model's weights."""
        return await self._inner.fingerprints()

    async def warnings(self) -> list[str]:
        """Return the warnings of the inner model."""
        return await self._inner.warnings()

    async def close(self) -> None:
        """Close the inner model's connections."""
        await self._inner.close()
