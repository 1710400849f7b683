"""Reasoning measures: how long a model reasons, and whether it considers the special move."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from ..formatting import Number
from ..task.types import CHANGED_CONDITION, STANDARD_CONDITION, Sample, Samples
from .bounds import games_of
from .stats.intervals import SHARE_OF_SOME, Interval, mean_interval
from .types import Measure, Metric

# Mean number of reasoning tokens, by condition; other conditions follow the same pattern.
TOKENS = {name: f"{name}_thinking_tokens" for name in (STANDARD_CONDITION, CHANGED_CONDITION)}
TOKENS_DIFFERENCE = "thinking_tokens_difference"


@dataclass(frozen=True)
class Mean(Metric):
    """The mean of an unbounded number over samples.

    Attributes:
        of: the number for one sample.
        needs: the conditions whose answers it uses.
        signed: whether a sample's number may be negative.
    """

    of: Callable[[Sample], int]
    needs: tuple[str, ...]
    signed: bool = False

    def value(self, samples: Samples) -> Number:
        """Return the mean, or None without samples."""
        return sum(map(self.of, samples)) / len(samples) if samples else None

    def interval(self, samples: Samples, critical_factor: float = 1.0) -> Interval | None:
        """Return the 95% interval clustered by game, or None if there is none."""
        values = [self.of(sample) for sample in samples]
        return mean_interval(
            values, games_of(samples), signed=self.signed, critical_factor=critical_factor
        )


def amounts_for(conditions: Sequence[str], samples: Samples) -> list[Mean]:
    """Return the reasoning lengths under these conditions; empty for a model without reasoning."""
    reasons = any(tokens(name, sample) for sample in samples for name in conditions)
    return [*map(_by_condition, conditions), _DIFFERENCE] if reasons else []


def tokens(condition: str, sample: Sample) -> int:
    """Return the number of reasoning tokens of an answer."""
    return sample.answers[condition].usage.thinking_tokens


def reasoned_longer(sample: Sample) -> bool:
    """Whether the model reasoned longer under the changed rules than under the standard ones."""
    return sample.answered and _difference(sample) > 0


def _difference(sample: Sample) -> int:
    return tokens(CHANGED_CONDITION, sample) - tokens(STANDARD_CONDITION, sample)


def _by_condition(name: str) -> Mean:
    return Mean(
        f"{name}_thinking_tokens",
        f"Reasoning tokens, {name.replace('_', ' ')}{' rules' if name in TOKENS else ''}",
        "mean length of its reasoning before a reply",
        of=partial(tokens, name),
        needs=(name,),
    )


_DIFFERENCE = Mean(
    TOKENS_DIFFERENCE,
    "Reasoning tokens, difference",
    "reasoning tokens under the changed rules minus those under the standard rules, per sample",
    of=_difference,
    needs=(STANDARD_CONDITION, CHANGED_CONDITION),
    signed=True,
)


def _is_tempted(sample: Sample) -> bool:
    return sample.replies[CHANGED_CONDITION].thought_of_special


# Whether the reasoning mentions the special move, and whether the model then plays it.
TEMPTATION = (
    Measure(
        "temptation_rate",
        "Temptation",
        "share of visible reasoning that mentions the special move although it is now illegal",
        part=_is_tempted,
        whole=lambda sample: bool(sample.answers[CHANGED_CONDITION].reasoning),
        pairs=SHARE_OF_SOME,
        needs=(CHANGED_CONDITION,),
        remark="mentions the special move",
        optional=True,
    ),
    Measure(
        "resistance_rate",
        "Resistance",
        "how often the model does not play the special move that its reasoning mentions",
        part=lambda sample: _is_tempted(sample) and not sample.kept_habit,
        whole=_is_tempted,
        pairs=SHARE_OF_SOME,
        perfect=1,
        needs=(CHANGED_CONDITION,),
        bounded=True,
        optional=True,
    ),
)
