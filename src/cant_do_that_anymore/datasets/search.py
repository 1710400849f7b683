"""Search a pool for positions with the habit.

The search goes through the pool in seeded order at temperature 0 under the baseline condition. A
model that does not support temperature samples its answers. So positions that it hits are asked
again, and selected if at least two of three answers are the special move.
"""

import json
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from itertools import chain
from math import sqrt
from typing import NamedTuple

from ..client.pricing import is_counted
from ..errors import Interrupted, NoHabit
from ..game.position import Position, checked
from ..game.rules import identity_of
from ..providers.base import Answer, Message, ModelInfo, Request, Settings, Usage, add_costs
from ..providers.request_variants import NO_TEMPERATURE
from ..task.forms import MOVES
from ..task.samples import QualityGuard
from ..task.spec import Spec
from ..task.types import Plan
from .no_habit import advice, is_too_rare
from .pools import Pool
from .storage import Dataset


class Query(NamedTuple):
    """A position by its number in the pool's order, and how often it was asked before."""

    number: int
    draw: int


@dataclass(frozen=True)
class SelectionConfig:
    """Everything that a dataset depends on besides the model version."""

    model: ModelInfo
    pool: Pool
    plan: Plan

    @cached_property
    def settings(self) -> Settings:
        """The settings of selection: always temperature 0 and the default seed."""
        return replace(
            self.plan.settings,
            temperature=0.0,
            seed=Settings.seed,
            reasoning_effort=self.plan.select_effort,
        )

    @cached_property
    def ordered(self) -> Sequence[Position]:
        """The pool in seeded order.

        A pool in random order stays as it is, so that rules with similar pools share requests. Of
        positions that the form shows alike (other moves led to the same board), the first remains.
        """
        mixed, form = self.pool.in_seeded_order, self.plan.form
        if form is MOVES:
            return mixed
        shown: dict[tuple[Message, ...], Position] = {}
        for position in mixed:
            shown.setdefault(tuple(form.render(position)), position)
        return list(shown.values())

    def request(self, query: Query) -> Request:
        """Return the request about a position.

        Raises:
            InvalidInput: if the position is invalid under the rules.
        """
        baseline = self.plan.baseline
        position = checked(self.ordered[query.number], self.plan.change, self.pool.positions)
        question = baseline.question(position)
        return Request(question, "selection", baseline.name, query.draw)

    @property
    def facts(self) -> dict[str, object]:
        """The metadata to save with a dataset: everything that decides which positions it has."""
        prompt, form = self.plan.baseline.prompts[0], self.plan.form
        return {
            "rules": identity_of(self.plan.change),
            "pool": self.pool.digest,
            "text": prompt.text,
            **({"role": prompt.role} if prompt.role != "system" else {}),
            **({"form": form.identity} if form is not MOVES else {}),
            **self.plan.scoring,
            "settings": self.settings.non_defaults,
            "identity": dict(self.model.identity),
        }

    @cached_property
    def digest(self) -> str:
        """Digest that distinguishes the datasets of one model version."""
        return sha256(json.dumps(self.facts).encode()).hexdigest()[:8]


# The search stops when failed requests exceed both this number and this share.
MAX_FAILURES, MAX_FAILURE_RATE = 5, 0.05
BUILT = "built"
# Answers per hit position for a model that does not support temperature.
CONFIRMATION_DRAWS = 3


@dataclass
class _PositionState:
    """The answers about one position so far, and how many it may get."""

    draws: int
    hits: list[bool] = field(default_factory=list)

    @property
    def found(self) -> bool | None:
        """Whether most answers are the special move; None if undecided.

        A first answer that is another move decides, and so does a majority of one kind.
        """
        majority, hits = self.draws // 2 + 1, sum(self.hits)
        if hits >= majority:
            return True
        return False if not self.hits[0] or len(self.hits) - hits >= majority else None


