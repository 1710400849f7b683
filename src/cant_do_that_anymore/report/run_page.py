"""The HTML report of a run, and the sentences that sum it up."""

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
from .html import PAGE_NAME, amount_interval, streamed
from .sample_browser import (
    WORTH_A_LOOK,
    samples_json,
)
from .svg import flow, pieces, rule_picture, tag


@dataclass(frozen=True)
class Part:
    """One of the six groups."""

    group: Knowing
    does: str
    count: int
    share: float
    style: str

    @property
    def link(self) -> str:
        """To its samples."""
        return "#" + urlencode({"knowing": self.group})


@dataclass(frozen=True)
class Row:
    """Those that know the rule, that do not, or that cannot be read: who drops, and who keeps."""

    title: str
    count: int
    share: float
    parts: tuple[Part, Part]

    @property
    def bar(self) -> Markup:
        """Both parts beside each other, as wide as the row's share of all."""
        bands, x = [], 0.0
        for part in self.parts:
            wide = 100 * self.share * part.share
            words = f"{part.count:,} {part.group}"
            band = tag("rect", x=f"{x:.3f}%", width=f"{wide:.3f}%", y=0, height="100%")
            link = {"href": part.link, "class_": part.style, "aria_label": words}
            bands.append(tag("a", tag("title", words), band, **link))
            x += wide
        return tag("svg", *bands, width="100%", height=26)


@dataclass(frozen=True)
class DiagnosisView:
    """What a diagnosis found.

    Attributes:
        habits: how many samples had the habit.
        rows: who of them knows the rule, who does not, and of whom no answer tells.
        knowing: the measures of knowledge, to stand on one axis, and so the impact ``factors``.
        placebo: what the placebo states.
        unclaimed: the factors that do not show the effect of the rule, since the placebo alone
            moved the habit.
        controls: the share of habits played at control positions, by condition.
    """

    habits: int
    rows: tuple[Row, ...]
    knowing: tuple[Measure | Contrast, ...]
    factors: tuple[Measure | Contrast, ...]
    placebo: str
    unclaimed: tuple[str, ...]
    controls: dict[str, float]


def why(run: Run) -> DiagnosisView | None:
    """What the diagnosis found; None where none was made."""
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
        controls=_of_controls(run),
    )


def _row(title: str, groups: Sequence[Knowing], counts: Counter[Knowing]) -> Row:
    count = sum(counts[group] for group in groups)
    drops, keeps = (
        Part(group, does, counts[group], counts[group] / max(1, count), f"is-{style}")
        for group, does, style in zip(
            groups, ("drops the habit", "keeps it"), ("adapted", "special"), strict=True
        )
    )
    return Row(title, count, count / max(1, sum(counts.values())), (drops, keeps))


def _of_controls(run: Run) -> dict[str, float]:
    answered = [control for control in run.controls if control.answered]
    return {
        name: sum(control.plays_special(name) for control in answered) / len(answered)
        for name in (STANDARD_CONDITION, PLACEBO, CHANGED_CONDITION)
        if answered
    }


def thinking_amounts(run: Run) -> list[Amount]:
    """The amounts of tokens that the run has."""
    return amounts_for([condition.name for condition in run.plan.conditions], run.answered)


def thinking_scale(run: Run) -> tuple[float, float]:
    """A range of round numbers that holds 0 and all of them with their intervals."""
    ends = [0.0]
    for item in thinking_amounts(run):
        around = run.results.intervals.get(item.name)
        ends += [around.low, around.high] if around else [run.results.metrics[item.name] or 0.0]
    step = 10.0 ** floor(log10(max(1.0, *map(abs, ends))))
    return step * floor(min(ends) / step), step * ceil(max(ends) / step)


def thinking_filters(run: Run) -> dict[str, str]:
    """What the samples of a run that thinks can be found by, with their numbers; else nothing."""
    if not thinking_amounts(run):
        return {}
    return {
        name: f"{title} ({sum(map(holds, run.samples)):,})"
        for name, (title, holds) in WORTH_A_LOOK.items()
    }


_PALETTE = 4
"""How many colours the style sheet has for conditions other than the first two."""


