"""Forecast a run: requests, tokens, cost and time before anything is spent.

The search and the drawing are those of the run itself, fed with the answers that are kept from
before, and with imagined ones where there is none.

Nothing is asked and no key is needed. Only what would be asked is counted: answers that are kept
from before are not asked for again, and say how long the others will be.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from statistics import median

from ..client.batch.client import check_batch
from ..client.budget import Price
from ..client.cache import ModelCache
from ..client.pricing import rate_for, searches_whole_pool
from ..client.session import is_remote, model_info
from ..client.store import opened_store, store_to_read
from ..datasets.pools import given_dataset, positions_drawn, positions_for
from ..datasets.search import BUILT, DRAWS, Query, Search, SelectionConfig, positions_in_batches
from ..datasets.selection import (
    controls_for,
    find_dataset,
    prefix_if_sufficient,
    selection_requests,
)
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
from ..providers.catalogue import OUR_MODELS
from ..providers.chain_of_thought import Thinker
from ..providers.request_variants import NO_TEMPERATURE
from ..task.conditions import ASKED, ASKED_OF_CONTROLS
from ..task.samples import trials_for
from ..task.spec import COMMON, Spec, plan_for
from ..task.types import Eval, Plan, Sample
from .tokens import Lengths, RequestStep, Span, lengths_of

ROUGH = 0.1
"""A precision that tells whether a habit is rather dropped or kept."""


def cheaper_than(spec: Spec, *, searches: bool, measures: bool = True) -> list[str]:
    """Options that measure the same model for less, as a rule.

    Args:
        spec: how it was to be measured.
        searches: whether a dataset is still to be found.
        measures: whether more is wanted than a dataset.
    """
    found = []
    usual = spec.change == BISHOPS_AS_KNIGHTS and spec.eval != "all_diagonal"
    if searches and spec.pool is None and usual:
        found.append("--pool common")
    if measures and spec.eval == "all" and spec.n is None:
        found.append("--eval all_small")
    most = spec.to_draw
    if measures and spec.precision is None and expected_sample_size(ROUGH, most) < most:
        found.append(f"--precision {ROUGH:g}")
    if not spec.batch and _takes_batches(spec):
        found.append("--batch")
    return found


def _takes_batches(spec: Spec) -> bool:
    """Whether it surely can be asked in batches; of a server nobody knows."""
    if spec.base_url:
        return False
    try:
        check_batch(model_info(spec), fresh=spec.fresh)
    except UserError:
        return False
    return True


SECONDS_AN_ANSWER = 1.0
TOKENS_A_SECOND = 50.0
OUR_ANSWERS_A_SECOND = 100.0
SECONDS_A_BATCH = 24 * 3600.0
WAVES = 2, 1
"""In so many batches a dataset is found and samples are measured, as a rule."""


@dataclass(frozen=True)
class LatencyModel:
    """How quickly answers come, many at once.

    Attributes:
        looks: where they come in batches, how often all of these have to be waited for.
    """

    known: ModelInfo
    connections: int
    looks: int | None

    def seconds(self, questions: int, tokens: float, waves: int) -> float:
        """For so many answers of so many tokens, or at most for so many waves of them."""
        if self.looks:
            return self.looks * waves * SECONDS_A_BATCH if questions else 0.0
        if self.known.name in OUR_MODELS:
            return questions / OUR_ANSWERS_A_SECOND
        one = max(SECONDS_AN_ANSWER, tokens / TOKENS_A_SECOND)
        return questions * one / self.connections

    @property
    def basis(self) -> str:
        """What the times rest on."""
        if self.looks:
            looks = f", for each of {self.looks} looks at the precision" if self.looks > 1 else ""
            told = "a batch takes 24 h at most, and the dataset takes two, one time in five more"
            return told + looks
        if self.known.name in OUR_MODELS:
            return f"{OUR_ANSWERS_A_SECOND:.0f} answers a second are taken for our own models"
        return (
            f"{TOKENS_A_SECOND:.0f} tokens a second are taken, and {SECONDS_AN_ANSWER:g} s an "
            f"answer at least, with {self.connections} questions at once"
        )


ENOUGH_KEPT = 100
"""More answers say little more about how long they are."""
_IMAGINED = "imagined"
WEIGHT_OF_OTHERS = 10
"""What other models play counts as so many positions more that were asked."""


@dataclass(frozen=True)
class RequestForecast:
    """The questions of a run.

    Attributes:
        dataset: to find the positions; measuring: to measure them.
        imagined: what is not known of the positions, and taken for granted; "" if they are known.
        samples: those of which all answers are kept, if the run is to stop by itself.
        looks: how often it then still looks whether it may stop.
    """

    dataset: RequestStep
    measuring: RequestStep
    imagined: str
    samples: list[Sample]
    looks: int = 1

    @property
    def to_ask(self) -> int:
        """How many questions have no answer."""
        return len(self.dataset.to_ask) + len(self.measuring.to_ask)

    @property
    def next_step(self) -> RequestStep:
        """The step whose questions will be asked whatever the answers are."""
        if not self.imagined:
            return self.measuring
        first = [ask for ask in self.dataset.to_ask if not ask.draw]
        return replace(self.dataset, to_ask=first)


def forecast_requests(
    spec: Spec, plan: Plan, known: ModelInfo, kept: ModelCache, under_way: int
) -> RequestForecast:
    """Foresee a run in which so many questions are under way at once, or as many as a wave has."""

    def part(settings: Settings) -> RequestStep:
        return RequestStep(settings, kept.variant(settings))

    at_hand, measuring = positions_for(spec), part(plan.settings)
    controls: list[Position] = []
    if isinstance(at_hand, Dataset):
        positions = positions_drawn(at_hand, spec, plan)
        selection, imagined = part(plan.settings), ""
    else:
        criteria = SelectionConfig(known, at_hand, plan)
        selection = part(criteria.settings)
        found = _found(spec, criteria, kept, selection)
        if spec.fallback_dataset and not found:
            found = given_dataset(spec.fallback_dataset, plan.change)
        dataset, imagined = (
            (found, "")
            if found
            else _simulate_search(
                criteria,
                kept,
                selection,
                None if spec.batch else under_way,
                patient=searches_whole_pool(spec, known),
            )
        )
        positions = positions_drawn(dataset, spec, plan)
        if spec.diagnose:
            controls = _controls(dataset, positions, criteria, kept, selection)
    samples: list[Sample] = []
    for place, (draw, conditions) in enumerate(trials_for(positions, controls, plan)):
        asks = list(draw.requests(conditions))
        same_limit_only = kept.had_truncation(asks, plan.settings)
        asks = [replace(ask, same_limit_only=same_limit_only) for ask in asks]
        answers = [kept.answer(ask, plan.settings) for ask in asks]
        for ask, answer in zip(asks, answers, strict=True):
            measuring.add(ask, answer)
        told = [answer for answer in answers if answer]
        if plan.precision and len(told) == len(asks) and place < len(positions):
            samples.append(draw.sample(told, conditions, plan.reading))
    return RequestForecast(selection, measuring, imagined, samples)


def _found(
    spec: Spec, criteria: SelectionConfig, kept: ModelCache, part: RequestStep
) -> Dataset | None:
    """The dataset that exists, if one does; the first question tells the model's version."""
    first = criteria.request(Query(0, 0))
    answer = kept.answer(first, criteria.settings)
    version = answer.version if answer else _likely_version(criteria.model)
    found = prefix_if_sufficient(find_dataset(version, criteria), criteria.plan.wanted)
    if not found or (spec.fresh and found.origin == BUILT):
        return None
    part.add(first, answer)
    for number in range(1, min(ENOUGH_KEPT, len(criteria.ordered))):
        ask = criteria.request(Query(number, 0))
        if answer := kept.answer(ask, criteria.settings):
            part.add(ask, answer)
    return found


