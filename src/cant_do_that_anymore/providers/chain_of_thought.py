"""Chain of thought for any model: one request to reason, one for the move."""

from collections.abc import Mapping
from dataclasses import replace

from .base import Answer, Message, Model, ModelInfo, Question, RequestVariant, Settings
from .request_variants import ASKED_ONCE, with_user_turn

THINKING_TOKENS = 1024

THINK = (
    "Before you reply, think aloud, step by step, about the position and the rules of this game. "
    "What you write now is for yourself only and is not your reply."
)
CONCLUDE = "Now give your reply, in exactly the form that was asked for."


class Thinker:
    """Information about a model with chain of thought.

    It has its own name and versions, since its moves may differ from those of the model without
    chain of thought.
    """

    provider = ""  # so that no dataset of the inner model is used for this one

    def __init__(self, inner: ModelInfo, thinking_tokens: int = THINKING_TOKENS) -> None:
        self.prefix = "cot" if thinking_tokens == THINKING_TOKENS else f"cot-{thinking_tokens}"
        self.name = f"{self.prefix}/{inner.name}"
        self.endpoint = inner.endpoint
        self.connections = inner.connections
        self.max_tokens = inner.max_tokens
        self.thinking_tokens = thinking_tokens
        self.may_think = False  # until the inner model turns out to be a reasoning model
        self._inner_info = inner

    @property
    def identity(self) -> Mapping[str, object]:
        """The inner model's identity, with the token limit and prompts of the chain of thought."""
        thinking = {"thinking_tokens": self.thinking_tokens, "think": THINK, "conclude": CONCLUDE}
        return {**self._inner_info.identity, **thinking}


class ThinkingModel(Thinker):
    """A model with chain of thought: one request for the reasoning, one for the reply."""

    def __init__(self, inner: Model, thinking_tokens: int = THINKING_TOKENS) -> None:
        super().__init__(inner, thinking_tokens)
        self.inner = inner

    async def answer(
        self, question: Question, settings: Settings, variant: RequestVariant = ()
    ) -> Answer:
        """Send two requests, for the reasoning and the reply; one if it is a reasoning model."""
        if ASKED_ONCE in variant:
            self.may_think = True
            reply = await self.inner.answer(question, settings, variant)
            return replace(reply, version=f"{self.prefix}/{reply.version}")
        think_prompt = with_user_turn(question.messages, THINK)
        longer = replace(settings, max_tokens=max(self.thinking_tokens, settings.max_tokens))
        reasoning = await self.inner.answer(
            replace(question, messages=think_prompt), longer, variant
        )
        silent = reasoning.stop_reason == "length" and not reasoning.text.strip()
        if self._inner_info.may_think and (reasoning.is_thoughtful or silent):
            return await self.answer(question, settings, (*variant, ASKED_ONCE))
        turn = Message("assistant", reasoning.text.strip() or "...")  # some reject an empty turn
        conclude = with_user_turn((*think_prompt, turn), CONCLUDE)
        reply = await self.inner.answer(replace(question, messages=conclude), settings, variant)
        usage = reasoning.usage + reply.usage
        return replace(
            reply,
            reasoning=reasoning.text,
            usage=replace(usage, thinking_tokens=reasoning.usage.output_tokens),
            version=f"{self.prefix}/{reply.version}",
        )

    async def close(self) -> None:
        """Close the inner model's connections."""
        await self.inner.close()
