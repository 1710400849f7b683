"""Select a model's dataset and its control positions from a pool.

They cost no selection. To find its dataset, the model was asked about many positions of the pool;
where it played another move than the special one, and one that is legal under all rules of the run
(the standard ones, the changed ones and those of the placebo), that move is a habit like any other.
Of a model that takes no temperature it is the first draw, not asked again.

A dataset belongs to one model: the version that answers, at its address, over its API, with its
settings; two models of one name have two datasets. It is built once, unless some of its questions
had no answer. Every answer is in the store, so a larger dataset goes on where the last one ended.
"""

from collections.abc import Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import chess

from ..client.cache import ModelCache
from ..client.client import Client
from ..errors import Incomplete, NoHabit
from ..game.position import Position
from ..game.rules import BISHOPS_AS_KNIGHTS
from ..progress import progress, progress_display, status_callback
from ..providers.base import ModelInfo, Request
from ..providers.catalogue import OPENAI_BASE_MODELS
from ..providers.local import progress_listener
from ..task.quality_guard import QualityGuard
from .search import BUILT, ERROR, Query, Search, SelectionConfig
from .storage import Dataset, imported_for, save_dataset, saved_dataset, shipped_datasets

if TYPE_CHECKING:
    from ..costs.approval import RunningCost


def controls_for(
    dataset: Dataset, samples: Sequence[Position], criteria: SelectionConfig, kept: ModelCache
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
    dataset: Dataset, samples: Sequence[Position], criteria: SelectionConfig, asking: Client
) -> list[Position]:
    """The same, where what the store has lost since the dataset was found is asked again."""
    if not dataset.built_now:
        asks = asks_behind(dataset, criteria)
        async with aclosing(asking.answers(asks, criteria.settings)) as answers:
            async for _ in answers:
                pass
    return controls_for(dataset, samples, criteria, asking.cache)


def asks_behind(dataset: Dataset, criteria: SelectionConfig) -> Iterator[Request]:
    """The first question about each position that was asked for the dataset."""
    for number, _ in enumerate(_asked(dataset, criteria)):
        yield criteria.ask(Query(number, 0))


def _other_moves(
    dataset: Dataset, criteria: SelectionConfig, kept: ModelCache
) -> Iterator[tuple[Position, str]]:
    """The positions that were asked for the dataset, each with the move that was played first."""
    baseline, reading = criteria.plan.baseline, criteria.plan.reading
    for number, position in enumerate(_asked(dataset, criteria)):
        if answer := kept.answer(criteria.ask(Query(number, 0)), criteria.settings):
            judgement = baseline.read(answer, position, baseline.rules, reading)
            if judgement.outcome == "legal" and judgement.move:
                yield position, judgement.move


def _asked(dataset: Dataset, criteria: SelectionConfig) -> Iterator[Position]:
    """The pool as far as the dataset's last position, or to its end; nothing if nobody asked."""
    for position in criteria.ordered if dataset.asked else ():
        yield position
        if position.moves == dataset.positions[-1].moves and not dataset.pool_ended:
            return


def _stays_legal(position: Position, move: str, criteria: SelectionConfig) -> bool:
    board, played = position.board(), chess.Move.from_uci(move)
    return all(asked.rules.is_legal(board, played) for asked in criteria.plan.conditions)


async def version_of(asking: Client, criteria: SelectionConfig, *, quiet: bool) -> str:
    """The exact version the model answers as, learnt from the first question of the pool.

    A person is asked nothing for that.

    Raises:
        Incomplete: if it does not answer.
    """
    if progress_listener(asking.model):
        return asking.model.name
    first_ask = criteria.ask(Query(0, 0))
    with progress_display(f"the first answer of {asking.model.name}", quiet=quiet):
        async with aclosing(asking.answers([first_ask], criteria.settings)) as answers:
            first = await anext(answers)
    if first.stop_reason == "error":
        raise Incomplete(f"{asking.model.name} does not answer ({first.error})")
    return first.version