def _controls(
    dataset: Dataset,
    positions: Sequence[Position],
    criteria: SelectionConfig,
    kept: ModelCache,
    part: RequestStep,
) -> list[Position]:
    """Those of the run; where answers are imagined or lost, all that is no member may be one."""
    if dataset.origin != _IMAGINED:
        behind = selection_requests(dataset, criteria)
        lost = [ask for ask in behind if not kept.answer(ask, criteria.settings)]
        part.to_ask += [ask for ask in lost if ask not in part.to_ask]
        if not lost:
            return controls_for(dataset, positions, criteria, kept)
    members = {position.moves for position in dataset.positions}
    others = (each for each in criteria.ordered if each.moves not in members)
    return list(islice(others, len(positions)))


def _likely_version(model: ModelInfo) -> str:
    return str(model.identity["name"]).rpartition("/")[2]


def _simulate_search(
    criteria: SelectionConfig,
    kept: ModelCache,
    part: RequestStep,
    under_way: int | None,
    *,
    patient: bool,
) -> tuple[Dataset, str]:
    """The dataset as it may come out, and what that rests on."""
    search, settings = Search(criteria, criteria.plan.wanted), criteria.settings
    draws = DRAWS if NO_TEMPERATURE in kept.variant(settings) else 1
    basis, plays = "", _spread(0.0)
    for ask in search.requests():
        answer = kept.answer(ask, settings)
        part.add(ask, answer)
        if answer:
            search.observe(answer)
        else:
            if not basis:
                rate, basis = _hit_rate(search, criteria.pool.name)
                if draws == 1 and criteria.model.may_think:
                    basis += "; each of those is asked twice more if it takes no temperature"
                plays = _spread(rate)
            search.advance(search.asks_again or next(plays), draws)
        if search.done or (search.is_hopeless and not patient):
            break
    if under_way is None:
        is_batched = positions_in_batches(criteria.plan.wanted, len(search.hits) / search.asked)
        under_way = max(0, is_batched - search.asked)
    for ask in islice(search.requests(), under_way if basis else 0):  # when the last hit is found
        part.add(ask, kept.answer(ask, settings))
    version = _likely_version(criteria.model)
    hits = search.hits or criteria.ordered[:1]
    return Dataset(version, _IMAGINED, hits, asked=search.asked), basis


