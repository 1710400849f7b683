"""The HTML report of a run, and the sentences that summarize it."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor, log10
from pathlib import Path
from urllib.parse import urlencode

from markupsafe import Markup

from ..errors import UserError, pluralize
from ..files import atomic_write
from ..formatting import amount, number, percentage
from ..game.rules import placebo_of
from ..metrics.diagnosis import (
    CONTRASTS,
    CORRECTED,
    GAP,
    KEPT_UNKNOWING,
    KNOWING,
    KNOWING_EFFECT,
    KNOWLEDGE,
    PLACEBO_IMPACT,
    SPECIFIC,
    Contrast,
    Knowing,
    knowing_of,
    range_of,
    unclaimed,
)
from ..metrics.groups import by_earlier_moves, by_opening, by_usualness
from ..metrics.measures import (
    FORBIDDEN,
    IMPACT,
    MEASURES,
    READINGS,
    SHARES,
    STATISTICS,
    TILES,
    VIOLATIONS,
)
from ..metrics.thinking import LONGER, TOKENS, Amount, amounts_for
from ..metrics.types import Measure, Results
from ..runs.results import Run
from ..runs.storage import save_run, temperatures
from ..task.conditions import KNOWS_ALLOWED, KNOWS_FORBIDDEN, PLACEBO, QUESTIONS, REMINDED
from ..task.types import CHANGED_CONDITION, OUTCOMES, STANDARD_CONDITION, Outcome
from .html import PAGE_NAME, amount_interval, render_stream
from .sample_browser import (
    REASONING_FILTERS,
    samples_json,
)
from .svg import flow, pieces, rule_picture, tag


@dataclass(frozen=True)
class KnowledgeGroup:
    """One of the six groups of a diagnosis: the rule known or not, the habit dropped or kept."""

    group: Knowing
    does: str
    count: int
    share: float
    style: str

    @property
    def link(self) -> str:
        """The link to the samples of the group."""
        return "#" + urlencode({"knowing": self.group})


@dataclass(frozen=True)
class KnowledgeRow:
    """Samples with the rule known, not known or unreadable, split into habit dropped and kept."""

    title: str
    count: int
    share: float
    parts: tuple[KnowledgeGroup, KnowledgeGroup]

    @property
    def bar(self) -> Markup:
        """Both parts side by side, as wide as the row's share of all samples."""
        bands, x = [], 0.0
        for part in self.parts:
            percent = 100 * self.share * part.share
            words = f"{part.count:,} {part.group}"
            band = tag("rect", x=f"{x:.3f}%", width=f"{percent:.3f}%", y=0, height="100%")
            link = {"href": part.link, "class_": part.style, "aria_label": words}
            bands.append(tag("a", tag("title", words), band, **link))
            x += percent
        return tag("svg", *bands, width="100%", height=26)


@dataclass(frozen=True)
class DiagnosisView:
    """The results of a diagnosis, as the report shows them.

    Attributes:
        habits: the number of samples with the habit.
        rows: those samples by knowledge of the rule: known, not known, unreadable.
        knowing: the measures of knowledge, drawn on one axis.
        factors: the impact factors, drawn on one axis.
        placebo: the statement of the placebo.
        unclaimed: the factors that do not show the effect of the rule, since the placebo alone
            changed the habit.
        controls: the share of habits played at control positions, by condition.
    """

    habits: int
    rows: tuple[KnowledgeRow, ...]
    knowing: tuple[Measure | Contrast, ...]
    factors: tuple[Measure | Contrast, ...]
    placebo: str
    unclaimed: tuple[str, ...]
    controls: dict[str, float]


def diagnosis_view(run: Run) -> DiagnosisView | None:
    """Return the results of the diagnosis, or None for a run without one."""
    if KNOWLEDGE not in run.results.metrics:
        return None
    counts = Counter(group for sample in run.answered if (group := knowing_of(sample)))
    rows = (
        _row("knows the rule", KNOWING[:2], counts),
        _row("does not know the rule", KNOWING[2:4], counts),
        _row("yes/no answers unreadable", KNOWING[4:], counts),
    )
    return DiagnosisView(
        habits=sum(counts.values()),
        rows=tuple(row for row in rows if row.count or row != rows[2]),
        knowing=(MEASURES[KNOWLEDGE], KNOWING_EFFECT),
        factors=(MEASURES[IMPACT], MEASURES[PLACEBO_IMPACT], CORRECTED, SPECIFIC),
        placebo=placebo_of(run.plan.change).statement,
        unclaimed=unclaimed(run.results),
        controls=_habits_at_controls(run),
    )


