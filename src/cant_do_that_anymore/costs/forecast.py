"""Forecast a run: requests, tokens, dollars and seconds, each with a range.

The dry run says what is certain: which requests have no cached answer. The rest is not: how many
positions have to be searched, how long the answers are, and what they cost when they are sent.
`forecast` draws these many times from what is known, and adds each draw up. The range holds 95% of
the draws, and narrows as answers arrive.
"""

from collections.abc import Sequence
from math import exp, inf, log, sqrt
from random import Random
from statistics import fmean, median
from typing import NamedTuple

from ..client.batch.client import MIN_BATCH
from ..client.cache import ModelCache, open_cache
from ..client.pricing import on_unknown_price, pricing_for, searches_whole_pool
from ..client.session import model_info
from ..datasets.futility import FUTILITY_ERROR, positions_until_rare
from ..datasets.search import positions_in_batches
from ..datasets.storage import rates_on_all, rates_on_common
from ..errors import UserError
from ..game.rules import BISHOPS_AS_KNIGHTS
from ..metrics.stopping import (
    expected_sample_size,
    looks,
    on_diagnosis,
    on_draws,
    on_expected_samples,
    sample_sizes,
)
from ..providers.base import ModelInfo, Usage
from ..providers.request_variants import NO_TEMPERATURE, limit_of
from ..task.spec import COMMON, Spec, check_batch, plan_for
from ..task.types import Plan
from .dry_run import Remaining, Step, remaining
from .tokens import AnswerLength, answer_tokens, input_tokens

DRAWS, SEED = 1_000, 0
# Hit rates of models differ: before the first answer, the logarithm of a model's rate relative to
# the median of the shipped datasets has a Laplace distribution of this scale. So 95% of models are
# between a sixth of the median and six times as much.
HIT_RATE_SCALE = 0.6
HIT_RATES = [0.95 * exp(-0.1 * step) for step in range(76)]
# The search gives up after so many times the positions that a known hit rate would take.
FUTILITY_FACTORS = 0.5, 2.5
# Maximum share of requests that are charged and sent again, because their answers get lost. On
# most servers it is far lower.
LOST = 0.1
# Questions whose tokens are counted.
MAX_COUNTED = 200
# Further requests about a position that a model without temperature control hits.
CONFIRMATIONS = 1.5
SECONDS_PER_ANSWER = 1.0
TOKENS_PER_SECOND = 50.0
BUNDLED_ANSWERS_PER_SECOND = 100.0
# How much faster or slower than that answers may be.
PACE_FACTOR = 2.0
FASTEST_BATCH, SLOWEST_BATCH = 3600.0, 24 * 3600.0
# Usual number of batches for building the dataset and for measuring.
WAVES = 2, 1
# A precision that tells whether a habit is mostly dropped or mostly kept.
ROUGH_PRECISION = 0.1
STEPS = "building the dataset", "measuring"
SAME_MODEL = "not included: one request to check that the model has not changed"


class Range(NamedTuple):
    """A number that is not known yet: with a chance of 95% it is between `low` and `high`."""

    low: float
    expected: float
    high: float

    def plus(self, other: "Range") -> "Range":
        """Add two ranges, end by end."""
        return Range(*map(sum, zip(self, other, strict=True)))


class Figures(NamedTuple):
    """Requests, tokens, cost in US dollars and time; the cost is None if the price is unknown."""

    requests: Range
    input_tokens: Range
    output_tokens: Range
    dollars: Range | None
    seconds: Range


class Forecast(NamedTuple):
    """What a run still needs.

    Attributes:
        dataset: to build the dataset of positions where the model has the habit.
        measuring: to ask about each sample under every condition.
        total: both.
        at_once: the total if the model replies without reasoning; None where it is known whether.
        assumptions: what the figures are based on, one sentence each.
        key: distinguishes datasets that have to be built; None if the positions are known.
        answer: the length of an answer when measuring.
    """

    dataset: Figures
    measuring: Figures
    total: Figures
    at_once: Figures | None
    assumptions: tuple[str, ...]
    key: str | None
    answer: AnswerLength


def estimate(spec: Spec) -> Forecast:
    """Forecast a run from its cached answers; it sends no request and needs no key.

    Raises:
        InvalidInput: if the spec is invalid.
    """
    info = model_info(spec)
    with open_cache(info, fresh=spec.fresh) as cache:
        return forecast(spec, plan_for(spec, info), info, cache)


