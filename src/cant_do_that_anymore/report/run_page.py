"""The HTML report of a run."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from math import ceil, floor, log10
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from markupsafe import Markup

from ..files import atomic_write, file_errors
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
    STATISTICS,
    TILES,
    USUAL_SHARE,
    Mean,
    means_for,
)
from ..metrics.types import Measure, Results
from ..runs.results import Run
from ..svg_tags import tag
from ..task.conditions import PLACEBO
from ..task.types import CHANGED_CONDITION, OUTCOMES, STANDARD_CONDITION, Condition, Outcome
from .html import render_stream
from .sample_browser import LONGEST_TEXT, REASONING_FILTERS, samples_json
from .sentences import (
    closes,
    control_shares,
    diagnosis_answers,
    failures_of,
    headline,
    helps_sentence,
    shares_text,
    size_sentence,
    wording_sentence,
)
from .svg import flow


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


class RuleExample(NamedTuple):
    """What shows a change at work: a picture of the habit's own, or an item as text."""

    picture: Any
    shown: str


# Samples by knowledge of the rule, with the colors of dropped and kept habits.
_KNOWLEDGE = {
    "knows the rule": ("is-adapted", "is-usual"),
    "does not know the rule": ("is-adapted", "is-usual"),
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
        "shares": USUAL_SHARE,
        "forbidden": FORBIDDEN_SHARE,
        "after_change": shares_text(run.after_change),
        "words": run.words,
    }


def page(run: Run) -> str:
    """Render the report as one HTML string."""
    return "".join(_html(run))


def _html(run: Run) -> Iterator[str]:
    conditions, words = _conditions(run.plan.conditions), run.words
    return render_stream(
        "run.html",
        **headline_and_tiles(run),
        conditions=conditions,
        flow=flow(run.samples, STANDARD_CONDITION, CHANGED_CONDITION, words.label),
        outcomes={
            outcome: words.fill(_MEANINGS[outcome]) for outcome in outcomes_in(run.results.outcomes)
        },
        measures=main_measures(run.results),
        amounts=[
            (amount, means, _axis_of(means, run.results))
            for amount, means in means_for([*conditions], run.answered).items()
        ],
        thought_filters={
            name: f"{words.fill(title)} ({sum(map(holds, run.samples)):,})"
            for name, (title, holds) in REASONING_FILTERS.items()
            if REASONING.difference in run.results.metrics
        },
        statistics=[s for s in STATISTICS.values() if s.name in run.results.metrics],
        knowledge=knowledge_rows(run),
        controls=control_shares(run),
        failures=failures_of(run),
        helps=helps_sentence(run),
        closes=closes,
        settings=_settings(run),
        knowing_measures=(MEASURES[KNOWLEDGE], KNOWING_EFFECT),
        factor_measures=(MEASURES[IMPACT], MEASURES[PLACEBO_IMPACT], CORRECTED, SPECIFIC),
        placebo=_statement_of(run, PLACEBO),
        confounded=confounded(run.results),
        example=example_of(run),
        habit=run.plan.change.its_habit,
        samples=samples_json(run),
        longest_reply=LONGEST_TEXT,
    )


def example_of(run: Run) -> RuleExample:
    """Return the picture of a run's change, or the first item with its answers."""
    change, habit = run.plan.change, run.plan.change.its_habit
    item = next((sample.item for sample in run.samples), None)
    picture = habit.picture(change, item)
    if picture or not item:
        return RuleExample(picture, "")
    usual = run.words.fill("Usual {answer}, now {disallowed}: ") + " or ".join(item.usual)
    return RuleExample(None, f"{habit.show(item)}\n{usual}.")


def _statement_of(run: Run, name: str) -> str:
    """Return the statement of the rules of a condition; "" if the run does not have it."""
    in_force = (c.rules for c in run.plan.conditions if c.name == name)
    return next((rules.statement for rules in in_force), "")


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


_MEANINGS: dict[Outcome, str] = {
    "usual": "the usual {answer}: the habit",
    "forbidden": "another {answer} that the change made {disallowed}",
    "adapted": "a {answer} that only the changed rules allow",
    "legal": "any other {allowed} {answer}",
    "illegal": "any other {answer}",
    "right": "right about whether the {answer} is {allowed}",
    "wrong": "wrong about whether the {answer} is {allowed}",
    "unreadable": "no {answer}, or more than one, could be read",
    "truncated": "cut off before a {answer}",
    "refused": "the model declined to answer",
    "error": "no answer; left out of all numbers except the bounds",
}


def _title(name: str) -> str:
    """Format the name of a condition as a heading."""
    title = name.replace("_", " ").capitalize()
    return f"{title} rules" if name in (STANDARD_CONDITION, CHANGED_CONDITION) else title


def main_measures(results: Results) -> list[Measure | Contrast]:
    """Return all measures of a run."""
    every: tuple[Measure | Contrast, ...] = (*MEASURES.values(), *CONTRASTS.values())
    return [measure for measure in every if measure.name in results.metrics]
