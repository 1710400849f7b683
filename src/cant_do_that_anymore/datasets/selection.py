"""Select a model's dataset and its controls from a pool.

A dataset belongs to one model: the version that answers, at its address, over its API, with its
settings. Two models of one name have two datasets. It is built once, unless some of its requests
had no answer. Every answer is cached, so a larger dataset continues where the last one ended.

Controls of chess need no requests of their own. To build its dataset, the model was asked about
many positions of the pool. Where it played another move than the usual one, and that move is legal
under all rules of the run (standard, changed and placebo), the move is a habit like any other.
Questions have controls of their own: items whose usual answer stays right.
"""

from collections.abc import Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from itertools import islice

from ..client.cache import Cache
from ..client.client import Client
from ..errors import Incomplete, Interrupted
from ..formatting import warn_once
from ..habits.base import Item, Pool
from ..habits.chess.pools import SHIPPED
from ..progress import progress
from ..providers.base import Answer, ModelInfo
from ..providers.catalog import OPENAI_BASE_MODELS
from ..task.samples import FirstReplies
from ..task.spec import Spec
from ..task.types import Plan
from .pools import drawn, given_dataset
from .search import BUILT, Search, SelectionConfig
from .storage import Dataset, save_dataset, saved_dataset, shipped_datasets

# A dataset is refused if more of its requests than both this number and this share have no answer.
MAX_FAILED, MAX_FAILED_SHARE = 5, 0.05


@dataclass(frozen=True)
class Selection:
    """The selected items of a run: its dataset, the items drawn from it, and controls."""

    dataset: Dataset
    items: Sequence[Item]
    controls: Sequence[Item] = ()


async def select_items(
    spec: Spec, plan: Plan, source: Dataset | Pool, client: Client, *, quiet: bool
) -> Selection:
    """Find or build the dataset of a model, and draw items and controls from it.

    Raises:
        Unmeasurable: if the model gives the usual answer nowhere, or too rarely.
        Incomplete: if the search ends early for another reason.
    """
    if isinstance(source, Dataset):
        return Selection(source, [*drawn(source, spec).values()])
    config = SelectionConfig(client.model.info, source, plan)
    version = await _version(client, config, quiet=quiet)
    dataset = known_dataset(version, spec, config) or await _build_dataset(
        spec, version, config, client, quiet=quiet
    )
    if spec.diagnose:
        await _ask_candidates(dataset, config, client)
    return _drawn_from(dataset, spec, config, client.cache)


def known_selection(
    spec: Spec, plan: Plan, source: Dataset | Pool, model: ModelInfo, cache: Cache
) -> Selection | None:
    """Return the items of a run if that takes no request, else None.

    Before the first answer names the version of the model, that in its name counts.
    """
    if isinstance(source, Dataset):
        return Selection(source, [*drawn(source, spec).values()])
    config = SelectionConfig(model, source, plan)
    first = cache.answer(config.request(config.ordered[0]), config.settings)
    version = first.version if first else model.name.rpartition("/")[2]
    dataset = known_dataset(version, spec, config)
    return _drawn_from(dataset, spec, config, cache) if dataset else None


def _drawn_from(dataset: Dataset, spec: Spec, config: SelectionConfig, cache: Cache) -> Selection:
    """Draw items, and as many controls, or as many as there are."""
    items = [*drawn(dataset, spec).values()]
    controls = _controls(dataset, items, config, cache) if spec.diagnose else ()
    return Selection(dataset, items, [*islice(controls, len(items))])


def _controls(
    dataset: Dataset, items: Sequence[Item], config: SelectionConfig, cache: Cache
) -> Iterator[Item]:
    """Yield controls for items in a fixed order; it sends no requests.

    The usual answers of a control are what the model answered.
    """
    seen = {item.subject for item in items}
    for item in _candidates(dataset, config):
        answer = cache.answer(config.request(item), config.settings)
        control = _control_in(item, answer, config) if answer else None
        if control and control.subject not in seen:
            seen.add(control.subject)
            yield control


def _candidates(dataset: Dataset, config: SelectionConfig) -> Iterator[Item]:
    """Yield the control items of the change, or else the pool as far as it was searched."""
    change = config.plan.change
    own = change.its_habit.controls(change)
    if own is not None:
        yield from own
        return
    for item in config.ordered if dataset.asked else ():
        yield item
        if item.subject == dataset.items[-1].subject and not dataset.pool_ended:
            return


