"""The HTML report of a run, and the sentences that summarize it."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor, log10
from pathlib import Path
from urllib.parse import urlencode

from markupsafe import Markup

from ..errors import UserError
from ..files import atomic_write
from ..formatting import amount, number, percentage, pluralize
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
from ..runs.storage import temperatures
from ..task.conditions import KNOWS_ALLOWED, KNOWS_FORBIDDEN, PLACEBO, QUESTIONS, REMINDED
from ..task.types import CHANGED_CONDITION, OUTCOMES, STANDARD_CONDITION, Condition, Outcome
from .html import amount_interval, render_stream
from .sample_browser import LONGEST_TEXT, REASONING_FILTERS, samples_json
from .svg import flow, pieces, rule_picture, tag


@dataclass(frozen=True)
class KnowledgeGroup:
    """One of the six groups of a diagnosis: the rule known or not, the habit dropped or kept."""

    does: str
    style: str
    group: Knowing
    count: int
    share: float

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
    parts: tuple[KnowledgeGroup, ...]

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
        controls: the share of habits played at control positions, by condition.
    """

    habits: int
    rows: list[KnowledgeRow]
    controls: dict[str, float]


def diagnosis_view(run: Run) -> DiagnosisView | None:
    """Return the results of the diagnosis, or None for a run without one."""
    if KNOWLEDGE not in run.results.metrics:
        return None
    counts = Counter(group for sample in run.answered if (group := knowing_of(sample)))
    titles = ("knows the rule", "does not know the rule", "yes/no answers unreadable")
    rows = [_row(title, KNOWING[2 * i : 2 * i + 2], counts) for i, title in enumerate(titles)]
    answered = [control for control in run.controls if control.answered]
    controls = {
        name: sum(control.plays_special(name) for control in answered) / len(answered)
        for name in (STANDARD_CONDITION, PLACEBO, CHANGED_CONDITION)
        if answered
    }
    return DiagnosisView(counts.total(), rows if rows[2].count else rows[:2], controls)


def _row(title: str, groups: Sequence[Knowing], counts: Counter[Knowing]) -> KnowledgeRow:
    count = sum(counts[group] for group in groups)
    behaviors = (("drops the habit", "is-adapted"), ("keeps it", "is-special"))
    parts = (
        KnowledgeGroup(*behavior, group, counts[group], counts[group] / max(1, count))
        for behavior, group in zip(behaviors, groups, strict=True)
    )
    return KnowledgeRow(title, count, count / max(1, counts.total()), tuple(parts))


def _scale(results: Results, amounts: Sequence[Amount]) -> tuple[float, float]:
    """Return a range of round numbers that contains 0 and all amounts with their intervals."""
    ends = [0.0, *(results.metrics[item.name] or 0.0 for item in amounts)]
    for interval in filter(None, (results.intervals.get(item.name) for item in amounts)):
        ends += [interval.low, interval.high]
    step = 10.0 ** floor(log10(max(1.0, *map(abs, ends))))
    return step * floor(min(ends) / step), step * ceil(max(ends) / step)


_OTHER_COLORS = 4  # in the style sheet, for conditions other than the first two


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
    conditions = _conditions(run.plan.conditions)
    moves_label, earlier_moves = by_earlier_moves(run.answered, run.plan)
    counts, amounts = run.results.outcomes.values(), amounts_for([*conditions], run.answered)
    return render_stream(
        "run.html",
        **first_numbers(run),
        conditions=conditions,
        contrast=(STANDARD_CONDITION, CHANGED_CONDITION),
        flow=flow(run.samples, STANDARD_CONDITION, CHANGED_CONDITION),
        outcomes={
            outcome: MEANINGS[outcome]
            for outcome in OUTCOMES
            if any(count.get(outcome) for count in counts)
        },
        measures=main_measures(run),
        amounts=amounts,
        scale=_scale(run.results, amounts),
        thought_filters={
            name: f"{title} ({sum(map(holds, run.samples)):,})"
            for name, (title, holds) in REASONING_FILTERS.items()
            if amounts
        },
        statistics=list(STATISTICS.values()),
        temperature=temperatures(run),
        groups={
            f"number of {moves_label}": earlier_moves,
            "how common the move is in human games": by_usualness(run.answered, run.plan),
            "opening": by_opening(run.answered, run.plan),
        },
        why=diagnosis_view(run),
        knowing_measures=(MEASURES[KNOWLEDGE], KNOWING_EFFECT),
        factor_measures=(MEASURES[IMPACT], MEASURES[PLACEBO_IMPACT], CORRECTED, SPECIFIC),
        placebo=placebo_of(run.plan.change).statement,
        unclaimed=unclaimed(run.results),
        picture=rule_picture(run.plan.change, run.samples[0].position if run.samples else None),
        pieces=pieces(),
        samples=samples_json(run),
        longest_reply=LONGEST_TEXT,
    )


