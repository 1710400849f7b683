"""Model adapters between Inspect AI and this package.

``inspect eval cant_do_that_anymore/all --model cdta/pocket`` evaluates the bundled model.
"""

from contextvars import ContextVar
from dataclasses import replace
from typing import Any, cast

from inspect_ai.model import (
    ChatMessage,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    modelapi,
)
from inspect_ai.model import Model as InspectModel
from inspect_ai.solver import TaskState
from inspect_ai.tool import ToolChoice, ToolInfo

from ..client.limiter import MAX_LIMIT
from ..errors import InvalidInput
from ..habits.base import Message, Role
from ..habits.catalog import restored_change
from ..providers.base import REPLY_TOKENS, Answer, ModelInfo, Question, Settings
from ..providers.catalog import BUILT_IN_MODELS, inspect_info, parse_name
from ..providers.inspect_api import InspectAdapter
from .arguments import CONFIG_OPTIONS, click_errors, config_of

PROVIDER = "cdta"
MOCK = "mockllm/"  # Inspect's model for trying out a task
# Options that change no answer.
_TRANSPORT_OPTIONS = (
    *("max_retries", "timeout", "attempt_timeout", "stream_idle_timeout", "max_connections"),
    *("adaptive_connections", "batch", "cache", "cache_prompt"),
)


@modelapi(name=PROVIDER)
class OurModelAPI(ModelAPI):
    """Our own models as an Inspect provider, for our own tasks."""

    def __init__(self, model_name: str, **arguments: Any) -> None:
        super().__init__(model_name, **arguments)
        with click_errors():
            self._model = parse_name(f"{PROVIDER}/{model_name}").load()

    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        """Answer as in ``cdta run`` with the same settings.

        Raises:
            InvalidInput: if the request is not from one of our tasks.
        """
        question, seed = _question_in(input)
        settings = Settings(config.temperature, config.max_tokens or REPLY_TOKENS, seed)
        answer = await self._model.answer(question, settings)
        output = ModelOutput.from_content(answer.version, answer.text)
        tokens = answer.usage
        output.usage = ModelUsage(
            input_tokens=tokens.input_tokens,
            output_tokens=tokens.output_tokens,
            total_tokens=tokens.input_tokens + tokens.output_tokens,
        )
        return output

    def max_connections(self) -> int:
        """Return the number of concurrent requests that suit the model."""
        return self._model.info.connections or MAX_LIMIT

    async def aclose(self) -> None:
        """Close the model."""
        await self._model.close()


# The state of the sample that is measured, to which its conversations are added.
SAMPLE_STATE: ContextVar[TaskState] = ContextVar("sample_state")


class TaskModel(InspectAdapter):
    """Adapter for the model of a task, to build its dataset and to evaluate it.

    Inspect applies its settings, logs, counts tokens, retries, limits concurrency, and closes it.
    """

    def __init__(self, model: InspectModel) -> None:
        info, settings = _model_info(model), _other_settings(config_of(model))
        config = {"config": settings} if settings else {}
        info = replace(info, identity={**info.identity, **config})
        super().__init__(info, model, str(model))
        if str(model).startswith(MOCK):
            model.api.count_tokens = _no_tokens  # type: ignore[assignment]

    def _received(self, answer: Answer, chat: list[ChatMessage], output: ModelOutput) -> Answer:
        """Add the conversation to the sample, if there is one."""
        if state := SAMPLE_STATE.get(None):
            state.messages += [*chat, *(choice.message for choice in output.choices)]
            state.output = output
        return answer


async def _no_tokens(*_: object) -> int:
    """Count no tokens: Inspect would download a tokenizer to do so."""
    return 0


def _other_settings(config: GenerateConfig) -> dict[str, object]:
    """Return the settings that can change an answer and are not fields of the spec."""
    settings = config.model_dump(
        mode="json", exclude_none=True, exclude={*CONFIG_OPTIONS, *_TRANSPORT_OPTIONS}
    )
    return dict(sorted(settings.items()))


def _model_info(model: InspectModel) -> ModelInfo:
    name, address, args = str(model), model.api.base_url, model.model_args
    if (address or args) and name not in BUILT_IN_MODELS:
        return inspect_info(name, address or "", args)
    return parse_name(name).info()


def _question_in(chat: list[ChatMessage]) -> tuple[Question, int]:
    """Return the question of a request from a task, and the seed of the answer."""
    messages = tuple(Message(cast(Role, turn.role), turn.text) for turn in chat)
    metadata: dict[str, Any] = chat[0].metadata or {}
    try:
        rules = restored_change(metadata["rules"])
        item = rules.its_habit.item(metadata["item"])
        return Question(rules, item, messages, metadata["about"]), metadata["seed"]
    except (LookupError, InvalidInput):
        raise InvalidInput(
            f"the models {PROVIDER}/... answer only in the tasks of this package, without --solver"
        ) from None
