"""Chain of thought for any model: one request to reason, one for the move."""

from dataclasses import replace

from ..habits.base import Message, with_user_turn
from .base import (
    Answer,
    Model,
    ModelInfo,
    Question,
    RequestRejected,
    Settings,
    TransientError,
)
from .request_fields import ASKED_ONCE

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
        thinking_tokens=thinking_tokens,
    )


class ChainOfThought(Model):
    """A model with chain of thought: one request for the reasoning, one for the reply.

    A model that reasons by itself is asked once, and not to reason aloud.
    """

    def __init__(self, inner: Model, thinking_tokens: int = THINKING_TOKENS) -> None:
        self.info = with_chain_of_thought(inner.info, thinking_tokens)
        self._inner = inner
        self._prefix = self.info.name.partition("/")[0]
        self._reasons_by_itself = False
        # Reasoning that waits for its reply, whose request failed.
        self._kept: dict[tuple[tuple[Message, ...], Settings], Answer] = {}

    async def answer(self, question: Question, settings: Settings) -> Answer:
        """Send two requests, for the reasoning and the reply; one if it is a reasoning model."""
        if self._reasons_by_itself:
            reply = await self._inner.answer(question, settings)
            return replace(reply, version=self._version(reply), adjustments=(ASKED_ONCE,))
        thinking = with_user_turn(question.messages, THINK)
        to_think = replace(settings, max_tokens=self.info.thinking_tokens)
        reasoning = self._kept.pop((thinking, to_think), None) or await self._inner.answer(
            replace(question, messages=thinking), to_think
        )
        if self._inner.info.may_reason and reasoning.shows_reasoning:
            self._reasons_by_itself = True
            return await self.answer(question, settings)
        turn = Message("assistant", reasoning.text.strip() or "...")  # some reject an empty turn
        conclude = replace(question, messages=with_user_turn((*thinking, turn), CONCLUDE))
        try:
            reply = await self._inner.answer(conclude, settings)
        except (TransientError, RequestRejected):
            self._kept[thinking, to_think] = reasoning
            raise
        usage = reasoning.usage + reply.usage
        return replace(
            reply,
            reasoning=reasoning.text,
            usage=replace(usage, thinking_tokens=reasoning.usage.output_tokens),
            version=self._version(reply),
        )

    def _version(self, reply: Answer) -> str:
        return f"{self._prefix}/{reply.version}"

    async def warnings(self) -> list[str]:
        """Return the warnings of the inner model."""
        return await self._inner.warnings()

    async def close(self) -> None:
        """Close the inner model's connections."""
        await self._inner.close()
