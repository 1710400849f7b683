"""The evaluation as Inspect tasks.

::

    inspect eval cant_do_that_anymore/all --model openai/gpt-4o
    inspect eval cant_do_that_anymore/all_small --model cdta/pocket -T seed=1
    inspect eval cant_do_that_anymore/all_diagonal --model anthropic/claude-sonnet-4-5

A sample is a position: its solver asks under both rule sets, its score says what came of it.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import get_args

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset
from inspect_ai.dataset import Sample as InspectSample
from inspect_ai.log import HeadlineMetric
from inspect_ai.model import ChatMessage, get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver
from pydantic import TypeAdapter, ValidationError

from ..errors import BadInput
from ..evaluation.judging import Reading
from ..evaluation.run import PROTOCOL, build_dataset, drawn, plan_for
from ..evaluation.spec import DEFAULT_SEED, Eval, Spec
from ..evaluation.wordings import question, wording_named
from ..game.position import Position
from ..game.rules import BISHOPS_AS_KNIGHTS, STANDARD, rules_named
from ..models.asking import Ask
from ..models.hosted import answer_in, config_for
from ..models.human import drawing
from ..report.notation import numbered, written, written_game
from .inspect_models import chat_for, one_of_ours, one_sentence
from .inspect_scoring import GAME, HEADLINE, RULE_SETS, habit, position_in

DRAWS_AN_EPOCH = 1_000_000
"""More often than this no dataset holds a position, so no two epochs share a draw."""


def _register(eval: Eval) -> None:
    """Make an eval known to Inspect under its name."""

    @task(name=eval)
    def cant_do_that_anymore(
        rules: str = BISHOPS_AS_KNIGHTS.key,
        wording: str = "default",
        reading: Reading = "lenient",
        samples: int | None = None,
        seed: int = DEFAULT_SEED,
        temperature: float = 1.0,
        max_tokens: int | None = None,
        pool: str | None = None,
        dataset: str | None = None,
    ) -> Task:
        with one_sentence():
            return task_for(
                _spec(
                    model=str(get_model()),
                    eval=eval,
                    rules=rules,
                    wording=wording,
                    reading=reading,
                    n=samples,
                    seed=seed,
                    temperature=temperature,
                    max_tokens=max_tokens,
                    pool=pool,
                    dataset=dataset,
                )
            )


for _eval in get_args(Eval):
    _register(_eval)


def _spec(**arguments: object) -> Spec:
    try:
        return TypeAdapter(Spec).validate_python(arguments)
    except ValidationError as problem:
        fault = problem.errors()[0]
        name = "samples" if fault["loc"][0] == "n" else fault["loc"][0]
        raise BadInput(f"-T {name}={fault['input']} cannot work: {fault['msg'].lower()}") from None


def task_for(spec: Spec) -> Task:
    """The task that measures the active model as ``spec`` says; finds or builds its dataset."""
    asked = get_model()
    model = one_of_ours(asked)
    plan = plan_for(spec, model)
    dataset = build_dataset(spec, model)
    positions = drawn(dataset.positions, plan.wanted, spec.seed)
    return Task(
        dataset=MemoryDataset(list(_samples(positions)), name=dataset.version or dataset.origin),
        solver=both_rule_sets(spec.rules, spec.wording, spec.seed),
        scorer=habit(spec.rules, spec.reading),
        config=config_for(str(asked), plan.settings),
        fail_on_error=spec.max_error_rate,
        version=PROTOCOL,
        headline_metric=HeadlineMetric(scorer="habit", metric=HEADLINE),
        metadata={"dataset": dataset.origin, "questions_to_build_it": dataset.asked},
    )


@solver
def both_rule_sets(rules: str, wording: str, seed: int) -> Solver:
    """Ask for the next move twice: under the standard rules and under the changed ones."""
    in_force = (STANDARD, rules_named(rules))
    words = wording_named(wording)

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        model = get_model()
        moves = position_in(state.metadata).moves
        draw = state.metadata["draw"] + (state.epoch - 1) * DRAWS_AN_EPOCH
        said: list[ChatMessage] = []
        for rule_set, rules in zip(RULE_SETS, in_force, strict=True):
            ask = Ask(question(moves, rules, words), "measuring", draw)
            chat = chat_for(model, ask, seed)
            state.output = await model.generate(chat)
            answer = answer_in(state.output)
            state.store.set(
                rule_set,
                {"text": answer.text, "stop_reason": answer.stop_reason, "error": answer.error},
            )
            said += [*chat, *(choice.message for choice in state.output.choices)]
        state.messages = said
        return state

    return solve


def _samples(positions: Sequence[Position]) -> Iterator[InspectSample]:
    times_drawn: Counter[tuple[str, ...]] = Counter()
    for position in positions:
        draw = times_drawn[position.moves]
        times_drawn[position.moves] += 1
        yield InspectSample(
            input=_shown(position),
            target=list(position.special_moves),
            id=f"{position.id}-{draw + 1}" if draw else position.id,
            metadata={
                GAME: position.game,
                "moves": list(position.moves),
                "special_moves": list(position.special_moves),
                "source": position.source,
                "draw": draw,
            },
        )


def _shown(position: Position) -> str:
    """The position for whoever looks at the sample; the model never sees this."""
    board = position.board()
    side = "White" if board.turn else "Black"
    game = numbered(written_game(position.moves)) or "no moves"
    special_moves = ", ".join(written(board, uci) for uci in position.special_moves)
    return f"{side} to move after {game}\n\n```\n{drawing(board)}\n```\n\nSpecial: {special_moves}"
