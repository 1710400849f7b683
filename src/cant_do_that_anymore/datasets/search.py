"""Search a pool for positions with the habit.

The search goes through the pool in seeded order at temperature 0 under the baseline condition, and
asks about each position once.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from math import ceil

from ..errors import Interrupted, NoHabit
from ..game.position import Position, checked
from ..game.rules import identity_of
from ..providers.base import Answer, Message, ModelInfo, Request, Settings, add_costs
from ..task.forms import MOVES
from ..task.samples import FirstReplies
from ..task.spec import Spec
from ..task.types import Plan
from .no_habit import advice, is_too_rare
from .pools import Pool
from .storage import Dataset


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

    def request(self, number: int) -> Request:
        """Return the request about a position, by its number in the pool's order.

        Raises:
            InvalidInput: if the position is invalid under the rules.
        """
        position = checked(self.ordered[number], self.plan.change, self.pool.positions)
        baseline = self.plan.baseline
        return Request(baseline.question(position), "selection", baseline.name)

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
# So many requests of a search are started at least, even if one more position is missing.
MIN_AHEAD = 8


class Search:
    """Goes through the pool until enough positions are found.

    Attributes:
        target: how many positions are wanted.
        hits: the positions found, in the order of the pool.
        searched: how many positions of the pool are decided.
    """

    def __init__(self, config: SelectionConfig, wanted: int) -> None:
        self.config, self.target = config, wanted
        self.hits: list[Position] = []
        self.searched = self._failed = 0
        self._cost: float | None = 0.0
        self._played: list[tuple[Position, str]] = []

    @property
    def left(self) -> int:
        """How many positions of the pool are undecided."""
        return len(self.config.ordered) - self.searched

    def max_ahead(self) -> int:
        """Return how many requests to have started, so that few answers are not needed.

        Until the last positions, these are as many as should find the positions that are missing.
        """
        rate = (len(self.hits) + 1) / (self.searched + 1)
        return max(MIN_AHEAD, ceil((self.target - len(self.hits)) / rate))

    @property
    def done(self) -> bool:
        """Whether enough positions were found, or the pool is exhausted."""
        return len(self.hits) >= self.target or not self.left

    def gives_up(self, spec: Spec) -> bool:
        """Whether to end the search early: hits are too rare, and most of the pool is left."""
        too_rare = is_too_rare(len(self.hits), self.searched)
        return too_rare and self.searched < self.left and not spec.keep_looking

    @property
    def advice(self) -> str:
        """What the moves of the model suggest to do instead, as a sentence; "" if nothing."""
        return advice(self._played, self.config.plan.change)

    def requests(self) -> Iterator[Request]:
        """Yield the requests about the positions that are undecided, in the order of the pool."""
        return map(self.config.request, range(self.searched, len(self.config.ordered)))

    def observe(self, answer: Answer, first_replies: FirstReplies | None = None) -> None:
        """Process the answer about the next position.

        Raises:
            Incomplete: if too many requests have no answer, or the first are
                unusable.
        """
        plan, position = self.config.plan, self.config.ordered[self.searched]
        score = plan.baseline.read(answer, position, plan.baseline.rules, plan.reading)
        self.searched += 1
        if score.outcome == "special":
            self.hits.append(checked(position, plan.change))
        if score.move:
            self._played.append((position, score.move))
        if answer.stop_reason == "error":
            self._count_failure(answer.error)
        else:
            self.add_cost(answer)
        if first_replies:
            first_replies.observe(answer, usable=score.usable, baseline=True)

    def _count_failure(self, error: str) -> None:
        self._failed += 1
        if self._failed > max(MAX_FAILURES, MAX_FAILURE_RATE * self.searched):
            raise Interrupted(
                f"{self._failed} of the {self.searched} requests to build the dataset have no "
                f"answer (the last: {error})"
            )

    def add_cost(self, answer: Answer) -> None:
        """Count the cost of an answer."""
        self._cost = add_costs(self._cost, answer.cost)

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
        return Dataset(
            version=version,
            origin=BUILT,
            positions=self.hits,
            asked=self.searched,
            failed=self._failed,
            # Failed requests are sent again next time.
            pool_ended=not self.left and not self._failed,
            cost=self._cost,
            endpoint=self.config.model.endpoint,
            built_now=True,
            pool=self.config.pool.digest,
            pool_name=self.config.pool.display_name(self.config.plan.change),
        )
