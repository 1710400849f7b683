"""What a run is expected to cost: requests, tokens, dollars and seconds, before it starts.

Cached answers tell how often the model has the habit and how long its answers are. Without any, the
rates of other models and a rough count of tokens have to do. All figures are means. The only range
comes from the share of items that qualify, since that decides how many have to be searched.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from statistics import NormalDist, fmean, median
from typing import NamedTuple

from ..client.cache import Cache, open_cache
from ..client.pricing import price_for, rough_tokens, unknown_price_note
from ..client.session import model_info
from ..datasets.pools import items_drawn, source_for
from ..datasets.search import Search, SelectionConfig
from ..datasets.selection import controls_for, known_dataset
from ..datasets.storage import Dataset
from ..formatting import about_dollars, duration, percentage, pluralize
from ..habits.base import Item
from ..metrics.score_interval import Cell, score_limits
from ..providers.base import Answer, Effort, ModelInfo, Request, Usage
from ..task.plan import plan_for
from ..task.samples import trials_for
from ..task.spec import Spec
from ..task.types import Plan

# Tokens of a short answer, such as a move in UCI notation, and of the end of the reply.
ANSWER_TOKENS = 5
# Mean tokens of an answer with reasoning about a chess move, by effort; without one, models mostly
# use medium. From the tables that llm_chess publishes, github.com/maxim-saplin/llm_chess.
MEAN_REASONING_TOKENS: dict[Effort | None, int] = {
    **dict.fromkeys(("minimal", "low"), 1_200),
    **dict.fromkeys((None, "medium"), 2_100),
    **dict.fromkeys(("high", "xhigh", "max"), 5_900),
}
# Models that reason unless they are told not to, and those whose names continue these.
KNOWN_REASONING_MODELS = (
    *("o1", "o3", "o4", "gpt-5", "grok-3-mini", "grok-4", "gemini-2.5-pro"),
    *("deepseek-r1", "deepseek-reasoner"),
)
# If so many of the latest answers are so much longer than all on average, only they count.
LATEST_ANSWERS, LONGER_FACTOR = 8, 1.5
# Requests whose prompts are counted.
MAX_COUNTED = 50
# Other models count like so many items beside those that were searched.
PRIOR_ITEMS = 50
NORMAL = NormalDist().inv_cdf(0.975)
TYPICAL_CONNECTIONS, SECONDS_PER_ANSWER, TOKENS_PER_SECOND, BUNDLED_SECONDS = 32, 1.0, 50.0, 0.01


@dataclass(frozen=True, repr=False)
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
    assumptions: tuple[str, ...]

    def __repr__(self) -> str:
        return f"<{self}>"

    def __str__(self) -> str:
        if not self.requests:
            return f"{self.model}, {self.eval}: no requests to send"
        requests = f"{pluralize(self.requests, 'request')}, {duration(self.seconds)}"
        total = self.requests + self.cached
        cached = f"; {self.cached:,} of {total:,} requests are cached" if self.cached else ""
        return f"{self.model}, {self.eval}: {self._cost}, {requests}{cached}"

    @property
    def _cost(self) -> str:
        if self.dollars is None or self.dollars_low is None or self.dollars_high is None:
            return "cost unknown"
        if self.dollars == 0:
            return "free"
        if self.dollars_low == self.dollars_high:
            return f"about {about_dollars(self.dollars)}"
        low, high = about_dollars(self.dollars_low), about_dollars(self.dollars_high)
        return (
            f"about {about_dollars(self.dollars)} (between {low} and {high}, depending on how "
            f"often {self.model} has the habit)"
        )


class _Tokens(NamedTuple):
    """Mean tokens of an answer and its prompt."""

    input: float
    output: float
    reasoning: float


@dataclass
class _Step:
    """The requests for one purpose: those to send, those like them, and the cached answers.

    The answers of a step that ``follows`` another are not expected to be shorter than the latest
    there.
    """

    effort: Effort | None
    follows: bool = False
    to_send: list[Request] = field(default_factory=list)
    examples: list[Request] = field(default_factory=list)
    cached: list[Answer] = field(default_factory=list)

    @property
    def used(self) -> list[Usage]:
        """The tokens of the cached answers, as far as they are counted."""
        return [answer.usage for answer in self.cached if answer.usage.output_tokens]

    def usage(self, other: "_Step", spec: Spec, info: ModelInfo) -> tuple[_Tokens, str]:
        """Return the tokens that an answer is expected to take, and what that is based on."""
        alike = other.used if self.effort == other.effort else []
        used = self.used or alike
        if not used:
            return _assumed((self.to_send or self.examples)[:MAX_COUNTED], self.effort, spec, info)
        latest = [used[-LATEST_ANSWERS:], alike[-LATEST_ANSWERS:] if self.follows else []]
        longest = max(map(_mean_tokens, filter(None, latest)), key=lambda mean: mean.output)
        mean = _mean_tokens(used)
        if longest.output > LONGER_FACTOR * mean.output:
            mean = longest
        cached = pluralize(len(used), "cached answer")
        return mean, f"{mean.output:,.0f} tokens per answer, judging by {cached}"


def _mean_tokens(used: Sequence[Usage]) -> _Tokens:
    return _Tokens(
        fmean(usage.input_tokens for usage in used),
        fmean(usage.output_tokens for usage in used),
        fmean(usage.thinking_tokens for usage in used),
    )


def _assumed(
    requests: Sequence[Request], effort: Effort | None, spec: Spec, info: ModelInfo
) -> tuple[_Tokens, str]:
    """Return the tokens of an answer as they may be, as long as none is cached, and say why."""
    reasoning, basis = _assumed_reasoning(effort, info)
    n = max(1, len(requests))
    given = sum(rough_tokens(request.question.messages) for request in requests) / n
    if info.thinking_tokens:  # two requests, the second with the reasoning
        given = 2 * given + reasoning
    room = sum(request.tokens for request in requests) / (2 * n)  # for reasons in the reply
    return _Tokens(given, reasoning + room + (spec.max_tokens or ANSWER_TOKENS), reasoning), basis


def _assumed_reasoning(effort: Effort | None, info: ModelInfo) -> tuple[float, str]:
    if info.thinking_tokens:
        return info.thinking_tokens / 4, "a quarter of the tokens allowed for thinking aloud"
    if not info.may_reason:
        return 0.0, ""
    name, try_first = info.name.rpartition("/")[2], "to measure that, start with -n 10"
    is_known = any(
        name == known or name.startswith(f"{known}-") for known in KNOWN_REASONING_MODELS
    )
    if effort == "none" or not (effort or is_known):
        return 0.0, f"{name} is assumed to reply without reasoning; {try_first}"
    tokens = MEAN_REASONING_TOKENS[effort]
    as_usual = f"in {tokens:,} tokens, as usual at {effort or 'medium'} effort"
    return tokens, f"{name} is assumed to reason {as_usual}; {try_first}"


@dataclass
class _Replay:
    """A run as far as its answers are cached; with a search, unless its items are known."""

    selecting: _Step
    measuring: _Step
    search: Search | None = None


def _replay(spec: Spec, plan: Plan, info: ModelInfo, cache: Cache) -> _Replay:
    replay = _Replay(_Step(plan.select_effort), _Step(plan.settings.reasoning_effort, follows=True))
    source, controls = source_for(spec), list[Item]()
    if isinstance(source, Dataset):
        items = items_drawn(source, spec)
    else:
        config = SelectionConfig(info, source, plan)
        if dataset := _existing_dataset(spec, config, cache):
            items = items_drawn(dataset, spec)
            controls = controls_for(dataset, items, config, cache) if spec.diagnose else []
        else:
            replay.search = _search(spec, config, cache, replay.selecting)
            items = replay.search.hits
            first = [plan.change.checked(config.ordered[0])]
            replay.measuring.examples = _measuring_requests(first, first * spec.diagnose, plan)
    for request in _measuring_requests(items, controls, plan):
        if answer := cache.answer(request, plan.settings):
            replay.measuring.cached.append(answer)
        else:
            replay.measuring.to_send.append(request)
    return replay


def _existing_dataset(spec: Spec, config: SelectionConfig, cache: Cache) -> Dataset | None:
    """Return the dataset of the version that answered first, or else of that in the name."""
    first = cache.answer(config.request(0), config.settings)
    name = str(config.model.identity["name"])
    return known_dataset(first.version if first else name.rpartition("/")[2], spec, config)


def _search(spec: Spec, config: SelectionConfig, cache: Cache, step: _Step) -> Search:
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
    items: Sequence[Item], controls: Sequence[Item], plan: Plan
) -> list[Request]:
    trials = trials_for(items, controls, plan)
    return [request for trial, conditions in trials for request in trial.requests(conditions)]


def _hit_rates(search: Search) -> tuple[tuple[float, float, float], str]:
    """Return the share of the pool that qualifies: expected, least and most; and say why."""
    habit = search.config.plan.change.its_habit
    usual = habit.usual_rates(search.config.pool.name)
    rates, basis = (median(usual), min(usual), max(usual)), "judging by other models"
    if search.searched:
        n = search.searched + PRIOR_ITEMS
        hits = len(search.hits) + round(PRIOR_ITEMS * median(usual))
        rates = hits / n, *score_limits([Cell(1, 1, hits), Cell(0, 1, n - hits)], NORMAL)
        basis = f"after {len(search.hits):,} of {search.searched:,} so far"
    share, low, high = map(percentage, rates)
    items = f"{share} of {habit.words.items} ({low} to {high})"
    return rates, f"the model is expected to have the habit in {items}, {basis}"


def expected_cost(
    spec: Spec,
    plan: Plan,
    info: ModelInfo,
    cache: Cache,
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
    replay, price = _replay(spec, plan, info, cache), price_for(spec, info)
    selecting, measuring = replay.selecting, replay.measuring
    to_select, select_basis = selecting.usage(measuring, spec, info)
    to_measure, measure_basis = measuring.usage(selecting, spec, info)
    search = replay.search if replay.search and not replay.search.done else None
    gave_up = search is not None and search.gives_up(spec)
    built = set() if built is None else built
    searches = search is not None and not gave_up and search.config.digest not in built
    if search:
        built.add(search.config.digest)
    measures = measures and not gave_up

    def at(rate: float) -> tuple[float, Usage, float | None]:
        """Return the requests, their tokens and their cost at a hit rate."""
        missing = min(search.target - len(search.hits), search.left * rate) if search else 0.0
        n_select = missing / rate * searches
        n_measure = (len(measuring.to_send) + missing * len(measuring.examples)) * measures
        pairs = zip(to_select, to_measure, strict=True)
        usage = Usage(*(round(n_select * first + n_measure * last) for first, last in pairs))
        requests = n_select + n_measure
        sent = round(requests * info.requests_per_answer)
        return requests, usage, price.of(usage, sent) if price else None

    rates, basis = _hit_rates(search) if search else ((1.0, 1.0, 1.0), "")
    requests, usage, dollars = at(rates[0])
    costs = [at(rate)[2] for rate in rates]
    assumptions = [
        "the search found too few items and ended; see --keep-looking" if gave_up else "",
        basis if searches else "",
        select_basis if searches else "",
        measure_basis if requests and measures else "",
        "" if price else unknown_price_note(info),
    ]
    return ExpectedCost(
        model=spec.model or info.name,
        eval=spec.eval,
        requests=round(requests),
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        dollars=dollars,
        dollars_low=min(costs, key=lambda amount: amount or 0.0),
        dollars_high=max(costs, key=lambda amount: amount or 0.0),
        seconds=_seconds(requests, usage, spec, info),
        cached=len(selecting.cached) + len(measuring.cached),
        assumptions=tuple(dict.fromkeys(filter(None, assumptions))),
    )


def _seconds(requests: float, usage: Usage, spec: Spec, info: ModelInfo) -> float:
    """Return how long requests are expected to take."""
    if info.is_local:
        return BUNDLED_SECONDS * requests
    in_turn = max(SECONDS_PER_ANSWER * requests, usage.output_tokens / TOKENS_PER_SECOND)
    return in_turn / (spec.max_connections or TYPICAL_CONNECTIONS)


def estimate(spec: Spec, built: set[str] | None = None) -> ExpectedCost:
    """Return what a run is expected to cost; arguments as in `expected_cost`.

    Raises:
        InvalidInput: if the spec is invalid.
    """
    info = model_info(spec)
    with open_cache(info, fresh=spec.fresh) as cache:
        return expected_cost(spec, plan_for(spec, info), info, cache, built=built)
