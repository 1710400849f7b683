"""Random draws of what the rest of a run may take: hits, lengths of answers, prices and times."""

from functools import cache
from math import exp, inf, log, log1p, sqrt
from random import Random
from statistics import fmean, median

from ..client.pricing import FREE, pricing_for
from ..datasets.no_habit import MAX_POSITIONS_PER_HIT, is_too_rare
from ..datasets.search import Search
from ..datasets.storage import RATES_ON_ALL, RATES_ON_COMMON
from ..providers.base import ModelInfo, Usage
from ..providers.request_variants import NO_TEMPERATURE
from ..task.option_info import COMMON
from ..task.spec import Spec
from .dry_run import Step
from .tokens import answer_length, input_tokens

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

# One possible outcome of a step: requests, input tokens, output tokens, dollars and seconds.
Draw = tuple[float, ...]


class SearchDraws:
    """How many requests it takes to find positions, given the hits so far and how models differ.

    Attributes:
        rate: the expected hit rate.
    """

    def __init__(
        self, spec: Spec, info: ModelInfo, search: Search, step: Step, random: Random
    ) -> None:
        self._search, self._spec, self._random = search, spec, random
        self._common = search.config.pool.name == COMMON
        self._rates = RATES_ON_COMMON if self._common else RATES_ON_ALL
        hits, usual = len(search.hits), median(self._rates)
        likelihoods = [
            hits * log(rate)
            + (search.searched - hits) * log(1 - rate)
            - (DEGREES + 1) / 2 * log1p((log(rate / usual) / HIT_RATE_SCALE) ** 2 / DEGREES)
            for rate in HIT_RATES
        ]
        self._weights = [exp(likelihood - max(likelihoods)) for likelihood in likelihoods]
        self.rate = fmean(HIT_RATES, self._weights)
        self._until_given_up = cache(lambda rate: [self._simulate(rate) for _ in range(SEARCHES)])
        self._given_up = 0
        self._in_flight = 2 * (spec.max_connections or info.connections)
        confirms = NO_TEMPERATURE in step.variant
        may_confirm = confirms or (info.may_reason and not step.answered)
        self._confirmations = CONFIRMATIONS * confirms, CONFIRMATIONS * may_confirm

    def draw(self, missing: float) -> tuple[float, float | None]:
        """Draw the requests to find so many positions, and how many are found.

        If the search gives up, the run ends without measuring any, and the second is None.
        """
        search, random = self._search, self._random
        if missing <= 0:
            return 0.0, 0.0
        (rate,) = random.choices(HIT_RATES, self._weights)
        needed = missing / rate + random.gauss(0, sqrt(missing * (1 - rate)) / rate)
        searched = max(needed, missing)
        found: float | None = min(missing, search.left * rate)
        until = random.choice(self._until_given_up(rate))
        if until < min(searched, search.left):
            self._given_up += 1
            searched, found = until, None
        searched = min(searched + random.uniform(0, self._in_flight), search.left)
        return searched * (1 + rate * random.uniform(*self._confirmations)), found

    def _simulate(self, rate: float) -> float:
        """Simulate after how many more positions the search gives up at a hit rate."""
        search = self._search
        if self._spec.keep_looking or rate >= 4 / MAX_POSITIONS_PER_HIT:
            return inf
        hits = len(search.hits)
        for number in range((search.left - search.searched) // 2):
            if is_too_rare(hits, search.searched + number):
                return number
            hits += self._random.random() < rate
        return inf

    @property
    def basis(self) -> str:
        """What the hit rate is based on, and how often the search gives up."""
        search, among = self._search, ", each on the positions of the others" * self._common
        low, high = 100 * min(self._rates), 100 * max(self._rates)
        others = f"the shipped datasets ({low:.1f} to {high:.1f}%{among})"
        if search.searched:
            others = f"{len(search.hits):,} of {search.searched:,} positions so far and {others}"
        if self._confirmations[1]:
            others += "; models without temperature control are asked up to 3 times about each hit"
        if self._given_up > 0.05 * DRAWS:
            share = f"{100 * self._given_up / DRAWS:.0f}% of the simulated searches"
            others += f"; {share} give up, because too few positions qualify"
        return (
            f"dataset: expects the special move in about {100 * self.rate:.1f}% of positions, "
            f"judging by {others}"
        )


class StepDraws:
    """How many tokens, dollars and seconds the requests of a step take."""

    def __init__(self, spec: Spec, info: ModelInfo, step: Step, other: Step) -> None:
        alike = step.settings.reasoning_effort == other.settings.reasoning_effort
        both = [*step.used, *other.used] if alike else step.used
        every = [request.question for request in step.unanswered or other.unanswered]
        questions = Random(SEED).sample(every, min(len(every), MAX_COUNTED))
        self.answer = answer_length(spec, info, step, both)
        self._input, self._input_error, self.input_basis = input_tokens(info, questions, both)
        pricing = pricing_for(spec, info)
        self._prices = (pricing.cheapest, pricing.dearest) if pricing else (FREE, FREE)
        self._info = info
        self._connections = spec.max_connections or info.connections

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
        low, high = (price.of(usage, round(requests)) for price in self._prices)
        dollars = low + random.random() * (high - low)
        dollars *= 1 + LOST * random.random() ** 6
        return requests, given, written, dollars, self._seconds(answers, tokens, random)

    def _seconds(self, answers: float, tokens: float, random: Random) -> float:
        if not answers:
            return 0.0
        per_second = self._connections / max(SECONDS_PER_ANSWER, tokens / TOKENS_PER_SECOND)
        if self._info.is_local:
            per_second = BUNDLED_ANSWERS_PER_SECOND
        return answers / per_second * exp(random.uniform(-log(PACE_FACTOR), log(PACE_FACTOR)))


def pace_note(spec: Spec, info: ModelInfo) -> str:
    """Say how long answers are assumed to take."""
    if info.is_local:
        return f"time: {BUNDLED_ANSWERS_PER_SECOND:.0f} answers per second for bundled models"
    connections = spec.max_connections or info.connections
    return (
        f"time: assumes {TOKENS_PER_SECOND:.0f} tokens per second, at least {SECONDS_PER_ANSWER:g} "
        f"s per answer and {connections} concurrent requests; may be off by a factor of "
        f"{PACE_FACTOR:g}"
    )
