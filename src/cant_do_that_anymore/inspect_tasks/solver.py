"""The solver: send the requests of every condition for a sample."""

import asyncio
import logging
from functools import partial
from typing import Any

from inspect_ai.model import Model, get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import span

from ..client.cache import open_cache, with_request_seed
from ..client.negotiator import Negotiator
from ..errors import InvalidInput, UserError
from ..metrics.notes import MIN_SAMPLES_FOR_NOTES, is_broken
from ..providers.base import Answer, TransientError
from ..task.conditions import control_conditions
from ..task.plan import plan_for
from ..task.samples import QualityGuard, Trial
from ..task.types import Eval, Sample
from .arguments import Arguments, inspect_terms, spec_for
from .model import TRANSCRIPT, TaskModel, TaskVariants, Transcript
from .scorer import CONTROL_KEY, DRAW, REQUEST_INFO, RULES_KEY, position_in

log = logging.getLogger(__name__)

# More than any dataset repeats a position, so that no two epochs share a draw.
DRAWS_PER_EPOCH = 1_000_000


class ModelState:
    """A model and what its answers showed while it is evaluated."""

    def __init__(self, eval: Eval, arguments: Arguments, model: Model) -> None:
        self.model = TaskModel(model)
        self.plan = plan_for(spec_for(eval, arguments, model), self.model.info)
        with open_cache(self.model.info) as cache:  # known if its dataset was built
            variant = cache.variant(self.plan.settings)
        self.negotiator = Negotiator(self.model, TaskVariants(variant))
        self.guard = QualityGuard(self.plan.settings)
        self.drops = DropMonitor()


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
    plan, negotiator = model_state.plan, model_state.negotiator
    if plan.change.key != state.metadata[RULES_KEY]:
        raise InvalidInput(
            f"the task has positions for {state.metadata[RULES_KEY]}, but its solver uses "
            f"{plan.change.key}; give both the same rules"
        )
    control = CONTROL_KEY in state.metadata
    conditions = control_conditions(plan) if control else plan.conditions
    number = state.metadata[DRAW] + (state.epoch - 1) * DRAWS_PER_EPOCH
    trial = Trial(position_in(state.metadata), number)
    names = [condition.name for condition in conditions]
    request_info = {"rules": plan.change.key, "reading": plan.reading, "conditions": names}
    state.store.set(REQUEST_INFO, request_info)
    state.messages, answers = [], []
    for condition, request in zip(conditions, trial.requests(conditions), strict=True):
        transcript = Transcript()
        TRANSCRIPT.set(transcript)
        settings = with_request_seed(model_state.model.info, request, plan.settings)
        async with span(condition.name):
            try:
                answer = await negotiator.ask_until_accepted(
                    partial(negotiator.answer, request.question, settings), settings
                )
            except TransientError as error:
                answer = Answer("", stop_reason="error", error=str(error))
        state.messages += transcript.messages
        state.output = transcript.output or state.output
        if answer.error:  # raised, so that Inspect counts it and eval-retry sends it again
            raise UserError(f"no answer under the {request.condition} rules: {answer.error}")
        score = condition.read(answer, trial.position, condition.rules, plan.reading)
        model_state.guard.observe(answer, usable=score.usable, baseline=condition == conditions[0])
        state.store.set(request.condition, answer.to_json())
        answers.append(answer)
    if not control:
        model_state.drops.observe(trial.sample(answers, conditions, plan.reading))
    return state


class DropMonitor:
    """Logs a warning, once, if most dropped habits gave way to moves that are not legal."""

    def __init__(self) -> None:
        self._dropped: list[Sample] = []
        self._warned = False

    def observe(self, sample: Sample) -> None:
        """Record a sample."""
        if self._warned or not sample.had_habit or sample.kept_habit:
            return
        self._dropped.append(sample)
        if len(self._dropped) >= MIN_SAMPLES_FOR_NOTES and is_broken(self._dropped):
            self._warned = True
            log.warning(
                "the drop is not adaptation: most of the first %s dropped habits were replaced "
                "by answers that are not legal moves under the changed rules; trust the rule "
                "uptake, not the impact factor",
                len(self._dropped),
            )
