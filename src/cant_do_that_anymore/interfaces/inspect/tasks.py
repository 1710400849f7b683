"""The evaluation as Inspect tasks.

::

    inspect eval cant_do_that_anymore/all --model openai/gpt-4o
    inspect eval cant_do_that_anymore/all_small --model cdta/pocket -T seed=1
    inspect eval cant_do_that_anymore/all_diagonal --model anthropic/claude-sonnet-4-5

A sample is a position: its solver asks under every condition, its score says what came of it.
"""

from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import Any, get_args

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset
from inspect_ai.dataset import Sample as InspectSample
from inspect_ai.log import HeadlineMetric
from inspect_ai.model import Model, get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver
from pydantic import TypeAdapter, ValidationError

from ...errors import BadInput, Problem
from ...evaluation.measures import IMPACT
from ...evaluation.results import PROTOCOL
from ...evaluation.run import choose
from ...evaluation.samples import Draw, draws_of
from ...evaluation.spec import Spec, plan_for
from ...evaluation.vocabulary import Eval, Reading
from ...evaluation.watch import Watch
from ...game.notation import numbered, written, written_game
from ...game.position import Position
from ...game.rules import BISHOPS_AS_KNIGHTS
from ...home import answers_file
from ...models.forms import Forms
from ...models.human import drawing
from ...models.inspected import config_for
from ...models.kept import Kept
from ...models.model import Settings
from ...models.store import Store
from .models import EXCHANGE, Exchange, Learnt, WithinTask, one_of_ours, one_sentence
from .scoring import CONTROL, DRAW, GAME, conditions_of, habit, of_sample, position_in

FIELDS = {"samples": "n"}
"""Arguments of the tasks with a name of their own: what field of the spec they are."""
OPTIONS_OF_INSPECT = (
    "temperature",
    "max_tokens",
    "reasoning_effort",
    "reasoning_tokens",
    "extra_body",
)
"""Options of ``inspect eval`` that are fields of the spec; ``-T`` goes before them."""
DRAWS_AN_EPOCH = 1_000_000
"""More often than this no dataset holds a position, so no two epochs share a draw."""


def _registered(eval: Eval) -> Callable[..., Task]:
    """Make an eval known to Inspect under its name; its arguments are fields of the spec."""

    @task(name=eval)
    def cant_do_that_anymore(
        rules: str = BISHOPS_AS_KNIGHTS.key,
        wording: str = Spec.wording,
        reading: Reading = Spec.reading,
        samples: int | None = Spec.n,
        seed: int = Spec.seed,
        temperature: float | None = None,
        max_tokens: int | None = None,
        reasoning_effort: str | None = None,
        reasoning_tokens: int | None = None,
        select_effort: str | None = None,
        extra_body: dict[str, Any] | None = None,
        pool: str | None = None,
        dataset: str | None = None,
        diagnose: bool = Spec.diagnose,
        precision: float | None = Spec.precision,
        price: str | None = None,
        max_cost: float | None = Spec.max_cost,
        ask_above: float | None = Spec.ask_above,
        keep_looking: bool = Spec.keep_looking,
    ) -> Task:
        given = {name: value for name, value in locals().items() if value is not None}
        model = get_model()
        arguments = _inspects_own(model) | {FIELDS.get(name, name): given[name] for name in given}
        with one_sentence():
            return task_for(_spec(arguments | {"model": str(model), "eval": eval}))

    return cant_do_that_anymore


TASKS = {eval: _registered(eval) for eval in get_args(Eval)}


def _inspects_own(model: Model) -> dict[str, object]:
    """What Inspect was told of settings, as in ``inspect eval --reasoning-effort high``."""
    told = {name: getattr(model.config, name) for name in OPTIONS_OF_INSPECT}
    return {name: value for name, value in told.items() if value is not None}


def _spec(arguments: dict[str, object]) -> Spec:
    """The spec, with values of the types of its fields: ``-T`` guesses them from the text."""
    try:
        return TypeAdapter(Spec).validate_python(arguments)
    except ValidationError as problem:
        fault = problem.errors()[0]
        if not fault["loc"]:  # the spec's own sentence
            raise BadInput(str(fault["ctx"]["error"])) from None
        names = {field: name for name, field in FIELDS.items()}
        name = names.get(str(fault["loc"][0]), fault["loc"][0])
        raise BadInput(f"-T {name}={fault['input']} cannot work: {fault['msg'].lower()}") from None


