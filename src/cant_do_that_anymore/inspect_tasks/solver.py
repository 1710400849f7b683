"""The solver: ask every condition about a sample."""

import logging
from contextlib import closing
from functools import partial
from typing import Unpack

from inspect_ai.model import Model, get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import span

from ..client.cache import ModelCache, with_request_seed
from ..client.negotiator import Negotiator
from ..client.store import Store
from ..errors import InvalidInput, UserError
from ..files import answers_file
from ..metrics.notes import ENOUGH, is_broken
from ..providers.base import Answer, TransientError
from ..task.conditions import ASKED_OF_CONTROLS
from ..task.quality_guard import QualityGuard
from ..task.samples import Trial
from ..task.spec import plan_for
from ..task.types import Eval, Sample
from .model import TRANSCRIPT, Arguments, TaskModel, TaskVariants, Transcript, spec_for
from .scorer import ASKED_HOW, CONTROL, DRAW, RULES, position_in

log = logging.getLogger(__name__)

DRAWS_AN_EPOCH = 1_000_000
"""More often than this no dataset holds a position, so no two epochs share a draw."""


class ModelState:
    """What is learnt of a model while it is measured."""

    def __init__(self, eval: Eval, arguments: Arguments, asked: Model) -> None:
        self.model = TaskModel(asked)
        self.plan = plan_for(spec_for(eval, arguments, asked), self.model)
        with closing(Store(answers_file())) as store:  # perhaps when its dataset was found
            known = ModelCache(self.model, store).variant(self.plan.settings)
        self.forms = Negotiator(self.model, TaskVariants(known))
        self.watch = QualityGuard(self.plan.settings)
        self.drops = DropMonitor()


@solver
def every_condition(eval: Eval = "all", **arguments: Unpack[Arguments]) -> Solver:
    """Ask under every condition: the standard rules, the changed ones, and those of a diagnosis."""
    by_model: dict[int, ModelState] = {}  # a task may run with more than one

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        asked = get_model()
        if id(asked) not in by_model:
            by_model[id(asked)] = ModelState(eval, arguments, asked)
        return await _solved(state, by_model[id(asked)])

    return solve


async def _solved(state: TaskState, measured: ModelState) -> TaskState:
    plan, forms = measured.plan, measured.forms
    if plan.change.key != state.metadata[RULES]:
        raise InvalidInput(
            f"the task has positions for {state.metadata[RULES]}, and its solver asks under "
            f"{plan.change.key}: give both the same rules"
        )
    control = CONTROL in state.metadata
    conditions = [c for c in plan.conditions if not control or c.name in ASKED_OF_CONTROLS]
    number = state.metadata[DRAW] + (state.epoch - 1) * DRAWS_AN_EPOCH
    draw = Trial(position_in(state.metadata), number)
    names = [condition.name for condition in conditions]
    how = {"rules": plan.change.key, "reading": plan.reading, "conditions": names}
    state.store.set(ASKED_HOW, how)
    state.messages, answers = [], []
    for condition, ask in zip(conditions, draw.requests(conditions), strict=True):
        exchange = Transcript()
        TRANSCRIPT.set(exchange)
        own = with_request_seed(measured.model, ask, plan.settings)
        async with span(condition.name):
            try:
                answer = await forms.ask_until_accepted(
                    partial(forms.answer, ask.question, own), own
                )
            except TransientError as fault:
                answer = Answer("", stop_reason="error", error=str(fault))
        state.messages += exchange.said
        state.output = exchange.output or state.output
        if answer.error:  # an error, so that Inspect counts it and eval-retry asks again
            raise UserError(f"no answer under the {ask.condition} rules: {answer.error}")
        read = condition.read(answer, draw.position, condition.rules, plan.reading)
        measured.watch.see(answer, usable=read.usable, baseline=condition == conditions[0])
        state.store.set(ask.condition, answer.to_json())
        answers.append(answer)
    if not control:
        measured.drops.see(draw.sample(answers, conditions, plan.reading))
    return state


class DropMonitor:
    """Warns, once and in the log, when habits are dropped for what is no legal move either."""

    def __init__(self) -> None:
        self._dropped: list[Sample] = []
        self._warned = False

    def see(self, sample: Sample) -> None:
        """Take a sample into account."""
        if self._warned or not sample.had_habit or sample.kept_habit:
            return
        self._dropped.append(sample)
        if len(self._dropped) >= ENOUGH and is_broken(self._dropped):
            self._warned = True
            log.warning(
                "the drop is not adapting: most of the first %s habits that were dropped gave way "
                "to answers that are no legal move under the changed rules; trust rule_uptake, not "
                "the impact factor",
                len(self._dropped),
            )
