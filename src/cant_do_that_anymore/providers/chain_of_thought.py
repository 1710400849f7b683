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
    """What is known of a model that thinks first.

    It has a name and versions of its own, since the move it plays need not be the one that the
    same model plays at once.
    """

    provider = ""  # no dataset of the model without thoughts is one of this

    def __init__(self, inner: ModelInfo, thinking_tokens: int = THINKING_TOKENS) -> None:
        self.prefix = "cot" if thinking_tokens == THINKING_TOKENS else f"cot-{thinking_tokens}"
        self.name = f"{self.prefix}/{inner.name}"
        self.endpoint = inner.endpoint
        self.connections = inner.connections
        self.max_tokens = inner.max_tokens
        self.thinking_tokens = thinking_tokens
        self.may_think = False  # until it is seen to think by itself
        self._known = inner

    @property
    def identity(self) -> Mapping[str, object]:
        """The inner model's, and how it is let to think."""
        thinking = {"thinking_tokens": self.thinking_tokens, "think": THINK, "conclude": CONCLUDE}
        return {**self._known.identity, **thinking}


class ThinkingModel(Thinker):
    """A model that thinks first; its reply is what it says after that."""

    def __init__(self, inner: Model, thinking_tokens: int = THINKING_TOKENS) -> None:
        super().__init__(inner, thinking_tokens)
        self.inner = inner

    async def answer(
        self, question: Question, settings: Settings, form: RequestVariant = ()
    ) -> Answer:
        """Ask twice, for thoughts and then for the reply; once if it thinks by itself."""
        if ASKED_ONCE in form:
            self.may_think = True
            reply = await self.inner.answer(question, settings, form)
            return replace(reply, version=f"{self.prefix}/{reply.version}")
        think = with_user_turn(question.messages, THINK)
        longer = replace(settings, max_tokens=max(self.thinking_tokens, settings.max_tokens))
        thoughts = await self.inner.answer(replace(question, messages=think), longer, form)
        silent = thoughts.stop_reason == "length" and not thoughts.text.strip()
        if self._known.may_think and (thoughts.is_thoughtful or silent):
            return await self.answer(question, settings, (*form, ASKED_ONCE))
        said = Message("assistant", thoughts.text.strip() or "...")  # some refuse an empty turn
        conclude = with_user_turn((*think, said), CONCLUDE)
        reply = await self.inner.answer(replace(question, messages=conclude), settings, form)
        usage = thoughts.usage + reply.usage
        return replace(
            reply,
            reasoning=thoughts.text,
            usage=replace(usage, thinking_tokens=thoughts.usage.output_tokens),
            version=f"{self.prefix}/{reply.version}",
        )

    async def close(self) -> None:
        """Let go of the inner model's connections."""
        await self.inner.close()
