"""Select a model's dataset and its control positions from a pool.

A dataset belongs to one model: the version that answers, at its address, over its API, with its
settings. Two models of one name have two datasets. It is built once, unless some of its requests
had no answer. Every answer is cached, so a larger dataset continues where the last one ended.

Controls need no requests of their own. To build its dataset, the model was asked about many
positions of the pool. Where it played another move than the special one, and that move is legal
under all rules of the run (standard, changed and placebo), the move is a habit like any other. For
a model that does not support temperature, it is the first answer, without confirmation.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial

import chess

from ..client.budget import RunningCost
from ..client.cache import ModelCache
from ..client.client import Client
from ..errors import Incomplete, NoHabit
from ..game.position import Position, checked
from ..game.rules import BISHOPS_AS_KNIGHTS
from ..progress import progress, progress_display
from ..providers.base import Answer, ModelInfo, Request
from ..providers.catalog import OPENAI_BASE_MODELS
from ..task.forms import MOVES
from ..task.samples import QualityGuard, trials_for
from ..task.spec import Spec
from ..task.types import Plan
from .no_habit import MAX_POSITIONS_PER_HIT
from .pools import Pool, given_dataset, positions_drawn
from .search import BUILT, Query, Search, SelectionConfig
from .storage import Dataset, save_dataset, saved_dataset, shipped_datasets

log = logging.getLogger(__name__)

# Positions that show how long answers under the changed rules are.
PROBED_POSITIONS = 2
# Requests are sent in the order of the pool: after so many without an answer, none has one.
MAX_GAP = 20


@dataclass(frozen=True)
class Selection:
    """The selected positions of a run: its dataset, the positions drawn from it, and controls."""

    dataset: Dataset
    positions: Sequence[Position]
    controls: Sequence[Position]


async def select_positions(
    spec: Spec,
    plan: Plan,
    source: Dataset | Pool,
    client: Client,
    running_cost: RunningCost,
    *,
    quiet: bool,
) -> Selection:
    """Find or build the dataset of a model, and draw positions and controls from it.

    Raises:
        NoHabit: if the model plays the special move nowhere, or in too few positions.
        Incomplete: if the search ends early for another reason.
    """
    if isinstance(source, Dataset):
        return Selection(source, positions_drawn(source, spec), [])
    config = SelectionConfig(client.model.info, source, plan)
    version = await _version_of(client, config, quiet=quiet)
    if spec.fallback_dataset and not _find_dataset(version, config):
        log.warning("%s has no dataset; using that of %s", version, spec.fallback_dataset)
    dataset = known_dataset(version, spec, config) or await _build_dataset(
        spec, version, config, client, running_cost, quiet=quiet
    )
    if spec.diagnose and not dataset.built_now:  # the cache may have lost some answers
        requests = selection_requests(dataset, config)
        async with aclosing(client.answers(requests, config.settings)) as answers:
            async for _ in answers:
                pass
    return drawn_from(dataset, spec, config, client.cache)


def drawn_from(
    dataset: Dataset, spec: Spec, config: SelectionConfig, cache: ModelCache
) -> Selection:
    """Draw positions and controls from a dataset whose answers are cached."""
    positions = positions_drawn(dataset, spec)
    controls = controls_for(dataset, positions, config, cache) if spec.diagnose else []
    return Selection(dataset, positions, controls)


def controls_for(
    dataset: Dataset, samples: Sequence[Position], config: SelectionConfig, cache: ModelCache
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


def first_requests(
    config: SelectionConfig, cache: ModelCache
) -> Iterator[tuple[Position, Request]]:
    """Yield requests that show how long the answers of a run are, while no position is found."""
    plan, first = config.plan, config.ordered[:PROBED_POSITIONS]
    for trial, conditions in trials_for([checked(p, plan.change) for p in first], [], plan):
        for request in cache.same_limit_if_cut(trial.requests(conditions), plan.settings):
            yield trial.position, request


def selection_requests(dataset: Dataset, config: SelectionConfig) -> Iterator[Request]:
    """Yield the first request about each position that was searched for the dataset."""
    return (request for _, request in _searched(dataset, config))


def _searched(dataset: Dataset, config: SelectionConfig) -> Iterator[tuple[Position, Request]]:
    """Yield the pool up to the dataset's last position, or its end; nothing if not built."""
    for number, position in enumerate(config.ordered if dataset.asked else ()):
        yield position, config.request(Query(number, 0))
        if position.moves == dataset.positions[-1].moves and not dataset.pool_ended:
            return


