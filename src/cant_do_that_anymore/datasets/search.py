"""Search a pool for positions with the habit, and stop when it holds too few.

The positions come in random order, each once. Suppose that the pool holds just as many hits as are
needed: then the chance that the next position is one is known, and one can bet on its being none,
at fair odds. If the pool holds that many or more, no way of betting gains in the mean, so that the
stake ever grows to 1 / `ERROR` times what it was with a chance of `ERROR` at most, however often it
is looked at (Ville's inequality). When it has, the pool holds fewer.

A question too many costs half its price and is kept for a larger dataset; one too few costs another
wave, which may take a day. So the first wave wastes nothing, whatever the model hits, and tells its
hit rate; those after it are large enough to be the last in four of five cases.

It goes through a pool in seeded order at temperature 0 under the baseline condition. A model that
takes no temperature draws its answers, and one draw says little: the positions that it hits are
asked again, and selected when at least two of three draws are the special move.
"""

import json
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from math import ceil, sqrt
from random import Random
from typing import NamedTuple

from ..client.budget import is_counted
from ..errors import Interrupted, NoHabit
from ..game.position import Position, checked
from ..game.rules import identity_of
from ..providers.base import Answer, ModelInfo, Request, Settings, Usage
from ..providers.request_variants import NO_TEMPERATURE
from ..task.quality_guard import QualityGuard
from ..task.types import Plan
from .pools import Pool
from .storage import Dataset

ERROR = 0.01
"""How often, at most, a pool is given up that holds enough."""


class FutilityTest:
    """How a bet stands that a pool of so many positions holds fewer hits than are needed."""

    def __init__(self, pool: int, needed: int) -> None:
        self._left = pool
        self._needed = needed
        self._seen = 0
        self._hits = 0
        self._stake = 1.0

    @property
    def is_hopeless(self) -> bool:
        """Whether the pool holds too few, which is sure but for a chance of `ERROR`."""
        return self._stake >= 1 / ERROR

    def see(self, hit: bool) -> None:
        """Look at the next position."""
        if self._hits < self._needed:
            fair = min(1.0, (self._needed - self._hits) / self._left)
            guess = min(fair, (self._hits + 0.5) / (self._seen + 1))  # never that there are more
            if hit:
                self._stake *= guess / fair
            elif fair < 1:
                self._stake *= (1 - guess) / (1 - fair)
            else:  # all that are left would have to be hits
                self._stake = 1 / ERROR
        self._left -= 1
        self._seen += 1
        self._hits += hit


MOST_HIT = 0.67
"""No model was seen to hit more: 5 to 16 % of the shipped pool, up to 67 % of common habits."""
LEAST_FIRST = 300
"""So many tell the hit rate well enough, even if few positions are wanted."""
CAUTION = 0.84
"""Standard deviations by which the hits may fall short: four times of five they do not."""


def asked_in_waves(wanted: int, rate: float) -> int:
    """How many positions are asked about to find so many, where that share of them is hit.

    >>> asked_in_waves(1000, 0.075)
    14369
    """
    first = batch_size(wanted, 0, 0)
    hits = round(first * rate)
    return first + batch_size(wanted - hits, first, hits)


def batch_size(missing: int, seen: int, hits: int) -> int:
    """How many positions more to ask about.

    Args:
        missing: hits that are wanted still.
        seen: positions that were asked about.
        hits: those of them that were hit.

    >>> batch_size(1000, 0, 0)
    1493
    >>> batch_size(900, 1493, 100)
    14688
    >>> batch_size(0, 17000, 1000)
    0
    """
    if missing <= 0:
        return 0
    if seen < LEAST_FIRST or not hits:
        return max(ceil(missing / MOST_HIT), LEAST_FIRST)
    rate, variance = hits / seen, hits / seen * (1 - hits / seen) * CAUTION**2
    # The hits of n more are n * rate, off by the root of variance * (n + n**2 / seen): by chance,
    # and because the rate is known from those seen alone. Solved for n where the low end will do.
    a, b = rate**2 - variance / seen, 2 * rate * missing + variance
    return ceil((b + sqrt(b**2 - 4 * a * missing**2)) / (2 * a))


ORDER_SEED = 20_220_722
"""The pool's order is the same for all models and runs, so that datasets can only grow."""