def task_for(spec: Spec) -> Task:
    """The task that measures the active model as ``spec`` says; finds or builds its dataset."""
    if spec.precision:
        raise BadInput(
            "precision cannot end a task of Inspect, which has all its samples before the first is "
            "asked: give samples instead, or measure with cdta run --precision"
        )
    asked = get_model()
    model = one_of_ours(asked)
    plan = plan_for(spec, model)
    chosen = choose(spec, model)
    dataset, n = chosen.dataset, len(chosen.positions)
    draws = enumerate(draws_of([*chosen.positions, *chosen.controls]))
    samples = [_sample(draw, control=place >= n) for place, draw in draws]
    with closing(Store(answers_file())) as store:
        form = Kept(model, store).form(plan.settings)
    asked_how: dict[str, Any] = {
        "rules": plan.change.key,
        "wording": spec.wording,
        "reading": spec.reading,
        **({"diagnose": True} if spec.diagnose else {}),
    }
    return Task(
        dataset=MemoryDataset(samples, name=dataset.version or dataset.origin),
        solver=every_condition(**asked_how, settings=plan.settings.asked, form=list(form)),
        scorer=habit(**asked_how),
        config=config_for(str(asked), plan.settings, form),
        fail_on_error=spec.max_error_rate,
        version=PROTOCOL,
        headline_metric=HeadlineMetric(scorer="habit", metric=IMPACT),
        metadata={"dataset": dataset.provenance, "questions_to_build_it": dataset.asked},
    )


@solver
def every_condition(
    rules: str,
    wording: str,
    reading: Reading,
    settings: dict[str, Any],
    form: list[str],
    diagnose: bool = False,
) -> Solver:
    """Ask under every condition: the standard rules, the changed ones, and those of a diagnosis.

    The settings are those that differ from the defaults, the form is what was learnt of the model.
    """
    asked, how = conditions_of(rules, wording, diagnose), Settings(**settings)
    watch = Watch(how)
    forms: list[Forms] = []  # made when there is a model to ask

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        if not forms:
            forms.append(Forms(WithinTask(get_model()), Learnt(tuple(form))))
        number = state.metadata[DRAW] + (state.epoch - 1) * DRAWS_AN_EPOCH
        draw = Draw(position_in(state.metadata), number)
        state.messages = []
        conditions = of_sample(asked, state.metadata)
        for condition, ask in zip(conditions, draw.asks(conditions), strict=True):
            exchange = Exchange(ask, how.seed)
            EXCHANGE.set(exchange)
            asked_in = partial(forms[0].answer, ask.question, how)
            answer = await forms[0].satisfied(asked_in, how)
            state.messages += exchange.said
            state.output = exchange.output or state.output
            if answer.error:  # an error, so that Inspect counts it and eval-retry asks again
                raise Problem(f"no answer under the {ask.condition} rules: {answer.error}")
            read = condition.read(answer, draw.position, condition.rules, reading)
            watch.see(answer, usable=read.usable, baseline=condition == conditions[0])
            state.store.set(ask.condition, answer.to_json())
        return state

    return solve


def _sample(draw: Draw, *, control: bool) -> InspectSample:
    position = draw.position
    return InspectSample(
        input=_shown(position),
        target=list(position.special_moves),
        id=f"{position.id}-{draw.number + 1}" if draw.number else position.id,
        metadata={
            GAME: position.game,
            "moves": list(position.moves),
            "special_moves": list(position.special_moves),
            "source": position.source,
            DRAW: draw.number,
            **({CONTROL: True} if control else {}),
        },
    )


def _shown(position: Position) -> str:
    """The position for whoever looks at the sample; the model never sees this."""
    board = position.board()
    side = "White" if board.turn else "Black"
    game = numbered(written_game(position.moves)) or "no moves"
    special_moves = ", ".join(written(board, uci) for uci in position.special_moves)
    return f"{side} to move after {game}\n\n```\n{drawing(board)}\n```\n\nSpecial: {special_moves}"
