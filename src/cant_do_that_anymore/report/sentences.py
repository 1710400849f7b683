"""The sentences that sum up a run: its headline, its diagnosis, its wordings, what helps."""

from collections.abc import Iterable, Mapping
from math import ceil

from ..datasets.search import MIN_LEGAL_SHARE
from ..formatting import (
    amount,
    in_points,
    join_words,
    last_part,
    minus,
    pluralize,
    rounded,
)
from ..habits.words import Words
from ..metrics.estimates import REACH, Estimate
from ..metrics.interventions import MAX_UNUSABLE, VERDICTS
from ..metrics.measures import (
    REASONING_DIFFERENCE,
    SHARE_AFTER,
    SHARE_BEFORE,
    reasoning_name,
)
from ..metrics.notes import MIN_SAMPLES, NOTABLE_UNUSABLE
from ..metrics.wordings import WEAK_HABIT
from ..runs.run import Run
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
    title = change.title[0].lower() + change.title[1:]
    n = pluralize(run.results.n, words.item)
    n += f" of the pool {run.dataset.pool_name}" if run.dataset.pool_name else ""
    comma = "," if words.as_usual == "as usual" else ""
    shares = f"{words.does} {before} of {n} {words.as_usual}{comma} and {words.place} {after}"
    return f"{model} {shares} when {title}. {uptake_sentence(run)}"


def uptake_sentence(run: Run) -> str:
    """Say how often the model follows the new rule, as far as the interval allows."""
    uptake, shares = run.results.uptake, shares_text(run.after_change)
    if not any(sample.had_habit for sample in run.answered):
        legal = run.results.share(STANDARD_CONDITION, "usual", "legal")
        is_hopeless = legal < MIN_LEGAL_SHARE and run.results.n >= MIN_SAMPLES
        why = f" {run.words.few_right(rounded(legal))}." if is_hopeless else ""
        return f"So there is no habit to measure.{why}"
    if uptake is None:
        return "Too few readable answers break the new rule, so its rule uptake is undefined."
    if uptake.sign > 0:
        after = f": {shares}" if shares else ""
        return f"It follows the new rule in {uptake.as_share} of the cases where it matters{after}."
    number = ", ".join(filter(None, (f"rule uptake {uptake.as_share}", shares)))
    if uptake.sign < 0:
        return f"It breaks the new rule more often when it is told the rule: {number}."
    return f"There is no evidence that it follows the new rule: {number}.{_only_above([uptake])}"


def shares_text(shares: Mapping[str, float]) -> str:
    """Format shares by name."""
    return ", ".join(f"{name} {rounded(share)}" for name, share in shares.items())


def _only_above(estimates: Iterable[Estimate | None]) -> str:
    """Say how large an effect must be to show where none does; "" for a few points, or for half."""
    reach = max((each.reach for each in estimates if each and not each.sign), default=0.0)
    if not REACH < reach < 0.5:
        return ""
    return f" Only effects above {in_points(reach, signed=False)} points would show."


# What a finding of the diagnosis means: an effect above 0, one below 0, and none that shows.
_MEANINGS = {
    "rule_effect": (
        "Its share of usual {answer}s is {size} lower under this rule than under a placebo rule.",
        "Its share of usual {answer}s is {size} higher under this rule than under a placebo rule.",
        "Its share of usual {answer}s does not detectably differ between this rule and a placebo "
        "rule ({size}).",
    ),
    "knowledge": (
        "It is {size} better than guessing at telling which {answer}s are {allowed} now.",
        "It is {size} worse than guessing at telling which {answer}s are {allowed} now.",
        "There is no evidence that it can tell which {answer}s are {allowed} now ({size} compared "
        "with guessing).",
    ),
    "reminder_effect": (
        "A reminder raises its rule uptake by {size}.",
        "A reminder lowers its rule uptake by {size}.",
        "A reminder makes no detectable difference ({size}).",
    ),
    "other_play": (
        "Where the usual {answer} stays {allowed}, its share is {size} higher under the new rule.",
        "Other habits suffer, too: where the usual {answer} stays {allowed}, its share is {size} "
        "lower under the new rule.",
        "Where the usual {answer} stays {allowed}, there is no detectable difference ({size}).",
    ),
}


def explanation(run: Run) -> str:
    """Return the diagnosis as one paragraph; "" without a diagnosis."""
    found = {name: each.estimate for name, each in run.results.diagnosis.items()}
    sentences = [_meaning(name, found.get(name), run.words) for name in _MEANINGS]
    uptake, rule = run.results.uptake, run.results.diagnosis.get("rule_effect")
    if rule and rule.answer == "Yes" and uptake and uptake.sign > 0:
        sentences.insert(0, "It reacts to this rule, not just to any change of the prompt.")
    return " ".join(filter(None, sentences)) + _only_above(found.values())


def _meaning(name: str, estimate: Estimate | None, words: Words) -> str:
    """Say what was found, no more than the interval allows; "" without an estimate."""
    if not estimate:
        return ""
    above, below, silent = _MEANINGS[name]
    text = {1: above, -1: below, 0: silent}[estimate.sign]
    size = (-estimate if estimate.sign < 0 else estimate).as_points
    return words.fill(text).format(size=size.replace("+", "") if estimate.sign else size)


def remarks_on(run: Run) -> str:
    """Say how much the wording matters, how many samples would be enough, and what reasoning is."""
    return " ".join(filter(None, (wording_sentence(run), _size_sentence(run), _reasoning(run))))


def _size_sentence(run: Run) -> str:
    """Say how many samples an interval of ±5 points needs; "" if it has that or cannot have it."""
    uptake = run.results.uptake
    unusable = run.results.share(CHANGED_CONDITION, *UNUSABLE_OUTCOMES)
    if not uptake or uptake.reach <= REACH or unusable > NOTABLE_UNUSABLE:
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
    # With a weak habit, a few would-be violations decide the value of a wording: its interval is
    # too narrow.
    if wordings.spread.sign and run[SHARE_BEFORE].value >= WEAK_HABIT:
        size = wordings.spread.as_points.replace("+", "")
        return f"The standard deviation of the rule uptake between wordings is {size}."
    most = in_points(wordings.spread.high or 0.0, signed=False)
    return (
        "Chance alone can explain how the rule uptake differs between wordings: its standard "
        f"deviation is at most {most} points."
    )


def helps_sentence(run: Run) -> str:
    """Say which interventions help; "" without any."""
    labels = {condition.name: condition.label for condition in run.plan.conditions}
    by_verdict: dict[str, list[str]] = {verdict: [] for verdict in VERDICTS}
    for effect in run.results.interventions:
        share = f"{rounded(effect.unusable)} of its replies contain no {run.words.answer}"
        why = f" ({share})" if effect.unusable > MAX_UNUSABLE else ""
        by_verdict[effect.verdict].append(f"{labels[effect.name]}{why}")
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