def _row(title: str, groups: Sequence[Knowing], counts: Counter[Knowing]) -> KnowledgeRow:
    count = sum(counts[group] for group in groups)
    drops, keeps = (
        KnowledgeGroup(group, behavior, counts[group], counts[group] / max(1, count), f"is-{style}")
        for group, behavior, style in zip(
            groups, ("drops the habit", "keeps it"), ("adapted", "special"), strict=True
        )
    )
    return KnowledgeRow(title, count, count / max(1, sum(counts.values())), (drops, keeps))


def _habits_at_controls(run: Run) -> dict[str, float]:
    answered = [control for control in run.controls if control.answered]
    return {
        name: sum(control.plays_special(name) for control in answered) / len(answered)
        for name in (STANDARD_CONDITION, PLACEBO, CHANGED_CONDITION)
        if answered
    }


def thinking_amounts(run: Run) -> list[Amount]:
    """Return the measures of reasoning tokens that the run has."""
    return amounts_for([condition.name for condition in run.plan.conditions], run.answered)


def thinking_scale(run: Run) -> tuple[float, float]:
    """Return a range of round numbers that contains 0 and all measures with their intervals."""
    ends = [0.0]
    for item in thinking_amounts(run):
        interval = run.results.intervals.get(item.name)
        ends += (
            [interval.low, interval.high] if interval else [run.results.metrics[item.name] or 0.0]
        )
    step = 10.0 ** floor(log10(max(1.0, *map(abs, ends))))
    return step * floor(min(ends) / step), step * ceil(max(ends) / step)


def thinking_filters(run: Run) -> dict[str, str]:
    """Return the filters for samples with reasoning, with counts; empty without reasoning."""
    if not thinking_amounts(run):
        return {}
    return {
        name: f"{title} ({sum(map(holds, run.samples)):,})"
        for name, (title, holds) in REASONING_FILTERS.items()
    }


_OTHER_COLORS = 4  # in the style sheet, for conditions other than the first two


@dataclass(frozen=True)
class ConditionView:
    """A condition as the report shows it.

    Attributes:
        name: the key of its replies.
        title: its heading.
        style: the CSS class of its color.
        text: the task.
        added: the end of the last user message.
        asks: a description of the request.
        names_a_move: whether the expected answer is a move.
    """

    name: str
    title: str
    style: str
    text: str
    added: str
    asks: str
    names_a_move: bool


def write_page(run: Run, path: Path) -> None:
    """Write the report of a run atomically.

    Raises:
        UserError: if the report cannot be written.
    """
    try:
        with atomic_write(path) as file:
            file.writelines(piece.encode() for piece in _html(run))
    except OSError as problem:
        raise UserError(
            f"cannot write the page {str(path)!r} ({problem.strerror}); "
            "`cdta report RUN -o FILE` writes it elsewhere"
        ) from None


def save_with_page(run: Run, folder: Path) -> None:
    """Write the folder of a run with its report.

    Raises:
        UserError: if they cannot be written.
    """
    save_run(run, folder)
    write_page(run, folder / PAGE_NAME)


def first_numbers(run: Run) -> dict[str, object]:
    """Return the template variables of the headline and the tiles."""
    return {
        "run": run,
        "headline": headline(run),
        "tiles": [
            MEASURES[name]
            for name in (*TILES[run.plan.eval], KNOWLEDGE)
            if name in run.results.metrics
        ],
        "readings": READINGS,
        "shares": SHARES,
        "forbidden": FORBIDDEN,
    }


def page(run: Run) -> str:
    """Render the report as one HTML string."""
    return "".join(_html(run))


