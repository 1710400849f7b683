"""What a dataset depends on: the order of the pool, and how each of its positions is asked."""

import json
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from random import Random
from typing import NamedTuple

from ..game.position import Position, checked
from ..game.rules import identity_of
from ..providers.base import ModelInfo, Request, Settings
from ..task.types import Plan
from .pools import Pool

ORDER_SEED = 20_220_722
"""The pool's order is the same for all models and runs, so that datasets can only grow."""


class Which(NamedTuple):
    """A position by its number in the pool's order, and how often it was asked before."""

    number: int
    draw: int


@dataclass(frozen=True)
class Criteria:
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

    def ask(self, which: Which) -> Request:
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
