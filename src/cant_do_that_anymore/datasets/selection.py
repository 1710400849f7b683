"""Select a model's dataset and its controls from a pool.

A dataset belongs to one model: the version that answers, at its address, over its API, with its
settings. Two models of one name have two datasets. It is built once, unless some of its requests
had no answer. Every answer is cached, so a larger dataset continues where the last one ended.

Controls of chess need no requests of their own. To build its dataset, the model was asked about
many positions of the pool. Where it played another move than the usual one, and that move is legal
under all rules of the run (standard, changed and placebo), the move is a habit like any other.
Questions have controls of their own: items whose usual answer stays right.
"""

import logging
from collections.abc import Hashable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from ..client.cache import Cache
from ..client.client import Client
from ..errors import Incomplete, Interrupted, NoHabit
from ..habits.base import Item, Pool
from ..habits.chess.pools import SHIPPED
from ..progress import progress
from ..providers.base import Answer, ModelInfo, Request
from ..providers.catalog import OPENAI_BASE_MODELS
from ..task.samples import FirstReplies
from ..task.spec import Spec
from ..task.types import Plan
from .pools import drawn, given_dataset
from .search import BUILT, Search, SelectionConfig
from .storage import Dataset, save_dataset, saved_dataset, shipped_datasets

log = logging.getLogger(__name__)

# A dataset is refused if more of its requests than both this number and this share have no answer.
MAX_FAILED, MAX_FAILED_SHARE = 5, 0.05


@dataclass(frozen=True)
class Selection:
    """The selected items of a run: its dataset, the items drawn from it, and controls."""

    dataset: Dataset
    items: Sequence[Item]
    controls: Sequence[Item]


async def select_items(
    spec: Spec, plan: Plan, source: Dataset | Pool, client: Client, *, quiet: bool
) -> Selection:
    """Find or build the dataset of a model, and draw items and controls from it.

    Raises:
        NoHabit: if the model gives the usual answer nowhere, or too rarely.
        Incomplete: if the search ends early for another reason.
    """
    if isinstance(source, Dataset):
        return Selection(source, [*drawn(source, spec).values()], [])
    config = SelectionConfig(client.model.info, source, plan)
    first = await _first_answer(client, config, quiet=quiet)
    version = first.version or client.model.info.name
    if spec.fallback_dataset and not _find_dataset(version, config):
        log.warning("%s has no dataset; using that of %s", version, spec.fallback_dataset)
    dataset = known_dataset(version, spec, config) or await _build_dataset(
        spec, version, config, client, quiet=quiet
    )
    if spec.diagnose:
        await _ask_candidates(dataset, plan.wanted, config, client)
    return _drawn_from(dataset, spec, config, client.cache)


def known_selection(
    spec: Spec, plan: Plan, source: Dataset | Pool, model: ModelInfo, cache: Cache
) -> Selection | None:
    """Return the items of a run if that takes no request, else None.

    Before the first answer names the version of the model, that in its name counts.
    """
    if isinstance(source, Dataset):
        return Selection(source, [*drawn(source, spec).values()], [])
    config = SelectionConfig(model, source, plan)
    first = cache.answer(config.request(0), config.settings)
    version = first.version if first else model.name.rpartition("/")[2]
    dataset = known_dataset(version, spec, config)
    return _drawn_from(dataset, spec, config, cache) if dataset else None


def _drawn_from(dataset: Dataset, spec: Spec, config: SelectionConfig, cache: Cache) -> Selection:
    """Draw items, and controls from the answers that are cached."""
    items = [*drawn(dataset, spec).values()]
    controls = _controls_for(dataset, items, config, cache) if spec.diagnose else []
    return Selection(dataset, items, controls)


def _controls_for(
    dataset: Dataset, samples: Sequence[Item], config: SelectionConfig, cache: Cache
) -> list[Item]:
    """Return as many controls as samples, or as many as there are, in a fixed order.

    It sends no requests. The usual answers of a control are what the model answered.
    """
    seen = {item.subject for item in samples}
    controls: dict[Hashable, Item] = {}
    for item, request in _candidates(dataset, config):
        if len(controls) == len(samples):
            break
        answer = cache.answer(request, config.settings)
        control = _control_in(item, answer, config) if answer and item.subject not in seen else None
        if control:
            controls.setdefault(item.subject, control)
    return list(controls.values())


