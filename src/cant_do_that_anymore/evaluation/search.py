"""The search for positions whose special move a model plays by itself.

It goes through a pool in seeded order at temperature 0 under the baseline condition. A model that
takes no temperature draws its answers, and one draw says little: the positions that it hits are
asked again, and selected when at least two of three draws are the special move.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import ceil

from ..client.budget import is_counted
from ..errors import Interrupted, NoHabit
from ..game.position import Position, checked
from ..providers.base import Answer, Request, Usage
from ..providers.request_variants import NO_TEMPERATURE
from ..task.quality_guard import QualityGuard
from .criteria import Criteria, Which
from .results import Dataset
from .statistics.prospect import Prospect
from .waves import wave_size

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
class _Drawn:
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

    def __init__(self, criteria: Criteria, wanted: int, hoped: int = 0) -> None:
        self._criteria = criteria
        self._wanted = wanted
        self._begun = 0
        self._again: deque[Which] = deque()
        self._awaited: deque[Which] = deque()
        self._open: dict[int, _Drawn] = {}
        self._seen = 0
        self._failed = 0
        self._questions = 0
        self._usage = Usage()
        self._counted = True
        self._own_temperature = False
        self.target = max(wanted, hoped)
        self.needed = ceil(self.target / 2)
        self._prospect = Prospect(len(criteria.ordered), self.needed)
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
        return max(1, again + wave_size(self._wanted - likely, seen, likely))

    def asks(self) -> Iterator[Request]:
        """The next questions, as far as they are known: again what was hit, then the pool's."""
        while self._again or self._begun < len(self._criteria.ordered):
            if self._again:
                which = self._again.popleft()
            else:
                which = Which(self._begun, 0)
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
        drawn = self._open.setdefault(which.number, _Drawn(draws))
        drawn.hits.append(hit)
        drawn.usage += usage
        drawn.failed |= failed
        if drawn.found is None:
            self._again.append(Which(which.number, which.draw + 1))
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
