"""The sentences that sum up a run: its headline, its failures, the answers of its diagnosis."""

from dataclasses import replace
from math import ceil

from ..formatting import Number, amount, brief, format_p, join_words, pluralize, rounded
from ..metrics.diagnosis import (
    CORRECTED,
    DIAGNOSIS,
    KEPT_UNKNOWING,
    KNOWING_DOING_GAP,
    KNOWLEDGE,
    PLACEBO_IMPACT,
    placebo_moved,
    range_of,
)
from ..metrics.measures import REASONING, SPECIAL_SHARE, UPTAKE
from ..metrics.types import ALPHA, InterventionEffect, Results, excludes_zero
from ..runs.results import Run
from ..task.conditions import PLACEBO, QUESTIONS
from ..task.types import CHANGED_CONDITION, STANDARD_CONDITION, Outcome
from .html import interval

# What the placebo changes where the habit stays legal, and what the rule changes then.
CONTROL_MEASURES = [measure for measure in DIAGNOSIS if measure.of_controls]
REACH = 0.05  # of an interval on either side that is narrow enough
MIN_EFFECT = 0.1  # of the rule uptake; anything smaller counts as no effect


def headline(run: Run) -> str:
    """Return the sentences that sum up the run: the habit under both rules, the rule uptake."""
    metrics, change = run.results.metrics, run.plan.change
    if not run.answered:
        n_asked = pluralize(len(run.samples), "position")
        return (
            f"{run.version} was asked about {n_asked}, but answered all requests for none of them."
        )
    standard, changed = (rounded(metrics[name]) for name in SPECIAL_SHARE.values())
    when = f"when {change.title[0].lower()}{change.title[1:]}"
    n = pluralize(int(metrics["n_samples"] or 0), "position")
    n += f" of the pool {run.dataset.pool_name}" if run.dataset.pool_name else ""
    habit, chance = "plays its usual move", ""
    if run.plan.eval == "all_diagonal":
        habit = change.habit_label
        chance = f" (at random: {rounded(metrics['random_special_proportion'])})"
    return (
        f"{run.version} {habit} in {standard} of {n} under standard rules and in {changed} "
        f"{when}{chance}. {uptake_sentence(run.results)}{_caveat(run.results)}"
    )


def uptake_sentence(results: Results) -> str:
    """Say how often the model follows the new rule, as far as the interval allows."""
    uptake, interval = results.metrics[UPTAKE], results.intervals.get(UPTAKE)
    if interval and results.wordings:
        interval = replace(interval, low=results.wordings.low, high=results.wordings.high)
    if uptake is None or interval is None:
        return (
            "None of its moves under standard rules breaks the new rule, so its rule uptake is "
            "undefined."
        )
    number, despite = _with_ends(uptake, interval.low, interval.high), ""
    bounds = results.bounds.get(UPTAKE)
    if bounds:
        number = f"{rounded(max(0.0, interval.low))} to {rounded(interval.high)}"
        despite = " (95% interval that allows for answers without a move)"
    if interval.low > 0:
        return f"It follows the new rule in {number} of the cases where it matters{despite}."
    number = f"rule uptake {_with_ends(uptake, interval.low, interval.high)}{despite}"
    if interval.high < 0:
        return "It breaks the new rule more often when it is told the rule than without it."
    if bounds and (bounds.high or 0.0) - (bounds.low or 0.0) > MIN_EFFECT:
        return (
            f"Too many answers contain no move to tell whether it follows the new rule: {number}."
        )
    if interval.high < MIN_EFFECT:
        return f"There is no evidence that it follows the new rule: {number}."
    return f"There are too few samples to tell whether it follows the new rule: {number}."


def size_sentence(results: Results) -> str:
    """Say how many samples would give an interval of ±5 points; "" if there are enough."""
    interval = results.intervals.get(UPTAKE)
    width = interval.high - interval.low if interval else 0.0
    if width <= 2 * REACH:
        return ""
    samples = (results.metrics["n_samples"] or 0) * (width / (2 * REACH)) ** 2
    points = round(100 * REACH)
    return f"For ±{points} points, use about -n {ceil(samples)}."


