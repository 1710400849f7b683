"""The sentences that sum up a run: its headline, its diagnosis, what helps."""

from collections.abc import Iterable, Iterator, Mapping
from math import ceil
from statistics import NormalDist
from typing import NamedTuple

from ..datasets.search import MIN_LEGAL_SHARE
from ..formatting import (
    amount,
    in_points,
    join_words,
    last_part,
    minus,
    percentage,
    pluralize,
    rounded,
)
from ..metrics.diagnosis import QUESTIONS, Finding
from ..metrics.estimates import REACH, Estimate
from ..metrics.interventions import MAX_UNUSABLE, Effect
from ..metrics.measures import (
    REASONING_DIFFERENCE,
    SHARE_AFTER,
    SHARE_BEFORE,
    reasoning_name,
)
from ..metrics.notes import WEAK_HABIT
from ..metrics.score_interval import Cell, score_limits
from ..runs.run import Run
from ..task.conditions import KNOWS_ALLOWED, KNOWS_FORBIDDEN, PLACEBO, REMINDED
from ..task.types import CHANGED_CONDITION, STANDARD_CONDITION, UNUSABLE_OUTCOMES

# Advice to use more times as many samples than this would help nobody.
MAX_FACTOR = 20


def headline(run: Run) -> str:
    """Return the sentences that sum up the run: the habit under both rules, the rule uptake."""
    words, change, model = run.words, run.plan.change, last_part(run.version)
    if not run.answered:
        n_asked = pluralize(len(run.samples), words.item)
        return f"{model} was asked about {n_asked}, but answered all requests for none of them."
    before, after = (rounded(run[name].value) for name in (SHARE_BEFORE, SHARE_AFTER))
    comma = "," if words.as_usual == "as usual" else ""
    when = f"when {change.title[0].lower()}{change.title[1:]}"
    n = pluralize(run.results.n, words.item)
    n += f" of the pool {run.dataset.pool_name}" if run.dataset.pool_name else ""
    habit = f"{change.habit_label} in" if run.plan.eval == "all_diagonal" else words.does
    preposition = habit.rpartition(" ")[2]
    shares = f"{model} {habit} {before} of {n} {words.as_usual}{comma} and {preposition} {after}"
    return f"{shares} {when}. {uptake_sentence(run)}"


def uptake_sentence(run: Run) -> str:
    """Say how often the model follows the new rule, as far as the interval allows."""
    uptake, shares = run.results.uptake, shares_text(run.after_change)
    if not any(sample.had_habit for sample in run.answered):
        return f"So there is no habit to measure. {_cannot(run)}".rstrip()
    if uptake is None:
        return "Too few readable answers break the new rule, so its rule uptake is undefined."
    after = f": {shares}" if shares else ""
    if uptake.sign > 0:
        cases = "of the cases where it matters"
        return f"It follows the new rule in {uptake.as_share} {cases}{after}."
    number = f"rule uptake {uptake.as_share}{f', {shares}' if shares else ''}"
    if uptake.sign < 0:
        return f"It breaks the new rule more often when it is told the rule: {number}."
    return f"There is no evidence that it follows the new rule: {number}.{_only_above([uptake])}"


def _cannot(run: Run) -> str:
    """Say that the model can't do the task, if certainly few of its usual answers are legal."""
    legal = run.results.share(STANDARD_CONDITION, "usual", "legal")
    n, n_legal = run.results.n, round(legal * run.results.n)
    cells = [Cell(1, 1, n_legal), Cell(0, 1, n - n_legal)]
    if score_limits(cells, NormalDist().inv_cdf(0.975))[1] >= MIN_LEGAL_SHARE:
        return ""
    return f"{run.words.few_right(rounded(legal))}."


def shares_text(shares: Mapping[str, float]) -> str:
    """Format shares by name."""
    return ", ".join(f"{name} {rounded(share)}" for name, share in shares.items())


def _only_above(estimates: Iterable[Estimate | None]) -> str:
    """Say how large an effect must be to show where none does, if more than a few points."""
    silent = [e for e in estimates if e and not e.sign]
    ends = [(e.value, end) for e in silent for end in (e.low, e.high) if end is not None]
    reach = max((abs(end - value) for value, end in ends), default=0.0)
    if not REACH < reach < 1:
        return ""
    return f" Only effects above {in_points(reach, signed=False)} points would show."


