"""Simulated runs of a model that reacts to three of the interventions."""

from dataclasses import replace
from functools import cache
from random import Random

from cant_do_that_anymore.metrics.interventions import effects_of
from cant_do_that_anymore.providers.base import Answer
from cant_do_that_anymore.task.samples import interned
from cant_do_that_anymore.task.types import Outcome, Plan, Sample, ScoredAnswer
from run_builders import POOL, plan_of

SAMPLES = 200
HABIT_RATES = {
    **dict.fromkeys(("changed", "repeated", "reminded", "conflict-named", "example"), 0.7),
    **{"legal-moves": 0.3, "check-first": 0.4, "reason-first": 0.45},
}
"""The share of habits kept under the changed rules and with each intervention."""
HELPFUL = {"legal-moves", "check-first", "reason-first"}


def significant_interventions(seed: int, *, per_game: int) -> set[str]:
    """The interventions with a significant effect in a run."""
    effects = effects_of(_samples(Random(seed), HABIT_RATES, per_game), _plan())
    return {effect.name for effect in effects if effect.is_significant}


@cache
def _plan() -> Plan:
    return plan_of(SAMPLES, ("standard", *HABIT_RATES), interventions=tuple(HABIT_RATES)[1:])


def _samples(random: Random, rates: dict[str, float], per_game: int) -> list[Sample]:
    """Samples of a model that keeps its habit more often in some games than in others."""
    samples, exponent = [], 1.0
    for number, position in enumerate(POOL[:SAMPLES]):
        if number % per_game == 0:
            exponent = random.uniform(0.7, 1.4)
        replies = {name: _reply(random.random() < share**exponent) for name, share in rates.items()}
        replies["standard"] = _reply(random.random() < 0.95)
        answers = dict.fromkeys(replies, Answer("a2a3"))
        samples.append(Sample(replace(position, game=number // per_game), 0, replies, answers))
    return samples


def _reply(special: bool) -> ScoredAnswer:
    outcome: Outcome = "special" if special else "legal"
    return interned(ScoredAnswer(outcome, "a2a3", outcome))
