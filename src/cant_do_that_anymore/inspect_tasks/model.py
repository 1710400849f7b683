"""Task arguments as a spec, and model adapters between Inspect AI and this package.

``inspect eval cant_do_that_anymore/all --model cdta/pocket`` asks the model inside this package.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, TypedDict

import click
from inspect_ai.model import (
    ChatMessage,
    GenerateConfig,
    Model,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    get_model,
    modelapi,
)
from inspect_ai.model import Model as InspectModel
from inspect_ai.model._generate_config import active_generate_config  # has no public name
from inspect_ai.tool import ToolChoice, ToolInfo
from pydantic import TypeAdapter, ValidationError

from ..errors import InvalidInput, UserError, unknown_value
from ..game.rules import rules_named
from ..providers.base import (
    Answer,
    Message,
    ModelInfo,
    Question,
    RequestRejected,
    RequestVariant,
    Settings,
    TransientError,
)
from ..providers.catalogue import OUR_MODELS, Unreached, info_by_name, model_named
from ..providers.http import unwrap_error
from ..providers.inspect_api import (
    as_chat,
    config_for,
    generate_once,
    layout_for,
    rejection_text,
    watch_calls,
)
from ..task.spec import Spec
from ..task.types import Eval, Reading

FIELDS = {"samples": "n"}
"""Arguments with a name of their own: what field of the spec they are."""


class Arguments(TypedDict, total=False):
    """What ``-T`` takes: fields of `Spec`, which says what they mean and what they default to."""

    rules: str
    wording: str
    reading: Reading
    samples: int
    seed: int
    temperature: float
    max_tokens: int
    reasoning_effort: str
    reasoning_tokens: int
    select_effort: str
    extra_body: dict[str, Any]
    pool: str
    dataset: str
    diagnose: bool
    precision: float
    price: str
    max_cost: float
    ask_above: float
    keep_looking: bool


def active_model() -> Model | None:
    """The model of the task, if that is known already."""
    try:
        return get_model()
    except ValueError:
        return None


def spec_for(eval: Eval, arguments: Arguments, model: Model | None) -> Spec:
    """The spec, with values of the types of its fields: ``-T`` guesses them from the text.

    What the arguments do not say is as Inspect was told for the model.

    Raises:
        InvalidInput: if something cannot work.
    """
    for name in arguments.keys() - Arguments.__annotations__.keys():
        raise unknown_value("argument", name, Arguments.__annotations__)
    if arguments.get("precision"):
        raise InvalidInput(
            "precision cannot end a task of Inspect: give samples instead, or measure with "
            "cdta run --precision"
        )
    told = {name: getattr(config_of(model), name) for name in OF_THE_SPEC} if model else {}
    given = told | {FIELDS.get(name, name): value for name, value in arguments.items()}
    given |= {"eval": eval, "model": str(model) if model else None}
    try:
        fields = {name: value for name, value in given.items() if value is not None}
        return TypeAdapter(Spec).validate_python(fields)
    except ValidationError as problem:
        fault = problem.errors()[0]
        if not fault["loc"]:  # the spec's own sentence
            raise InvalidInput(str(fault["ctx"]["error"])) from None
        names = {field: name for name, field in FIELDS.items()}
        name = names.get(str(fault["loc"][0]), str(fault["loc"][0]))
        raise InvalidInput(
            f"-T {name}={fault['input']} cannot work: {fault['msg'].lower()}"
        ) from None


OURS = "cdta"
OF_THE_SPEC = ("temperature", "max_tokens", "reasoning_effort", "reasoning_tokens", "extra_body")
"""Options of ``inspect eval`` that are fields of the spec; ``-T`` goes before them."""
_INCIDENTAL = (
    *("max_retries", "timeout", "attempt_timeout", "stream_idle_timeout", "max_connections"),
    *("adaptive_connections", "batch", "cache", "cache_prompt"),
)
"""How a model is reached, which changes no answer."""


@contextmanager
def one_sentence() -> Iterator[None]:
    """Let Inspect's command show a problem as we do: one sentence, no stack trace."""
    try:
        yield
    except UserError as problem:
        kind = click.UsageError if isinstance(problem, InvalidInput) else click.ClickException
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
            InvalidInput: if the question is not one of our tasks.
        """
        question, seed = _question_in(input)
        max_tokens = config.max_tokens or self._model.max_tokens
        answer = await self._model.answer(question, Settings(config.temperature, max_tokens, seed))
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


@dataclass
class Transcript:
    """All that is said within a task until there is an answer to one question."""

    said: list[ChatMessage] = field(default_factory=list)
    output: ModelOutput | None = None


TRANSCRIPT: ContextVar[Transcript] = ContextVar("exchange")
"""The one of the sample that is being solved."""


class TaskModel:
    """The model of a task as one of ours, to find its dataset and to measure it.

    It is the one that Inspect has, with all its settings; Inspect logs, counts tokens, tries again
    and limits how many questions go out at once.
    """

    def __init__(self, model: InspectModel) -> None:
        self._model = model
        known = _known(model)
        self.name, self.endpoint, self.provider = known.name, known.endpoint, known.provider
        self.connections, self.max_tokens = known.connections, known.max_tokens
        self.may_think = known.may_think
        settings = _other_settings(config_of(model))
        self.identity = {**known.identity, **({"config": settings} if settings else {})}
        watch_calls(model.api)

    async def answer(
        self, question: Question, settings: Settings, form: RequestVariant = ()
    ) -> Answer:
        """Ask once; what is said is noted in the exchange of the sample, if there is one."""
        name = str(self._model)  # as Inspect has it, provider and all
        chat = as_chat(layout_for(name, question.messages, form))
        # What our own models need to know beside the text; other providers never see it.
        chat[0].metadata = {
            "rules": question.rules.key,
            "moves": list(question.moves),
            "about": question.about,
            "seed": settings.seed,
        }
        config = config_for(name, settings, form)
        try:
            answer, output = await generate_once(self._model, chat, config, form)
        except TransientError:
            raise
        except Exception as fault:  # every provider raises exceptions of its own
            words = rejection_text(unwrap_error(fault))
            if not words:
                raise
            raise RequestRejected(f"{name} cannot answer ({fault})", words) from None
        if not output:
            return replace(answer, version=self.name)
        if exchange := TRANSCRIPT.get(None):
            exchange.output = output
            exchange.said += [*chat, *(choice.message for choice in output.choices)]
        return answer

    async def close(self) -> None:
        """Inspect does that."""


@dataclass
class TaskVariants:
    """What is known of a model within a task."""

    known: RequestVariant

    def variant(self, settings: Settings) -> RequestVariant:
        """The form in which it wants its questions."""
        return self.known

    def set_variant(self, settings: Settings, form: RequestVariant) -> None:
        """Use that form from now on."""
        self.known = form


def config_of(model: InspectModel) -> GenerateConfig:
    """All settings that Inspect was given for the model, as in ``inspect eval --top-p 0.9``."""
    return model.config.merge(active_generate_config())


def _other_settings(config: GenerateConfig) -> dict[str, object]:
    """Those that can change an answer and are no settings of ours."""
    told = config.model_dump(mode="json", exclude_none=True, exclude={*OF_THE_SPEC, *_INCIDENTAL})
    return dict(sorted(told.items()))


def _known(model: InspectModel) -> ModelInfo:
    name, address, args = str(model), model.api.base_url, model.model_args
    if (address or args) and name not in OUR_MODELS:
        return Unreached(name, address or "", args)
    return info_by_name(name)


def _question_in(chat: list[ChatMessage]) -> tuple[Question, int]:
    """What was asked within a task, and the seed of the answer."""
    messages = tuple(_message(message) for message in chat)
    asked: dict[str, Any] = chat[0].metadata or {}
    try:
        rules, moves = rules_named(asked["rules"]), tuple(asked["moves"])
        return Question(rules, moves, messages, asked["about"]), asked["seed"]
    except KeyError:
        raise InvalidInput(
            f"the models {OURS}/... play chess in the tasks cant_do_that_anymore/... only"
        ) from None


def _message(message: ChatMessage) -> Message:
    if message.role == "tool":
        raise InvalidInput(f"the models {OURS}/... use no tools")
    return Message(message.role, message.text)
