"""The solver: send the requests of every condition for a sample."""

import asyncio
from typing import Any

from inspect_ai.model import Model, get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import span

from ..client.cache import open_cache, with_request_seed
from ..client.sender import Sender
from ..errors import InvalidInput, UserError
from ..providers.base import Answer, Request, RequestRejected, TransientError
from ..task.conditions import control_conditions
from ..task.plan import plan_for
from ..task.samples import FirstReplies, Trial
from ..task.types import Eval
from .arguments import Arguments, inspect_terms, spec_for
from .model import TRANSCRIPT, TaskModel, Transcript
from .scorer import CONTROL_KEY, DRAW, REQUEST_INFO, RULES_KEY, item_in

# More than any dataset repeats a position, so that no two epochs share a draw.
DRAWS_PER_EPOCH = 1_000_000


class ModelState:
    """A model and what its answers showed while it is evaluated."""

    def __init__(self, eval: Eval, arguments: Arguments, model: Model) -> None:
        self.model = TaskModel(model)
        self.plan = plan_for(spec_for(eval, arguments, model), self.model.info)
        with open_cache(self.model.info) as cache:  # known if its dataset was built
            limit = cache.token_limit(self.plan.settings.reasoning_effort)
        self.sender = Sender(self.model, limit)
        self.first_replies = FirstReplies(self.plan)


@solver
def every_condition(eval: Eval = "all", **arguments: Any) -> Solver:
    """Ask under every condition: the standard rules, the changed ones, and those of a diagnosis."""
    # A task may run several times, with several models.
    states: dict[tuple[asyncio.AbstractEventLoop, int], ModelState] = {}

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        model = get_model()
        run = asyncio.get_running_loop(), id(model)
        with inspect_terms():
            if run not in states:
                states[run] = ModelState(eval, arguments, model)
            return await _solve(state, states[run])

    return solve


async def _solve(state: TaskState, model_state: ModelState) -> TaskState:
    plan = model_state.plan
    if plan.change.key != state.metadata[RULES_KEY]:
        raise InvalidInput(
            f"the task has items for {state.metadata[RULES_KEY]}, but its solver uses "
            f"{plan.change.key}; give both the same rules"
        )
    control = CONTROL_KEY in state.metadata
    conditions = control_conditions(plan) if control else plan.conditions
    number = state.metadata[DRAW] + (state.epoch - 1) * DRAWS_PER_EPOCH
    trial = Trial(item_in(state.metadata), number, conditions)
    names = [condition.name for condition in conditions]
    state.store.set(REQUEST_INFO, {"reading": plan.reading, "conditions": names})
    state.messages = []
    for condition, request in zip(conditions, trial.requests(), strict=True):
        transcript = Transcript()
        TRANSCRIPT.set(transcript)
        async with span(condition.name):
            answer = await _ask(request, model_state)
        state.messages += transcript.messages
        state.output = transcript.output or state.output
        if answer.error:  # raised, so that Inspect counts it and eval-retry sends it again
            raise UserError(f"no answer under the {request.condition} rules: {answer.error}")
        score = condition.read(answer, trial.item, condition.rules, plan.reading)
        model_state.first_replies.observe(condition, answer, score.outcome)
        state.store.set(request.condition, answer.to_json())
    return state


async def _ask(request: Request, model_state: ModelState) -> Answer:
    """Send one request, and again if its reply shows that it needs more tokens."""
    sender = model_state.sender
    settings = with_request_seed(model_state.model.info, request, model_state.plan.settings)
    try:
        answer = await sender.send(request.question, settings, request.tokens)
        if sender.learn(answer, settings):
            answer = await sender.send(request.question, settings, request.tokens)
        return answer
    except (RequestRejected, TransientError) as error:
        return Answer(stop_reason="error", error=str(error))
