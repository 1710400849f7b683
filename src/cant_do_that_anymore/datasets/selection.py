"""Select a model's dataset and its control positions from a pool.

A dataset belongs to one model: the version that answers, at its address, over its API, with its
settings. Two models of one name have two datasets. It is built once, unless some of its requests
had no answer. Every answer is cached, so a larger dataset continues where the last one ended.

Controls need no requests of their own. To build its dataset, the model was asked about many
positions of the pool. Where it played another move than the special one, and that move is legal
under all rules of the run (standard, changed and placebo), the move is a habit like any other.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile

import chess

from ..client.cache import Cache
from ..client.client import Client
from ..errors import Incomplete, NoHabit
from ..formatting import dollars
from ..game.position import Position
from ..game.rules import BISHOPS_AS_KNIGHTS
from ..progress import progress, progress_display
from ..providers.base import Answer, ModelInfo, Request
from ..providers.catalog import OPENAI_BASE_MODELS
from ..providers.request_fields import NO_TEMPERATURE
from ..task.forms import MOVES
from ..task.samples import FirstReplies
from ..task.spec import Spec
from ..task.types import Plan
from .no_habit import MAX_POSITIONS_PER_HIT
from .pools import Pool, given_dataset, positions_drawn
from .search import BUILT, Search, SelectionConfig
from .storage import Dataset, save_dataset, saved_dataset, shipped_datasets

log = logging.getLogger(__name__)

OWN_TEMPERATURE_NOTE = (
    "the model does not support temperature 0: its positions were selected by single answers at "
    "the provider's own temperature"
)


@dataclass(frozen=True)
class Selection:
    """The selected positions of a run: its dataset, the positions drawn from it, and controls.

    The notes say how they were selected, if that is unusual.
    """

    dataset: Dataset
    positions: Sequence[Position]
    controls: Sequence[Position]
    notes: Sequence[str] = ()


async def select_positions(
    spec: Spec, plan: Plan, source: Dataset | Pool, client: Client, *, quiet: bool
) -> Selection:
    """Find or build the dataset of a model, and draw positions and controls from it.

    Raises:
        NoHabit: if the model plays the special move nowhere, or in too few positions.
        Incomplete: if the search ends early for another reason.
    """
    if isinstance(source, Dataset):
        return Selection(source, positions_drawn(source, spec), [])
    config = SelectionConfig(client.model.info, source, plan)
    first = await _first_answer(client, config, quiet=quiet)
    version = first.version or client.model.info.name
    if spec.fallback_dataset and not _find_dataset(version, config):
        log.warning("%s has no dataset; using that of %s", version, spec.fallback_dataset)
    dataset = known_dataset(version, spec, config) or await _build_dataset(
        spec, version, config, client, quiet=quiet
    )
    if spec.diagnose and not dataset.built_now:  # the cache may have lost some answers
        requests = (request for _, request in _searched(dataset, config))
        async with aclosing(client.answers(requests, config.settings)) as answers:
            async for _ in answers:
                pass
    is_sampled = dataset.asked and NO_TEMPERATURE in first.adjustments
    notes = [OWN_TEMPERATURE_NOTE] if is_sampled else []
    return replace(drawn_from(dataset, spec, config, client.cache), notes=notes)


def drawn_from(dataset: Dataset, spec: Spec, config: SelectionConfig, cache: Cache) -> Selection:
    """Draw positions and controls from a dataset whose answers are cached."""
    positions = positions_drawn(dataset, spec)
    controls = controls_for(dataset, positions, config, cache) if spec.diagnose else []
    return Selection(dataset, positions, controls)


def controls_for(
    dataset: Dataset, samples: Sequence[Position], config: SelectionConfig, cache: Cache
) -> list[Position]:
    """Return as many controls as samples, or as many as there are, in the order of the pool.

    It sends no requests: a dataset that was not built by requests has no controls. The special move
    of a control is its habit.
    """
    baseline, reading = config.plan.baseline, config.plan.reading
    seen = {position.moves for position in samples}
    controls: dict[tuple[str, ...], Position] = {}
    for position, request in _searched(dataset, config):
        if len(controls) == len(samples):
            break
        answer = cache.answer(request, config.settings)
        if not answer or position.moves in seen:
            continue
        score = baseline.read(answer, position, baseline.rules, reading)
        if score.outcome == "legal" and score.move and _stays_legal(position, score.move, config):
            controls.setdefault(position.moves, replace(position, special_moves=(score.move,)))
    return list(controls.values())


def _searched(dataset: Dataset, config: SelectionConfig) -> Iterator[tuple[Position, Request]]:
    """Yield the pool up to the dataset's last position, or its end; nothing if not built."""
    for number, position in enumerate(config.ordered if dataset.asked else ()):
        yield position, config.request(number)
        if position.moves == dataset.positions[-1].moves and not dataset.pool_ended:
            return


