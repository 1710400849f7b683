"""The HTML report of a run."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from math import ceil, floor, log10
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

from markupsafe import Markup

from ..files import atomic_write, file_errors
from ..game.rules import placebo_of
from ..metrics.diagnosis import (
    CONTRASTS,
    CORRECTED,
    KNOWING_EFFECT,
    KNOWLEDGE,
    KNOWLEDGE_GROUPS,
    PLACEBO_IMPACT,
    SPECIFIC,
    Contrast,
    Knowing,
    confounded,
    knowledge_group_of,
)
from ..metrics.measures import (
    FORBIDDEN_SHARE,
    IMPACT,
    MEASURES,
    REASONING,
    SCALE_HINTS,
    SPECIAL_SHARE,
    STATISTICS,
    TILES,
    VIOLATIONS,
    Mean,
    means_for,
)
from ..metrics.types import Measure, Results
from ..runs.results import Run
from ..task.types import CHANGED_CONDITION, OUTCOMES, STANDARD_CONDITION, Condition, Outcome
from .html import render_stream
from .sample_browser import LONGEST_TEXT, REASONING_FILTERS, samples_json
from .sentences import (
    FAILURES,
    closes,
    control_shares,
    diagnosis_answers,
    headline,
    helps_sentence,
    size_sentence,
    wording_sentence,
)
from .svg import flow, pieces, rule_picture, tag


class KnowledgeGroup(NamedTuple):
    """One of the six groups of a diagnosis: the rule known or not, the habit dropped or kept."""

    does: str
    style: str
    group: Knowing
    number: int
    share: float

    @property
    def link(self) -> str:
        """The link to the samples of the group."""
        return "#" + urlencode({"knowing": self.group})


class KnowledgeRow(NamedTuple):
    """Samples with the rule known, not known or unreadable, split into habit dropped and kept."""

    title: str
    number: int
    share: float
    parts: tuple[KnowledgeGroup, ...]

    @property
    def bar(self) -> Markup:
        """Both parts side by side, as wide as the row's share of all samples."""
        bands, x = [], 0.0
        for part in self.parts:
            percent = 100 * self.share * part.share
            words = f"{part.number:,} {part.group}"
            band = tag("rect", x=f"{x:.3f}%", width=f"{percent:.3f}%", y=0, height="100%")
            link = {"href": part.link, "class_": part.style, "aria_label": words}
            bands.append(tag("a", tag("title", words), band, **link))
            x += percent
        return tag("svg", *bands, width="100%", height=26)


# Samples by knowledge of the rule, with the colors of dropped and kept habits.
_KNOWLEDGE = {
    "knows the rule": ("is-adapted", "is-special"),
    "does not know the rule": ("is-adapted", "is-special"),
    "yes/no answers unreadable": ("is-unclear-dropped", "is-unclear-kept"),
}


def knowledge_rows(run: Run) -> list[KnowledgeRow]:
    """Return the habits by knowledge of the rule; empty for a run without a diagnosis."""
    if KNOWLEDGE not in run.results.metrics:
        return []
    counts = Counter(group for sample in run.answered if (group := knowledge_group_of(sample)))
    rows, does_what = [], ("drops the habit", "keeps it")
    for index, (title, styles) in enumerate(_KNOWLEDGE.items()):
        groups = KNOWLEDGE_GROUPS[2 * index : 2 * index + 2]
        count = sum(counts[group] for group in groups)
        parts = tuple(
            KnowledgeGroup(does, style, group, counts[group], counts[group] / max(1, count))
            for does, style, group in zip(does_what, styles, groups, strict=True)
        )
        rows.append(KnowledgeRow(title, count, count / max(1, counts.total()), parts))
    return rows if rows[2].number else rows[:2]


def _axis_of(means: Sequence[Mean], results: Results) -> tuple[float, float]:
    """Return a range of round numbers that contains 0 and all means with their intervals."""
    ends = [0.0, *(results.metrics[mean.name] or 0.0 for mean in means)]
    for interval in filter(None, (results.intervals.get(mean.name) for mean in means)):
        ends += [interval.low, interval.high]
    step = 10.0 ** floor(log10(max(1.0, *map(abs, ends))))
    return step * floor(min(ends) / step), step * ceil(max(ends) / step)


_OTHER_COLORS = 4  # in the style sheet, for conditions other than the first two


def write_page(run: Run, path: Path) -> None:
    """Write the report of a run atomically.

    Raises:
        UserError: if the report cannot be written.
    """
    with file_errors("write the report", path), atomic_write(path) as file:
        file.writelines(piece.encode() for piece in _html(run))


