"""The sentences that sum up a run: its headline, its failures, the answers of its diagnosis."""

from collections.abc import Mapping
from dataclasses import replace
from math import ceil

from ..datasets.no_habit import MIN_LEGAL_SHARE
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
from ..metrics.measures import REASONING, UPTAKE, USUAL_SHARE
from ..metrics.stats.intervals import Interval
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
    words = run.words
    if not run.answered:
        n_asked = pluralize(len(run.samples), words.item)
        return (
            f"{run.version} was asked about {n_asked}, but answered all requests for none of them."
        )
    standard, changed = (rounded(metrics[name]) for name in USUAL_SHARE.values())
    comma = "," if words.as_usual == "as usual" else ""
    when = f"when {change.title[0].lower()}{change.title[1:]}"
    n = pluralize(int(metrics["n_samples"] or 0), words.item)
    n += f" of the pool {run.dataset.pool_name}" if run.dataset.pool_name else ""
    habit, chance = words.does, ""
    if run.plan.eval == "all_diagonal":
        habit = f"{change.habit_label} in"
        chance = f" (at random: {rounded(metrics['random_usual_proportion'])})"
    preposition = habit.rpartition(" ")[2]
    return (
        f"{run.version} {habit} {standard} of {n} {words.as_usual}{comma} and {preposition} "
        f"{changed} {when}{chance}. {uptake_sentence(run)}{_caveat(run)}"
    )


def uptake_sentence(run: Run) -> str:
    """Say how often the model follows the new rule, as far as the interval allows."""
    uptake, interval = run.results.metrics[UPTAKE], run.results.intervals.get(UPTAKE)
    if uptake is None or interval is None:
        return f"So there is no habit to measure. {_cannot(run)}".rstrip()
    if wordings := run.results.wordings:
        interval = replace(interval, low=wordings.low, high=wordings.high)
    sentence, shares = _follows(run, uptake, interval), shares_text(run.after_change)
    return f"{sentence} After the change: {shares}." if shares else sentence


def _cannot(run: Run) -> str:
    """Say that the model can't do the task, if few of its usual answers are legal."""
    counts = run.results.outcomes[STANDARD_CONDITION]
    n, legal = sum(counts.values()), counts["usual"] + counts["legal"]
    if legal >= MIN_LEGAL_SHARE * n:
        return ""
    return f"{run.words.cannot.format(share=rounded(legal / n))}."


def shares_text(shares: Mapping[str, float]) -> str:
    """Format shares by name."""
    return ", ".join(f"{name} {rounded(share)}" for name, share in shares.items())


def _follows(run: Run, uptake: float, interval: Interval) -> str:
    number, despite = _with_ends(uptake, interval.low, interval.high), ""
    bounds = run.results.bounds.get(UPTAKE)
    if bounds:
        number = f"{rounded(max(0.0, interval.low))} to {rounded(interval.high)}"
        despite = run.words.fill(" (95% interval that allows for replies without a {answer})")
    if interval.low > 0:
        return f"It follows the new rule in {number} of the cases where it matters{despite}."
    number = f"rule uptake {_with_ends(uptake, interval.low, interval.high)}{despite}"
    if interval.high < 0:
        return "It breaks the new rule more often when it is told the rule than without it."
    if bounds and (bounds.high or 0.0) - (bounds.low or 0.0) > MIN_EFFECT:
        few = f"Too many replies contain no {run.words.answer} to tell"
        return f"{few} whether it follows the new rule: {number}."
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


def _caveat(run: Run) -> str:
    moved = (
        f" A placebo change, which leaves the habit {run.words.allowed}, also changed it, so the "
        "rule may not be the cause."
    )
    return moved if placebo_moved(run.results) else ""


# What went wrong under the changed rules, by outcome.
_FAILURES: dict[Outcome, str] = {
    "usual": "kept the habit",
    "forbidden": "{past} another {answer} that the new rule forbids",
    "illegal": "{past} another {disallowed} {answer}",
    "unreadable": "contain no readable {answer}",
    "truncated": "were cut off before a {answer}",
    "refused": "were refused",
    "error": "have no answer",
}