class Query(NamedTuple):
    """A position by its number in the pool's order, and how often it was asked before."""

    number: int
    draw: int


@dataclass(frozen=True)
class SelectionConfig:
    """What a dataset depends on besides the version that answers."""

    model: ModelInfo
    pool: Pool
    plan: Plan

    @cached_property
    def settings(self) -> Settings:
        """Selection is always at temperature 0, whatever the seed."""
        return replace(
            self.plan.settings,
            temperature=0.0,
            seed=Settings.seed,
            reasoning_effort=self.plan.select_effort,
        )

    @cached_property
    def ordered(self) -> list[Position]:
        """The pool in seeded order.

        One that is mixed stays as it is: rules with nearly the same pool ask nearly the same.
        """
        positions = self.pool.positions
        if self.pool.mixed:
            return list(positions)
        return Random(ORDER_SEED).sample(positions, len(positions))

    def ask(self, which: Query) -> Request:
        """The question about a position.

        Raises:
            InvalidInput: if it is none under the rules.
        """
        baseline = self.plan.baseline
        question = baseline.question(checked(self.ordered[which.number], self.plan.change))
        return Request(question, "selection", baseline.name, which.draw)

    @property
    def facts(self) -> dict[str, object]:
        """What to write beside a dataset."""
        return {
            "rules": identity_of(self.plan.change),
            "pool": self.pool.digest,
            "text": self.plan.baseline.text,
            "reading": self.plan.reading,
            "settings": self.settings.non_defaults,
            "identity": dict(self.model.identity),
        }

    @cached_property
    def digest(self) -> str:
        """Tells datasets of one version apart."""
        return sha256(json.dumps(self.facts).encode()).hexdigest()[:8]


FEWEST_FAILURES, MOST_FAILURES = 5, 0.05
"""So many questions may fail, or such a share of them, before a dataset is given up."""
BUILT = "built"
NOTHING_USED = Usage()
MORE_TO_CONFIRM = 1.5
"""In one wave so many hits are asked again for each position that is missing: some are not borne
out."""
DRAWS = 3
"""So often a position is asked that a model hits which takes no temperature."""


@dataclass
class _PositionState:
    """What came of asking about one position, and how often it may be asked."""

    draws: int
    hits: list[bool] = field(default_factory=list)
    usage: Usage = NOTHING_USED
    failed: bool = False

    @property
    def found(self) -> bool | None:
        """Whether most draws are the special move; None if that is open.

        A first draw that is another move decides, and so do enough of one kind.
        """
        enough, hits = self.draws // 2 + 1, sum(self.hits)
        if hits >= enough:
            return True
        return False if not self.hits[0] or len(self.hits) - hits >= enough else None