def _spread(rate: float) -> Iterator[bool]:
    """Hits at that rate, as evenly as can be."""
    due = 0.0
    while True:
        due += rate
        yield due >= 1
        due -= due >= 1


def _hit_rate(search: Search, pool: str) -> tuple[float, str]:
    """The share of positions whose special move the model plays, and what that rests on."""
    rates = rates_on_common() if pool == COMMON else rates_on_all()
    hits = len(search.hits) + WEIGHT_OF_OTHERS * median(rates)
    rate = hits / (search.asked + WEIGHT_OF_OTHERS)
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


def foreseen_for(spec: Spec, known: ModelInfo) -> RequestForecast:
    """What a run will ask, by the answers that are kept until now.

    Raises:
        InvalidInput: if the spec cannot work.
    """
    with opened_store(fresh=True) if spec.fresh else store_to_read() as store:
        return foreseen_by(spec, plan_for(spec, known), known, ModelCache(known, store))


def foreseen_by(spec: Spec, plan: Plan, known: ModelInfo, kept: ModelCache) -> RequestForecast:
    """The same by these answers; with a precision, as many samples as it is expected to take."""
    under_way = 2 * (spec.max_connections or known.connections)
    for stage in stages(plan):
        foreseen = forecast_requests(spec, stage, known, kept, under_way)
        if foreseen.to_ask or is_reached(foreseen.samples, plan):
            break
    if not plan.precision or not foreseen.to_ask:
        return foreseen
    size = expected_samples(plan.precision, plan.wanted, shares_expected(foreseen.samples))
    whole = replace(plan, wanted=max(size, stage.wanted))
    to_come = [each for each in looks(plan.wanted) if stage.wanted <= each <= whole.wanted]
    return replace(forecast_requests(spec, whole, known, kept, under_way), looks=len(to_come))


def _told(what: str, bases: Sequence[str]) -> list[str]:
    """What the figures of the steps rest on: once, if it is the same for both."""
    if len(set(bases)) < 2:
        return [f"{what}: {basis}" for basis in bases[:1]]
    return [f"{what} in {step}: {basis}" for step, basis in zip(STEPS, bases, strict=True)]


def _on_diagnosis() -> str:
    corrected, specific = (
        " to ".join(f"{enough(USUAL_SHARE, impact):,}" for impact in (USUAL_IMPACT, 0))
        for enough in (enough_for_corrected, enough_for_specific)
    )
    return (
        f"diagnosis: {len(ASKED)} questions a sample and {len(ASKED_OF_CONTROLS)} a control, so up "
        f"to {len(ASKED) + len(ASKED_OF_CONTROLS)} a sample instead of 2; for ±{HALF_WIDTH:g} the "
        f"corrected impact factor takes about -n {corrected}, the specific one {specific} (half "
        f"of the habit yields, or none; {100 * USUAL_SHARE:.0f} % special moves under the placebo)"
    )


def cost(questions: int, lengths: Lengths, tokens: float, known: ModelInfo, price: Price) -> float:
    """What so many questions cost in US dollars whose answers have so many tokens in the mean."""
    used = Usage(lengths.input_tokens, round(questions * tokens))
    return price.of(used, _requests(questions, known))


def _requests(questions: int, known: ModelInfo) -> int:
    return 2 * questions if isinstance(known, Thinker) else questions


