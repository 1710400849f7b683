"""The table of measures: the original's metrics under their names, and stricter ones.

The terminal, the report, comparisons, experiments, Inspect's scores and the docs all read this
table, so a new measure is one entry here.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean, pstdev
from typing import Any

from ..formatting import Number, amount, number
from ..providers.base import Answer
from ..task.types import CHANGED_CONDITION, STANDARD_CONDITION, Eval, Sample, Samples
from .bounds import games_of
from .diagnosis import DIAGNOSIS, KNOWLEDGE
from .stats.intervals import DIFFERENCE, RELATIVE_CHANGE, RELATIVE_DROP, SHARE_OF_SOME
from .stats.significance import p_value
from .types import Measure, Metric

# The main measure, which decides every ranking, and the original's.
UPTAKE, IMPACT = "rule_uptake", "variant_impact_factor"
# Proportion of usual answers, by condition.
USUAL_SHARE = {
    STANDARD_CONDITION: "predicted_move_proportion",
    CHANGED_CONDITION: "predicted_move_in_variant_proportion",
}
# The numbers that a run is about: the main measure, and the original's six.
MAIN_NUMBERS = (
    *(UPTAKE, IMPACT, "delta", *USUAL_SHARE.values()),
    *("avg_num_previous_moves", "std_num_previous_moves"),
)
# Proportion of any forbidden answers, by condition.
FORBIDDEN_SHARE = {name: f"{name}_forbidden_proportion" for name in USUAL_SHARE}
# Proportion of replies in which no answer could be read, by condition.
UNUSABLE_SHARE = {name: f"{name}_unusable_proportion" for name in USUAL_SHARE}


def _change(sample: Sample) -> int:
    return sample.kept_habit - sample.had_habit


# Measures that count legal answers only, so that unreadable ones are no success.
STRICT = (
    Measure(
        UPTAKE,
        "Rule uptake",
        "share of would-be violations that stating the changed rules prevents",
        part=lambda sample: (
            sample.breaks_changed_rules(STANDARD_CONDITION)
            - sample.breaks_changed_rules(CHANGED_CONDITION)
        ),
        whole=lambda sample: sample.breaks_changed_rules(STANDARD_CONDITION),
        pairs=RELATIVE_DROP,
        perfect=1,
        remark="ignores rule: 0",
        compared="follows the changed rules more often",
        bounded=True,
    ),
    Measure(
        "adaptation_rate",
        "Adaptation rate",
        "how often a {allowed} {answer} replaces the habit",
        part=lambda sample: sample.had_habit and sample.is_legal_under_change,
        whole=lambda sample: sample.had_habit,
        pairs=SHARE_OF_SOME,
        perfect=1,
        compared="replaces its habit with a {allowed} {answer} more often",
        bounded=True,
    ),
    Measure(
        "variant_legal_proportion",
        "Legal answers, changed rules",
        "share of all samples",
        part=lambda sample: sample.is_legal_under_change,
        perfect=1,
        needs=(CHANGED_CONDITION,),
    ),
    Measure(
        FORBIDDEN_SHARE[STANDARD_CONDITION],
        "Any forbidden {answer}, standard rules",
        "usual or not: {answer}s that the changed rules forbid",
        part=lambda sample: sample.is_forbidden(STANDARD_CONDITION),
        needs=(STANDARD_CONDITION,),
    ),
    Measure(
        FORBIDDEN_SHARE[CHANGED_CONDITION],
        "Any forbidden {answer}, changed rules",
        "usual or not: {answer}s that only the change made {disallowed}",
        part=lambda sample: sample.is_forbidden(CHANGED_CONDITION),
        perfect=0,
        needs=(CHANGED_CONDITION,),
    ),
)

# The original's measures, which only count usual answers.
HABIT = (
    Measure(
        IMPACT,
        "Impact factor",
        "relative change in usual {answer}s",
        part=_change,
        whole=lambda sample: sample.had_habit,
        pairs=RELATIVE_CHANGE,
        perfect=-1,
        compared="drops more of its habit",
        bounded=True,
    ),
    Measure(
        "delta",
        "Difference",
        "share of usual {answer}s under the changed rules minus that under the standard rules",
        part=_change,
        pairs=DIFFERENCE,
        bounded=True,
    ),
    Measure(
        USUAL_SHARE[STANDARD_CONDITION],
        "Usual {answer}, standard rules",
        "how often the model {verb} the usual {answer} when asked again",
        part=lambda sample: sample.had_habit,
        needs=(STANDARD_CONDITION,),
    ),
    Measure(
        USUAL_SHARE[CHANGED_CONDITION],
        "Usual {answer}, changed rules",
        "how often the model {verb} the usual {answer} although it is now {disallowed}",
        part=lambda sample: sample.kept_habit,
        perfect=0,
        needs=(CHANGED_CONDITION,),
    ),
)


def _is_tempted(sample: Sample) -> bool:
    return sample.replies[CHANGED_CONDITION].thought_of_usual


# Whether the reasoning mentions the usual answer, and whether the model then gives it.
TEMPTATION = (
    Measure(
        "temptation_rate",
        "Temptation",
        "share of visible reasoning that mentions the usual {answer} although it is now "
        "{disallowed}",
        part=_is_tempted,
        whole=lambda sample: bool(sample.answers[CHANGED_CONDITION].reasoning),
        pairs=SHARE_OF_SOME,
        needs=(CHANGED_CONDITION,),
        remark="mentions the usual {answer}",
        optional=True,
    ),
    Measure(
        "resistance_rate",
        "Resistance",
        "how often the model avoids the usual {answer} that its reasoning mentions",
        part=lambda sample: _is_tempted(sample) and not sample.kept_habit,
        whole=_is_tempted,
        pairs=SHARE_OF_SOME,
        perfect=1,
        needs=(CHANGED_CONDITION,),
        bounded=True,
        optional=True,
    ),
)


@dataclass(frozen=True)
class Statistic(Metric):
    """A number over samples that is not a ratio and has no interval.

    ``fact`` is the fact about items that it is computed from, if it is one.
    """

    of: Callable[[Samples], float]
    fact: str = ""

    def applies(self, samples: Samples) -> bool:
        """Whether items have the fact."""
        return not self.fact or all(self.fact in sample.item.facts for sample in samples[:1])

    def value(self, samples: Samples) -> Number:
        """Return the number, or None without samples."""
        return self.of(samples) if samples else None


def _of_fact(
    name: str, title: str, meaning: str, fact: str, summary: Callable[[Iterable[float]], float]
) -> Statistic:
    """Build a statistic that sums up a fact about items."""

    def of(samples: Samples) -> float:
        return summary(sample.item.facts[fact] for sample in samples)

    return Statistic(name, title, meaning, of, fact)


def _chance(samples: Samples) -> float:
    return p_value([_change(sample) for sample in samples], games_of(samples))


def _mean(shares: Iterable[float]) -> float:
    values = list(shares)
    return sum(values) / len(values)


def _spread(lengths: Iterable[float]) -> float:
    return pstdev(list(lengths))


_LENGTH = "num_previous_moves"
_STATISTICS = (
    _of_fact("avg_num_previous_moves", "Earlier moves", "mean over the samples", _LENGTH, fmean),
    _of_fact(
        "std_num_previous_moves", "Earlier moves, spread", "standard deviation", _LENGTH, _spread
    ),
    Statistic(
        "mcnemar_p",
        "p of the difference",
        "probability of such a difference by chance (McNemar’s test over whole {group}s)",
        _chance,
    ),
    _of_fact(
        "random_usual_proportion",
        "Usual moves at random",
        "share of usual moves in random play under the standard rules",
        "random_usual",
        _mean,
    ),
)


@dataclass(frozen=True)
class Mean(Metric):
    """The mean of an unbounded number over samples.

    Attributes:
        of: the number for one sample.
        needs: the conditions whose answers it uses.
        signed: whether a sample's number may be negative.
    """

    of: Callable[[Sample], float]
    needs: tuple[str, ...]
    signed: bool = False


@dataclass(frozen=True)
class Amount:
    """A number of an answer besides its score, whose mean under each condition is a metric.

    Attributes:
        name: the end of the names of its means.
        title: the display name; ``heading`` is that of its means, and ``unit`` what it counts.
        meaning: a one-line explanation of a mean.
        of: returns the number of an answer; 0 if it has none.
        put: returns an answer with the number, where logs do not contain whole answers.
        column: the heading of its column in leaderboards; "" if it has none.
        text: formats the number.
        signed: whether the number may be negative.
    """

    name: str
    title: str
    heading: str
    unit: str
    meaning: str
    of: Callable[[Answer], float]
    put: Callable[[Answer, Any], Answer]
    column: str = ""
    text: Callable[[Number], str] = number
    signed: bool = False

    def under(self, condition: str) -> str:
        """Return the name of the mean under a condition."""
        return f"{condition}_{self.name}"

    @property
    def difference(self) -> str:
        """The name of the mean difference between the changed and the standard rules."""
        return f"{self.name}_difference"

    def at(self, condition: str, sample: Sample) -> float:
        """Return the number of a sample's answer under a condition."""
        return self.of(sample.answers[condition])

    def increase(self, sample: Sample) -> float:
        """Return the number under the changed rules minus that under the standard rules."""
        return self.at(CHANGED_CONDITION, sample) - self.at(STANDARD_CONDITION, sample)

    def means(self, conditions: Sequence[str]) -> list[Mean]:
        """Return the mean under each condition, and the mean difference."""
        means = []
        for name in conditions:
            title = f"{self.title}, {name.replace('_', ' ')}{' rules' * (name in USUAL_SHARE)}"
            of = partial(self.at, name)
            means.append(Mean(self.under(name), title, self.meaning, of, (name,), self.signed))
        title = f"{self.title}, difference"
        rules = "under the changed rules minus those under the standard rules"
        meaning = f"{self.title.lower()} {rules}, per sample"
        return [
            *means,
            Mean(self.difference, title, meaning, self.increase, tuple(USUAL_SHARE), True),
        ]


