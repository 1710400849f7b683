"""Questions, tokens, cost and time of a run before anything is spent.

Nothing is asked and no key is needed: the search and the drawing are those of the run itself, fed
with the answers that are kept from before, and from there on with imagined ones. Only what would be
asked is counted.
"""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from statistics import median

from ..game.position import shipped_pool
from ..home import answers_file
from ..models.concessions import NO_TEMPERATURE
from ..models.kept import Kept
from ..models.model import Known, Question, Usage
from ..models.names import OUR_MODELS, known_by_name
from ..models.purse import Price
from ..models.store import Store
from .datasets import shipped_datasets
from .pools import drawn, positions_for
from .prices import price_of
from .results import Dataset
from .samples import draws_of
from .search import DRAWS, Criteria, Search
from .selection import enough_of, found_dataset
from .spec import DEFAULT_MODEL, Spec, plan_for
from .tokens import MOVE_ANSWER_TOKENS, counter_for
from .vocabulary import Eval, Plan

SECONDS_AN_ANSWER = 1.0
OUR_ANSWERS_A_SECOND = 100.0
FEWEST_FOR_A_RATE = 100
"""With fewer questions asked so far, their hits say little."""


@dataclass(frozen=True)
class Step:
    """Part of a run: the questions to be asked, the tokens of them and their answers, the time."""

    requests: int
    usage: Usage
    seconds: float

    def cost(self, price: Price | None) -> float | None:
        """US dollars, or None if the price is unknown."""
        return price.of(self.usage, self.requests) if price else None


@dataclass(frozen=True)
class Estimate:
    """What a run will take.

    Attributes:
        dataset: finding the positions where the model has the habit.
        measuring: asking each of the samples under every condition.
        price: of a token; None if unknown.
        assumptions: what the figures rest on, one sentence each.
    """

    model: str
    eval: Eval
    dataset: Step
    measuring: Step
    price: Price | None
    assumptions: tuple[str, ...]


def estimate(spec: Spec) -> Estimate:
    """Estimate a run.

    Raises:
        BadInput: if the spec cannot work.
    """
    name = spec.model or (None if spec.base_url else DEFAULT_MODEL)
    known = known_by_name(name, spec.base_url)
    plan = plan_for(spec, known)
    answer_tokens = spec.max_tokens or MOVE_ANSWER_TOKENS
    count, exact = counter_for(known.name)
    connections = spec.max_connections or known.connections
    with closing(Store(answers_file())) as store:
        kept = Kept(known, store)
        dataset, search, basis = _dataset(spec, plan, known, kept)
        draws = draws_of(position for _, position in drawn(dataset, spec))
        groups = (list(draw.asks(plan.conditions)) for draw in draws)
        measuring = [
            ask.question
            for asks in groups
            for anew in [kept.was_cut_off(asks, plan.settings)]
            for ask in asks
            if not kept.answer(replace(ask, anew=anew), plan.settings)
        ]

    def step(questions: Sequence[Question]) -> Step:
        n = len(questions)
        usage = Usage(sum(map(count, questions)), n * answer_tokens)
        if known.name in OUR_MODELS:
            return Step(n, usage, n / OUR_ANSWERS_A_SECOND)
        return Step(n, usage, n * SECONDS_AN_ANSWER / connections)

    return Estimate(
        model=name or known.name,
        eval=spec.eval,
        dataset=step(search),
        measuring=step(measuring),
        price=price_of(known),
        assumptions=(*basis, _on_tokens(spec, exact=exact), _on_time(known, connections)),
    )


def _dataset(
    spec: Spec, plan: Plan, known: Known, kept: Kept
) -> tuple[Dataset, list[Question], tuple[str, ...]]:
    """The dataset as far as it can be foreseen, the questions to find it, what that rests on."""
    at_hand = positions_for(spec)
    if isinstance(at_hand, Dataset):
        return at_hand, [], ()
    criteria = Criteria(known, at_hand, plan)
    search = Search(criteria, plan.wanted)
    asks = search.asks()
    version = str(known.identity["name"]).rpartition("/")[2]
    unanswered: list[Question] = []
    for ask in asks:
        answer = kept.answer(ask, criteria.settings)
        if not answer:
            unanswered.append(ask.question)
            break
        version = answer.version
        search.see(answer)
        if search.done:
            break
    found = enough_of(found_dataset(version, criteria), plan.wanted)
    if found:
        first_question = unanswered if not search.asked else []
        return found, first_question, ()
    rate, basis = _hit_rate(search, version)
    draws = DRAWS if NO_TEMPERATURE in kept.form(criteria.settings) else 1
    hits, hits_due = len(search.hits), float(len(search.hits))
    while not search.done:
        if search.asks_again:
            hit = True
        else:
            hits_due += rate
            hit = hits + 1 <= hits_due
            hits += hit
        search.take(hit, draws)
        if search.done:
            break
        unanswered.append(next(asks).question)
    imagined = search.hits or criteria.ordered[:1]
    return Dataset(version, "imagined", imagined), unanswered, (f"dataset: {basis}",)


def _hit_rate(search: Search, version: str) -> tuple[float, str]:
    """The share of positions whose special move the model plays, and what that rests on."""
    if search.asked >= FEWEST_FOR_A_RATE and search.hits:
        rate = len(search.hits) / search.asked
        return rate, (
            f"{version} plays the special move in {100 * rate:.1f} % of the {search.asked:,} "
            "positions asked so far"
        )
    pool = shipped_pool("pool")
    rates = [len(dataset.positions) / len(pool) for dataset in shipped_datasets(pool).values()]
    return median(rates), (
        f"the special move is taken to be played in {100 * median(rates):.1f} % of positions, "
        f"the middle of the shipped datasets ({100 * min(rates):.1f} to {100 * max(rates):.1f} %)"
    )


def _on_tokens(spec: Spec, *, exact: bool) -> str:
    how = (
        "counted with the model's tokenizer"
        if exact
        else "estimated from characters, without the model's tokenizer, so only roughly"
    )
    if spec.max_tokens:
        return f"tokens: {how}; every answer is taken to use all {spec.max_tokens} tokens allowed"
    return (
        f"tokens: {how}; an answer is taken to be a bare move, {MOVE_ANSWER_TOKENS} tokens (a "
        "model that reasons first needs --max-tokens and uses far more)"
    )


def _on_time(known: Known, connections: int) -> str:
    if known.name in OUR_MODELS:
        return f"time: {OUR_ANSWERS_A_SECOND:.0f} answers a second are taken for our own models"
    return f"time: {SECONDS_AN_ANSWER:g} s an answer is taken, with {connections} questions at once"