def _stays_legal(position: Position, move: str, config: SelectionConfig) -> bool:
    board, played = position.board(), chess.Move.from_uci(move)
    return all(condition.rules.is_legal(board, played) for condition in config.plan.conditions)


async def _first_answer(client: Client, config: SelectionConfig, *, quiet: bool) -> Answer:
    """Return the answer to the first request of the pool, which names the exact version.

    Raises:
        Incomplete: if the model does not answer.
    """
    with progress_display(f"contacting {client.model.info.name}", quiet=quiet):
        async with aclosing(client.answers([config.request(0)], config.settings)) as answers:
            answer = await anext(answers)
    if answer.stop_reason == "error":
        raise Incomplete(f"{client.model.info.name} does not answer ({answer.error})")
    return answer


def _find_dataset(version: str, config: SelectionConfig) -> Dataset | None:
    """Return the dataset of a model version, as far as it exists."""
    change = config.plan.change
    of_pool = not config.pool.user_chosen and config.plan.form is MOVES  # as they were selected
    if of_pool and change == BISHOPS_AS_KNIGHTS and _is_the_originals(config.model, version):
        shipped = shipped_datasets(config.pool.positions).get(version)
        if shipped:
            return shipped
    return saved_dataset(version, config.digest, change)


def _is_the_originals(model: ModelInfo, version: str) -> bool:
    """Whether this is OpenAI's own model, over the API that the original eval used.

    A server may give its model any name.
    """
    as_text = model.identity.get("api") == "completions"
    return model.provider == "openai" and version.startswith(OPENAI_BASE_MODELS) == as_text


def known_dataset(version: str, spec: Spec, config: SelectionConfig) -> Dataset | None:
    """Return as much of the model's dataset as the plan wants, if it has that much or cannot grow.

    From a larger built dataset, it takes as much as would be built now. So the same run draws the
    same samples, however large the dataset has grown. A fresh run takes no built dataset. With a
    fallback, no dataset is built.
    """
    dataset, wanted = _find_dataset(version, config), config.plan.wanted
    if spec.fallback_dataset:
        return dataset or given_dataset(spec.fallback_dataset, config.plan.change)
    if not dataset or (spec.fresh and dataset.origin == BUILT):
        return None
    if dataset.origin == BUILT and len(dataset.positions) >= wanted:
        return replace(dataset, positions=dataset.positions[:wanted], pool_ended=False)
    return dataset if dataset.pool_ended else None


async def _build_dataset(
    spec: Spec, version: str, config: SelectionConfig, client: Client, *, quiet: bool
) -> Dataset:
    """Search the pool for the model's positions, and save them unless the run is fresh."""
    wanted = config.plan.wanted
    search, first_replies = Search(config, wanted), FirstReplies()
    title = f"building the dataset of {version}"
    answering = client.answers(search.requests(), config.settings, search.max_ahead)
    with progress(title, wanted, quiet=quiet) as advance:
        async with aclosing(answering) as answers:
            async for answer in answers:
                hits_before = len(search.hits)
                search.observe(answer, first_replies)
                advance(len(search.hits) - hits_before, facts=partial(_facts, search, client))
                if search.done or search.gives_up(spec):
                    break
    if not search.done:
        raise NoHabit(_hopeless(version, search, client, spec))
    for answer in _unneeded_answers(search, client.cache):
        search.add_cost(answer)
    built = search.dataset(version)
    if not spec.fresh and not built.failed:
        save_dataset(built, config.digest, config.facts)
    return built


def _unneeded_answers(search: Search, cache: Cache) -> Iterator[Answer]:
    """Yield the answers to requests that were in flight when the last position was found."""
    answers = (cache.answer(request, search.config.settings) for request in search.requests())
    return (answer for answer in takewhile(bool, answers) if answer)


def _facts(search: Search, client: Client) -> list[str]:
    rate = len(search.hits) / max(search.searched, 1)
    return [*client.spending.facts, f"{rate:.0%} hits"]


def _hopeless(version: str, search: Search, client: Client, spec: Spec) -> str:
    hits = len(search.hits)
    total = client.spending.total
    spent = f". {dollars(total)} spent" if total else ""
    measurable = f", or -n {hits} to measure the {hits} found" if hits else ""
    return (
        f"{version} plays the special move in {hits} of {search.searched:,} positions, fewer than "
        f"1 in {MAX_POSITIONS_PER_HIT}. The search stopped before the other {search.left:,}"
        f"{search.advice}{spent}. Use --keep-looking to continue{measurable}"
        + ("" if spec.fresh else ". All answers are saved")
    )