def _html(run: Run) -> Iterator[str]:
    samples, longest_reply = samples_json(run)
    moves_label, earlier_moves = by_earlier_moves(run)
    counts = run.results.outcomes.values()
    return render_stream(
        "run.html",
        **first_numbers(run),
        conditions=_conditions(run),
        contrast=(STANDARD_CONDITION, CHANGED_CONDITION),
        flow=flow(run.samples, STANDARD_CONDITION, CHANGED_CONDITION),
        outcomes={
            outcome: MEANINGS[outcome]
            for outcome in OUTCOMES
            if any(count.get(outcome) for count in counts)
        },
        measures=main_measures(run),
        amounts=thinking_amounts(run),
        scale=thinking_scale(run),
        thought_filters=thinking_filters(run),
        statistics=list(STATISTICS.values()),
        temperature=temperatures(run),
        groups={
            f"number of {moves_label}": earlier_moves,
            "how usual the move is among people": by_usualness(run),
            "opening": by_opening(run),
        },
        why=diagnosis_view(run),
        picture=rule_picture(run.plan.change, run.samples[0].position if run.samples else None),
        pieces=pieces(),
        samples=samples,
        longest_reply=longest_reply,
    )


def _conditions(run: Run) -> dict[str, ConditionView]:
    names = [condition.name for condition in run.plan.conditions]
    others = [name for name in names if name not in (STANDARD_CONDITION, CHANGED_CONDITION)]
    styles = {name: f"other-{1 + index % _OTHER_COLORS}" for index, name in enumerate(others)}
    return {
        name: ConditionView(
            name,
            condition_title(name),
            styles.get(name, name),
            condition.text,
            condition.added,
            REQUESTS.get(name, ""),
            not condition.about,
        )
        for name, condition in zip(names, run.plan.conditions, strict=True)
    }


MEANINGS: dict[Outcome, str] = {
    "special": "the special move: the habit",
    "forbidden": "another move that only the change made illegal",
    "adapted": "a move that only the changed rules allow",
    "legal": "any other legal move",
    "illegal": "any other move",
    "right": "knows whether the move is legal",
    "wrong": "takes a legal move for illegal, or the other way round",
    "unreadable": "no move, or more than one, could be read",
    "truncated": "cut off before a move was named",
    "refused": "the model declined to answer",
    "error": "no answer came; left out of all numbers but the bounds",
}
# What each condition asks for.
REQUESTS = {
    STANDARD_CONDITION: "a move under the standard rules",
    CHANGED_CONDITION: "a move under the changed rules",
    PLACEBO: "a move under another change of the same form, which leaves the habit legal",
    REMINDED: "a move; the changed rule is stated once more",
    KNOWS_FORBIDDEN: "whether a move is legal that the change forbids",
    KNOWS_ALLOWED: "whether a move is legal that it allows",
}
MIN_EFFECT = 0.1  # of the impact factor; anything smaller counts as no effect


def condition_title(name: str) -> str:
    """Format the name of a condition as a heading.

    >>> condition_title("standard"), condition_title("knows_allowed")
    ('Standard rules', 'Knows allowed')
    """
    title = name.replace("_", " ").capitalize()
    return f"{title} rules" if name in (STANDARD_CONDITION, CHANGED_CONDITION) else title


def main_measures(run: Run) -> list[Measure | Contrast]:
    """Return all measures of a run except the original's violation rates."""
    names = run.results.metrics.keys() - {measure.name for measure in VIOLATIONS}
    every: tuple[Measure | Contrast, ...] = (*MEASURES.values(), *CONTRASTS.values())
    return [measure for measure in every if measure.name in names]


def reasoning_sentence(results: Results) -> str:
    """Return the sentence on reasoning tokens, or "" for a model without reasoning."""
    difference, interval = results.metrics.get(LONGER), results.intervals.get(LONGER)
    if difference is None:
        return ""
    if difference < 0 and interval:
        interval = replace(interval, low=-interval.high, high=-interval.low)
    standard, changed = (
        f"{amount(results.metrics[name])} {amount_interval(results.intervals.get(name))}".strip()
        for name in TOKENS.values()
    )
    change = f"{amount(abs(difference))} {amount_interval(interval)}".strip()
    return (
        f"thinks {standard} tokens under the standard rules and {changed} under the changed ones: "
        f"{change} {'fewer' if difference < 0 else 'more'}"
    )