def _conditions(conditions: Sequence[Condition]) -> dict[str, dict[str, object]]:
    """Return what the template shows of each condition, by name."""
    others = [c.name for c in conditions if c.name not in (STANDARD_CONDITION, CHANGED_CONDITION)]
    styles = {name: f"other-{1 + index % _OTHER_COLORS}" for index, name in enumerate(others)}
    return {
        condition.name: {
            "name": condition.name,
            "title": _title(condition.name),
            "style": styles.get(condition.name, condition.name),
            "text": condition.text,
            "added": condition.added,
            "asks": REQUESTS.get(condition.name, ""),
            "names_a_move": not condition.about,
        }
        for condition in conditions
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


def _title(name: str) -> str:
    """Format the name of a condition as a heading."""
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
    metrics, change = run.results.metrics, run.plan.change
    if not run.answered:
        n_asked = pluralize(len(run.samples), "position")
        return f"{run.version} was asked about {n_asked}, and none has an answer to every question."
    standard, changed = (percentage(metrics[name]) for name in SHARES.values())
    when = f"when {change.title[0].lower()}{change.title[1:]}"
    n = pluralize(int(metrics["n_samples"] or 0), "position")
    n += f" of the pool {run.dataset.pool_name}" if run.dataset.pool_name else ""
    if run.plan.eval == "all_diagonal":
        sentence = (
            f"{change.habit_label} in {changed} of {n} {when}, and in {standard} of them under the "
            "standard rules; moving at random would give "
            f"{percentage(metrics['random_special_proportion'])}"
        )
    else:
        sentence = (
            f"plays its usual move in {standard} of {n} under the standard rules and in {changed} "
            f"{when}: {_impact_phrase(run.results)}"
        )
    return f"{run.version} {sentence}.{_diagnosis_sentences(run.results)}"


def _diagnosis_sentences(results: Results) -> str:
    """Return the sentences on the diagnosis, if there was one."""
    sentences = " The placebo alone changed the habit: see the notes." if unclaimed(results) else ""
    if interval := range_of(results, KNOWLEDGE):
        sentences += f" {_knowledge_sentence(results, *interval)}"
    return sentences


def _knowledge_sentence(results: Results, low: float, high: float) -> str:
    if all(results.metrics[f"{name}_unusable_proportion"] == 1 for name in QUESTIONS):
        return "We cannot tell whether it knows the rule: none of its yes/no answers could be read."
    value = "" if KNOWLEDGE in results.bounds else f"{number(results.metrics[KNOWLEDGE])} "
    youden = f"J = {value}[{low:.3f}, {high:.3f}] (0 = guessing, 1 = always right)."
    if low > 0:
        sentence = f"It can tell legal from illegal moves under the new rule: {youden}"
        return sentence + _knowing_sentence(results)
    if high < 0:
        return f"It is wrong about the new rule more often than by guessing: {youden}"
    if KNOWLEDGE in results.bounds:
        return f"Too few yes/no answers could be read to tell whether it knows the rule: {youden}"
    return f"There is no evidence that it knows the rule: {youden}"


def _knowing_sentence(results: Results) -> str:
    """Compare how often the habit is kept where the rule is known and where it is not."""
    knowing, elsewhere = (results.metrics[measure.name] for measure in (GAP, KEPT_UNKNOWING))
    interval = range_of(results, KNOWING_EFFECT.name)
    if knowing is None:
        return ""
    compared = ""
    if elsewhere is not None and interval is not None:
        compared = (
            f", and elsewhere in {percentage(elsewhere)}: a difference of "
            f"{number(results.metrics[KNOWING_EFFECT.name])} [{interval[0]:.3f}, {interval[1]:.3f}]"
        )
    return (
        f" Where it knows the rule, it plays the forbidden move in {percentage(knowing)} of the "
        f"positions{compared}."
    )


def _impact_phrase(results: Results) -> str:
    impact, interval = results.metrics[IMPACT], results.intervals.get(IMPACT)
    if impact is None or interval is None:
        return "there was no habit to drop"
    drop, caveat, uncertainty = percentage(-impact), "", 0.0
    bounds = results.bounds.get(IMPACT)
    if bounds and bounds.low is not None and bounds.high is not None:
        least, most = (
            percentage(min(1.0, max(0.0, -end))) for end in (interval.high, interval.low)
        )
        drop = f"between {least} and {most}"
        caveat = " (95% interval, allowing for the answers that name no move)"
        uncertainty = bounds.high - bounds.low
    if interval.high < 0:
        return f"the change of rules takes away {drop} of the habit{caveat}"
    if interval.low > 0:
        return "the habit grows instead of yielding"
    if uncertainty > MIN_EFFECT:
        return "too many answers name no move to tell whether the habit yields"
    if interval.low > -MIN_EFFECT:
        return "no evidence that the model adapts"
    return "too few samples to tell whether the habit yields"