class Search:
    """Goes through the pool until enough positions are found.

    It says what to ask next, and takes the answers in that order. Positions are found in the order
    of the pool, whatever the answers to later ones.

    Attributes:
        hoped: how many positions the run can use, if it goes on after those that are wanted now.
    """

    def __init__(self, criteria: SelectionConfig, wanted: int, hoped: int = 0) -> None:
        self._criteria = criteria
        self._wanted = wanted
        self._begun = 0
        self._again: deque[Query] = deque()
        self._awaited: deque[Query] = deque()
        self._open: dict[int, _PositionState] = {}
        self._seen = 0
        self._failed = 0
        self._questions = 0
        self._usage = Usage()
        self._counted = True
        self._own_temperature = False
        self.target = max(wanted, hoped)
        self.needed = ceil(self.target / 2)
        self._prospect = FutilityTest(len(criteria.ordered), self.needed)
        self.hits: list[Position] = []
        self.asked = 0

    @property
    def left(self) -> int:
        """How many positions of the pool are not decided yet."""
        return len(self._criteria.ordered) - self.asked

    @property
    def is_hopeless(self) -> bool:
        """Whether it is sure that the pool cannot give half of what is wanted, and most is left.

        A pool that is smaller than what is wanted is gone through whatever it holds.
        """
        worthwhile = self.target <= self.asked + self.left and self.asked < self.left
        return worthwhile and self._prospect.is_hopeless

    def expected(self) -> tuple[float, float]:
        """How many questions are to come by the hits so far, and how many positions in the end."""
        rate = len(self.hits) / max(self.asked, 1)
        missing = self.target - len(self.hits)
        to_come = min(self.left, missing / rate) if rate else self.left
        questions_each = self._questions / max(self.asked, 1)
        return to_come * max(questions_each, 1), len(self.hits) + rate * to_come

    @property
    def done(self) -> bool:
        """Whether enough were found, or there are no more."""
        return len(self.hits) >= self._wanted or self.asked == len(self._criteria.ordered)

    @property
    def asks_again(self) -> bool:
        """Whether the question that is next has been asked before."""
        return self._awaited[0].draw > 0

    @property
    def wave(self) -> int:
        """How many of the next questions to ask together, where answers take hours."""
        likely = len(self.hits) + sum(each.found is not False for each in self._open.values())
        seen, missing = self.asked + len(self._open), self._wanted - len(self.hits)
        again = min(len(self._again), ceil(MORE_TO_CONFIRM * missing))
        return max(1, again + batch_size(self._wanted - likely, seen, likely))

    def asks(self) -> Iterator[Request]:
        """The next questions, as far as they are known: again what was hit, then the pool's."""
        while self._again or self._begun < len(self._criteria.ordered):
            if self._again:
                which = self._again.popleft()
            else:
                which = Query(self._begun, 0)
                self._begun += 1
            self._awaited.append(which)
            yield self._criteria.ask(which)

    def observe(self, answer: Answer, watch: QualityGuard | None = None) -> None:
        """Take the answer to the question that was next.

        Raises:
            Incomplete: if too many questions have no answer, or the watch finds the replies of no
                use.
        """
        position, plan = self._criteria.ordered[self._awaited[0].number], self._criteria.plan
        judgement = plan.baseline.read(answer, position, plan.baseline.rules, plan.reading)
        drawn = NO_TEMPERATURE in answer.conceded
        self._own_temperature |= drawn
        self._seen += 1
        failed = answer.stop_reason == "error"
        self._failed += failed
        self._counted &= failed or is_counted(answer)
        hit = judgement.outcome == "special"
        self.advance(hit, DRAWS if drawn else 1, answer.usage, failed=failed)
        if self._failed > max(FEWEST_FAILURES, MOST_FAILURES * self._seen):
            raise Interrupted(
                f"{self._failed} of the {self._seen} questions to find a dataset have no answer "
                f"(the last: {answer.error})",
                "the others are saved",
            )
        if watch:
            watch.see(answer, usable=judgement.usable, baseline=True)

    def advance(
        self, hit: bool, draws: int, usage: Usage = NOTHING_USED, *, failed: bool = False
    ) -> None:
        """Go on from the question that was next, by whether it was the special move.

        A position that is hit is asked again until as many draws would not change what most are.
        """
        which = self._awaited.popleft()
        drawn = self._open.setdefault(which.number, _PositionState(draws))
        drawn.hits.append(hit)
        drawn.usage += usage
        drawn.failed |= failed
        if drawn.found is None:
            self._again.append(Query(which.number, which.draw + 1))
        while not self.done and self.asked in self._open:
            drawn = self._open[self.asked]
            if drawn.found is None:
                break
            if drawn.found:
                hit_position = self._criteria.ordered[self.asked]
                self.hits.append(checked(hit_position, self._criteria.plan.change))
            if not drawn.failed:  # nobody knows what it is
                self._prospect.see(drawn.found)
            self._questions += len(drawn.hits)
            self._usage += drawn.usage
            del self._open[self.asked]
            self.asked += 1

    def dataset(self, version: str) -> Dataset:
        """What was found.

        Raises:
            NoHabit: if that is nothing.
        """
        if not self.hits:
            raise NoHabit(
                f"{version} plays the special move in none of the {self.asked} positions of the "
                "pool, so there is no habit to measure"
            )
        ended = self.asked == len(self._criteria.ordered)
        return Dataset(
            version=version,
            origin=BUILT,
            positions=self.hits,
            asked=self._questions,
            failed=self._failed,
            pool_ended=ended and not self._failed,  # who failed is asked again next time
            usage=self._usage if self._counted else NOTHING_USED,
            endpoint=self._criteria.model.endpoint,
            built_now=True,
            own_temperature=self._own_temperature,
            pool=self._criteria.pool.digest,
            pool_name=self._criteria.pool.told_under(self._criteria.plan.change),
        )
