"""The solver: send the requests of every condition for a sample."""

import asyncio
from functools import cache
from typing import Any

from inspect_ai.model import Model, get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import span

from ..client.cache import open_cache, with_request_seed
from ..client.sender import Sender
from ..errors import UserError
from ..providers.base import Answer, Request, RequestRejected, TransientError
from ..task.conditions import control_conditions
from ..task.plan import plan_for
from ..task.samples import FirstReplies, Trial
from ..task.spec import Spec
from .arguments import inspect_terms, spec_for
from .model import SAMPLE_STATE, TaskModel
from .scorer import ANSWERS, CONTROL_KEY, DRAW, READING, item_in

# More than any dataset repeats a position, so that no two epochs share a draw.
DRAWS_PER_EPOCH = 1_000_000


class ModelState:
    """A model and what its answers showed while it is evaluated."""

    def __init__(self, spec: Spec, model: Model) -> None:
        self.model = TaskModel(model)
        self.plan = plan_for(spec_for(spec, model), self.model.info)
        with open_cache(self.model.info) as cache:  # known if its dataset was built
            limit = cache.token_limit(self.plan.settings.reasoning_effort)
        self.sender = Sender(self.model, limit)
        self.first_replies = FirstReplies(self.plan)


@solver
def every_condition(spec: Spec) -> Solver:
    """Ask under every condition: the standard rules, the changed ones, and those of a diagnosis."""

    @cache  # a task may run several times, with several models
    def state_of(model: Model, loop: asyncio.AbstractEventLoop) -> ModelState:
        return ModelState(spec, model)

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        with inspect_terms():
            return await _solve(state, state_of(get_model(), asyncio.get_running_loop()))

    return solve


async def _solve(state: TaskState, model_state: ModelState) -> TaskState:
    plan = model_state.plan
    control = CONTROL_KEY in state.metadata
    conditions = control_conditions(plan) if control else plan.conditions
    number = state.metadata[DRAW] + (state.epoch - 1) * DRAWS_PER_EPOCH
    trial = Trial(item_in(state.metadata), number, conditions)
    saved: dict[str, Any] = {condition.name: None for condition in conditions}
    state.store.set(READING, plan.reading)
    state.store.set(ANSWERS, saved)
    state.messages = []
    SAMPLE_STATE.set(state)
    answers: dict[str, Answer] = {}
    for request in trial.requests():
        async with span(request.condition):
            answers[request.condition] = await _ask(request, model_state)
        saved[request.condition] = answers[request.condition].to_json()
    sample = trial.sample(answers, plan.reading)
    model_state.first_replies.observe_sample(sample, conditions)
    return state


async def _ask(request: Request, model_state: ModelState) -> Answer:
    """Send one request, and again if its reply shows that it needs more tokens.

    Raises:
        UserError: if there is no answer, so that Inspect counts it and eval-retry sends it again.
    """
    sender = model_state.sender
    settings = with_request_seed(model_state.model.info, request, model_state.plan.settings)
    try:
        answer = await sender.send(request.question, settings, request.tokens)
        if sender.learn(answer, settings):
            answer = await sender.send(request.question, settings, request.tokens)
        return answer
    except (RequestRejected, TransientError) as error:
        raise UserError(f"no answer under the {request.condition} rules: {error}") from None
