"""Compute all results of a run from its samples."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..providers.base import Usage
from ..task.conditions import control_conditions
from ..task.types import Condition, Outcome, Plan, Samples, answers_of
from .diagnosis import Finding, findings_of
from .estimates import Estimate, answered, groups_of
from .interventions import Effect, effects_of
from .measures import MEASURES, UPTAKE, lengths, reasoning_tokens
from .wordings import Wordings, by_wording


@dataclass(frozen=True)
class Results:
    """All numbers of a run.

    Attributes:
        estimates: the measures by name; one that is undefined is absent.
        n: the number of samples with an answer to every request, from ``groups`` groups; ``failed``
            samples have a request without an answer.
        outcomes: the number of replies per outcome, by condition, and ``control_outcomes`` the same
            for controls.
        usage: the tokens of all samples and controls.
        wordings: the rule uptake by wording, if the run has several.
        diagnosis: the findings of a diagnosis, if there is one.
        interventions: the effects of the interventions, the most helpful first.
    """

    estimates: Mapping[str, Estimate]
    n: int
    groups: int
    failed: int
    outcomes: Mapping[str, Mapping[Outcome, int]]
    control_outcomes: Mapping[str, Mapping[Outcome, int]]
    usage: Usage
    wordings: Wordings | None = None
    diagnosis: Mapping[str, Finding] = field(default_factory=dict)
    interventions: Sequence[Effect] = ()

    def __getitem__(self, name: str) -> Estimate:
        return self.estimates[name]

    def get(self, name: str) -> Estimate | None:
        """Return an estimate, or None if it is undefined."""
        return self.estimates.get(name)

    @property
    def uptake(self) -> Estimate | None:
        """The rule uptake."""
        return self.get(UPTAKE.name)

    def share(self, condition: str, *outcomes: Outcome) -> float:
        """Return the share of replies under a condition that have one of these outcomes."""
        counts = self.outcomes[condition]
        return sum(counts.get(name, 0) for name in outcomes) / max(1, sum(counts.values()))


def estimates_of(samples: Samples, conditions: Sequence[str]) -> dict[str, Estimate]:
    """Return all measures that are defined, by name."""
    scored = answered(samples)
    measures = {name: measure.estimate(samples) for name, measure in MEASURES.items()}
    return {
        **{name: estimate for name, estimate in measures.items() if estimate},
        **lengths(scored),
        **reasoning_tokens(scored, conditions),
    }


def compute(samples: Samples, controls: Samples, plan: Plan) -> Results:
    """Compute all results, for any number of samples."""
    scored, names = answered(samples), [condition.name for condition in plan.conditions]
    estimates = estimates_of(samples, names)
    of_controls = control_conditions(plan) if controls else ()
    return Results(
        estimates=estimates,
        n=len(scored),
        groups=len(set(groups_of(scored))),
        failed=len(samples) - len(scored),
        outcomes={each.name: _outcomes(samples, each) for each in plan.conditions},
        control_outcomes={each.name: _outcomes(controls, each) for each in of_controls},
        usage=sum((answer.usage for answer in answers_of([*samples, *controls])), Usage()),
        wordings=by_wording(samples, plan, estimates.get(UPTAKE.name)),
        diagnosis=findings_of(samples, controls, names, plan.interventions),
        interventions=effects_of(samples, plan.interventions),
    )


def _outcomes(samples: Samples, condition: Condition) -> dict[Outcome, int]:
    counts = Counter(sample.replies[condition.name].outcome for sample in samples)
    return {outcome: counts[outcome] for outcome in condition.outcomes}
