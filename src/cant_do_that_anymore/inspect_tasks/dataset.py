"""The samples of a task: at once where the dataset is known, else found while the task runs.

Inspect does not tell a task how many samples it will ask about (``--limit``). So the dataset of a
model is found step by step, and the next step is taken when Inspect wants more samples.
"""

from collections.abc import Iterator
from contextlib import closing
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from itertools import count, takewhile

from inspect_ai import SampleSource
from inspect_ai.dataset import Sample as InspectSample
from inspect_ai.model import Model, get_model

from ..client.cache import ModelCache
from ..client.session import open_client
from ..client.store import Store
from ..costs.approval import ENOUGH_ANSWERS, MIN_ANSWERS
from ..datasets.pools import Pool, drawn, positions_drawn
from ..datasets.search import Query, SelectionConfig
from ..datasets.selection import controls_for, find_dataset, prefix_if_sufficient
from ..datasets.storage import Dataset
from ..files import answers_file
from ..game.notation import notate, notate_game, with_move_numbers
from ..game.position import Position, earlier_moves
from ..game.rules import Rules
from ..providers.local import draw_board
from ..runs.evaluate import Selection, select_async
from ..task.samples import Trial, trials_of
from ..task.spec import Spec, plan_for
from ..task.types import Eval
from .model import Arguments, TaskModel, spec_for
from .scorer import CONTROL, DRAW, GAME, LENGTH, MOVES, RULES

MOCK = "mockllm/"
"""Inspect's model for trying a task out: it has no habits, so it is asked about the pool itself."""


def steps(most: int) -> Iterator[int]:
    """How many samples there are after each step; what people ask for is among them.

    >>> list(steps(150))
    [1, 2, 5, 10, 20, 50, 100, 150]
    """
    sizes = (unit * 10**power for power in count() for unit in (1, 2, 5))
    yield from takewhile(lambda size: size < most, sizes)
    yield most


@dataclass
class _Progress:
    """How far the dataset has been found in one run of the task."""

    steps: Iterator[int]
    given: set[object] = field(default_factory=set)


_PROGRESS: ContextVar[_Progress] = ContextVar("progress")
"""That of the run which asks for samples: a task may be run more than once, with other models."""


class Found(SampleSource):
    """Samples of a dataset that is found while the task runs, through the model of the task."""

    def __init__(self, eval: Eval, arguments: Arguments, at_hand: Dataset | Pool) -> None:
        self._eval = eval
        self._arguments = arguments
        self._at_hand = at_hand

    async def next_samples(self) -> list[InspectSample] | None:
        """Those of the next step; None when there are no more."""
        spec = spec_for(self._eval, self._arguments, get_model())
        progress = _PROGRESS.get(None) or _Progress(steps(spec.to_draw))
        _PROGRESS.set(progress)
        for size in progress.steps:
            chosen = await self._chosen(spec, size)
            samples = samples_of(chosen, spec.change, size)
            new = [sample for sample in samples if sample.id not in progress.given]
            progress.given.update(sample.id for sample in new)
            if new or chosen.dataset.pool_ended:
                return new or None
        return None

    async def _chosen(self, spec: Spec, size: int) -> Selection:
        """As much as a step wants; few samples need not be worth what all of them cost to find."""
        if known := known_already(spec, get_model(), self._at_hand):
            return known
        model = TaskModel(get_model())
        plan = plan_for(spec, model)
        step = replace(plan, wanted=size)
        billed = step if size <= ENOUGH_ANSWERS else plan
        at_once = min(
            model.connections, max(MIN_ANSWERS, size // 4)
        )  # little is asked that is not wanted
        async with open_client(replace(spec, max_connections=at_once), model) as asking:
            return await select_async(spec, step, self._at_hand, asking, billed=billed, quiet=True)


def known_already(spec: Spec, asked: Model | None, at_hand: Dataset | Pool) -> Selection | None:
    """What the task is about, if that is known without asking the model anything."""
    if isinstance(at_hand, Pool) and asked and str(asked).startswith(MOCK):
        at_hand = Dataset("", at_hand.name, list(at_hand.positions))
    if isinstance(at_hand, Dataset):
        return Selection(at_hand, [position for _, position in drawn(at_hand, spec)], [])
    if not asked:
        return None
    model = TaskModel(asked)
    plan = plan_for(spec, model)
    criteria = SelectionConfig(model, at_hand, plan)
    with closing(Store(answers_file())) as store:
        kept = ModelCache(model, store)
        first = kept.answer(criteria.request(Query(0, 0)), criteria.settings)
        found = (
            prefix_if_sufficient(find_dataset(first.version, criteria), plan.wanted)
            if first
            else None
        )
        if not found:
            return None
        positions = positions_drawn(found, spec, plan)
        controls = controls_for(found, positions, criteria, kept) if spec.diagnose else []
    return Selection(found, positions, controls)


def samples_of(chosen: Selection, change: Rules, size: int | None = None) -> list[InspectSample]:
    """So many positions, and of a diagnosis as many controls.

    What was found by asking is in the order in which it was found, so that a few samples are always
    the same ones.
    """
    positions = list(chosen.positions)
    if chosen.dataset.asked:
        found = {position.id: place for place, position in enumerate(chosen.dataset.positions)}
        positions.sort(key=lambda position: found[position.id])
    n = len(positions[:size])
    draws = enumerate(trials_of([*positions[:size], *chosen.controls[:size]]))
    return [_sample(draw, change, control=place >= n) for place, draw in draws]


def _sample(draw: Trial, change: Rules, *, control: bool) -> InspectSample:
    position = draw.position
    return InspectSample(
        input=_shown(position),
        target=list(position.special_moves),
        id=f"{position.id}-{draw.number + 1}" if draw.number else position.id,
        metadata={
            RULES: change.key,
            GAME: position.game,
            MOVES: list(position.moves),
            "special_moves": list(position.special_moves),
            "source": position.source,
            LENGTH: len(position.moves),
            "earlier_moves_of_changed_piece": earlier_moves(position, change),
            DRAW: draw.number,
            **({CONTROL: True} if control else {}),
        },
    )


def _shown(position: Position) -> str:
    """The position for whoever looks at the sample; the model never sees this."""
    board = position.board()
    side = "White" if board.turn else "Black"
    game = with_move_numbers(notate_game(position.moves)) or "no moves"
    special_moves = ", ".join(notate(board, uci) for uci in position.special_moves)
    return (
        f"{side} to move after {game}\n\n```\n{draw_board(board)}\n```\n\nSpecial: {special_moves}"
    )