@dataclass(frozen=True)
class ConditionView:
    """A condition as the page shows it.

    Attributes:
        name: what its replies go by.
        title: for people.
        style: the class that gives it its colour.
        text: the task.
        added: what the user's last turn ends with.
        asks: what is asked for, in words.
        names_a_move: whether the answer is to be a move.
    """

    name: str
    title: str
    style: str
    text: str
    added: str
    asks: str
    names_a_move: bool


def write_page(run: Run, path: Path) -> None:
    """Write the page of a run; an older one is replaced only when the new one is whole.

    Raises:
        UserError: if it cannot be written.
    """
    try:
        with atomic_write(path) as file:
            file.writelines(piece.encode() for piece in _pieces(run))
    except OSError as problem:
        raise UserError(
            f"cannot write the page {str(path)!r} ({problem.strerror}); "
            "`cdta report RUN -o FILE` writes it elsewhere"
        ) from None


def save_with_page(run: Run, folder: Path) -> None:
    """Write a run's folder and its page in it.

    Raises:
        UserError: if they cannot be written.
    """
    save_run(run, folder)
    write_page(run, folder / PAGE_NAME)


def first_numbers(run: Run) -> dict[str, object]:
    """What a run comes to in short: the parts of its headline and its tiles."""
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
    """The page as one HTML text."""
    return "".join(_pieces(run))


def _pieces(run: Run) -> Iterator[str]:
    samples, longest_reply = samples_json(run)
    counted, earlier = by_earlier_moves(run)
    counts = run.results.outcomes.values()
    return streamed(
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
            f"number of {counted}": earlier,
            "how usual the move is among people": by_usualness(run),
            "opening": by_opening(run),
        },
        why=why(run),
        picture=rule_picture(run.plan.change, run.samples[0].position if run.samples else None),
        pieces=pieces(),
        samples=samples,
        longest_reply=longest_reply,
    )