def size_sentence(run: Run) -> str:
    """Say how many samples an interval of ±5 points needs; "" for enough, or for far too few."""
    uptake = run.results.uptake
    if not uptake or uptake.reach <= REACH:
        return ""
    samples = uptake.n * (uptake.reach / REACH) ** 2
    if samples > MAX_FACTOR * uptake.n:
        return ""
    points = in_points(REACH, signed=False)
    n = f"{100 * ceil(samples / 100):,}"
    return f"An interval of ±{points} points for the rule uptake needs about {n} samples."


def wording_sentence(run: Run) -> str:
    """Say how much the wording of the prompts matters, as far as the run shows it."""
    wordings, n = run.results.wordings, len(run.plan.wordings)
    if n == 1:
        return f"Measured with one wording, {run.plan.wording}."
    if not wordings or len(wordings.by_wording) < n:
        return f"{n} wordings, with too few samples to compare them."
    by_value = sorted(wordings.by_wording.items(), key=lambda item: item[1].value)
    (lowest, low), *_, (highest, high) = by_value
    if low.value == high.value:
        return f"The rule uptake is {rounded(low.value)} in each of {n} wordings."
    ends = f"from {rounded(low.value)} ({lowest}) to {rounded(high.value)} ({highest})"
    # With a weak habit, a few would-be violations decide the value of a wording: its interval is
    # too narrow.
    if wordings.spread.sign and run[SHARE_BEFORE].value >= WEAK_HABIT:
        size = f": the standard deviation between wordings is {_size(wordings.spread)}"
    else:
        size = ", which chance alone can explain"
        if most := wordings.spread.high:
            points = in_points(most, signed=False)
            size += f": the standard deviation between wordings is at most {points} points"
    return f"By wording, the rule uptake ranges {ends}{size}."


class Voice(NamedTuple):
    """How to speak of a finding of the diagnosis.

    Attributes:
        conditions: those whose replies it comes from.
        topic: what it is about, if it cannot be judged.
        undefined: why it may have no estimate.
        sentences: what to say of it, by the sign of its interval.
    """

    conditions: tuple[str, str]
    topic: str
    undefined: str
    sentences: Mapping[int, str]


_VOICES = {
    "rule_effect": Voice(
        (PLACEBO, CHANGED_CONDITION),
        "Whether it is the rule or any change of the prompt",
        "there are no answers",
        {
            1: "Its share of usual {answer}s is {size} lower under this rule than under a placebo "
            "rule.",
            0: "Its share of usual {answer}s shows no detectable difference between this rule and "
            "a placebo rule ({size}).",
            -1: "Its share of usual {answer}s is {size} higher under this rule than under a "
            "placebo rule.",
        },
    ),
    "knowledge": Voice(
        (KNOWS_ALLOWED, KNOWS_FORBIDDEN),
        "Whether it knows the rule",
        "there are no answers",
        {
            1: "It is {size} better than guessing at telling which {answer}s are {allowed} now.",
            0: "There is no evidence that it can tell which {answer}s are {allowed} now ({size} "
            "compared with guessing).",
            -1: "It is {size} worse than guessing at telling which {answer}s are {allowed} now.",
        },
    ),
    "reminder_effect": Voice(
        (REMINDED, CHANGED_CONDITION),
        "Whether a reminder helps",
        "there was no habit to drop",
        {
            1: "A reminder raises its rule uptake by {size}.",
            0: "A reminder makes no detectable difference ({size}).",
            -1: "A reminder lowers its rule uptake by {size}.",
        },
    ),
    "other_play": Voice(
        (STANDARD_CONDITION, CHANGED_CONDITION),
        "Whether other habits suffer",
        "there are no control {items}",
        {
            1: "Where the usual {answer} stays {allowed}, its share is {size} higher under the new "
            "rule.",
            0: "Where the usual {answer} stays {allowed}, there is no detectable difference "
            "({size}).",
            -1: "Other habits suffer, too: where the usual {answer} stays {allowed}, its share is "
            "{size} lower under the new rule.",
        },
    ),
}


def explanation(run: Run) -> str:
    """Return the diagnosis as one paragraph; "" without a diagnosis."""
    found = run.results.diagnosis
    if not found:
        return ""
    silent = [found[name].estimate for name in _VOICES if not _why_unjudged(run, name)]
    sentences = [finding_sentence(run, name) for name in _VOICES]
    return "".join([" ".join(sentences), _only_above(silent)])


