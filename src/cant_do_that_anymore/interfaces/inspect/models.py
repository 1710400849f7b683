"""Models between Inspect and us: ours as an Inspect provider, and Inspect's as one of ours.

``inspect eval cant_do_that_anymore/all --model cdta/pocket`` asks the model inside this package.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

import click
from inspect_ai.model import (
    ChatMessage,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    modelapi,
)
from inspect_ai.model import Model as InspectModel
from inspect_ai.tool import ToolChoice, ToolInfo

from ...errors import BadInput, Problem
from ...game.rules import rules_named
from ...models.asks import Ask, seeded
from ...models.clients import own_fault
from ...models.hosted import HostedModel, is_unfinished, refusal_in
from ...models.inspected import answer_in, as_chat, config_for, layout_for
from ...models.model import Answer, Form, Message, Model, Question, Refused, Settings
from ...models.names import OUR_MODELS, model_named

OURS = "cdta"


@contextmanager
def one_sentence() -> Iterator[None]:
    """Let Inspect's command show a problem as we do: one sentence, no stack trace."""
    try:
        yield
    except Problem as problem:
        kind = click.UsageError if isinstance(problem, BadInput) else click.ClickException
        raise kind(str(problem)) from None


@modelapi(name=OURS)
class OurModelAPI(ModelAPI):
    """Any of our own models, for the questions of our own tasks."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig | None = None,
    ) -> None:
        super().__init__(model_name, base_url, api_key, [], config or GenerateConfig())
        with one_sentence():
            self._model = model_named(f"{OURS}/{model_name}")

    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        """Answer as in a run of ``cdta run`` with the same settings.

        Raises:
            BadInput: if the question is not one of our tasks.
        """
        ask, seed = _ask_in(input)
        max_tokens = config.max_tokens or self._model.max_tokens
        settings = Settings(config.temperature, max_tokens, seed)
        answer = await self._model.answer(ask.question, seeded(self._model, ask, settings))
        output = ModelOutput.from_content(answer.version, answer.text)
        tokens = answer.usage
        output.usage = ModelUsage(
            input_tokens=tokens.input_tokens,
            output_tokens=tokens.output_tokens,
            total_tokens=tokens.input_tokens + tokens.output_tokens,
        )
        return output

    def max_connections(self) -> int:
        """How many questions at once suit the model."""
        return self._model.connections

    async def aclose(self) -> None:
        """Let go of the model."""
        await self._model.close()


def chat_for(model: InspectModel, ask: Ask, seed: int, form: Form = ()) -> list[ChatMessage]:
    """A question as Inspect's messages, in the layout that `cdta run` uses for that model.

    The first message notes what our models need to know beside the text: the rules, the moves, the
    draw and the seed of the run. Other providers never see it.
    """
    chat = as_chat(layout_for(str(model), ask.question.messages, form))
    chat[0].metadata = {
        "rules": ask.question.rules.key,
        "moves": list(ask.question.moves),
        "about": ask.question.about,
        "condition": ask.condition,
        "draw": ask.draw,
        "seed": seed,
    }
    return chat


@dataclass
class Exchange:
    """What is asked within a task, and all that is said until there is an answer to it."""

    ask: Ask
    seed: int
    said: list[ChatMessage] = field(default_factory=list)
    output: ModelOutput | None = None


EXCHANGE: ContextVar[Exchange] = ContextVar("exchange")
"""The one of the sample that is being solved."""


class WithinTask:
    """The model of a task as one of ours; Inspect logs, tries again and limits how many at once."""

    def __init__(self, model: InspectModel) -> None:
        self._model = model
        ours = one_of_ours(model)
        self.name, self.endpoint, self.provider = ours.name, ours.endpoint, ours.provider
        self.connections, self.max_tokens = ours.connections, ours.max_tokens
        self.identity, self.may_think = ours.identity, ours.may_think

    async def answer(self, question: Question, settings: Settings, form: Form = ()) -> Answer:
        """Ask as the exchange of this sample says, and note there what was said."""
        exchange = EXCHANGE.get()
        chat = chat_for(self._model, exchange.ask, exchange.seed, form)
        config = config_for(self.name, settings, form)
        try:
            output = await self._model.generate(chat, config=config)
        except Exception as fault:  # every provider raises exceptions of its own
            if is_unfinished(fault):
                return Answer("", stop_reason="length", version=self.name, conceded=form)
            words = refusal_in(own_fault(fault))
            if not words:
                raise
            raise Refused(f"{self.name} cannot answer ({fault})", words) from None
        exchange.output = output
        exchange.said += [*chat, *(choice.message for choice in output.choices or ())]
        return replace(answer_in(output), conceded=form)

    async def close(self) -> None:
        """Inspect does that."""


@dataclass
class Learnt:
    """What is known of a model within a task."""

    known: Form

    def form(self, settings: Settings) -> Form:
        """The form in which it wants its questions."""
        return self.known

    def learnt(self, settings: Settings, form: Form) -> None:
        """Use that form from now on."""
        self.known = form


def one_of_ours(model: InspectModel) -> Model:
    """The same model as `cdta run` asks it, for building a dataset."""
    name, address, args = str(model), model.api.base_url, model.model_args
    if (address or args) and name not in OUR_MODELS:
        return HostedModel(name, address, **args)
    return model_named(name)


def _ask_in(chat: list[ChatMessage]) -> tuple[Ask, int]:
    """What `chat_for` was given."""
    messages = tuple(_message(message) for message in chat)
    asked: dict[str, Any] = chat[0].metadata or {}
    try:
        moves = tuple(asked["moves"])
        question = Question(rules_named(asked["rules"]), moves, messages, asked["about"])
        return Ask(question, "measuring", asked["condition"], asked["draw"]), asked["seed"]
    except KeyError:
        raise BadInput(
            f"the models {OURS}/... play chess in the tasks cant_do_that_anymore/... only"
        ) from None


def _message(message: ChatMessage) -> Message:
    if message.role == "tool":
        raise BadInput(f"the models {OURS}/... use no tools")
    return Message(message.role, message.text)
