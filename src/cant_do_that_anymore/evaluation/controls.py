"""Control positions: where the model has a habit as well, but one that the change leaves legal.

They cost no selection. To find its dataset, the model was asked about many positions of the pool;
where it played another move than the special one, and one that is legal under all rules of the run
(the standard ones, the changed ones and those of the placebo), that move is a habit like any other.
Of a model that takes no temperature it is the first draw, not asked again.
"""

from collections.abc import Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace

import chess

from ..client.cache import ModelCache
from ..client.client import Client
from ..game.position import Position
from ..providers.base import Request
from .criteria import Criteria, Which
from .results import Dataset


def controls_for(
    dataset: Dataset, samples: Sequence[Position], criteria: Criteria, kept: ModelCache
) -> list[Position]:
    """As many controls as samples, or as many as there are, in the order of the pool.

    Nothing is asked: of a dataset that was not found by asking there are none. The special move of
    a control is its habit.
    """
    seen = {position.moves for position in samples}
    found: dict[tuple[str, ...], Position] = {}
    for position, move in _other_moves(dataset, criteria, kept):
        if len(found) == len(samples):
            break
        if position.moves not in seen and _stays_legal(position, move, criteria):
            found.setdefault(position.moves, replace(position, special_moves=(move,)))
    return list(found.values())


async def found_controls(
    dataset: Dataset, samples: Sequence[Position], criteria: Criteria, asking: Client
) -> list[Position]:
    """The same, where what the store has lost since the dataset was found is asked again."""
    if not dataset.built_now:
        asks = asks_behind(dataset, criteria)
        async with aclosing(asking.answers(asks, criteria.settings)) as answers:
            async for _ in answers:
                pass
    return controls_for(dataset, samples, criteria, asking.kept)


def asks_behind(dataset: Dataset, criteria: Criteria) -> Iterator[Request]:
    """The first question about each position that was asked for the dataset."""
    for number, _ in enumerate(_asked(dataset, criteria)):
        yield criteria.ask(Which(number, 0))


def _other_moves(
    dataset: Dataset, criteria: Criteria, kept: ModelCache
) -> Iterator[tuple[Position, str]]:
    """The positions that were asked for the dataset, each with the move that was played first."""
    baseline, reading = criteria.plan.baseline, criteria.plan.reading
    for number, position in enumerate(_asked(dataset, criteria)):
        if answer := kept.answer(criteria.ask(Which(number, 0)), criteria.settings):
            judgement = baseline.read(answer, position, baseline.rules, reading)
            if judgement.outcome == "legal" and judgement.move:
                yield position, judgement.move


def _asked(dataset: Dataset, criteria: Criteria) -> Iterator[Position]:
    """The pool as far as the dataset's last position, or to its end; nothing if nobody asked."""
    for position in criteria.ordered if dataset.asked else ():
        yield position
        if position.moves == dataset.positions[-1].moves and not dataset.pool_ended:
            return


def _stays_legal(position: Position, move: str, criteria: Criteria) -> bool:
    board, played = position.board(), chess.Move.from_uci(move)
    return all(asked.rules.is_legal(board, played) for asked in criteria.plan.conditions)
