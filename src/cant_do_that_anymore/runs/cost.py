"""What a run is expected to cost before it starts, and the advice if that passes the limit.

Cached answers tell how often the model has the habit and how long its answers are. Without any, the
shipped datasets and a rough count of tokens have to do. All figures are means. The only range comes
from the share of positions that qualify, since that decides how many have to be searched.
"""

import logging
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from itertools import islice
from math import ceil, floor, log10, sqrt
from statistics import fmean, median
from typing import Any, NamedTuple

from ..client.cache import ModelCache, open_cache
from ..client.client import Client
from ..client.pricing import (
    CostLimit,
    CostLimitReached,
    price_for,
    rough_tokens,
    unknown_price_note,
)
from ..client.session import model_info, open_client
from ..datasets.pools import positions_drawn, positions_for
from ..datasets.search import Search, SelectionConfig
from ..datasets.selection import controls_for, known_dataset
from ..datasets.storage import RATES_ON_ALL, RATES_ON_COMMON, Dataset
from ..formatting import (
    about_dollars,
    dollars,
    duration,
    percentage,
    pluralize,
)
from ..game.position import Position, checked
from ..game.rules import BISHOPS_AS_KNIGHTS
from ..providers.base import Answer, Effort, Model, ModelInfo, Request, Usage
from ..task.option_info import COMMON
from ..task.plan import plan_for
from ..task.samples import trials_for
from ..task.spec import Spec
from ..task.types import Plan

log = logging.getLogger(__name__)

# Tokens of a move in UCI notation and of the end of the reply.
MOVE_TOKENS = 5
# Mean tokens of an answer with reasoning about a chess move, by effort; without one, models mostly
# use medium. From the tables that llm_chess publishes, github.com/maxim-saplin/llm_chess.
REASONING_TOKENS: dict[Effort | None, int] = {
    **dict.fromkeys(("minimal", "low"), 1_200),
    **dict.fromkeys((None, "medium"), 2_100),
    **dict.fromkeys(("high", "xhigh", "max"), 5_900),
}
# Models that reason unless they are told not to, and those whose names continue these.
REASONING = (
    *("o1", "o3", "o4", "gpt-5", "grok-3-mini", "grok-4", "gemini-2.5-pro"),
    *("deepseek-r1", "deepseek-reasoner"),
)
# If the latest answers are longer than all, only they count: as many as can be in flight, since so
# many are long when a model begins to reason, and at least so many.
MIN_LATEST_ANSWERS = 4
# Requests whose questions are counted.
MAX_COUNTED = 50
# The shipped datasets count like so many positions beside those that were searched.
PRIOR_POSITIONS = 50
SECONDS_PER_ANSWER, TOKENS_PER_SECOND, BUNDLED_SECONDS = 1.0, 50.0, 0.01
# A new limit is so many times the expected cost of the rest.
LIMIT_FACTOR = 1.5


@dataclass(frozen=True)
class ExpectedCost:
    """What a run is expected to cost, without what is cached.

    Attributes:
        model: the model.
        eval: the eval.
        requests: how many requests are still to be sent.
        input_tokens: their tokens.
        output_tokens: the tokens of their answers.
        dollars: their cost in US dollars, between ``dollars_low`` and ``dollars_high``; None if the
            price is unknown.
        seconds: the time.
        cached: how many requests have cached answers, which cost nothing.
        assumptions: what the figures are based on, one sentence each.
    """

    model: str
    eval: str
    requests: int
    input_tokens: int
    output_tokens: int
    dollars: float | None
    dollars_low: float | None
    dollars_high: float | None
    seconds: float
    cached: int
    assumptions: tuple[str, ...] = field(repr=False, default=())

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.model}, {self.eval}: {self._figures}"

    @property
    def _figures(self) -> str:
        if not self.requests:
            return "no requests to send"
        cost = "cost unknown" if self.dollars is None else f"about {about_dollars(self.dollars)}"
        if self.dollars == 0:
            cost = "free"
        ends = (self.dollars_low, self.dollars_high)
        if self.dollars_low != self.dollars_high:
            low, high = (about_dollars(end or 0.0) for end in ends)
            reason = f"depending on how often {self.model} plays its usual move"
            cost += f" (between {low} and {high}, {reason})"
        requests = f"{pluralize(self.requests, 'request')}, {duration(self.seconds)}"
        total = self.requests + self.cached
        cached = f"; {self.cached:,} of {total:,} requests are cached" if self.cached else ""
        return f"{cost}, {requests}{cached}"