def _candidates(dataset: Dataset, config: SelectionConfig) -> Iterator[tuple[Item, Request]]:
    """Yield the control items of the change, or else the pool as far as it was searched."""
    change = config.plan.change
    own = change.its_habit.controls(change)
    if own is not None:
        yield from ((item, config.request_about(item)) for item in own)
        return
    for number, item in enumerate(config.ordered if dataset.asked else ()):
        yield item, config.request(number)
        if item.subject == dataset.items[-1].subject and not dataset.pool_ended:
            return


def _control_in(item: Item, answer: Answer, config: SelectionConfig) -> Item | None:
    """Return an item as a control if the model's answer to it is right under all rules, or None."""
    given = config.score(answer, item).answer
    if given is None or not all(c.rules.allows(given, item) for c in config.plan.conditions):
        return None
    control: Item | None = config.plan.change.its_habit.as_control(item, given)
    return control


async def _ask_candidates(
    dataset: Dataset, wanted: int, config: SelectionConfig, client: Client
) -> None:
    """Ask about candidates until so many controls are found; the cache may have lost some."""
    candidates = list(_candidates(dataset, config))
    requests = (request for _, request in candidates)
    found = 0
    async with aclosing(client.answers(requests, config.settings)) as answers:
        for item, _ in candidates:
            found += _control_in(item, await anext(answers), config) is not None
            if found >= wanted:
                return


async def _first_answer(client: Client, config: SelectionConfig, *, quiet: bool) -> Answer:
    """Return the answer to the first request of the pool, which names the exact version.

    Raises:
        Incomplete: if the model does not answer.
    """
    with progress(f"contacting {client.model.info.name}", quiet=quiet):
        async with aclosing(client.answers([config.request(0)], config.settings)) as answers:
            answer = await anext(answers)
    if answer.stop_reason == "error":
        raise Incomplete(f"{client.model.info.name} does not answer ({answer.error})")
    return answer


def _find_dataset(version: str, config: SelectionConfig) -> Dataset | None:
    """Return the dataset of a model version, as far as it exists."""
    as_selected = config.pool.name == SHIPPED and config.plan.has_default_form
    if as_selected and _is_the_originals(config.model, version):
        shipped = shipped_datasets().get(version)
        if shipped:
            return shipped
    return saved_dataset(version, config.digest)


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
    if dataset.origin == BUILT and len(dataset.items) >= wanted:
        return replace(dataset, items=dataset.items[:wanted], pool_ended=False)
    return dataset if dataset.pool_ended else None


async def _build_dataset(
    spec: Spec, version: str, config: SelectionConfig, client: Client, *, quiet: bool
) -> Dataset:
    """Search the pool for the model's items, and save them unless the run is fresh."""
    wanted = config.plan.wanted
    search, first_replies = Search(config, wanted), FirstReplies(config.plan)
    title = f"building the dataset of {version}"
    answering = client.answers(search.requests(), config.settings, search.max_ahead)
    with progress(title, wanted, quiet=quiet) as advance:
        async with aclosing(answering) as answers:
            async for answer in answers:
                hits_before = len(search.hits)
                search.observe(answer, first_replies)
                advance(len(search.hits) - hits_before, facts=_facts(search, client))
                if search.done or search.gives_up(spec):
                    break
    if not search.done:
        raise NoHabit(_hopeless(version, search))
    built = search.dataset(version)
    if built.failed > max(MAX_FAILED, MAX_FAILED_SHARE * search.searched):
        raise Interrupted(
            f"{built.failed} of the {search.searched} requests to build the dataset have no answer"
        )
    if not spec.fresh and not built.failed:
        save_dataset(built, config.digest, config.facts, config.plan.change.its_habit)
    return built


def _facts(search: Search, client: Client) -> list[str]:
    rate = len(search.hits) / max(search.searched, 1)
    return [*client.spending.facts, f"{rate:.0%} hits"]


def _hopeless(version: str, search: Search) -> str:
    words, hits = search.config.plan.change.its_habit.words, len(search.hits)
    measurable = f", or -n {hits} to measure the {hits} found" if hits else ""
    return (
        f"{version} {words.does} {hits} of {search.searched:,} {words.items}. The search stopped "
        f"before the other {search.left:,}{search.advice}. Use --keep-looking to continue"
        f"{measurable}"
    )