def headline_and_tiles(run: Run) -> dict[str, object]:
    """Return the template variables of the headline and the tiles."""
    return {
        "run": run,
        "headline": headline(run),
        "size_note": size_sentence(run.results),
        "wording_note": wording_sentence(run),
        "answers": diagnosis_answers(run),
        "tiles": [MEASURES[name] for name in TILES[run.plan.eval]],
        "readings": SCALE_HINTS,
        "shares": SPECIAL_SHARE,
        "forbidden": FORBIDDEN_SHARE,
    }


def page(run: Run) -> str:
    """Render the report as one HTML string."""
    return "".join(_html(run))


def _html(run: Run) -> Iterator[str]:
    conditions = _conditions(run.plan.conditions)
    return render_stream(
        "run.html",
        **headline_and_tiles(run),
        conditions=conditions,
        flow=flow(run.samples, STANDARD_CONDITION, CHANGED_CONDITION),
        outcomes={outcome: MEANINGS[outcome] for outcome in outcomes_in(run.results.outcomes)},
        measures=main_measures(run.results),
        amounts=[
            (amount, means, _axis_of(means, run.results))
            for amount, means in means_for([*conditions], run.answered).items()
        ],
        thought_filters={
            name: f"{title} ({sum(map(holds, run.samples)):,})"
            for name, (title, holds) in REASONING_FILTERS.items()
            if REASONING.difference in run.results.metrics
        },
        statistics=list(STATISTICS.values()),
        knowledge=knowledge_rows(run),
        controls=control_shares(run),
        failures=FAILURES,
        helps=helps_sentence(run),
        closes=closes,
        settings=_settings(run),
        knowing_measures=(MEASURES[KNOWLEDGE], KNOWING_EFFECT),
        factor_measures=(MEASURES[IMPACT], MEASURES[PLACEBO_IMPACT], CORRECTED, SPECIFIC),
        placebo=placebo_of(run.plan.change).statement,
        confounded=confounded(run.results),
        picture=rule_picture(run.plan.change, run.samples[0].position if run.samples else None),
        pieces=pieces(),
        samples=samples_json(run),
        longest_reply=LONGEST_TEXT,
    )


def outcomes_in(counts: Mapping[str, Mapping[Outcome, int]]) -> list[Outcome]:
    """Return the outcomes that occur under any of the conditions."""
    return [outcome for outcome in OUTCOMES if any(count.get(outcome) for count in counts.values())]


def _settings(run: Run) -> dict[bool, dict[str, object]]:
    """Return the settings by title: those of scoring or not the default, and the others."""
    scoring, settings = run.plan.scoring, run.plan.settings
    changed = {*scoring, *settings.non_defaults, "temperature", "max_tokens", "seed"}
    rows: dict[bool, dict[str, object]] = {True: {}, False: {}}
    values = scoring | asdict(settings) | {"max_tokens": run.token_limit}
    for name, value in values.items():
        rows[name in changed][name.replace("_", " ").capitalize()] = value
    return rows


def _conditions(conditions: Sequence[Condition]) -> dict[str, dict[str, object]]:
    """Return what the template shows of each condition, by name."""
    others = [c.name for c in conditions if c.name not in (STANDARD_CONDITION, CHANGED_CONDITION)]
    styles = {name: f"other-{1 + index % _OTHER_COLORS}" for index, name in enumerate(others)}
    return {
        condition.name: vars(condition)
        | {
            "title": _title(condition.name),
            "style": styles.get(condition.name, condition.name),
        }
        for condition in conditions
    }


MEANINGS: dict[Outcome, str] = {
    "special": "the special move: the habit",
    "forbidden": "another move that the change made illegal",
    "adapted": "a move that only the changed rules allow",
    "legal": "any other legal move",
    "illegal": "any other move",
    "right": "right about whether the move is legal",
    "wrong": "wrong about whether the move is legal",
    "unreadable": "no move, or more than one, could be read",
    "truncated": "cut off before a move",
    "refused": "the model declined to answer",
    "error": "no answer; left out of all numbers except the bounds",
}


def _title(name: str) -> str:
    """Format the name of a condition as a heading."""
    title = name.replace("_", " ").capitalize()
    return f"{title} rules" if name in (STANDARD_CONDITION, CHANGED_CONDITION) else title


def main_measures(results: Results) -> list[Measure | Contrast]:
    """Return all measures of a run except the original's violation rates."""
    names = results.metrics.keys() - {measure.name for measure in VIOLATIONS}
    every: tuple[Measure | Contrast, ...] = (*MEASURES.values(), *CONTRASTS.values())
    return [measure for measure in every if measure.name in names]
