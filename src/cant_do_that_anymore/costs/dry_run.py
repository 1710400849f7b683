"""Run a run dry: which requests it would send, from its cached answers and simulated ones.

The search and the sampling are those of the run itself. Nothing is sent and no API key is needed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from statistics import median

from ..client.cache import ModelCache, open_cache
from ..client.pricing import searches_whole_pool
from ..datasets.pools import given_dataset, positions_drawn, positions_for
from ..datasets.search import DRAWS, Query, Search, SelectionConfig, positions_in_batches
from ..datasets.selection import controls_for, existing_dataset, selection_requests
from ..datasets.storage import Dataset, rates_on_all, rates_on_common
from ..game.position import Position
from ..metrics.stopping import expected_samples, is_reached, looks, shares_expected, stages
from ..providers.base import ModelInfo, Settings
from ..providers.request_variants import NO_TEMPERATURE
from ..task.samples import trials_for
from ..task.spec import COMMON, Spec, plan_for
from ..task.types import Plan, Sample
from .tokens import RequestStep

# More cached answers add little to the estimate of their length.
MAX_CACHED = 100
_SIMULATED = "imagined"
# The hit rate of other models counts as much as this many answered positions.
OTHER_MODELS_WEIGHT = 10


@dataclass(frozen=True)
class RequestForecast:
    """The expected requests of a run.

    Attributes:
        dataset: to build the dataset; measuring: to measure its positions.
        imagined: the assumption about unknown positions; "" if the positions are known.
        samples: the samples with all answers cached, if the run has a target precision.
        looks: how often such a run still checks its precision.
    """

    dataset: RequestStep
    measuring: RequestStep
    imagined: str
    samples: list[Sample]
    looks: int = 1

    @property
    def to_ask(self) -> int:
        """The number of requests without an answer."""
        return len(self.dataset.to_ask) + len(self.measuring.to_ask)

    @property
    def next_step(self) -> RequestStep:
        """The step whose requests the run sends next, whatever the answers are."""
        if not self.imagined:
            return self.measuring
        first_draws = [request for request in self.dataset.to_ask if not request.draw]
        return replace(self.dataset, to_ask=first_draws)


def forecast_with_store(spec: Spec, info: ModelInfo) -> RequestForecast:
    """Forecast a run from the cached answers.

    Raises:
        InvalidInput: if the spec is invalid.
    """
    with open_cache(info, fresh=spec.fresh) as cache:
        return forecast_with_cache(spec, plan_for(spec, info), info, cache)


def forecast_with_cache(
    spec: Spec, plan: Plan, info: ModelInfo, cache: ModelCache
) -> RequestForecast:
    """Forecast a run from this cache; with a target precision, up to its expected sample size."""
    in_flight = 2 * (spec.max_connections or info.connections)
    for stage in stages(plan):
        forecast = forecast_requests(spec, stage, info, cache, in_flight)
        if forecast.to_ask or is_reached(forecast.samples, plan):
            break
    if not plan.precision or not forecast.to_ask:
        return forecast
    size = expected_samples(plan.precision, plan.wanted, shares_expected(forecast.samples))
    expected_plan = replace(plan, wanted=max(size, stage.wanted))
    remaining_looks = [
        look for look in looks(plan.wanted) if stage.wanted <= look <= expected_plan.wanted
    ]
    return replace(
        forecast_requests(spec, expected_plan, info, cache, in_flight), looks=len(remaining_looks)
    )


def forecast_requests(
    spec: Spec, plan: Plan, info: ModelInfo, cache: ModelCache, in_flight: int
) -> RequestForecast:
    """Forecast the requests of a run with this many requests in flight, or a wave of batches."""

    def new_step(settings: Settings) -> RequestStep:
        return RequestStep(settings, cache.variant(settings))

    source, measuring = positions_for(spec), new_step(plan.settings)
    controls: list[Position] = []
    if isinstance(source, Dataset):
        positions = positions_drawn(source, spec, plan)
        selection, imagined = new_step(plan.settings), ""
    else:
        criteria = SelectionConfig(info, source, plan)
        selection = new_step(criteria.settings)
        existing = _existing_dataset(spec, criteria, cache, selection)
        if spec.fallback_dataset and not existing:
            existing = given_dataset(spec.fallback_dataset, plan.change)
        dataset, imagined = (
            (existing, "")
            if existing
            else _simulate_search(
                criteria,
                cache,
                selection,
                None if spec.batch else in_flight,
                patient=searches_whole_pool(spec, info),
            )
        )
        positions = positions_drawn(dataset, spec, plan)
        if spec.diagnose:
            controls = _controls(dataset, positions, criteria, cache, selection)
    samples: list[Sample] = []
    for index, (trial, conditions) in enumerate(trials_for(positions, controls, plan)):
        requests = cache.limited(list(trial.requests(conditions)), plan.settings)
        answers = [cache.answer(request, plan.settings) for request in requests]
        for request, answer in zip(requests, answers, strict=True):
            measuring.add(request, answer)
        cached = [answer for answer in answers if answer]
        if plan.precision and len(cached) == len(requests) and index < len(positions):
            samples.append(trial.sample(cached, conditions, plan.reading))
    return RequestForecast(selection, measuring, imagined, samples)


def _existing_dataset(
    spec: Spec, criteria: SelectionConfig, cache: ModelCache, step: RequestStep
) -> Dataset | None:
    """Return the existing dataset, if any; the first answer names the model's version."""
    first = criteria.request(Query(0, 0))
    answer = cache.answer(first, criteria.settings)
    version = answer.version if answer else _likely_version(criteria.model)
    dataset = existing_dataset(version, criteria, fresh=spec.fresh)
    if not dataset:
        return None
    step.add(first, answer)
    for number in range(1, min(MAX_CACHED, len(criteria.ordered))):
        request = criteria.request(Query(number, 0))
        if answer := cache.answer(request, criteria.settings):
            step.add(request, answer)
    return dataset


