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
from ..metrics.interventions import MAX_UNUSABLE, VERDICTS, Effect
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
    when = f"when {_lower(change.title)}"
    n = pluralize(run.results.n, words.item)
    n += f" of the pool {run.dataset.pool_name}" if run.dataset.pool_name else ""
    shares = (
        f"{model} {words.does} {before} of {n} {words.as_usual}{comma} and {words.place} {after}"
    )
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


def _lower(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]


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


def remarks_on(run: Run) -> str:
    """Say how much the wording matters, how many samples would be enough, and what reasoning is."""
    return " ".join(filter(None, (wording_sentence(run), _size_sentence(run), _reasoning(run))))


def _size_sentence(run: Run) -> str:
    """Say how many samples an interval of ±5 points needs; "" for enough, or for far too few."""
    uptake = run.results.uptake
    if not uptake or uptake.reach <= REACH:
        return ""
    factor = (uptake.reach / REACH) ** 2
    if factor > MAX_FACTOR:
        return ""
    n = 100 * ceil(uptake.n * factor / 100)
    points = in_points(REACH, signed=False)
    return f"An interval of ±{points} points for the rule uptake needs about {n:,} samples."


def wordings_shown(run: Run) -> Mapping[str, Estimate]:
    """Return the rule uptake by wording; nothing if some wordings have too few samples."""
    found = run.results.wordings.by_wording if run.results.wordings else {}
    return found if len(found) == len(run.plan.wordings) else {}


def wording_sentence(run: Run) -> str:
    """Say how much the wording of the prompts matters, as far as the run shows it."""
    wordings, n = run.results.wordings, len(run.plan.wordings)
    if n == 1:
        return f"Measured with one wording, {run.plan.wordings[0]}."
    if not wordings or not wordings_shown(run):
        return f"{n} wordings, with too few samples to compare them."
    values = {estimate.value for estimate in wordings.by_wording.values()}
    if len(values) == 1:
        return f"The rule uptake is {rounded(values.pop())} in each of {n} wordings."
    # With a weak habit, a few would-be violations decide the value of a wording: its interval is
    # too narrow.
    if wordings.spread.sign and run[SHARE_BEFORE].value >= WEAK_HABIT:
        size = _size(wordings.spread)
        return f"The standard deviation of the rule uptake between wordings is {size}."
    most = in_points(wordings.spread.high or 0.0, signed=False)
    return (
        "Chance alone can explain how the rule uptake differs between wordings: its standard "
        f"deviation is at most {most} points."
    )


class Voice(NamedTuple):
    """How to speak of a finding of the diagnosis.

    Attributes:
        conditions: those whose replies it comes from.
        topic: what it is about, if it cannot be judged.
        undefined: why it may have no estimate.
        effect: what to say of an effect, with its ``{size}`` and its direction, ``{how}``.
        ways: the direction of an effect above 0, and of one below 0.
        silent: what to say if the interval includes 0.
    """

    conditions: tuple[str, str]
    topic: str
    undefined: str
    effect: str
    ways: tuple[str, str]
    silent: str


_VOICES = {
    "rule_effect": Voice(
        (PLACEBO, CHANGED_CONDITION),
        "Whether it is the rule or any change of the prompt",
        "there are no answers",
        "Its share of usual {answer}s is {size} {how} under this rule than under a placebo rule.",
        ("lower", "higher"),
        "Its share of usual {answer}s shows no detectable difference between this rule and a "
        "placebo rule ({size}).",
    ),
    "knowledge": Voice(
        (KNOWS_ALLOWED, KNOWS_FORBIDDEN),
        "Whether it knows the rule",
        "there are no answers",
        "It is {size} {how} than guessing at telling which {answer}s are {allowed} now.",
        ("better", "worse"),
        "There is no evidence that it can tell which {answer}s are {allowed} now ({size} "
        "compared with guessing).",
    ),
    "reminder_effect": Voice(
        (REMINDED, CHANGED_CONDITION),
        "Whether a reminder helps",
        "there was no habit to drop",
        "A reminder {how} its rule uptake by {size}.",
        ("raises", "lowers"),
        "A reminder makes no detectable difference ({size}).",
    ),
    "other_play": Voice(
        (STANDARD_CONDITION, CHANGED_CONDITION),
        "Whether other habits suffer",
        "there are no control {items}",
        "Where the usual {answer} stays {allowed}, its share is {size} {how} under the new rule.",
        ("higher", "lower"),
        "Where the usual {answer} stays {allowed}, there is no detectable difference ({size}).",
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
        yield run.words.fill(QUESTIONS[name]), finding


def finding_sentence(run: Run, name: str) -> str:
    """Say what the diagnosis found, no more than its interval allows."""
    voice, finding, results = _VOICES[name], run.results.diagnosis[name], run.results
    why, estimate = _why_unjudged(run, name), finding.estimate
    if why or not estimate:
        return run.words.fill(f"{voice.topic} cannot be judged: {why}.")
    text, size = voice.effect if estimate.sign else voice.silent, _size(estimate)
    follows = results.uptake is not None and results.uptake.sign > 0
    if name == "rule_effect" and finding.answer == "Yes" and follows:
        text = f"It reacts to this rule, not just to any change of the prompt: {_lower(text)}"
    elif name == "knowledge" and finding.answer == "No" and estimate.sign > 0:
        size = f"only {size}"
    elif name == "other_play" and finding.answer == "Yes":
        text = f"Other habits suffer, too: {_lower(text)}"
    return run.words.fill(text).format(size=size, how=voice.ways[estimate.sign < 0])


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
        share = percentage(effect.unusable, 0)
        return f"{effect.verdict}: {share} of the replies contain no {run.words.answer}"
    if effect.difference is None:
        return f"{effect.verdict}: there was no habit to drop"
    size = effect.difference.as_points if unit else effect.difference.as_difference
    return f"{effect.verdict}: {size}"


def helps_sentence(run: Run) -> str:
    """Say which interventions help; "" without any."""
    labels = {condition.name: condition.label for condition in run.plan.conditions}
    by_verdict: dict[str, list[str]] = {verdict: [] for verdict in VERDICTS}
    for effect in run.results.interventions:
        by_verdict[effect.verdict].append(labels[effect.name])
    named = (f"{verdict.capitalize()}: {join_words(n)}." for verdict, n in by_verdict.items() if n)
    judged = (each.difference for each in run.results.interventions if each.can_be_judged)
    return " ".join(named) + _only_above(judged)


def _reasoning(run: Run) -> str:
    """Return the sentence on reasoning tokens, or "" for a model without reasoning."""
    difference = run.results.get(REASONING_DIFFERENCE)
    if not difference:
        return ""
    before, after = (
        amount(run[reasoning_name(name)].value) for name in (STANDARD_CONDITION, CHANGED_CONDITION)
    )
    return (
        f"Mean reasoning tokens: {before} under standard rules and {after} under the changed "
        f"rules, a difference of {minus(difference.text(amount))}."
    )