class Search:
    """Goes through the pool until enough positions are found.

    It takes the answers in the order of its requests, and finds positions in that of the pool.

    Attributes:
        target: how many positions are wanted.
        searched: how many positions of the pool are decided.
    """

    def __init__(self, config: SelectionConfig, wanted: int) -> None:
        self.config = config
        self._started = 0
        self._to_confirm: deque[Query] = deque()
        self._awaited: deque[Query] = deque()
        self._open: dict[int, _PositionState] = {}
        self._seen = self._failed = self._questions = 0
        self._usage = Usage()
        self._counted = True
        self._cost: float | None = 0.0
        self._seconds = 0.0
        self._own_temperature = False
        self._played: list[tuple[Position, str]] = []
        self.target = wanted
        self.hits: list[Position] = []
        self.searched = 0

    @property
    def left(self) -> int:
        """How many positions of the pool are undecided."""
        return len(self.config.ordered) - self.searched

    def gives_up(self, spec: Spec) -> bool:
        """Whether to end the search early: hits are too rare, and most of the pool is left."""
        too_rare = is_too_rare(len(self.hits), self.searched)
        return too_rare and self.searched < self.left and not spec.keep_looking

    @property
    def advice(self) -> str:
        """What the moves of the model suggest to do instead, as a sentence; "" if nothing."""
        return advice(self._played, self.config.plan.change)

    def expected(self, deviations: float = 0.0) -> tuple[float, float]:
        """Return the expected number of further requests, and of positions in the end.

        With ``deviations``, the hit rate is so many standard deviations higher than it was so far.
        """
        hits = len(self.hits) + deviations * sqrt(len(self.hits) + 1)
        rate = min(1.0, hits / max(self.searched, 1))
        missing = self.target - len(self.hits)
        to_come = min(self.left, missing / rate) if rate else self.left
        questions_each = self._questions / max(self.searched, 1)
        return to_come * max(questions_each, 1), len(self.hits) + rate * to_come

    @property
    def done(self) -> bool:
        """Whether enough positions were found, or the pool is exhausted."""
        return len(self.hits) >= self.target or self.searched == len(self.config.ordered)

    def requests(self) -> Iterator[Request]:
        """Yield the next requests, as far as known: first confirmations of hits, then the pool."""
        while self._to_confirm or self._started < len(self.config.ordered):
            if self._to_confirm:
                query = self._to_confirm.popleft()
            else:
                query = Query(self._started, 0)
                self._started += 1
            self._awaited.append(query)
            yield self.config.request(query)

    def observe(self, answer: Answer, guard: QualityGuard | None = None) -> None:
        """Process the answer to the next request.

        Raises:
            Incomplete: if too many requests have no answer, or the guard finds the answers
                unusable.
        """
        query, plan = self._awaited[0], self.config.plan
        position = self.config.ordered[query.number]
        score = plan.baseline.read(answer, position, plan.baseline.rules, plan.reading)
        is_sampled = NO_TEMPERATURE in answer.conceded
        self._own_temperature |= is_sampled
        self._seen += 1
        failed = answer.stop_reason == "error"
        self._failed += failed
        if not failed:
            self.add_cost(answer)
        hit = score.outcome == "special"
        if score.move and not query.draw:
            self._played.append((position, score.move))
        self.advance(hit, CONFIRMATION_DRAWS if is_sampled else 1)
        if self._failed > max(MAX_FAILURES, MAX_FAILURE_RATE * self._seen):
            raise Interrupted(
                f"{self._failed} of the {self._seen} requests to build the dataset have no "
                f"answer (the last: {answer.error})",
                "the others are saved",
            )
        if guard:
            guard.observe(answer, usable=score.usable, baseline=True)

    def add_cost(self, answer: Answer) -> None:
        """Count the tokens, the cost and the time of an answer."""
        self._usage += answer.paid_usage
        self._counted &= is_counted(answer)
        self._cost = add_costs(self._cost, answer.cost)
        self._seconds += answer.seconds

    def unneeded(self) -> Iterator[Request]:
        """Yield the requests whose answers were not needed: those started, then all others."""
        return chain(map(self.config.request, tuple(self._awaited)), self.requests())

    def advance(self, hit: bool, draws: int) -> None:
        """Advance past the next request, given whether its answer was the special move.

        A hit is asked again until further answers could not change the majority.
        """
        query = self._awaited.popleft()
        state = self._open.setdefault(query.number, _PositionState(draws))
        state.hits.append(hit)
        if state.found is None:
            self._to_confirm.append(Query(query.number, query.draw + 1))
        while not self.done and self.searched in self._open:
            state = self._open[self.searched]
            if state.found is None:
                break
            if state.found:
                hit_position = self.config.ordered[self.searched]
                self.hits.append(checked(hit_position, self.config.plan.change))
            self._questions += len(state.hits)
            del self._open[self.searched]
            self.searched += 1

    def dataset(self, version: str) -> Dataset:
        """Return the dataset that was found.

        Raises:
            NoHabit: if no position was found.
        """
        if not self.hits:
            raise NoHabit(
                f"{version} plays the special move in none of the {self.searched} positions of the "
                f"pool, so there is no habit to measure{self.advice}"
            )
        ended = self.searched == len(self.config.ordered)
        return Dataset(
            version=version,
            origin=BUILT,
            positions=self.hits,
            asked=self._questions,
            failed=self._failed,
            pool_ended=ended and not self._failed,  # failed requests are sent again next time
            usage=self._usage if self._counted else Usage(),
            cost=self._cost,
            seconds=round(self._seconds, 2),
            endpoint=self.config.model.endpoint,
            built_now=True,
            own_temperature=self._own_temperature,
            pool=self.config.pool.digest,
            pool_name=self.config.pool.display_name(self.config.plan.change),
        )