def wording_sentence(run: Run) -> str:
    """Say how much the wording of the prompts matters, as far as the run shows it."""
    if not run.answered:
        return ""
    if len(run.plan.wordings) == 1:
        return "Measured with one wording; --wording all shows how much the wording matters."
    wordings = run.results.wordings
    if not wordings:
        return f"{len(run.plan.wordings)} wordings, with too few samples to compare them."
    values = {value: name for name, value in wordings.by_wording.items() if value is not None}
    lowest, highest = min(values), max(values)
    over = f"Over {len(run.plan.wordings)} wordings, it follows the new rule"
    if lowest == highest:
        return f"{over} equally often ({rounded(lowest)})."
    ends = (
        f"{over} least with {values[lowest]} ({rounded(lowest)}) and most with {values[highest]} "
        f"({rounded(highest)})."
    )
    if wordings.p >= ALPHA:
        return (
            f"{ends} That is within chance ({format_p(wordings.p)}); the wordings differ by a "
            f"standard deviation of at most {100 * wordings.spread_high:.0f} percentage points."
        )
    low, high = (f"{100 * end:.0f}" for end in (wordings.spread_low, wordings.spread_high))
    return (
        f"{ends} Beyond chance ({format_p(wordings.p)}), the wordings differ by a standard "
        f"deviation of {low} to {high} percentage points (estimate: {100 * wordings.spread:.0f})."
    )


def _caveat(results: Results) -> str:
    moved = (
        " A placebo change, which leaves the habit legal, also changed it, so the rule may not be "
        "the cause."
    )
    return moved if placebo_moved(results) else ""


# What went wrong under the changed rules, by outcome.
FAILURES: dict[Outcome, str] = {
    "special": "kept the habit",
    "forbidden": "played another move that the new rule forbids",
    "illegal": "played another illegal move",
    "unreadable": "contain no readable move",
    "truncated": "were cut off before a move",
    "refused": "were refused",
    "error": "have no answer",
}


def diagnosis_answers(run: Run) -> dict[str, str]:
    """Return the four questions of a diagnosis with their answers; empty without a diagnosis."""
    results = run.results
    if KNOWLEDGE not in results.metrics:
        return {}
    return {
        "Does it know the rule?": _knowledge_answer(results),
        "Does it stop?": _stopping_answer(results),
        "Is it the rule, or any change to the prompt?": _placebo_answer(results),
        "Is it this habit, or all play?": _collateral_answer(run),
    }


def helps_sentence(run: Run) -> str:
    """Say which interventions close how much of the gap to following the rule; "" without any."""
    labels = {condition.name: condition.label for condition in run.plan.conditions}
    effects = run.results.interventions
    if effects and all(effect.closes is None for effect in effects):
        return "There is no gap to close: no answer under the changed rules breaks them."
    helpful = [effect for effect in effects if effect.is_significant and (effect.closes or 0) > 0]
    harmful = [effect for effect in effects if effect.is_significant and (effect.closes or 0) < 0]
    others = [labels[e.name] for e in effects if e not in (*helpful, *harmful)]
    first = [f"{labels[e.name]} closes {closes(e)} of the gap" for e in helpful[:1]]
    more = [f"{labels[e.name]} {closes(e)}" for e in helpful[1:]]
    parts = [join_words([*first, *more])] if first else []
    parts += [f"{labels[e.name]} widens the gap ({closes(e)})" for e in harmful]
    if others:
        parts.append(
            f"{join_words(others)} {'has' if len(others) == 1 else 'have'} no detectable effect"
        )
    text = "; ".join(parts)
    text = f"{text[:1].upper()}{text[1:]}." if text else ""
    elsewhere = [
        f"{labels[e.name]} ({_with_ends(e.controls, e.controls_low, e.controls_high)})"
        for e in effects
        if e.changes_other_play
    ]
    if not elsewhere:
        return text
    return f"{text} At control positions, the usual move also changes with {join_words(elsewhere)}."


def closes(effect: InterventionEffect) -> str:
    """Format the share of the gap that an intervention closes, with its 95% interval."""
    if effect.closes is None:
        return "–"
    return _with_ends(effect.closes, effect.closes_low, effect.closes_high)


def _with_ends(value: Number, low: Number, high: Number) -> str:
    return f"{rounded(value)} [{rounded(low)}, {rounded(high)}]"