def _controls(
    dataset: Dataset,
    positions: Sequence[Position],
    criteria: SelectionConfig,
    cache: ModelCache,
    step: RequestStep,
) -> list[Position]:
    """Return the run's controls; with simulated or missing answers, any other positions."""
    if dataset.origin != _SIMULATED:
        requests = selection_requests(dataset, criteria)
        missing = [request for request in requests if not cache.answer(request, criteria.settings)]
        step.to_ask += [request for request in missing if request not in step.to_ask]
        if not missing:
            return controls_for(dataset, positions, criteria, cache)
    members = {member.moves for member in dataset.positions}
    others = (position for position in criteria.ordered if position.moves not in members)
    return list(islice(others, len(positions)))


def _likely_version(model: ModelInfo) -> str:
    return str(model.identity["name"]).rpartition("/")[2]


def _simulate_search(
    criteria: SelectionConfig,
    cache: ModelCache,
    step: RequestStep,
    in_flight: int | None,
    *,
    patient: bool,
) -> tuple[Dataset, str]:
    """Return a simulated dataset and the assumption it is based on."""
    search, settings = Search(criteria, criteria.plan.wanted), criteria.settings
    draws = DRAWS if NO_TEMPERATURE in cache.variant(settings) else 1
    basis, plays = "", _evenly_spaced(0.0)
    for request in search.requests():
        answer = cache.answer(request, settings)
        step.add(request, answer)
        if answer:
            search.observe(answer)
        else:
            if not basis:
                rate, basis = _hit_rate(search, criteria.pool.name)
                if draws == 1 and criteria.model.may_think:
                    basis += (
                        "; models without temperature control are asked 3 times about each of those"
                    )
                plays = _evenly_spaced(rate)
            search.advance(search.repeats or next(plays), draws)
        if search.done or (search.is_hopeless and not patient):
            break
    if in_flight is None:
        expected_requests = positions_in_batches(
            criteria.plan.wanted, len(search.hits) / search.searched
        )
        in_flight = max(0, expected_requests - search.searched)
    # Requests that are in flight when the last hit arrives.
    for request in islice(search.requests(), in_flight if basis else 0):
        step.add(request, cache.answer(request, settings))
    version = _likely_version(criteria.model)
    hits = search.hits or criteria.ordered[:1]
    return Dataset(version, _SIMULATED, hits, asked=search.searched), basis


def _evenly_spaced(rate: float) -> Iterator[bool]:
    """Yield hits at this rate, spaced evenly."""
    due = 0.0
    while True:
        due += rate
        yield due >= 1
        due -= due >= 1


def _hit_rate(search: Search, pool: str) -> tuple[float, str]:
    """Return the expected share of positions with the habit, and what it is based on."""
    rates = rates_on_common() if pool == COMMON else rates_on_all()
    hits = len(search.hits) + OTHER_MODELS_WEIGHT * median(rates)
    rate = hits / (search.searched + OTHER_MODELS_WEIGHT)
    among = ", each among the positions of the others" if pool == COMMON else ""
    others = (
        f"the median of the shipped datasets ({100 * min(rates):.1f} to {100 * max(rates):.1f}%"
        f"{among})"
    )
    if search.searched:
        others = f"by {len(search.hits):,} of {search.searched:,} asked so far and {others}"
    return rate, (
        f"assumes that the model plays the special move in {100 * rate:.1f}% of positions, {others}"
    )