@dataclass(frozen=True)
class Way:
    """One way in which a model may answer all questions of a step.

    Attributes:
        title: which.
        tokens: of one answer.
        cost: of all in US dollars; None if the price is unknown.
        seconds: for all.
    """

    title: str
    tokens: Span
    cost: Span | None
    seconds: Span


@dataclass(frozen=True)
class Step:
    """Part of a run: the requests to be made, and what they come to in each way of answering.

    Attributes:
        kept: how many answers are there already, as far as it was looked.
    """

    requests: int
    input_tokens: int
    ways: tuple[Way, ...]
    kept: int = 0


@dataclass(frozen=True)
class Estimate:
    """What a run will take.

    Attributes:
        dataset: finding the positions where the model has the habit.
        measuring: asking each of the samples under every condition.
        total: both.
        assumptions: what the figures rest on, one sentence each.
        cheaper: options that cost less as a rule, if the run costs more than --ask-above.
    """

    model: str
    eval: Eval
    dataset: Step
    measuring: Step
    total: Step
    assumptions: tuple[str, ...]
    cheaper: tuple[str, ...]


def estimate(spec: Spec) -> Estimate:
    """Estimate a run.

    Raises:
        InvalidInput: if the spec cannot work.
    """
    known = model_info(spec)
    foreseen = foreseen_for(spec, known)
    connections = spec.max_connections or known.connections
    pace = LatencyModel(known, connections, foreseen.looks if spec.batch else None)
    price = rate_for(spec, known)
    parts = foreseen.dataset, foreseen.measuring
    lengths = [lengths_of(spec, known, part, other) for part, other in (parts, parts[::-1])]
    dataset, measuring = (
        replace(_step(len(part.to_ask), each, known, price, pace, waves), kept=part.answered)
        for part, each, waves in zip(parts, lengths, WAVES, strict=True)
    )
    total = _total(dataset, measuring)
    said = [each.bases for part, each in zip(parts, lengths, strict=True) if part.to_ask]
    return Estimate(
        model=spec.model or known.name,
        eval=spec.eval,
        dataset=dataset,
        measuring=measuring,
        total=total,
        cheaper=_cheaper(spec, dataset, total),
        assumptions=(
            *([f"dataset: {foreseen.imagined}"] if foreseen.imagined else []),
            *_told("input", [each.input for each in said]),
            *_told("answers", [each.answer for each in said]),
            f"time: {pace.basis}",
            *on_expected_samples(spec.precision, spec.to_draw, foreseen.samples),
            *([_on_diagnosis()] if spec.diagnose else []),
            *([SAME_MODEL] if is_remote(known) and dataset.kept + measuring.kept else []),
        ),
    )


def _cheaper(spec: Spec, dataset: Step, total: Step) -> tuple[str, ...]:
    most = max((way.cost.most for way in total.ways if way.cost), default=0.0)
    if most <= (Spec.ask_above or 0.0):
        return ()
    return tuple(cheaper_than(spec, searches=dataset.requests > 1))


def _total(*steps: Step) -> Step:
    """Both steps together, each in the same way of answering as far as it has several."""
    asked = [step for step in steps if step.requests]
    longest = max((step.ways for step in asked), key=len, default=())
    requests = sum(step.requests for step in asked)
    ways = []
    for number, titled in enumerate(longest):
        each = [(step, step.ways[min(number, len(step.ways) - 1)]) for step in asked]
        costs = [way.cost for _, way in each if way.cost]
        tokens = [
            sum(step.requests * way.tokens[end] for step, way in each) / requests for end in (0, 1)
        ]
        ways.append(
            Way(
                titled.title,
                Span(*tokens),
                cost=Span(*map(sum, zip(*costs, strict=True))) if costs else None,
                seconds=Span(*map(sum, zip(*(way.seconds for _, way in each), strict=True))),
            )
        )
    return Step(requests, sum(step.input_tokens for step in asked), tuple(ways))


def _step(
    questions: int,
    lengths: Lengths,
    known: ModelInfo,
    price: Price | None,
    pace: LatencyModel,
    waves: int,
) -> Step:
    def all_of(tokens: Span, price: Price) -> Span:
        return Span(*(cost(questions, lengths, each, known, price) for each in tokens))

    ways = (
        Way(
            title,
            tokens,
            cost=all_of(tokens, price) if price else None,
            seconds=Span(*(pace.seconds(questions, each, waves) for each in tokens)),
        )
        for title, tokens in lengths.answer.items()
    )
    return Step(_requests(questions, known), lengths.input_tokens, tuple(ways))
