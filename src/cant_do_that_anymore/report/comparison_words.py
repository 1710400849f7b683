"""What the terminal and the page both say of a comparison."""

from collections.abc import Sequence
from itertools import groupby

from ..evaluation.comparison import Comparison, models_in, of_measure
from ..evaluation.contenders import Contender, differences_in_plan
from ..evaluation.measures import IMPACT
from ..evaluation.vocabulary import Measure, Number
from .words import number, percentage


def by_pair(comparisons: Sequence[Comparison]) -> list[list[Comparison]]:
    """Every pair's comparisons, in all measures."""
    pairs = groupby(comparisons, key=lambda c: (c.first.label, c.second.label))
    return [list(measures) for _, measures in pairs]


def measures_in(comparisons: Sequence[Comparison]) -> list[Measure]:
    """The measures that are compared."""
    return [comparison.measure for comparison in by_pair(comparisons)[0]]


def value(measure: Measure, value: Number) -> str:
    """A measure as text: a factor or a change as a number, a share in per cent."""
    return number(value) if measure.signed else percentage(value)


def better(comparison: Comparison) -> str:
    """Who is ahead, in a word."""
    if comparison.verdict == "different":
        return "first" if comparison.ahead[0] == comparison.first else "second"
    return "equal" if comparison.verdict == "alike" else "open"


def sentences(comparisons: Sequence[Comparison]) -> list[str]:
    """Every verdict of two models; of more models, those on the habit."""
    told = comparisons
    if len(models_in(comparisons)) > 2:
        told = of_measure(comparisons, IMPACT)
    return [comparison.sentence for comparison in told]


def all_notes(models: Sequence[Contender]) -> list[str]:
    """The notes of the runs, each with its model's label, and what was not the same for all."""
    return [
        *(f"{model.label}: {note}" for model in models for note in model.notes),
        *differences_in_plan(models),
    ]