def forecast(
    spec: Spec, plan: Plan, info: ModelInfo, cache: ModelCache, *, like: Forecast | None = None
) -> Forecast:
    """Forecast the rest of a run from its cached answers.

    Without any, its answers are taken to be as long as in another run of the model.
    """
    rest = remaining(spec, plan, info, cache)
    dataset, measuring = (
        _StepModel(spec, info, step, other, waves)
        for step, other, waves in zip(
            (rest.dataset, rest.measuring), (rest.measuring, rest.dataset), WAVES, strict=True
        )
    )
    firsts = rest.samples[:: plan.draws]  # further draws of a position may add little
    sizes = sample_sizes(plan.precision, plan.wanted, firsts)
    later_looks = [look for look in looks(plan.wanted) if rest.wanted < look <= sizes[1]]
    for model in (dataset, measuring):
        model.waves *= 1 + (len(later_looks) if plan.precision else 0)
        if like and model.answer.at_once:
            model.answer = like.answer
    search, random = _SearchModel(spec, info, rest), Random(SEED)
    unsure = dataset.answer.at_once or measuring.answer.at_once
    draws: list[tuple[_Draw, _Draw]] = []
    for number in range(DRAWS):
        at_once = unsure and number % 2 == 0
        more = max(0.0, random.triangular(sizes[0], sizes[2], sizes[1]) - rest.wanted)
        searched, found = search.draw(rest.to_find + more, random)
        to_measure = len(rest.measuring.to_ask) + found * rest.per_sample
        draws.append(
            (
                dataset.draw(len(rest.dataset.to_ask) + searched, random, at_once=at_once),
                measuring.draw(to_measure, random, at_once=at_once),
            )
        )
    totals = [_Draw(*map(sum, zip(*draw, strict=True))) for draw in draws]
    known_price = pricing_for(spec, info) is not None
    finding, asking = (_figures(column, known_price) for column in zip(*draws, strict=True))
    pending = [
        model
        for model, figures in zip((dataset, measuring), (finding, asking), strict=True)
        if figures.requests.high
    ]
    cached = rest.dataset.answered + rest.measuring.answered
    return Forecast(
        finding,
        asking,
        _figures(totals, known_price),
        _figures(totals[::2], known_price) if unsure and pending else None,
        (
            *([search.basis] if rest.to_find else []),
            *_format_basis("input", [model.input_basis for model in pending]),
            *_format_basis("answers", [model.answer.basis for model in pending]),
            *([_on_pace(spec, info)] if pending else []),
            *on_expected_samples(spec.precision, spec.to_draw, firsts),
            *(on_draws(search.rate, rest.per_sample) if rest.to_find and plan.draws == 1 else []),
            *([on_diagnosis()] if spec.diagnose else []),
            *([on_unknown_price(info)] if pending and not known_price else []),
            *([SAME_MODEL] if pending and cached and not info.is_local else []),
        ),
        rest.key if rest.to_find else None,
        measuring.answer,
    )


class _Draw(NamedTuple):
    """One possible outcome of a step."""

    requests: float
    input_tokens: float
    output_tokens: float
    dollars: float
    seconds: float


def _figures(draws: Sequence[_Draw], known_price: bool) -> Figures:
    """Return the mean of the draws, and the range of 95% of them."""
    ranges = []
    for column in zip(*draws, strict=True):
        ordered = sorted(column)
        tail = round(0.025 * (len(ordered) - 1))
        ranges.append(Range(ordered[tail], fmean(ordered), ordered[-1 - tail]))
    figures = Figures(*ranges)
    return figures if known_price else figures._replace(dollars=None)


class _SearchModel:
    """How many requests it takes to find positions, given the hits so far and how models differ."""

    def __init__(self, spec: Spec, info: ModelInfo, rest: Remaining) -> None:
        self._rates = rates_on_common() if rest.pool_name == COMMON else rates_on_all()
        self._rest = rest
        likelihoods = [
            rest.hits * log(rate)
            + (rest.searched - rest.hits) * log(1 - rate)
            - abs(log(rate / median(self._rates))) / HIT_RATE_SCALE
            for rate in HIT_RATES
        ]
        self._weights = [exp(each - max(likelihoods)) for each in likelihoods]
        self._batch = spec.batch
        self._gives_up = not searches_whole_pool(spec, info)
        self._patient = spec.keep_looking
        self._in_flight = 2 * (spec.max_connections or info.connections)
        confirms = NO_TEMPERATURE in rest.dataset.variant
        self._confirmations = (
            CONFIRMATIONS if confirms else 0.0,
            CONFIRMATIONS if confirms or (info.may_think and not rest.dataset.answered) else 0.0,
        )

    def draw(self, missing: float, random: Random) -> tuple[float, float]:
        """Draw the requests to find so many positions, and how many are found."""
        rest = self._rest
        if missing <= 0:
            return 0.0, 0.0
        (rate,) = random.choices(HIT_RATES, self._weights)
        searched = missing / rate + random.gauss(0, sqrt(missing * (1 - rate)) / rate)
        if not self._batch:
            searched += random.uniform(0, self._in_flight)
        elif searched > MIN_BATCH:
            searched = positions_in_batches(round(missing + rest.hits), rate) - rest.searched
        searched, found = max(searched, missing), min(missing, rest.left * rate)
        until = inf if self._patient else positions_until_rare(rate)
        if self._gives_up:
            until = min(until, self._until_given_up(missing, rate))
        if (looks := until * random.uniform(*FUTILITY_FACTORS)) < min(searched, rest.left):
            searched, found = looks, 0.0
        questions = min(searched, rest.left) * (1 + rate * random.uniform(*self._confirmations))
        return questions, found

    def _until_given_up(self, missing: float, rate: float) -> float:
        """Return after about how many positions the search would stop for lack of hits."""
        needed = (missing + self._rest.hits) / 2 / max(1, self._rest.left + self._rest.searched)
        if rate >= needed or needed >= 1:
            return float(self._rest.left)
        evidence = (1 - rate) * log((1 - rate) / (1 - needed))
        evidence += rate * log(rate / needed) if rate else 0.0
        return log(1 / FUTILITY_ERROR) / max(evidence, 1e-9)

    @property
    def rate(self) -> float:
        """The expected hit rate."""
        return fmean(HIT_RATES, self._weights)

    @property
    def basis(self) -> str:
        """What the hit rate is based on."""
        rest = self._rest
        among = ", each on the positions of the others" if rest.pool_name == COMMON else ""
        others = (
            f"the shipped datasets ({100 * min(self._rates):.1f} to "
            f"{100 * max(self._rates):.1f}%{among})"
        )
        if rest.searched:
            others = f"{rest.hits:,} of {rest.searched:,} positions so far and {others}"
        text = f"expects the special move in about {100 * self.rate:.1f}% of positions, judging by"
        if self._confirmations[1]:
            others += (
                "; models without temperature control are asked up to 3 times about each of those"
            )
        return f"dataset: {text} {others}"