def headline(run: Run) -> str:
    """Return the sentence that sums up the run."""
    metrics = run.results.metrics
    standard, changed = (percentage(metrics[name]) for name in SHARES.values())
    title = run.plan.change.title
    change = f"when {title[0].lower()}{title[1:]}"
    n = pluralize(int(metrics["n_samples"] or 0), "position")
    n += f" of the pool {run.dataset.pool_name}" if run.dataset.pool_name else ""
    if not run.answered:
        n_asked = pluralize(len(run.samples), "position")
        return f"{run.version} was asked about {n_asked}, and none has an answer to every question."
    if run.plan.eval == "all_diagonal":
        return (
            f"{run.version} {run.plan.change.habit_label} in {changed} of {n} {change}, and in "
            f"{standard} "
            "of them under the standard rules; moving at random would give "
            f"{percentage(metrics['random_special_proportion'])}.{_diagnosis_sentences(run)}"
        )
    return (
        f"{run.version} plays its usual move in {standard} of {n} under the standard rules and in "
        f"{changed} {change}: {_impact_phrase(run)}.{_diagnosis_sentences(run)}"
    )


def _diagnosis_sentences(run: Run) -> str:
    """Return the sentences on the diagnosis, if there was one."""
    results = run.results
    interval = range_of(results, KNOWLEDGE)
    placebo = " The placebo alone changed the habit: see the notes." if unclaimed(results) else ""
    return placebo if interval is None else placebo + _knowledge_sentence(results, *interval)


def _knowledge_sentence(results: Results, low: float, high: float) -> str:
    if all(results.metrics[f"{name}_unusable_proportion"] == 1 for name in QUESTIONS):
        return (
            " We cannot tell whether it knows the rule: none of its yes/no answers could be read."
        )
    value = "" if KNOWLEDGE in results.bounds else f"{number(results.metrics[KNOWLEDGE])} "
    youden = f"J = {value}[{low:.3f}, {high:.3f}] (0 = guessing, 1 = always right)."
    if low > 0:
        sentence = f" It can tell legal from illegal moves under the new rule: {youden}"
        return sentence + _knowing_sentence(results)
    if high < 0:
        return f" It is wrong about the new rule more often than by guessing: {youden}"
    if KNOWLEDGE in results.bounds:
        return f" Too few yes/no answers could be read to tell whether it knows the rule: {youden}"
    return f" There is no evidence that it knows the rule: {youden}"


def _knowing_sentence(results: Results) -> str:
    """Compare how often the habit is kept where the rule is known and where it is not."""
    kept_knowing, kept_unknowing = (
        results.metrics[measure.name] for measure in (GAP, KEPT_UNKNOWING)
    )
    interval = range_of(results, KNOWING_EFFECT.name)
    if kept_knowing is None:
        return ""
    sentence = (
        f" Where it knows the rule, it plays the forbidden move in {percentage(kept_knowing)}"
    )
    if kept_unknowing is None or interval is None:
        return f"{sentence} of the positions."
    return (
        f"{sentence} of the positions, and elsewhere in {percentage(kept_unknowing)}: "
        f"a difference of {number(results.metrics[KNOWING_EFFECT.name])} "
        f"[{interval[0]:.3f}, {interval[1]:.3f}]."
    )


def _impact_phrase(run: Run) -> str:
    impact, interval = run.results.metrics[IMPACT], run.results.intervals.get(IMPACT)
    if impact is None or interval is None:
        return "there was no habit to drop"
    drop, caveat, uncertainty = percentage(-impact), "", 0.0
    bounds = run.results.bounds.get(IMPACT)
    if bounds and bounds.low is not None and bounds.high is not None:
        drop = f"between {_drop(interval.high)} and {_drop(interval.low)}"
        caveat = " (95% interval, allowing for the answers that name no move)"
        uncertainty = bounds.high - bounds.low
    if interval.high < 0:
        return f"the change of rules takes away {drop} of the habit{caveat}"
    if interval.low > 0:
        return "the habit grows instead of yielding"
    if uncertainty > MIN_EFFECT:
        return "too many answers name no move to tell whether the habit yields"
    if interval.low > -MIN_EFFECT:
        return "no sign that the habit yields"
    return "too few samples to tell whether the habit yields"


def _drop(impact: float) -> str:
    return percentage(min(1.0, max(0.0, -impact)))