class _Each(NamedTuple):
    """What a request of a step takes on average, and what that is based on."""

    input_tokens: float
    output_tokens: float
    dollars: float | None
    seconds: float
    basis: str


@dataclass
class _Step:
    """The requests for one purpose: those to send, those like them, and the cached answers.

    If it ``follows`` the other step, its answers are not expected to be shorter than the latest
    there.
    """

    effort: Effort | None
    follows: bool = False
    to_send: list[Request] = field(default_factory=list)
    examples: list[Request] = field(default_factory=list)
    cached: list[Answer] = field(default_factory=list)

    @property
    def counted(self) -> list[Answer]:
        """The cached answers whose tokens are known."""
        return [answer for answer in self.cached if answer.usage.output_tokens]

    def each(self, spec: Spec, info: ModelInfo, other: "_Step") -> _Each:
        """Return the means of the cached answers, or of those of the other step, or of a guess."""
        alike = other.counted if self.effort == other.effort else []
        if answers := self.counted or alike:
            n_latest = max(MIN_LATEST_ANSWERS, spec.max_connections or info.connections)
            latest = [answers[-n_latest:]]
            if self.follows:
                latest.append(alike[-n_latest:])
            longest = max([answers, *filter(None, latest)], key=_mean_length)
            return _measured(longest, spec, info)
        return _assumed((self.to_send or self.examples)[:MAX_COUNTED], self.effort, spec, info)


def _mean_length(answers: Sequence[Answer]) -> float:
    return fmean(answer.usage.output_tokens for answer in answers)


def _measured(answers: Sequence[Answer], spec: Spec, info: ModelInfo) -> _Each:
    """Return the means of answers."""
    total, n = sum((answer.usage for answer in answers), Usage()), len(answers)
    price = price_for(spec, info)
    return _Each(
        total.input_tokens / n,
        total.output_tokens / n,
        price.of(total, n * info.requests_per_answer) / n if price else None,
        fmean(answer.seconds for answer in answers),
        f"{total.output_tokens / n:,.0f} tokens per answer, the mean of "
        f"{pluralize(n, 'cached answer')}",
    )


def _assumed(
    requests: Sequence[Request], effort: Effort | None, spec: Spec, info: ModelInfo
) -> _Each:
    """Return what requests may take while there is no answer."""
    reasoning, basis = _assumed_reasoning(effort, spec, info)
    n = max(1, len(requests))
    given = sum(rough_tokens(request.question.messages) for request in requests) / n
    if info.thinking_tokens:  # two requests, the second with the reasoning
        given = 2 * given + reasoning
    room = sum(request.tokens for request in requests) / (2 * n)  # for reasons in the reply
    written = reasoning + room + (spec.max_tokens or MOVE_TOKENS)
    connections = spec.max_connections or info.connections
    seconds = max(SECONDS_PER_ANSWER, written / TOKENS_PER_SECOND) / connections
    price, usage = price_for(spec, info), Usage(round(given), round(written), round(reasoning))
    cost = price.of(usage, info.requests_per_answer) if price else None
    return _Each(given, written, cost, BUNDLED_SECONDS if info.is_local else seconds, basis)


def _assumed_reasoning(effort: Effort | None, spec: Spec, info: ModelInfo) -> tuple[float, str]:
    """Return the tokens of reasoning per answer, and say why."""
    name = info.name.rpartition("/")[2]
    reasons = effort or any(name == known or name.startswith(f"{known}-") for known in REASONING)
    if info.thinking_tokens:
        return info.thinking_tokens / 4, "a quarter of the tokens allowed for thinking aloud"
    if not info.may_reason:
        return 0.0, ""
    try_first = "to measure that, run cdta run -n 10 first"
    if effort == "none" or not reasons:
        return 0.0, f"{name} is assumed to reply without reasoning; {try_first}"
    tokens = min(REASONING_TOKENS[effort], spec.reasoning_tokens or REASONING_TOKENS["high"])
    at = f"at {effort or 'medium'} effort"
    return (
        tokens,
        f"{name} is assumed to reason in {tokens:,} tokens, as models do {at}; {try_first}",
    )


@dataclass
class _Replay:
    """A run as far as its answers are cached; with a search, unless its positions are known."""

    selecting: _Step
    measuring: _Step
    search: Search | None = None


