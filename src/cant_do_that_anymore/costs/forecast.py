"""Forecast a run: requests, tokens, dollars and seconds, each with a range.

The dry run says what is certain: which requests have no cached answer. The rest is not: how many
positions have to be searched, how long the answers are, and what they cost when they are sent.
`forecast` draws these many times from what is known, and adds each draw up. The range holds 95% of
the draws, and narrows as answers arrive.
"""

from collections.abc import Sequence
from copy import copy
from math import exp, inf, log, log1p, sqrt
from random import Random
from statistics import fmean, median
from typing import NamedTuple

from ..client.batch.client import MIN_BATCH
from ..client.cache import ModelCache, open_cache
from ..client.pricing import on_unknown_price, pricing_for, searches_whole_pool
from ..client.session import model_info
from ..datasets.futility import MAX_REQUESTS, is_too_rare
from ..datasets.search import Search, positions_in_batches
from ..datasets.storage import rates_on_all, rates_on_common
from ..metrics.stopping import (
    looks,
    on_diagnosis,
    on_draws,
    on_expected_samples,
    sample_sizes,
)
from ..providers.base import ModelInfo, Usage
from ..providers.request_variants import NO_TEMPERATURE, limit_of
from ..task.option_info import COMMON
from ..task.spec import Spec, plan_for
from ..task.types import Plan
from .dry_run import Remaining, Step, remaining
from .tokens import AnswerLength, answer_tokens, input_tokens

DRAWS, SEED = 1_000, 0
# Hit rates of models differ: on the shipped pool, six models have 4% to 42% (the four shipped
# datasets, `cdta/random` and `cdta/pocket`). So the logarithm of one more model's rate, relative to
# the usual rate, has Student's t-distribution with this scale and five degrees of freedom: 95% of
# models are between an eleventh of the usual rate and eleven times as much.
HIT_RATE_SCALE, DEGREES = 0.94, 5
HIT_RATES = [0.95 * exp(-0.1 * step) for step in range(76)]
# Simulated searches at each hit rate, to see when they give up.
SEARCHES = 3
# Maximum share of requests that are charged and sent again, because their answers get lost. On
# most servers it is far lower.
LOST = 0.15
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
STEPS = "building the dataset", "measuring"
ON_COMMON = (
    f"--pool {COMMON} measures another population: the positions of the default pool where at "
    "least one of four older models has the habit, not all those of this model"
)
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


# One possible outcome of a step: the same numbers.
Draw = tuple[float, ...]


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
    search = _SearchModel(spec, info, rest.search, rest.dataset) if rest.search else None
    random = Random(SEED)
    unsure = dataset.answer.at_once or measuring.answer.at_once
    draws: list[tuple[Draw, Draw]] = []
    for number in range(DRAWS):
        at_once = unsure and number % 2 == 0
        more = max(0.0, random.triangular(sizes[0], sizes[2], sizes[1]) - rest.wanted)
        missing = 0.0 if rest.is_complete else rest.to_find + more
        searched, found = search.draw(missing, random) if search else (0.0, missing)
        to_measure = 0.0  # if the search gives up
        if found is not None:
            to_measure = len(rest.measuring.to_ask) + found * rest.per_sample
        to_search = len(rest.dataset.to_ask) + searched
        draws.append(
            (
                dataset.draw(to_search, random, at_once=at_once),
                measuring.draw(to_measure, random, at_once=at_once),
            )
        )
    totals = [tuple(map(sum, zip(*draw, strict=True))) for draw in draws]
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
            *([_on_nothing_to_send(rest)] if not pending else []),
            *([search.basis] if search and rest.to_find else []),
            *([ON_COMMON] if pending and str(spec.pool) == COMMON else []),
            *_format_basis("input", [model.input_basis for model in pending]),
            *_format_basis("answers", [model.answer.basis for model in pending]),
            *([_on_pace(spec, info)] if pending else []),
            *on_expected_samples(spec.precision, spec.to_draw, firsts),
            *(
                on_draws(search.rate, rest.per_sample)
                if search and rest.to_find and plan.draws == 1
                else []
            ),
            *([on_diagnosis()] if spec.diagnose else []),
            *([on_unknown_price(info)] if pending and not known_price else []),
            *([SAME_MODEL] if pending and cached and not info.is_local else []),
        ),
        rest.search.config.digest if rest.search and rest.to_find else None,
        measuring.answer,
    )


def _on_nothing_to_send(rest: Remaining) -> str:
    """Say why a run has nothing to send."""
    if not (rest.search and rest.gave_up):
        return "all answers are cached"
    hits, searched = len(rest.search.hits), rest.search.searched
    return (
        f"the model plays the special move in {hits:,} of {searched:,} positions, too few for the "
        f"{rest.search.target:,} wanted, and the run stops there; use --keep-looking to search on"
    )