def _stays_legal(position: Position, move: str, config: SelectionConfig) -> bool:
    board, played = position.board(), chess.Move.from_uci(move)
    return all(condition.rules.is_legal(board, played) for condition in config.plan.conditions)


async def _version_of(client: Client, config: SelectionConfig, *, quiet: bool) -> str:
    """Return the exact version the model answers as, from the first request of the pool.

    A human player is asked nothing for that.

    Raises:
        Incomplete: if the model does not answer.
    """
    if client.model.on_progress:
        return client.model.info.name
    request = config.request(Query(0, 0))
    with progress_display(f"contacting {client.model.info.name}", quiet=quiet):
        async with aclosing(client.answers([request], config.settings)) as answers:
            answer = await anext(answers)
    if answer.stop_reason == "error":
        raise Incomplete(f"{client.model.info.name} does not answer ({answer.error})")
    return answer.version


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
    spec: Spec,
    version: str,
    config: SelectionConfig,
    client: Client,
    running_cost: RunningCost,
    *,
    quiet: bool,
) -> Dataset:
    """Search the pool for the model's positions, and save them unless the run is fresh."""
    wanted, person = config.plan.wanted, client.model.on_progress
    search, guard = Search(config, wanted), QualityGuard(config.settings)
    title = "finding your habits" if person else f"building the dataset of {version}"
    with progress(title, wanted, quiet=quiet, to=person) as advance:
        while not search.done:  # the last answers may call for more requests
            answering = client.answers(search.requests(), config.settings, client.window)
            gave_up = False
            async with aclosing(answering) as answers:
                async for answer in answers:
                    hits_before = len(search.hits)
                    search.observe(answer, guard)
                    running_cost.observe(answer, "dataset")
                    new_hits = len(search.hits) - hits_before
                    running_cost.check(*_to_come(search, running_cost, deviations=1.0))
                    advance(new_hits, facts=partial(_facts, search, running_cost))
                    gave_up = search.gives_up(spec)
                    if search.done or gave_up:
                        break
            if gave_up and not search.done:
                raise NoHabit(_hopeless(version, search, running_cost, spec))
    for answer in list(_unneeded_answers(search, client.cache)):
        search.add_cost(answer)
    built = search.dataset(version)
    if not spec.fresh and not built.failed:
        save_dataset(built, config.digest, config.facts)
    return built


def _unneeded_answers(search: Search, cache: ModelCache) -> Iterator[Answer]:
    """Yield the answers that a search paid for and did not need, now or in an earlier command."""
    config, missing = search.config, 0
    for request in search.unneeded():
        if answer := cache.answer(request, config.settings):
            missing = 0
            yield answer
        else:
            missing += 1
            if missing > MAX_GAP:
                break
    for position, request in first_requests(config, cache):
        answer = cache.answer(request, config.plan.settings)
        if answer and position not in search.hits:  # it only showed how long the answers are
            yield answer


def _to_come(
    search: Search, running_cost: RunningCost, deviations: float = 0.0
) -> tuple[float, float]:
    """Return the expected requests to find the other positions, and to measure all of them."""
    requests, positions = search.expected(deviations)
    return requests, running_cost.per_sample * positions


def _facts(search: Search, running_cost: RunningCost) -> list[str]:
    rate = len(search.hits) / max(search.searched, 1)
    return [*running_cost.in_total(*_to_come(search, running_cost)), f"{rate:.0%} hits"]


def _hopeless(version: str, search: Search, running_cost: RunningCost, spec: Spec) -> str:
    hits, cost = len(search.hits), running_cost.format_cost(search.left, 0)
    left = f"{search.left:,}{f' (about {cost})' if cost else ''}"
    budget = running_cost.meter.budget
    spent = f". {budget.spent}" if budget.paid else ""
    measurable = f", or -n {hits} to measure the {hits} found" if hits else ""
    return (
        f"{version} plays the special move in {hits} of {search.searched:,} positions, fewer than "
        f"1 in {MAX_POSITIONS_PER_HIT}. The search stopped before the other {left}"
        f"{search.advice}{spent}. Use --keep-looking to continue{measurable}"
        + ("" if spec.fresh else ". All answers are saved")
    )