def _knowledge_answer(results: Results) -> str:
    if all(results.metrics[f"{name}_unusable_proportion"] == 1 for name in QUESTIONS):
        return "We cannot tell: none of its yes/no answers could be read."
    ends = range_of(results, KNOWLEDGE)
    if ends is None:
        return "We cannot tell: there are too few yes/no answers."
    low, high = ends
    bounded = KNOWLEDGE in results.bounds
    value = "" if bounded else f"{brief(results.metrics[KNOWLEDGE])} "
    youden = f"J = {value}[{brief(low)}, {brief(high)}] (0 = guessing, 1 = always right)."
    if low > 0:
        return f"Yes, it can tell legal from illegal moves under the new rule: {youden}"
    if high < 0:
        return f"No, it is wrong about the new rule more often than by guessing: {youden}"
    if bounded:
        return f"We cannot tell: too few of its yes/no answers could be read, {youden}"
    return f"There is no evidence that it does: {youden}"


def _stopping_answer(results: Results) -> str:
    knowing, elsewhere = (
        _with_range(results, measure.name) for measure in (KNOWING_DOING_GAP, KEPT_UNKNOWING)
    )
    if knowing and elsewhere:
        return (
            f"Where it knows the rule, it plays the forbidden move in {knowing} of the "
            f"positions. Where it does not, it does so in {elsewhere}."
        )
    where = "knows" if knowing else "does not know"
    if kept := knowing or elsewhere:
        return f"Where it {where} the rule, it plays the forbidden move in {kept} of the positions."
    return "We cannot tell: there was no habit to stop."


def _placebo_answer(results: Results) -> str:
    placebo = _with_range(results, PLACEBO_IMPACT)
    if not placebo:
        return "We cannot tell: there was no habit to change."
    by = f"a placebo rule, which leaves the habit legal, changes it by {placebo}"
    if placebo_moved(results):
        return f"We cannot tell: {by}."
    rule, ends = _with_range(results, CORRECTED.name), range_of(results, CORRECTED.name)
    moved = ends is not None and excludes_zero(*ends)
    first = "It is the rule" if moved else "No effect of either was found"
    return f"{first}: {by}. Compared with that, the new rule changes it by {rule}."


def control_shares(run: Run) -> dict[str, float]:
    """Return the share of habits played at control positions, by condition."""
    answered = [control for control in run.controls if control.answered]
    return {
        name: sum(control.plays_special(name) for control in answered) / len(answered)
        for name in (STANDARD_CONDITION, PLACEBO, CHANGED_CONDITION)
        if answered
    }


def _collateral_answer(run: Run) -> str:
    answered, shares = sum(control.answered for control in run.controls), control_shares(run)
    changes = [ends for m in CONTROL_MEASURES if (ends := range_of(run.results, m.name))]
    if not answered or not changes:
        few = "too few" if answered else "no"
        return f"We cannot tell: this run has {few} control positions, whose habit stays legal."
    moved = any(excludes_zero(*ends) for ends in changes)
    first = "Other play changes, too" if moved else "No change in other play was found"
    standard, changed = (rounded(shares[n]) for n in (STANDARD_CONDITION, CHANGED_CONDITION))
    return (
        f"{first}: at {pluralize(answered, 'control position')}, where the usual move stays "
        f"legal, it plays it in {standard} under standard rules and in {changed} under the new "
        "rule."
    )


def _with_range(results: Results, name: str) -> str:
    """Format a share or a relative change with its 95% interval; "" if it has no value."""
    if results.metrics.get(name) is None:
        return ""
    ends, value = range_of(results, name), results.metrics[name]
    return _with_ends(value, *ends) if ends else rounded(value)


def reasoning_sentence(results: Results) -> str:
    """Return the sentence on reasoning tokens, or "" for a model without reasoning."""
    difference = results.metrics.get(REASONING.difference)
    around = results.intervals.get(REASONING.difference)
    if difference is None:
        return ""
    if difference < 0 and around:
        around = replace(around, low=-around.high, high=-around.low)
    standard, changed = (
        f"{amount(results.metrics[name])} {interval(results.intervals.get(name), amount)}".strip()
        for name in map(REASONING.under, SPECIAL_SHARE)
    )
    change = f"{amount(abs(difference))} {interval(around, amount)}".strip()
    return (
        f"It uses {standard} reasoning tokens under standard rules and {changed} under the "
        f"changed rules: {change} {'fewer' if difference < 0 else 'more'}."
    )
