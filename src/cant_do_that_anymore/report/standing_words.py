"""Where a model of an experiment stands, in words: the columns of the terminal and of the page."""

from collections.abc import Callable, Sequence
from functools import partial

from ..comparison.entries import Contender, Standing, differences_in_plan
from ..metrics.diagnosis import (
    CORRECTED,
    KNOWING_EFFECT,
    KNOWLEDGE,
    PLACEBO_IMPACT,
    SPECIFIC,
    unclaimed,
)
from ..metrics.measures import FORBIDDEN, IMPACT, SHARES, UNUSABLE, UPTAKE
from ..task.types import CHANGED_CONDITION, STANDARD_CONDITION

JUNK = "(!) dropped habits may be useless or missing answers"
"""What the mark means."""
LEGEND = (
    "Highest rule uptake first. habit and kept: special moves under the standard and the "
    "changed rules; below them, any forbidden moves. [95% interval], all runs together. "
    "adapts: adaptation rate. no move: answers under the changed rules that name none"
)
THINKS = "; thinks: tokens of thoughts under the changed rules, mean"
KNOWS = (
    "J: knowledge of the rule, 0 = guessing, 1 = always right. knowing: habits kept where the rule "
    "is known, minus those kept elsewhere. reminder: change in answers that are not legal. "
    "placebo: effect of another change, which leaves the habit legal. corrected: the changed rules "
    "compared with the placebo. specific: the same, less what happens to habits that stay legal. "
    "The last two are left out where the placebo alone moved the habit."
)
BOUNDS = "; intervals allow for every reading of them."

Columns = dict[str, Callable[[Standing], str]]


def marked(standing: Standing) -> str:
    """The model's name, with a mark if its numbers are not to be trusted."""
    return standing.label + (" (!)" if standing.is_suspect else "")


def title_of(group: Sequence[Standing]) -> str:
    """Which eval and rules, and how and where the positions were found if not as usual."""
    first = group[0]
    chosen = f" from the pool {first.pool}" if first.pool else ""
    selected = f" selected {first.selection}" if first.selection else ""
    how = f" (positions{chosen}{selected})" if chosen or selected else ""
    return f"{first.eval}: {first.change.title}{how}"


def notes_on(group: Sequence[Standing]) -> list[str]:
    """What should be known about them, each note once, with all whom it is about."""
    about: dict[str, list[str]] = {}
    for standing in group:
        for note in standing.notes:
            about.setdefault(note, []).append(marked(standing))
    models = [standing.contender for standing in group if standing.contender]
    of_all = differences_in_plan(models, but=["reasoning effort"]) if models else []
    return [
        *(f"{', '.join(names)}: {note}" for note, names in about.items()),
        *(f"all: {note}" for note in of_all),
    ]


def all_notes(models: Sequence[Contender]) -> list[str]:
    """The notes of the runs, each with its model's label, and what was not the same for all."""
    return [
        *(f"{model.label}: {note}" for model in models for note in model.notes),
        *differences_in_plan(models),
    ]


def legend(found: Sequence[Standing]) -> list[str]:
    """What the columns mean."""
    thinks = THINKS if any(map(thought, found)) else ""
    return [
        f"{LEGEND}{thinks}.",
        *([KNOWS] if any(s.is_diagnosed for s in found) else []),
        *([JUNK + BOUNDS] if any(s.is_suspect for s in found) else []),
    ]


def columns(found: Sequence[Standing]) -> Columns:
    """What is told of each beside its name, by heading; of thinking only where there is any.

    Headings and cells have a second line where something belongs to the first.
    """
    return {
        "runs": lambda each: str(len(each.runs)),
        "n": lambda each: f"{each.results.metrics['n_samples']:,}",
        "habit\nany": lambda each: _special(each, STANDARD_CONDITION),
        "kept\nany": lambda each: _special(each, CHANGED_CONDITION),
        "rule uptake": lambda each: _range(UPTAKE, each),
        "impact factor": lambda each: _range(IMPACT, each),
        "adapts": lambda each: brief(each.results.metrics.get("adaptation_rate")),
        "no\nmove": lambda each: _percent(each.results.metrics.get(UNUSABLE[CHANGED_CONDITION])),
        **({"thinks": _thinks} if any(map(thought, found)) else {}),
    }


def thought(standing: Standing) -> bool:
    """Whether it thought before it replied, or was told how much to."""
    told = standing.effort is not None
    return told or any(
        standing.thinking_tokens(name) for name in (STANDARD_CONDITION, CHANGED_CONDITION)
    )


def _thinks(standing: Standing) -> str:
    tokens = standing.thinking_tokens(CHANGED_CONDITION)
    return "–" if tokens is None else f"{tokens:,.0f}"


def _special(standing: Standing, condition: str) -> str:
    """The share of special moves, and below it that of any forbidden ones."""
    metrics = standing.results.metrics
    any_forbidden = brief(metrics.get(FORBIDDEN[condition]))
    return f"{brief(metrics[SHARES[condition]])}\n{any_forbidden}"


def _briefly(name: str, standing: Standing) -> str:
    """The value alone."""
    return brief(standing.results.metrics.get(name))


def _range(name: str, standing: Standing) -> str:
    """The value, and below it its interval."""
    interval = standing.results.intervals.get(name)
    around = f"\n[{brief(interval.low)}, {brief(interval.high)}]" if interval else ""
    return brief(standing.results.metrics.get(name)) + around


def brief(value: float | None) -> str:
    """Two places: a line has no room for more, and few samples do not tell more.

    >>> brief(-0.001), brief(-0.984), brief(None)
    ('0.00', '-0.98', '–')
    """
    return "–" if value is None else f"{round(value, 2) + 0:.2f}"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.0f} %"


DIAGNOSED = {
    "J": KNOWLEDGE,
    "knowing": KNOWING_EFFECT.name,
    "reminder": "reminder_effect",
    "placebo": PLACEBO_IMPACT,
    "corrected": CORRECTED.name,
    "specific": SPECIFIC.name,
}
"""Who knows the rule, and what the rule itself takes away: measures by heading."""
WITH_INTERVAL = ("J", "corrected", "specific")
"""Those of them that are told with their intervals."""


def _diagnosed(heading: str, standing: Standing) -> str:
    name = DIAGNOSED[heading]
    if name in unclaimed(standing.results):
        return "–"
    return (_range if heading in WITH_INTERVAL else _briefly)(name, standing)


DIAGNOSIS: Columns = {heading: partial(_diagnosed, heading) for heading in DIAGNOSED}
WHY = "why the habit stays"
"""What they tell."""
