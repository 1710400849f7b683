"""Forecast a run: requests, tokens, cost and time before anything is spent.

The forecast runs the search and the sampling of the run itself, with cached answers where they
exist and simulated ones otherwise. It sends nothing and needs no API key. It counts only the
requests that the run would send. The cached answers also predict how long the others will be.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from statistics import median

from ..client.budget import Price
from ..client.cache import ModelCache, open_cache
from ..client.pricing import rate_for, searches_whole_pool
from ..client.session import model_info
from ..datasets.pools import given_dataset, positions_drawn, positions_for
from ..datasets.search import DRAWS, Query, Search, SelectionConfig, positions_in_batches
from ..datasets.selection import controls_for, existing_dataset, selection_requests
from ..datasets.storage import Dataset, rates_on_all, rates_on_common
from ..errors import UserError
from ..game.position import Position
from ..game.rules import BISHOPS_AS_KNIGHTS
from ..metrics.stopping import (
    HALF_WIDTH,
    USUAL_IMPACT,
    USUAL_SHARE,
    enough_for_corrected,
    enough_for_specific,
    expected_sample_size,
    expected_samples,
    is_reached,
    looks,
    on_expected_samples,
    shares_expected,
    stages,
)
from ..providers.base import ModelInfo, Settings, Usage
from ..providers.request_variants import NO_TEMPERATURE
from ..task.conditions import OF_CONTROLS, OF_DIAGNOSIS
from ..task.samples import trials_for
from ..task.spec import COMMON, Spec, check_batch, plan_for
from ..task.types import Eval, Plan, Sample
from .tokens import Lengths, RequestStep, Span, lengths_of

# A precision that tells whether a habit is mostly dropped or mostly kept.
ROUGH_PRECISION = 0.1


def cheaper_than(spec: Spec, *, searches: bool, measures: bool = True) -> list[str]:
    """Return options that usually make evaluating the same model cheaper.

    Args:
        spec: the planned evaluation.
        searches: whether the dataset still has to be built.
        measures: whether the run goes on after the dataset is built.
    """
    options = []
    default_rules = spec.change == BISHOPS_AS_KNIGHTS and spec.eval != "all_diagonal"
    if searches and spec.pool is None and default_rules:
        options.append("--pool common")
    if measures and spec.eval == "all" and spec.n is None:
        options.append("--eval all_small")
    max_samples = spec.to_draw
    if (
        measures
        and spec.precision is None
        and expected_sample_size(ROUGH_PRECISION, max_samples) < max_samples
    ):
        options.append(f"--precision {ROUGH_PRECISION:g}")
    if not spec.batch and _supports_batches(spec):
        options.append("--batch")
    return options


def _supports_batches(spec: Spec) -> bool:
    """Whether the model is known to support batches; unknown for the user's own servers."""
    if spec.base_url:
        return False
    try:
        check_batch(spec, model_info(spec))
    except UserError:
        return False
    return True


SECONDS_PER_ANSWER = 1.0
TOKENS_PER_SECOND = 50.0
BUNDLED_ANSWERS_PER_SECOND = 100.0
SECONDS_PER_BATCH = 24 * 3600.0
# Usual number of batches for building the dataset and for measuring.
WAVES = 2, 1