def found_dataset(version: str, criteria: SelectionConfig) -> Dataset | None:
    """The dataset of a model version as far as it exists."""
    change = criteria.plan.change
    if not criteria.pool.given:
        found = saved_dataset(version, imported_for(change), change)
        is_default = change == BISHOPS_AS_KNIGHTS
        if not found and is_default and _is_the_originals(criteria.model, version):
            found = shipped_datasets(criteria.pool.positions).get(version)
        if found:
            return found
    return saved_dataset(version, criteria.digest, change)


def _is_the_originals(model: ModelInfo, version: str) -> bool:
    """Whether it is OpenAI's own model, asked over the API that the original asked it over.

    A server may call its model what it likes.
    """
    as_text = model.identity.get("api") == "completions"
    return model.provider == "openai" and version.startswith(OPENAI_BASE_MODELS) == as_text


def prefix_if_sufficient(found: Dataset | None, wanted: int) -> Dataset | None:
    """As much of a dataset as is wanted, if it has that or can have no more.

    Of one built earlier only as much is taken as would be built now, so that the same run draws the
    same samples however large the dataset has grown.
    """
    if found and found.origin == BUILT and len(found.positions) >= wanted:
        return replace(found, positions=found.positions[:wanted], pool_ended=False)
    return found if found and found.pool_ended else None


async def dataset_for(
    asking: Client,
    version: str,
    criteria: SelectionConfig,
    outlook: "RunningCost",
    *,
    hoped: int,
    patient: bool,
    quiet: bool,
    fresh: bool,
) -> Dataset:
    """Find the dataset of a model version, or build as much of it as is wanted and missing.

    A fresh one is built anew, and not kept. Who is patient goes through the whole pool, although
    that cannot give half of what is hoped for.

    Raises:
        NoHabit: if it plays the special move nowhere, or in too few positions.
        Incomplete: if the search has to end otherwise.
    """
    wanted = criteria.plan.wanted
    found = prefix_if_sufficient(found_dataset(version, criteria), wanted)
    if found and not (fresh and found.origin == BUILT):
        return found
    search, watch, maybe_billed = (
        Search(criteria, wanted, hoped),
        QualityGuard(criteria.settings),
        False,
    )
    person = progress_listener(asking.model)
    what = "finding your habits" if person else f"building the dataset of {version}"
    with progress(what, wanted, quiet=quiet, to=person) as advance:
        while not search.done:  # the last answers may call for more questions
            asks = islice(search.asks(), search.wave if asking.is_batched else None)
            answering = asking.answers(
                asks, criteria.settings, asking.window, status_callback(advance)
            )
            async with aclosing(answering) as answers:
                async for answer in answers:
                    found_before = len(search.hits)
                    search.observe(answer, watch)
                    outlook.see(answer)
                    found_now = len(search.hits) - found_before
                    advance(found_now, remark=partial(_remark, search, outlook))
                    maybe_billed = search.is_hopeless and not patient
                    if search.done or (maybe_billed and not asking.is_batched):
                        break
            if maybe_billed and not search.done:
                raise NoHabit(_hopeless(version, search, outlook, fresh=fresh))
    built = search.dataset(version)
    if not fresh and not built.failed:
        save_dataset(built, criteria.digest, criteria.facts)
    return built


def _remark(search: Search, outlook: "RunningCost") -> str:
    rate = len(search.hits) / max(search.asked, 1)
    questions, positions = search.expected()
    in_all = outlook.in_all(questions + outlook.a_sample * positions)
    return f"{in_all}, {rate:.0%} hits"


def _hopeless(version: str, search: Search, outlook: "RunningCost", *, fresh: bool) -> str:
    cost, sure = outlook.cost_of(search.left), 100 * (1 - ERROR)
    return (
        f"{version} plays the special move in {len(search.hits)} of {search.asked:,} positions, so "
        f"it is {sure:.0f} % sure that the pool holds fewer than {search.needed:,}, not half of "
        f"the {search.target:,} wanted: stopped before asking about the other {search.left:,}"
        f"{f' ({cost})' if cost else ''}; --keep-looking goes on, and a smaller -n or a larger "
        "--precision wants less" + ("" if fresh else "; all answers are saved")
    )