class _StepModel:
    """How many tokens, dollars and seconds the requests of a step take."""

    def __init__(self, spec: Spec, info: ModelInfo, step: Step, other: Step, waves: int) -> None:
        alike = step.settings.reasoning_effort == other.settings.reasoning_effort
        all_used = [*step.used, *other.used] if alike else step.used
        requests = step.to_ask or step.next_requests or other.next_requests or other.to_ask
        counted = Random(SEED).sample(requests, min(len(requests), MAX_COUNTED))
        questions = [request.question for request in counted]
        self.answer = answer_tokens(spec, info, step.settings, step.variant, step.used, all_used)
        if step.answered and not all_used:  # the server counts no tokens, so the limit has to do
            limit = float(limit_of(step.variant, step.settings))
            self.answer = self.answer._replace(low=self.answer.reply, high=limit)
        self._input, self._input_error, self.input_basis = input_tokens(info, questions, all_used)
        self._info, self.waves = info, waves
        self._pricing = pricing_for(spec, info)
        self._connections = 0 if spec.batch else spec.max_connections or info.connections

    def draw(self, answers: float, random: Random, *, at_once: bool) -> _Draw:
        """Draw what so many answers take."""
        length = self.answer
        tokens = exp(random.uniform(log(length.low), log(length.high)))
        if at_once and length.at_once:
            tokens = length.reply
        given = answers * self._input * max(0.5, random.gauss(1, self._input_error))
        written, reasoned = answers * tokens, answers * max(0.0, tokens - length.reply)
        requests = answers * self._info.requests_per_answer
        usage = Usage(round(given), round(written), round(reasoned))
        dollars = 0.0
        if self._pricing:
            share, ends = random.random(), (self._pricing.cheapest, self._pricing.dearest)
            low, high = (price.of(usage, round(requests)) for price in ends)
            dollars = (low + share * (high - low)) * (1 + LOST * random.random() ** 4)
        return _Draw(requests, given, written, dollars, self._seconds(answers, tokens, random))

    def _seconds(self, answers: float, tokens: float, random: Random) -> float:
        if not answers:
            return 0.0
        if not self._connections:
            batch = exp(random.uniform(log(FASTEST_BATCH), log(SLOWEST_BATCH)))
            return self.waves * batch
        pace = exp(random.uniform(-log(PACE_FACTOR), log(PACE_FACTOR)))
        if self._info.is_local:
            return pace * answers / BUNDLED_ANSWERS_PER_SECOND
        each = max(SECONDS_PER_ANSWER, tokens / TOKENS_PER_SECOND)
        return pace * answers * each / self._connections


def _on_pace(spec: Spec, info: ModelInfo) -> str:
    if spec.batch:
        return (
            "time: a batch takes 1 to 24 h. The dataset takes two batches, and one time in five "
            "more. With --precision, each check takes further batches"
        )
    if info.is_local:
        return f"time: {BUNDLED_ANSWERS_PER_SECOND:.0f} answers per second for bundled models"
    connections = spec.max_connections or info.connections
    return (
        f"time: {TOKENS_PER_SECOND:.0f} tokens per second, at least {SECONDS_PER_ANSWER:g} s per "
        f"answer, {connections} concurrent requests, give or take a factor of {PACE_FACTOR:g}"
    )


def _format_basis(figure: str, bases: Sequence[str]) -> list[str]:
    """Format the basis of a figure, once if it is the same for both steps."""
    if len(set(bases)) < 2:
        return [f"{figure}: {basis}" for basis in bases[:1]]
    return [f"{figure}, {step}: {basis}" for step, basis in zip(STEPS, bases, strict=True)]


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