@dataclass(frozen=True)
class LatencyModel:
    """Estimates the time of concurrent requests.

    Attributes:
        looks: with batches, how many looks at the precision wait for all of them; else None.
    """

    info: ModelInfo
    connections: int
    looks: int | None

    def seconds(self, questions: int, tokens: float, waves: int) -> float:
        """Return the seconds for this many answers of this length, or for waves of batches."""
        if self.looks:
            return self.looks * waves * SECONDS_PER_BATCH if questions else 0.0
        if self.info.is_local:
            return questions / BUNDLED_ANSWERS_PER_SECOND
        seconds_per_answer = max(SECONDS_PER_ANSWER, tokens / TOKENS_PER_SECOND)
        return questions * seconds_per_answer / self.connections

    @property
    def basis(self) -> str:
        """The assumptions behind the times, as text."""
        if self.looks:
            looks = f", for each of {self.looks} looks at the precision" if self.looks > 1 else ""
            text = "a batch takes 24 h at most, and the dataset takes two, one time in five more"
            return text + looks
        if self.info.is_local:
            return f"{BUNDLED_ANSWERS_PER_SECOND:.0f} answers a second are taken for our own models"
        return (
            f"{TOKENS_PER_SECOND:.0f} tokens a second are taken, and {SECONDS_PER_ANSWER:g} s an "
            f"answer at least, with {self.connections} questions at once"
        )


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
                    basis += "; each of those is asked twice more if it takes no temperature"
                plays = _evenly_spaced(rate)
            search.advance(search.asks_again or next(plays), draws)
        if search.done or (search.is_hopeless and not patient):
            break
    if in_flight is None:
        expected_requests = positions_in_batches(
            criteria.plan.wanted, len(search.hits) / search.asked
        )
        in_flight = max(0, expected_requests - search.asked)
    # Requests that are in flight when the last hit arrives.
    for request in islice(search.requests(), in_flight if basis else 0):
        step.add(request, cache.answer(request, settings))
    version = _likely_version(criteria.model)
    hits = search.hits or criteria.ordered[:1]
    return Dataset(version, _SIMULATED, hits, asked=search.asked), basis


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
    rate = hits / (search.asked + OTHER_MODELS_WEIGHT)
    among = ", each among the positions of the others" if pool == COMMON else ""
    others = (
        f"the middle of the shipped datasets ({100 * min(rates):.1f} to {100 * max(rates):.1f} %"
        f"{among})"
    )
    if search.asked:
        others = f"by {len(search.hits):,} of {search.asked:,} asked so far and {others}"
    return rate, (
        f"the special move is taken to be played in {100 * rate:.1f} % of positions, {others}"
    )


STEPS = "finding the dataset", "measuring"
SAME_MODEL = "not counted: the question that tells whether it is still the model that answered"


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


def _format_basis(figure: str, bases: Sequence[str]) -> list[str]:
    """Format the basis of a figure, once if it is the same for both steps."""
    if len(set(bases)) < 2:
        return [f"{figure}: {basis}" for basis in bases[:1]]
    return [f"{figure} in {step}: {basis}" for step, basis in zip(STEPS, bases, strict=True)]


def _diagnosis_sizes() -> str:
    corrected, specific = (
        " to ".join(f"{enough(USUAL_SHARE, impact):,}" for impact in (USUAL_IMPACT, 0))
        for enough in (enough_for_corrected, enough_for_specific)
    )
    return (
        f"diagnosis: {len(OF_DIAGNOSIS)} questions a sample and {len(OF_CONTROLS)} a control, so "
        f"up to {len(OF_DIAGNOSIS) + len(OF_CONTROLS)} a sample instead of 2; for ±{HALF_WIDTH:g} "
        f"the corrected impact factor takes about -n {corrected}, the specific one {specific} "
        f"(half of the habit yields, or none; {100 * USUAL_SHARE:.0f} % special moves under the "
        "placebo)"
    )


def cost(questions: int, lengths: Lengths, tokens: float, info: ModelInfo, price: Price) -> float:
    """Return the cost in US dollars of this many requests, given the mean tokens per answer."""
    used = Usage(lengths.input_tokens, round(questions * tokens))
    return price.of(used, _requests(questions, info))


def _requests(questions: int, info: ModelInfo) -> int:
    return questions * info.requests_per_answer


@dataclass(frozen=True)
class AnswerMode:
    """One mode in which a model may answer all requests of a step.

    Attributes:
        title: the mode.
        tokens: per answer.
        cost: of all requests in US dollars; None if the price is unknown.
        seconds: for all requests.
    """

    title: str
    tokens: Span
    cost: Span | None
    seconds: Span


@dataclass(frozen=True)
class Step:
    """Part of a run: its requests, and their cost and time in each mode of answering.

    Attributes:
        kept: how many answers are cached, as far as was looked up.
    """

    requests: int
    input_tokens: int
    ways: tuple[AnswerMode, ...]
    kept: int = 0


