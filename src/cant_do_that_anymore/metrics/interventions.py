"""What helps: the rule uptake with each intervention, compared with that of no intervention."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from statistics import fmean

from ..task.types import CHANGED_CONDITION, Sample, Samples
from .estimates import Estimate, answered, difference
from .measures import UPTAKE, uptake_under

# An intervention cannot be judged if more of its replies than this share are unusable.
MAX_UNUSABLE = 0.2
VERDICTS = ("helps", "harms", "no detectable effect", "cannot be judged")


@dataclass(frozen=True)
class Effect:
    """The effect of one intervention.

    Attributes:
        rule_uptake: the rule uptake with the intervention; None if it is undefined.
        difference: that minus the rule uptake without. The intervals of all interventions of a run
            contain their true values together, with 95% probability.
        unusable: the share of its replies that are unusable.
        extra_tokens: additional tokens per sample, input and output.
    """

    name: str
    rule_uptake: Estimate | None
    difference: Estimate | None
    unusable: float
    extra_tokens: float

    @property
    def can_be_judged(self) -> bool:
        """Whether enough replies are usable, and the effect is defined."""
        return self.difference is not None and self.unusable <= MAX_UNUSABLE

    @property
    def verdict(self) -> str:
        """One of ``VERDICTS``: whether it helps."""
        if not self.difference or not self.can_be_judged:
            return "cannot be judged"
        return {1: "helps", -1: "harms", 0: "no detectable effect"}[self.difference.sign]


def effects_of(samples: Samples, names: Sequence[str]) -> list[Effect]:
    """Return the effects of interventions, the most helpful first."""
    effects = [_effect(name, samples, len(names)) for name in names]
    return sorted(effects, key=lambda e: -e.difference.value if e.difference else inf)


def _effect(name: str, samples: Samples, comparisons: int) -> Effect:
    measure, usable = uptake_under(name), answered(samples)
    more_tokens = [_tokens(sample, name) - _tokens(sample, CHANGED_CONDITION) for sample in usable]
    return Effect(
        name,
        measure.estimate(samples),
        difference(measure, UPTAKE, samples, comparisons=comparisons),
        sum(not sample.replies[name].usable for sample in samples) / max(1, len(samples)),
        fmean(more_tokens) if more_tokens else 0.0,
    )


def _tokens(sample: Sample, condition: str) -> int:
    usage = sample.answers[condition].usage
    return usage.input_tokens + usage.output_tokens
