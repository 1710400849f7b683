"""Questions, tokens, cost and time of a run before anything is spent.

Nothing is asked and no key is needed. Answers that are kept from before are not asked again, so
they are left out here too.
"""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from math import ceil
from statistics import median

from ..game.position import Position, shipped_pool
from ..game.rules import STANDARD
from ..home import answers_file
from ..models.asking import key_of
from ..models.model import Known, Question, Usage
from ..models.names import OUR_MODELS, known_by_name
from ..models.purse import Price
from ..models.store import Store
from .datasets import shipped_datasets
from .judging import judge
from .prices import price_of
from .run import (
    Plan,
    both_questions,
    criteria_for,
    drawn,
    given_dataset,
    plan_for,
    pool_for,
)
from .selection import BUILT, Criteria, found_dataset
from .spec import Eval, Spec
from .tokens import MOVE_ANSWER_TOKENS, counter_for

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
        measuring: asking each of the samples under both rule sets.
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
    known = known_by_name(spec.model, spec.base_url)
    plan = plan_for(spec, known)
    answer_tokens = spec.max_tokens or MOVE_ANSWER_TOKENS
    count, exact = counter_for(known.name)
    connections = spec.max_connections or known.connections
    with closing(Store(answers_file())) as store:
        search = _search(spec, plan, known, store)
        positions = drawn(search.positions, plan.wanted, spec.seed)
        questions = [
            ask.question
            for ask in both_questions(positions, plan)
            if not store.get(key_of(known, ask, plan.settings))
        ]

    def step(questions: Sequence[Question]) -> Step:
        n = len(questions)
        usage = Usage(sum(map(count, questions)), n * answer_tokens)
        if known.name in OUR_MODELS:
            return Step(n, usage, n / OUR_ANSWERS_A_SECOND)
        return Step(n, usage, n * SECONDS_AN_ANSWER / connections)

    return Estimate(
        model=spec.model or known.name,
        eval=spec.eval,
        dataset=step(search.questions),
        measuring=step(questions),
        price=price_of(known.name, known.endpoint),
        assumptions=(
            *search.assumptions,
            _on_tokens(spec, exact=exact),
            _on_time(known, connections),
        ),
    )


@dataclass(frozen=True)
class _Search:
    """The questions that will find a dataset, and positions like those that they will find."""

    positions: Sequence[Position]
    questions: Sequence[Question] = ()
    assumptions: tuple[str, ...] = ()


def _search(spec: Spec, plan: Plan, known: Known, store: Store) -> _Search:
    if spec.dataset:
        return _Search(given_dataset(spec.dataset, plan.rules).positions)
    pool = pool_for(spec, plan.rules)
    if spec.eval == "all_diagonal":
        return _Search(pool.positions)
    criteria = criteria_for(known, pool, plan)
    so_far = _asked_so_far(criteria, known, store)
    version = so_far.version or known.name.rpartition("/")[2]
    found = found_dataset(version, criteria)
    if found and (found.pool_ended or len(found.positions) >= plan.wanted):
        one_for_the_version = islice(criteria.asks(), 0 if so_far.asked else 1)
        positions = found.positions[: plan.wanted] if found.origin == BUILT else found.positions
        return _Search(positions, [ask.question for ask in one_for_the_version])
    rate, basis = so_far.hit_rate()
    last = so_far.asked + ceil(max(plan.wanted - so_far.hits, 0) / rate)
    asks = islice(criteria.asks(), so_far.asked, last)
    hits = so_far.hits + round(rate * (min(last, len(pool.positions)) - so_far.asked))
    return _Search(
        criteria.ordered()[: max(hits, 1)], [ask.question for ask in asks], (f"dataset: {basis}",)
    )


@dataclass(frozen=True)
class _SoFar:
    """What kept answers say about building the dataset."""

    asked: int
    hits: int
    version: str

    def hit_rate(self) -> tuple[float, str]:
        """The share of positions whose special move the model plays, and what that rests on."""
        if self.asked >= FEWEST_FOR_A_RATE and self.hits:
            rate = self.hits / self.asked
            return rate, (
                f"{self.version} plays the special move in {100 * rate:.1f} % of the "
                f"{self.asked:,} positions asked so far"
            )
        pool = shipped_pool("pool")
        rates = [len(dataset.positions) / len(pool) for dataset in shipped_datasets(pool).values()]
        return median(rates), (
            f"the special move is taken to be played in {100 * median(rates):.1f} % of positions, "
            f"the middle of the shipped datasets ({100 * min(rates):.1f} to "
            f"{100 * max(rates):.1f} %)"
        )


def _asked_so_far(criteria: Criteria, known: Known, store: Store) -> _SoFar:
    asked, hits, version = 0, 0, ""
    for position, ask in zip(criteria.ordered(), criteria.asks(), strict=True):
        answer = store.get(key_of(known, ask, criteria.settings))
        if not answer:
            break
        asked, version = asked + 1, answer.version
        hits += judge(answer, position, STANDARD, criteria.reading).outcome == "special"
    return _SoFar(asked, hits, version)


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