def _replay(spec: Spec, plan: Plan, info: ModelInfo, cache: ModelCache) -> _Replay:
    replay = _Replay(_Step(plan.select_effort), _Step(plan.settings.reasoning_effort, follows=True))
    source, controls = positions_for(spec), list[Position]()
    if isinstance(source, Dataset):
        positions = positions_drawn(source, spec)
    else:
        config = SelectionConfig(info, source, plan)
        if dataset := _existing_dataset(spec, config, cache):
            positions = positions_drawn(dataset, spec)
            controls = controls_for(dataset, positions, config, cache) if spec.diagnose else []
        else:
            replay.search = _search(spec, config, cache, replay.selecting)
            positions = replay.search.hits
            first = [checked(config.ordered[0], plan.change)]
            replay.measuring.examples = _measuring_requests(first, first * spec.diagnose, plan)
    for request in _measuring_requests(positions, controls, plan):
        if answer := cache.answer(request, plan.settings):
            replay.measuring.cached.append(answer)
        else:
            replay.measuring.to_send.append(request)
    return replay


def _existing_dataset(spec: Spec, config: SelectionConfig, cache: ModelCache) -> Dataset | None:
    """Return the dataset of the version that answered first, or else of that in the name."""
    first = cache.answer(config.request(0), config.settings)
    name = str(config.model.identity["name"])
    return known_dataset(first.version if first else name.rpartition("/")[2], spec, config)


def _search(spec: Spec, config: SelectionConfig, cache: ModelCache, step: _Step) -> Search:
    """Search the pool up to the first position without a cached answer."""
    search = Search(config, config.plan.wanted)
    for request in search.requests():
        answer = cache.answer(request, config.settings)
        if not answer or search.done or search.gives_up(spec):
            break
        step.cached.append(answer)
        search.observe(answer)
    step.examples = list(islice(search.requests(), MAX_COUNTED))
    return search


def _measuring_requests(
    positions: Sequence[Position], controls: Sequence[Position], plan: Plan
) -> list[Request]:
    trials = trials_for(positions, controls, plan)
    return [request for trial, conditions in trials for request in trial.requests(conditions)]


def _hit_rates(search: Search) -> tuple[tuple[float, float, float], str]:
    """Return the share of the pool that qualifies: expected, least and most; and say why."""
    usual = RATES_ON_COMMON if search.config.pool.name == COMMON else RATES_ON_ALL
    rates, basis = (median(usual), min(usual), max(usual)), "as in the shipped datasets"
    if search.searched:
        n = search.searched + PRIOR_POSITIONS
        share = (len(search.hits) + PRIOR_POSITIONS * median(usual)) / n
        rates = share, *_wilson_interval(share, n)
        basis = f"after {len(search.hits):,} of {search.searched:,} so far"
    shares = "{} of positions ({} to {})".format(*map(percentage, rates))
    return rates, f"the usual move is expected in {shares}, {basis}"


def _wilson_interval(share: float, n: int, z: float = 1.96) -> tuple[float, float]:
    center = share + z * z / (2 * n)
    half = z * sqrt(share * (1 - share) / n + (z / (2 * n)) ** 2)
    return (center - half) / (1 + z * z / n), (center + half) / (1 + z * z / n)


def expected_cost(
    spec: Spec,
    plan: Plan,
    info: ModelInfo,
    cache: ModelCache,
    *,
    measures: bool = True,
    built: set[str] | None = None,
) -> ExpectedCost:
    """Return what a run is expected to cost; it sends no request and needs no key.

    Args:
        spec: the run.
        plan: its plan.
        info: its model.
        cache: the cached answers of the model.
        measures: whether it measures the positions, and does not only find them.
        built: the datasets that earlier runs of the command build; that of the run is added.
    """
    replay = _replay(spec, plan, info, cache)
    steps = (
        replay.selecting.each(spec, info, replay.measuring),
        replay.measuring.each(spec, info, replay.selecting),
    )
    search = replay.search if replay.search and not replay.search.done else None
    gave_up, shared = search and search.gives_up(spec), built if built is not None else set()
    is_shared = search and search.config.digest in shared

    def counts(rate: float) -> tuple[float, float]:
        """Return how many requests select and measure positions at a hit rate."""
        to_measure = len(replay.measuring.to_send) * measures
        if not search:
            return 0.0, to_measure
        if gave_up:
            return 0.0, 0.0
        missing = min(search.target - len(search.hits), search.left * rate)
        to_select = 0.0 if is_shared else missing / rate
        return to_select, to_measure + missing * len(replay.measuring.examples) * measures

    def total(rate: float, figure: str) -> float:
        pairs = zip(counts(rate), steps, strict=True)
        return sum((count * (getattr(step, figure) or 0.0) for count, step in pairs), 0.0)

    rates, rates_basis = _hit_rates(search) if search else ((1.0, 1.0, 1.0), "")
    expected, low, high = rates
    has_price = price_for(spec, info) is not None
    used = [step.basis for step, count in zip(steps, counts(expected), strict=True) if count]
    assumptions = [
        "the search found too few positions and ended; see --keep-looking" if gave_up else "",
        rates_basis if counts(expected)[0] else "",
        *dict.fromkeys(used),
        "" if has_price else unknown_price_note(info),
    ]
    if search:
        shared.add(search.config.digest)
    return ExpectedCost(
        model=info.name,
        eval=spec.eval,
        requests=round(sum(counts(expected))),
        input_tokens=round(total(expected, "input_tokens")),
        output_tokens=round(total(expected, "output_tokens")),
        dollars=total(expected, "dollars") if has_price else None,
        dollars_low=total(high, "dollars") if has_price else None,
        dollars_high=total(low, "dollars") if has_price else None,
        seconds=total(expected, "seconds"),
        cached=len(replay.selecting.cached) + len(replay.measuring.cached),
        assumptions=tuple(filter(None, assumptions)),
    )


