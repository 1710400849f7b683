"""What a page shows of thinking: amounts of tokens on one scale, and samples worth a look."""

from collections.abc import Callable
from math import ceil, floor, log10

from ..metrics.thinking import Amount, amounts_for, thought_longer
from ..runs.results import Run
from ..task.types import CHANGED_CONDITION, Sample


def _thought_of_special(sample: Sample) -> bool:
    return sample.replies[CHANGED_CONDITION].thought_of_special


WORTH_A_LOOK: dict[str, tuple[str, Callable[[Sample], bool]]] = {
    "special": ("thought of the special move", _thought_of_special),
    "longer": ("thought longer", thought_longer),
}
"""What samples can be filtered by, under the changed rules: a title, and whether it holds."""


def amounts(run: Run) -> list[Amount]:
    """The amounts of tokens that the run has."""
    return amounts_for([condition.name for condition in run.plan.conditions], run.answered)


def scale(run: Run) -> tuple[float, float]:
    """A range of round numbers that holds 0 and all of them with their intervals."""
    ends = [0.0]
    for amount in amounts(run):
        around = run.results.intervals.get(amount.name)
        ends += [around.low, around.high] if around else [run.results.metrics[amount.name] or 0.0]
    step = 10.0 ** floor(log10(max(1.0, *map(abs, ends))))
    return step * floor(min(ends) / step), step * ceil(max(ends) / step)


def remarkable(sample: Sample) -> list[str]:
    """What the sample can be found by."""
    return [name for name, (_, holds) in WORTH_A_LOOK.items() if holds(sample)]


def filters(run: Run) -> dict[str, str]:
    """What the samples of a run that thinks can be found by, with their numbers; else nothing."""
    if not amounts(run):
        return {}
    return {
        name: f"{title} ({sum(map(holds, run.samples)):,})"
        for name, (title, holds) in WORTH_A_LOOK.items()
    }