REASONING = Amount(
    "thinking_tokens",
    "Reasoning tokens",
    "Reasoning",
    "tokens",
    "mean length of its reasoning before a reply",
    of=lambda answer: answer.usage.thinking_tokens,
    put=lambda answer, n: replace(answer, usage=replace(answer.usage, thinking_tokens=n)),
    column="reasons",
    text=amount,
)
AMOUNTS = {amount.name: amount for amount in (REASONING,)}


def means_for(conditions: Sequence[str], samples: Samples) -> dict[Amount, list[Mean]]:
    """Return the means of each amount that any of the answers has."""
    return {
        amount: amount.means(conditions)
        for amount in AMOUNTS.values()
        if any(amount.at(name, sample) for sample in samples for name in conditions)
    }


MEASURES: dict[str, Measure] = {m.name: m for m in (*STRICT, *HABIT, *TEMPTATION, *DIAGNOSIS)}
STATISTICS: dict[str, Statistic] = {s.name: s for s in _STATISTICS}

# The numbers at the top of a report, by eval.
TILES: dict[Eval, tuple[str, ...]] = {
    "all": (UPTAKE, IMPACT, USUAL_SHARE[STANDARD_CONDITION], USUAL_SHARE[CHANGED_CONDITION]),
    "all_diagonal": (
        UPTAKE,
        USUAL_SHARE[CHANGED_CONDITION],
        USUAL_SHARE[STANDARD_CONDITION],
        "variant_legal_proportion",
    ),
}
TILES["all_small"] = TILES["all"]
# Explanations of values that are not proportions.
SCALE_HINTS = {
    UPTAKE: "0: ignores the rule, 1: follows it",
    IMPACT: "0: habit kept, -1: dropped",
    KNOWLEDGE: "0: guessing, 1: always right",
}


def measures_for(conditions: Sequence[str]) -> list[Measure]:
    """Return the measures that can be computed from answers under these conditions."""
    return [m for m in MEASURES.values() if set(m.needs) <= set(conditions)]
