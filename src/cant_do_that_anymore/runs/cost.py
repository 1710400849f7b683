"""What a run is expected to cost: requests, tokens, dollars and seconds, before it starts.

All figures are means. Cached answers tell how often the model has the habit and how long its
answers are. Without any, the rates of other models and a rough count of tokens have to do. The only
range comes from the share of items that qualify, since that decides how many have to be searched.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from statistics import NormalDist, fmean, median
from typing import NamedTuple

from ..client.cache import Cache, open_cache
from ..client.pricing import price_for, rough_tokens, unknown_price_note
from ..client.session import model_info
from ..datasets.pools import source_for
from ..datasets.search import Search, SelectionConfig
from ..datasets.selection import known_selection
from ..formatting import dollars, duration, percentage, pluralize
from ..habits.base import Pool
from ..metrics.score_interval import Cell, score_limits
from ..providers.base import Answer, Effort, ModelInfo, Request, Usage
from ..task.conditions import control_conditions
from ..task.plan import plan_for
from ..task.samples import trials_for
from ..task.spec import Spec
from ..task.types import Plan

# Tokens of a short answer, such as a move in UCI notation, and of the end of the reply.
ANSWER_TOKENS = 5
# Mean tokens of an answer with reasoning about a chess move, at most efforts and at these. From the
# tables that llm_chess publishes, github.com/maxim-saplin/llm_chess.
REASONING_TOKENS = 2_100
REASONING_BY_EFFORT = {"minimal": 1_200, "low": 1_200, "high": 5_900, "xhigh": 5_900, "max": 5_900}
# Models that reason unless they are told not to, by how their names begin.
KNOWN_REASONING_MODELS = ("o1", "o3", "o4", "gpt-5", "grok-4", "gemini-2.5-pro", "deepseek-r")
# Requests whose prompts are counted.
MAX_COUNTED = 50
# Other models count like so many items beside those that were searched.
PRIOR_ITEMS, PRIOR_ITEMS_LATER = 50, 5
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
        seconds: the time; None on a server of one's own, whose speed is unknown.
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
    seconds: float | None
    cached: int
    assumptions: tuple[str, ...]

    def __repr__(self) -> str:
        return f"<{self}>"

    def __str__(self) -> str:
        if not self.requests:
            return f"{self.model}, {self.eval}: no requests to send"
        requests, total = pluralize(self.requests, "request"), self.requests + self.cached
        time = "" if self.seconds is None else f", {duration(self.seconds)}"
        cached = f"; {self.cached:,} of {total:,} requests are cached" if self.cached else ""
        return f"{self.model}, {self.eval}: {self._cost}, {requests}{time}{cached}"

    @property
    def _cost(self) -> str:
        if not self.dollars:
            return "cost unknown" if self.dollars is None else "free"
        about = f"about {dollars(self.dollars)}"
        low, high = dollars(self.dollars_low), dollars(self.dollars_high)
        if low == high:
            return about
        depends = f"depending on how often {self.model} has the habit"
        return f"{about} (between {low} and {high}, {depends})"


def estimate(spec: Spec, built: set[str] | None = None) -> ExpectedCost:
    """Return what a run is expected to cost; arguments as in `expected_cost`.

    Raises:
        InvalidInput: if the spec is invalid.
    """
    info = model_info(spec)
    with open_cache(info, fresh=spec.fresh) as cache:
        return expected_cost(spec, info, cache, set() if built is None else built)


def expected_cost(spec: Spec, info: ModelInfo, cache: Cache, built: set[str]) -> ExpectedCost:
    """Return what a run is expected to cost; it sends no request and needs no key.

    Args:
        spec: the run.
        info: its model.
        cache: the cached answers of the model.
        built: the datasets that earlier runs of the command build; that of the run is added.
    """
    plan, price = plan_for(spec, info), price_for(spec, info)
    known = _known_part(spec, plan, info, cache)
    unsent = len(known.requests) - len(known.measured)
    numbers, assumptions = [float(unsent)], list[str]()
    if search := known.search:
        digest, controls = search.config.digest, control_conditions(plan) if spec.diagnose else ()
        per_item = len(plan.conditions) + len(controls)
        rates, basis = _hit_rates(search)
        searches = 0 if digest in built else 1
        numbers = [unsent + search.missing(rate) * (per_item + searches / rate) for rate in rates]
        assumptions.append(basis)
        built.add(digest)
    requests = numbers[0]
    each, basis = _mean_usage(known, plan, info)
    assumptions += [] if info.is_local else [basis]
    amounts = [price.of(each) * n for n in numbers] if price else []
    unpriced = [] if price else [unknown_price_note(info)]
    output_tokens = requests * each.output_tokens
    return ExpectedCost(
        model=spec.model or info.name,
        eval=spec.eval,
        requests=round(requests),
        input_tokens=round(requests * each.input_tokens),
        output_tokens=round(output_tokens),
        dollars=amounts[0] if amounts else None,
        dollars_low=min(amounts, default=None),
        dollars_high=max(amounts, default=None),
        seconds=_seconds(requests, output_tokens, spec, info),
        cached=len(known.searched) + len(known.measured),
        assumptions=(*(assumptions if requests else []), *unpriced),
    )


class _Known(NamedTuple):
    """A run as far as its answers are cached.

    Attributes:
        search: the search, if it is not finished; ``searched`` are its cached answers.
        requests: those about items that are known; ``measured`` are their cached answers.
    """

    search: Search | None
    searched: list[Answer]
    requests: list[Request]
    measured: list[Answer]


def _known_part(spec: Spec, plan: Plan, info: ModelInfo, cache: Cache) -> _Known:
    """Go through a run as far as its answers are cached."""
    source, search, searched = source_for(spec), None, list[Answer]()
    selection = known_selection(spec, plan, source, info, cache)
    if selection:
        trials = trials_for(selection.items, selection.controls, plan)
    elif isinstance(source, Pool):
        search = Search(SelectionConfig(info, source, plan))
        searched = [*_search_in_cache(search, cache)]
        trials = trials_for(search.hits, [], plan)
    requests = [request for trial in trials for request in trial.requests()]
    answers = [cache.answer(request, plan.settings) for request in requests]
    return _Known(search, searched, requests, [answer for answer in answers if answer])


def _search_in_cache(search: Search, cache: Cache) -> Iterator[Answer]:
    """Search the pool up to the first item without a cached answer; yield the answers."""
    for request in search.requests():
        answer = cache.answer(request, search.config.settings)
        if not answer or search.done:
            return
        search.observe(answer)
        yield answer


def _mean_usage(known: _Known, plan: Plan, info: ModelInfo) -> tuple[Usage, str]:
    """Return the tokens that an answer is expected to take, and what that is based on."""
    has_one_effort = plan.select_effort == plan.settings.reasoning_effort
    answers = [*known.searched, *known.measured] if has_one_effort else known.measured
    used = [answer.usage for answer in answers if answer.usage.output_tokens]
    if used:
        given = round(fmean(usage.input_tokens for usage in used))
        written = round(fmean(usage.output_tokens for usage in used))
        basis = f"judging by {pluralize(len(used), 'cached answer')}"
    else:
        left = known.search.requests() if known.search else known.requests
        prompts = [rough_tokens(request.question.messages) for request in islice(left, MAX_COUNTED)]
        given = sum(prompts) // max(1, len(prompts))
        written = ANSWER_TOKENS + _assumed_reasoning(plan.settings.reasoning_effort, info)
        if info.thinking_tokens:  # two requests, the second with the reasoning
            given = 2 * given + written
        basis = "assumed by its name; to measure this, start with -n 10"
    tokens = pluralize(written, "token")
    return Usage(given, written), f"{tokens} per answer of {info.name}, {basis}"


def _assumed_reasoning(effort: Effort | None, info: ModelInfo) -> int:
    """Return the tokens of reasoning per answer as they may be, as long as no answer is cached."""
    if info.thinking_tokens:
        return info.thinking_tokens // 4
    is_known = effort or info.name.rpartition("/")[2].startswith(KNOWN_REASONING_MODELS)
    if effort == "none" or not (info.may_reason and is_known):
        return 0
    return REASONING_BY_EFFORT.get(effort or "", REASONING_TOKENS)


def _hit_rates(search: Search) -> tuple[tuple[float, float, float], str]:
    """Return the share of the pool that qualifies: expected, least and most; and say why."""
    habit = search.config.plan.change.its_habit
    prior = PRIOR_ITEMS_LATER if search.searched else PRIOR_ITEMS
    n = prior + search.searched
    usual = max(1, round(prior * median(habit.usual_rates(search.config.pool.name))))
    hits = usual + len(search.hits)
    rates = hits / n, *score_limits([Cell(1, 1, hits), Cell(0, 1, n - hits)], NORMAL)
    expected, low, high = map(percentage, rates)
    share = f"{expected} of {habit.words.items} ({low} to {high})"
    so_far = f" and {search.searched:,} searched so far" if search.searched else ""
    basis = f"the model is expected to have the habit in {share}, judging by other models{so_far}"
    return rates, basis


def _seconds(requests: float, output_tokens: float, spec: Spec, info: ModelInfo) -> float | None:
    """Return how long requests are expected to take; None if nobody can know."""
    if info.is_local:
        return BUNDLED_SECONDS * requests
    if not info.provider:
        return None
    in_turn = max(SECONDS_PER_ANSWER * requests, output_tokens / TOKENS_PER_SECOND)
    return in_turn / (spec.max_connections or TYPICAL_CONNECTIONS)