def _figures(draws: Sequence[Draw], known_price: bool) -> Figures:
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

    def __init__(self, spec: Spec, info: ModelInfo, search: Search, step: Step) -> None:
        self._search, self._batch = search, spec.batch
        self._common = search.config.pool.name == COMMON
        self._rates = rates_on_common() if self._common else rates_on_all()
        hits, usual = len(search.hits), median(self._rates)
        likelihoods = [
            hits * log(rate)
            + (search.searched - hits) * log(1 - rate)
            - (DEGREES + 1) / 2 * log1p((log(rate / usual) / HIT_RATE_SCALE) ** 2 / DEGREES)
            for rate in HIT_RATES
        ]
        self._weights = [exp(each - max(likelihoods)) for each in likelihoods]
        self._spec, self._patient = spec, searches_whole_pool(spec, info)
        self._until_given_up: dict[float, list[float]] = {}
        self._given_up = 0
        self._in_flight = 0 if spec.batch else 2 * (spec.max_connections or info.connections)
        confirms = NO_TEMPERATURE in step.variant
        may_confirm = confirms or (info.may_reason and not step.answered)
        self._confirmations = CONFIRMATIONS * confirms, CONFIRMATIONS * may_confirm

    def draw(self, missing: float, random: Random) -> tuple[float, float | None]:
        """Draw the requests to find so many positions, and how many are found.

        If the search gives up, the run ends without measuring any, and the second is None.
        """
        search = self._search
        if missing <= 0:
            return 0.0, 0.0
        (rate,) = random.choices(HIT_RATES, self._weights)
        needed = missing / rate + random.gauss(0, sqrt(missing * (1 - rate)) / rate)
        if self._batch and needed > MIN_BATCH:
            needed = positions_in_batches(round(missing + len(search.hits)), rate) - search.searched
        searched = max(needed, missing)
        found: float | None = min(missing, search.left * rate)
        if rate not in self._until_given_up:
            simulated = [self._simulate(rate, random) for _ in range(SEARCHES)]
            self._until_given_up[rate] = simulated
        until = random.choice(self._until_given_up[rate])
        if until < min(searched, search.left):
            self._given_up += 1
            searched, found = max(until, self._batch * search.next_batch_size), None
        searched = min(searched + random.uniform(0, self._in_flight), search.left)
        return searched * (1 + rate * random.uniform(*self._confirmations)), found

    def _simulate(self, rate: float, random: Random) -> float:
        """Simulate after how many more positions the search gives up at a hit rate."""
        search, futility = self._search, copy(self._search.futility)
        hits, pool = len(search.hits), search.searched + search.left
        tests_pool = not self._patient and search.target <= pool
        if self._spec.keep_looking or rate >= max(search.needed / pool, 2 / MAX_REQUESTS):
            return inf
        for more in range((search.left - search.searched) // 2):
            if is_too_rare(hits, search.searched + more) or (tests_pool and futility.is_hopeless):
                return more
            hit = random.random() < rate
            hits += hit
            futility.observe(hit)
        return inf

    @property
    def rate(self) -> float:
        """The expected hit rate."""
        return fmean(HIT_RATES, self._weights)

    @property
    def basis(self) -> str:
        """What the hit rate is based on, and how often the search gives up."""
        search = self._search
        among = ", each on the positions of the others" if self._common else ""
        low, high = 100 * min(self._rates), 100 * max(self._rates)
        others = f"the shipped datasets ({low:.1f} to {high:.1f}%{among})"
        if search.searched:
            others = f"{len(search.hits):,} of {search.searched:,} positions so far and {others}"
        if self._confirmations[1]:
            others += (
                "; models without temperature control are asked up to 3 times about each of those"
            )
        if self._given_up > 0.05 * DRAWS:
            others += (
                f"; {100 * self._given_up / DRAWS:.0f}% of the simulated searches give up, because "
                "too few positions qualify"
            )
        return (
            f"dataset: expects the special move in about {100 * self.rate:.1f}% of positions, "
            f"judging by {others}"
        )


class _StepModel:
    """How many tokens, dollars and seconds the requests of a step take."""

    def __init__(self, spec: Spec, info: ModelInfo, step: Step, other: Step, waves: int) -> None:
        alike = step.settings.reasoning_effort == other.settings.reasoning_effort
        all_used = [*step.used, *other.used] if alike else step.used
        every = [request.question for request in step.typical or other.typical]
        questions = Random(SEED).sample(every, min(len(every), MAX_COUNTED))
        used, limit = (step.used, all_used), limit_of(step.variant, step.settings) + step.room
        self.answer = answer_tokens(spec, info, step.settings, step.variant, *used, step.room)
        if step.answered and not all_used:  # the server counts no tokens, so the limit has to do
            self.answer = self.answer._replace(low=self.answer.reply, high=limit)
        self._input, self._input_error, self.input_basis = input_tokens(info, questions, all_used)
        self._info, self.waves = info, waves
        self._pricing = pricing_for(spec, info)
        self._connections = 0 if spec.batch else spec.max_connections or info.connections

    def draw(self, answers: float, random: Random, *, at_once: bool) -> Draw:
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
            dollars = (low + share * (high - low)) * (1 + LOST * random.random() ** 6)
        return requests, given, written, dollars, self._seconds(answers, tokens, random)

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
            "time: a batch takes 1 to 24 h. The dataset takes two batches, or more in one case "
            "out of five. With --precision, each check takes further batches"
        )
    if info.is_local:
        return f"time: {BUNDLED_ANSWERS_PER_SECOND:.0f} answers per second for bundled models"
    connections = spec.max_connections or info.connections
    return (
        f"time: assumes {TOKENS_PER_SECOND:.0f} tokens per second, at least {SECONDS_PER_ANSWER:g} "
        f"s per answer and {connections} concurrent requests; may be off by a factor of "
        f"{PACE_FACTOR:g}"
    )


def _format_basis(figure: str, bases: Sequence[str]) -> list[str]:
    """Format the basis of a figure, once if it is the same for both steps."""
    if len(set(bases)) < 2:
        return [f"{figure}: {basis}" for basis in bases[:1]]
    return [f"{figure}, {step}: {basis}" for step, basis in zip(STEPS, bases, strict=True)]