@dataclass(frozen=True)
class Estimate:
    """Estimated requests, cost and time of a run.

    Attributes:
        dataset: building the dataset of positions where the model has the habit.
        measuring: asking about each sample under every condition.
        total: both.
        assumptions: what the figures are based on, one sentence each.
        cheaper: options that usually cost less, if the run costs more than --ask-above.
    """

    model: str
    eval: Eval
    dataset: Step
    measuring: Step
    total: Step
    assumptions: tuple[str, ...]
    cheaper: tuple[str, ...]


def estimate(spec: Spec) -> Estimate:
    """Estimate the requests, cost and time of a run.

    Raises:
        InvalidInput: if the spec is invalid.
    """
    info = model_info(spec)
    forecast = forecast_with_store(spec, info)
    connections = spec.max_connections or info.connections
    latency = LatencyModel(info, connections, forecast.looks if spec.batch else None)
    price = rate_for(spec, info)
    steps = forecast.dataset, forecast.measuring
    lengths = [lengths_of(spec, info, step, other) for step, other in (steps, steps[::-1])]
    dataset, measuring = (
        replace(
            _step(len(step.to_ask), step_lengths, info, price, latency, waves), kept=step.answered
        )
        for step, step_lengths, waves in zip(steps, lengths, WAVES, strict=True)
    )
    total = _total(dataset, measuring)
    assumptions = [
        step_lengths.bases for step, step_lengths in zip(steps, lengths, strict=True) if step.to_ask
    ]
    return Estimate(
        model=spec.model or info.name,
        eval=spec.eval,
        dataset=dataset,
        measuring=measuring,
        total=total,
        cheaper=_cheaper(spec, dataset, total),
        assumptions=(
            *([f"dataset: {forecast.imagined}"] if forecast.imagined else []),
            *_format_basis("input", [basis.input for basis in assumptions]),
            *_format_basis("answers", [basis.answer for basis in assumptions]),
            f"time: {latency.basis}",
            *on_expected_samples(spec.precision, spec.to_draw, forecast.samples),
            *([_diagnosis_sizes()] if spec.diagnose else []),
            *([SAME_MODEL] if not info.is_local and dataset.kept + measuring.kept else []),
        ),
    )


def _cheaper(spec: Spec, dataset: Step, total: Step) -> tuple[str, ...]:
    most = max((way.cost.most for way in total.ways if way.cost), default=0.0)
    if most <= (Spec.ask_above or 0.0):
        return ()
    return tuple(cheaper_than(spec, searches=dataset.requests > 1))


def _total(*steps: Step) -> Step:
    """Add up the steps, mode by mode; a step with fewer modes repeats its last."""
    pending = [step for step in steps if step.requests]
    longest = max((step.ways for step in pending), key=len, default=())
    requests = sum(step.requests for step in pending)
    ways = []
    for number, mode in enumerate(longest):
        step_modes = [(step, step.ways[min(number, len(step.ways) - 1)]) for step in pending]
        costs = [way.cost for _, way in step_modes if way.cost]
        tokens = [
            sum(step.requests * way.tokens[end] for step, way in step_modes) / requests
            for end in (0, 1)
        ]
        ways.append(
            AnswerMode(
                mode.title,
                Span(*tokens),
                cost=Span(*map(sum, zip(*costs, strict=True))) if costs else None,
                seconds=Span(*map(sum, zip(*(way.seconds for _, way in step_modes), strict=True))),
            )
        )
    return Step(requests, sum(step.input_tokens for step in pending), tuple(ways))


def _step(
    questions: int,
    lengths: Lengths,
    info: ModelInfo,
    price: Price | None,
    latency: LatencyModel,
    waves: int,
) -> Step:
    def cost_range(tokens: Span, price: Price) -> Span:
        return Span(*(cost(questions, lengths, count, info, price) for count in tokens))

    ways = (
        AnswerMode(
            title,
            tokens,
            cost=cost_range(tokens, price) if price else None,
            seconds=Span(*(latency.seconds(questions, count, waves) for count in tokens)),
        )
        for title, tokens in lengths.answer.items()
    )
    return Step(_requests(questions, info), lengths.input_tokens, tuple(ways))