def _conditions(run: Run) -> dict[str, ConditionView]:
    names = [condition.name for condition in run.plan.conditions]
    others = [name for name in names if name not in (STANDARD_CONDITION, CHANGED_CONDITION)]
    styles = {name: f"other-{1 + place % _PALETTE}" for place, name in enumerate(others)}
    return {
        name: ConditionView(
            name,
            condition_title(name),
            styles.get(name, name),
            condition.text,
            condition.added,
            ASKS.get(name, ""),
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
ASKS = {
    STANDARD_CONDITION: "a move under the standard rules",
    CHANGED_CONDITION: "a move under the changed rules",
    PLACEBO: "a move under another change of the same form, which leaves the habit legal",
    REMINDED: "a move; the changed rule is stated once more",
    KNOWS_FORBIDDEN: "whether a move is legal that the change forbids",
    KNOWS_ALLOWED: "whether a move is legal that it allows",
}
"""What the conditions ask for."""
WORTH_THE_NAME = 0.1
"""A habit that yields by a tenth yields; by less, nobody would say so."""


def condition_title(name: str) -> str:
    """A condition as a heading.

    >>> condition_title("standard"), condition_title("knows_allowed")
    ('Standard rules', 'Knows allowed')
    """
    spelled = name.replace("_", " ").capitalize()
    return f"{spelled} rules" if name in (STANDARD_CONDITION, CHANGED_CONDITION) else spelled


def main_measures(run: Run) -> list[Measure | Contrast]:
    """Those that a reader looks at: all that the run has, but for the original's violations."""
    told = run.results.metrics.keys() - {measure.name for measure in VIOLATIONS}
    known: tuple[Measure | Contrast, ...] = (*MEASURES.values(), *CONTRASTS.values())
    return [measure for measure in known if measure.name in told]


def thinking(results: Results) -> str:
    """The plain sentence that says how long the model thinks; "" of one that does not think."""
    more, around = results.metrics.get(LONGER), results.intervals.get(LONGER)
    if more is None:
        return ""
    if more < 0 and around:
        around = replace(around, low=-around.high, high=-around.low)
    before, after = (
        f"{amount(results.metrics[name])} {amount_interval(results.intervals.get(name))}".strip()
        for name in TOKENS.values()
    )
    by = f"{amount(abs(more))} {amount_interval(around)}".strip()
    return (
        f"thinks {before} tokens under the standard rules and {after} under the changed ones: "
        f"{by} {'fewer' if more < 0 else 'more'}"
    )


def headline(run: Run) -> str:
    """The plain sentence that says what the number means."""
    metrics = run.results.metrics
    before, after = (percentage(metrics[name]) for name in SHARES.values())
    title = run.plan.change.title
    change = f"when {title[0].lower()}{title[1:]}"
    n = pluralize(int(metrics["n_samples"] or 0), "position")
    n += f" of the pool {run.dataset.pool_name}" if run.dataset.pool_name else ""
    if not run.answered:
        asked = pluralize(len(run.samples), "position")
        return f"{run.version} was asked about {asked}, and none has an answer to every question."
    if run.plan.eval == "all_diagonal":
        return (
            f"{run.version} {run.plan.change.habit_label} in {after} of {n} {change}, and in "
            f"{before} "
            "of them under the standard rules; moving at random would give "
            f"{percentage(metrics['random_special_proportion'])}.{_knowing(run)}"
        )
    return (
        f"{run.version} plays its usual move in {before} of {n} under the standard rules and in "
        f"{after} {change}: {_meaning(run)}.{_knowing(run)}"
    )


def _knowing(run: Run) -> str:
    """More sentences, where it was asked why the habit stays."""
    results = run.results
    around = range_of(results, KNOWLEDGE)
    placebo = " The placebo alone changed the habit: see the notes." if unclaimed(results) else ""
    return placebo if around is None else placebo + _knowledge(results, *around)


def _knowledge(results: Results, low: float, high: float) -> str:
    if all(results.metrics[f"{name}_unusable_proportion"] == 1 for name in QUESTIONS):
        return (
            " We cannot tell whether it knows the rule: none of its yes/no answers could be read."
        )
    value = "" if KNOWLEDGE in results.bounds else f"{number(results.metrics[KNOWLEDGE])} "
    shown = f"J = {value}[{low:.3f}, {high:.3f}] (0 = guessing, 1 = always right)."
    if low > 0:
        told = f" It can tell legal from illegal moves under the new rule: {shown}"
        return told + _doing(results)
    if high < 0:
        return f" It is wrong about the new rule more often than by guessing: {shown}"
    if KNOWLEDGE in results.bounds:
        return f" Too few yes/no answers could be read to tell whether it knows the rule: {shown}"
    return f" There is no evidence that it knows the rule: {shown}"


def _doing(results: Results) -> str:
    """Whether knowing helps, as far as there are habits with and without it."""
    gap, others = (results.metrics[measure.name] for measure in (GAP, KEPT_UNKNOWING))
    around = range_of(results, KNOWING_EFFECT.name)
    if gap is None:
        return ""
    kept = f" Where it knows the rule, it plays the forbidden move in {percentage(gap)}"
    if others is None or around is None:
        return f"{kept} of the positions."
    return (
        f"{kept} of the positions, and elsewhere in {percentage(others)}: "
        f"a difference of {number(results.metrics[KNOWING_EFFECT.name])} "
        f"[{around[0]:.3f}, {around[1]:.3f}]."
    )


def _meaning(run: Run) -> str:
    impact, interval = run.results.metrics[IMPACT], run.results.intervals.get(IMPACT)
    if impact is None or interval is None:
        return "there was no habit to drop"
    taken, allowing, spread = percentage(-impact), "", 0.0
    bounds = run.results.bounds.get(IMPACT)
    if bounds and bounds.low is not None and bounds.high is not None:
        taken = f"between {_taken(interval.high)} and {_taken(interval.low)}"
        allowing = " (95% interval, allowing for the answers that name no move)"
        spread = bounds.high - bounds.low
    if interval.high < 0:
        return f"the change of rules takes away {taken} of the habit{allowing}"
    if interval.low > 0:
        return "the habit grows instead of yielding"
    if spread > WORTH_THE_NAME:
        return "too many answers name no move to tell whether the habit yields"
    if interval.low > -WORTH_THE_NAME:
        return "no sign that the habit yields"
    return "too few samples to tell whether the habit yields"


def _taken(impact: float) -> str:
    return percentage(min(1.0, max(0.0, -impact)))