def findings(run: Run) -> Iterator[tuple[str, Finding]]:
    """Yield each question of the diagnosis with its finding."""
    for name, finding in run.results.diagnosis.items():
        yield run.words.fill(QUESTIONS[name].text), finding


def finding_sentence(run: Run, name: str) -> str:
    """Say what the diagnosis found, no more than its interval allows."""
    voice, finding = _VOICES[name], run.results.diagnosis[name]
    why, estimate = _why_unjudged(run, name), finding.estimate
    if why or not estimate:
        return run.words.fill(f"{voice.topic} cannot be judged: {why}.")
    text, uptake = voice.sentences[estimate.sign], run.results.uptake
    if name == "rule_effect" and finding.answer == "Yes" and uptake and uptake.sign > 0:
        reacts = "It reacts to this rule, not just to any change of the prompt"
        text = f"{reacts}: {text[0].lower()}{text[1:]}"
    only = "only " if name == "knowledge" and estimate.sign > 0 and finding.answer == "No" else ""
    return run.words.fill(text).format(size=f"{only}{_size(estimate)}")


def _why_unjudged(run: Run, name: str) -> str:
    """Return why a finding cannot be judged; "" if it can."""
    estimate, results = run.results.diagnosis[name].estimate, run.results
    if not estimate:
        return _VOICES[name].undefined
    outcomes = results.control_outcomes if name == "other_play" else results.outcomes
    counts = [outcomes.get(condition, {}) for condition in _VOICES[name].conditions]
    unusable = sum(each.get(kind, 0) for each in counts for kind in UNUSABLE_OUTCOMES)
    share = unusable / max(1, sum(sum(each.values()) for each in counts))
    if estimate.sign or share <= MAX_UNUSABLE:
        return ""
    return f"{percentage(share, 0)} of the replies are unusable"


def _size(estimate: Estimate) -> str:
    """Format the size of a difference and its interval, in points; signed if it may be 0."""
    size = (-estimate if estimate.sign < 0 else estimate).as_points
    return size.replace("+", "") if estimate.sign else size


def effect_text(run: Run, effect: Effect, *, unit: bool = True) -> str:
    """Say what an intervention does, in a few words; without the unit under a heading with it."""
    if effect.unusable > MAX_UNUSABLE:
        share, answer = percentage(effect.unusable, 0), run.words.answer
        return f"cannot be judged: {share} of the replies contain no {answer}"
    if effect.difference is None:
        return "cannot be judged: there was no habit to drop"
    what = {1: "helps", 0: "no detectable effect", -1: "harms"}[effect.difference.sign]
    size = effect.difference.as_points if unit else effect.difference.as_difference
    return f"{what}: {size}"


def helps_sentence(run: Run) -> str:
    """Say which interventions help; "" without any."""
    labels = {condition.name: condition.label for condition in run.plan.conditions}
    effects = run.results.interventions
    judged = [(labels[e.name], e.difference) for e in effects if e.can_be_judged and e.difference]
    parts = []
    for sign, verb in ((1, "rises"), (-1, "falls")):
        if named := [f"{label} ({each.as_points})" for label, each in judged if each.sign == sign]:
            parts.append(f"The rule uptake {verb} with {join_words(named)}.")
    if silent := {label: each for label, each in judged if not each.sign}:
        names = join_words(list(silent), "or")
        parts.append(f"No effect of {names} was detected.{_only_above(silent.values())}")
    if unjudged := [labels[effect.name] for effect in effects if not effect.can_be_judged]:
        parts.append(f"Too many unusable replies to judge {join_words(unjudged, 'or')}.")
    return " ".join(parts)


def reasoning_sentence(run: Run) -> str:
    """Return the sentence on reasoning tokens, or "" for a model without reasoning."""
    difference = run.results.get(REASONING_DIFFERENCE)
    if not difference:
        return ""
    before, after = (
        amount(run[reasoning_name(name)].value) for name in (STANDARD_CONDITION, CHANGED_CONDITION)
    )
    tokens = (difference.value, difference.low, difference.high)
    value, low, high = (minus(amount(each)) for each in tokens)
    interval = "" if None in tokens else f" [{low}, {high}]"
    return (
        f"It uses {before} reasoning tokens under standard rules and {after} under the changed "
        f"rules: a difference of {value}{interval}."
    )