def _control_in(item: Item, answer: Answer, config: SelectionConfig) -> Item | None:
    """Return an item as a control if the model's answer to it is right under all rules, or None."""
    given = config.score(answer, item).answer
    if given is None or not all(c.rules.allows(given, item) for c in config.plan.conditions):
        return None
    control: Item | None = config.plan.change.its_habit.as_control(item, given)
    return control


async def _ask_candidates(dataset: Dataset, config: SelectionConfig, client: Client) -> None:
    """Ask about candidates until enough controls are found; the cache may have lost some."""
    candidates = list(_candidates(dataset, config))
    found = 0
    requests = map(config.request, candidates)
    async with aclosing(client.answers(requests, config.settings)) as answers:
        for item in candidates:
            found += _control_in(item, await anext(answers), config) is not None
            if found >= config.plan.wanted:
                return


async def _version(client: Client, config: SelectionConfig, *, quiet: bool) -> str:
    """Return the exact version of the model, which the answer to the first request names.

    Raises:
        Incomplete: if the model does not answer.
    """
    name, first = client.model.info.name, config.request(config.ordered[0])
    with progress(f"contacting {name}", quiet=quiet):
        async with aclosing(client.answers([first], config.settings)) as answers:
            answer = await anext(answers)
    if answer.error:
        raise Incomplete(f"{name} does not answer ({answer.error})")
    return answer.version or name


def known_dataset(version: str, spec: Spec, config: SelectionConfig) -> Dataset | None:
    """Return as much of the model's dataset as the plan wants, if it has that much or cannot grow.

    From a larger built dataset, it takes as much as would be built now. So the same run draws the
    same samples, however large the dataset has grown. A fresh run takes no built dataset. With a
    fallback, no dataset is built.
    """
    shipped = shipped_datasets() if _is_as_in_original(version, config) else {}
    dataset = shipped.get(version) or saved_dataset(version, config.digest)
    wanted = config.plan.wanted
    if spec.fallback_dataset:
        if not dataset:
            warn_once(f"{version} has no dataset; using that of {spec.fallback_dataset}")
        return dataset or given_dataset(spec.fallback_dataset, config.plan.change)
    if not dataset or (spec.fresh and dataset.origin == BUILT):
        return None
    if dataset.origin == BUILT and len(dataset.items) >= wanted:
        return replace(dataset, items=dataset.items[:wanted], pool_ended=False)
    return dataset if dataset.pool_ended else None


def _is_as_in_original(version: str, config: SelectionConfig) -> bool:
    """Whether OpenAI's own model is asked about the original's pool over the original's API.

    A server may give its model any name.
    """
    model, as_text = config.model, config.model.identity.get("api") == "completions"
    is_its_api = version.startswith(OPENAI_BASE_MODELS) == as_text
    is_its_pool = config.pool.name == SHIPPED and config.plan.has_default_form
    return model.provider == "openai" and is_its_api and is_its_pool


async def _build_dataset(
    spec: Spec, version: str, config: SelectionConfig, client: Client, *, quiet: bool
) -> Dataset:
    """Search the pool for the model's items, and save them unless the run is fresh."""
    search, first_replies = Search(config), FirstReplies(config.plan)
    answering = client.answers(search.requests(), config.settings, search.max_ahead)
    with progress(f"building the dataset of {version}", search.target, quiet=quiet) as advance:
        async with aclosing(answering) as answers:
            async for answer in answers:
                outcome = search.observe(answer)
                first_replies.observe(config.plan.baseline, answer, outcome)
                hits = f"{len(search.hits) / search.searched:.0%} hits"
                advance(outcome == "usual", facts=[*client.spending.facts, hits])
                if search.done or search.gives_up(spec):
                    break
    built = search.dataset(version)
    if built.failed > max(MAX_FAILED, MAX_FAILED_SHARE * search.searched):
        raise Interrupted(
            f"{built.failed} of the {search.searched} requests to build the dataset have no answer"
        )
    if not spec.fresh and not built.failed:
        save_dataset(built, config.digest, config.facts, config.plan.change.its_habit)
    return built