def estimate(spec: Spec, built: set[str] | None = None) -> ExpectedCost:
    """Return what a run is expected to cost; arguments as in `expected_cost`.

    Raises:
        InvalidInput: if the spec is invalid.
    """
    info = model_info(spec)
    with open_cache(info, fresh=spec.fresh) as cache:
        return expected_cost(spec, plan_for(spec, info), info, cache, built=built)


@asynccontextmanager
async def affordable_client(
    spec: Spec, plan: Plan, model: Model, limit: CostLimit | None = None, *, measures: bool = True
) -> AsyncIterator[Client]:
    """Open a client for a run, unless even the low end of its cost passes the limit.

    Raises:
        CostLimitReached: if that is so, or when the limit is reached later; the message says what
            the rest is expected to cost and which limit is enough.
    """
    async with open_client(spec, model, limit) as client:

        def expected() -> list[ExpectedCost]:
            run = spec, plan, model.info, client.cache
            return [expected_cost(*run, measures=measures)]

        if model.info.provider and not price_for(spec, model.info):
            log.warning(unknown_price_note(model.info))
        check_affordable(expected(), client.limit, spec)
        try:
            yield client
        except CostLimitReached:
            raise limit_reached(expected(), client.limit, spec) from None


def check_affordable(expected: Sequence[ExpectedCost], limit: CostLimit, spec: Spec) -> None:
    """Stop before anything is sent if even the low end of the expected cost passes the limit.

    Raises:
        CostLimitReached: if it does; the message says what would be enough, or cheaper.
    """
    low, middle = _sum(cost.dollars_low for cost in expected), _sum(c.dollars for c in expected)
    if limit.spent + low > limit.limit:
        raise CostLimitReached(
            f"nothing was sent, because this is expected to cost about {about_dollars(middle)}, "
            f"more than the limit of {dollars(limit.limit)}; use --max-cost "
            f"{_sufficient(expected, limit, spec)}, or make it cheaper with {_cheaper(spec)}"
        )


def limit_reached(
    expected: Sequence[ExpectedCost], limit: CostLimit, spec: Spec
) -> CostLimitReached:
    """Return the error of a command that stopped at its limit, with the cost of the rest."""
    rest = about_dollars(_sum(cost.dollars for cost in expected))
    saved = "a --fresh run saves no answers" if spec.fresh else "all answers are saved"
    return CostLimitReached(
        f"stopped at the limit of {dollars(limit.limit)} with {dollars(limit.spent)} spent; "
        f"{saved}, and the rest is expected to cost about {rest}: to finish, run the "
        f"same command with --max-cost {_sufficient(expected, limit, spec)}"
    )


def _sum(amounts: Iterable[float | None]) -> float:
    return sum(amount or 0.0 for amount in amounts)


def _sufficient(expected: Sequence[ExpectedCost], limit: CostLimit, spec: Spec) -> str:
    """Return a limit, rounded up to two digits, that is enough with the requests in flight."""
    amount = LIMIT_FACTOR * _sum(cost.dollars_high for cost in expected) + limit.in_flight
    if spec.fresh:
        amount += limit.spent
    unit = 10.0 ** (floor(log10(max(amount, 0.001))) - 1)
    return f"{ceil(amount / unit) * unit:.12g}"


def _cheaper(spec: Spec) -> str:
    """Return the options that make a run cheaper."""
    has_common = spec.change == BISHOPS_AS_KNIGHTS and spec.eval != "all_diagonal"
    is_default = spec.pool is None and spec.dataset is None
    return f"--pool {COMMON} or a smaller -n" if has_common and is_default else "a smaller -n"