def failures_of(run: Run) -> dict[Outcome, str]:
    """Return what went wrong under the changed rules, by outcome."""
    return {outcome: run.words.fill(text) for outcome, text in _FAILURES.items()}


def diagnosis_answers(run: Run) -> dict[str, str]:
    """Return the four questions of a diagnosis with their answers; empty without a diagnosis."""
    results = run.results
    if KNOWLEDGE not in results.metrics:
        return {}
    return {
        "Does it know the rule?": _knowledge_answer(run),
        "Does it stop?": _stopping_answer(run),
        "Is it the rule, or any change to the prompt?": _placebo_answer(run),
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
    where = run.words.fill("At control {items}, the usual {answer} also changes with")
    return f"{text} {where} {join_words(elsewhere)}."


def closes(effect: InterventionEffect) -> str:
    """Format the share of the gap that an intervention closes, with its 95% interval."""
    if effect.closes is None:
        return "–"
    return _with_ends(effect.closes, effect.closes_low, effect.closes_high)


def _with_ends(value: Number, low: Number, high: Number) -> str:
    return f"{rounded(value)} [{rounded(low)}, {rounded(high)}]"


def _knowledge_answer(run: Run) -> str:
    results = run.results
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
        tells = run.words.fill("can tell {allowed} from {disallowed} {answer}s under the new rule")
        return f"Yes, it {tells}: {youden}"
    if high < 0:
        return f"No, it is wrong about the new rule more often than by guessing: {youden}"
    if bounded:
        return f"We cannot tell: too few of its yes/no answers could be read, {youden}"
    return f"There is no evidence that it does: {youden}"


def _stopping_answer(run: Run) -> str:
    knowing, elsewhere = (
        _with_range(run.results, measure.name) for measure in (KNOWING_DOING_GAP, KEPT_UNKNOWING)
    )
    words = run.words
    does = f"it {words.verb} the forbidden {words.answer} {words.place}"
    if knowing and elsewhere:
        return (
            f"Where it knows the rule, {does} {knowing} of the {words.items}. Where it does not, "
            f"it does so {words.place} {elsewhere}."
        )
    where = "knows" if knowing else "does not know"
    if kept := knowing or elsewhere:
        return f"Where it {where} the rule, {does} {kept} of the {words.items}."
    return "We cannot tell: there was no habit to stop."


def _placebo_answer(run: Run) -> str:
    results, allowed = run.results, run.words.allowed
    placebo = _with_range(results, PLACEBO_IMPACT)
    if not placebo:
        return "We cannot tell: there was no habit to change."
    by = f"a placebo rule, which leaves the habit {allowed}, changes it by {placebo}"
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
        name: sum(control.is_usual(name) for control in answered) / len(answered)
        for name in (STANDARD_CONDITION, PLACEBO, CHANGED_CONDITION)
        if answered
    }


def _collateral_answer(run: Run) -> str:
    words = run.words
    answered, shares = sum(control.answered for control in run.controls), control_shares(run)
    changes = [ends for m in CONTROL_MEASURES if (ends := range_of(run.results, m.name))]
    if not answered or not changes:
        few = "too few" if answered else "no"
        of_this_run = f"this run has {few} control {words.items}"
        return f"We cannot tell: {of_this_run}, whose habit stays {words.allowed}."
    moved = any(excludes_zero(*ends) for ends in changes)
    first = "Other play changes, too" if moved else "No change in other play was found"
    standard, changed = (rounded(shares[n]) for n in (STANDARD_CONDITION, CHANGED_CONDITION))
    where = words.fill("where the usual {answer} stays {allowed}, it {verb} it {place}")
    return (
        f"{first}: at {pluralize(answered, f'control {words.item}')}, {where} {standard} "
        f"{words.as_usual} and {words.place} {changed} under the new rule."
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
        for name in map(REASONING.under, USUAL_SHARE)
    )
    change = f"{amount(abs(difference))} {interval(around, amount)}".strip()
    return (
        f"It uses {standard} reasoning tokens under standard rules and {changed} under the "
        f"changed rules: {change} {'fewer' if difference < 0 else 'more'}."
    )
