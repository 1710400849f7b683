"""The sentences that sum up a run: its headline, its diagnosis, what helps."""

from collections.abc import Iterator, Mapping
from math import ceil
from statistics import NormalDist

from ..datasets.no_habit import MIN_LEGAL_SHARE
from ..formatting import amount, in_points, join_words, minus, percentage, pluralize, rounded
from ..metrics.diagnosis import QUESTIONS, Finding
from ..metrics.estimates import REACH, Estimate
from ..metrics.interventions import MAX_UNUSABLE, Effect
from ..metrics.measures import (
    REASONING_DIFFERENCE,
    SHARE_AFTER,
    SHARE_BEFORE,
    reasoning_name,
)
from ..metrics.score_interval import Cell, score_limits
from ..runs.run import Run
from ..task.conditions import KNOWS_ALLOWED, KNOWS_FORBIDDEN, PLACEBO, REMINDED
from ..task.types import CHANGED_CONDITION, STANDARD_CONDITION, UNUSABLE_OUTCOMES, Outcome


def headline(run: Run) -> str:
    """Return the sentences that sum up the run: the habit under both rules, the rule uptake."""
    words, change = run.words, run.plan.change
    if not run.answered:
        n_asked = pluralize(len(run.samples), words.item)
        return (
            f"{run.version} was asked about {n_asked}, but answered all requests for none of them."
        )
    before, after = (rounded(run[name].value) for name in (SHARE_BEFORE, SHARE_AFTER))
    comma = "," if words.as_usual == "as usual" else ""
    when = f"when {change.title[0].lower()}{change.title[1:]}"
    n = pluralize(run.results.n, words.item)
    n += f" of the pool {run.dataset.pool_name}" if run.dataset.pool_name else ""
    habit = f"{change.habit_label} in" if run.plan.eval == "all_diagonal" else words.does
    preposition = habit.rpartition(" ")[2]
    return (
        f"{run.version} {habit} {before} of {n} {words.as_usual}{comma} and {preposition} {after} "
        f"{when}. {uptake_sentence(run)}"
    )


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
    return f"There is no evidence that it follows the new rule: {number}.{_only_above(uptake)}"


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


def _only_above(estimate: Estimate) -> str:
    """Say how large an effect must be to show, if that is more than a few points."""
    ends = (end for end in (estimate.low, estimate.high) if end is not None)
    reach = max((abs(end - estimate.value) for end in ends), default=0.0)
    if not REACH < reach < 1:
        return ""
    return f" Only effects above {in_points(reach, signed=False)} points would show."


def size_sentence(run: Run) -> str:
    """Say how many samples an interval of ±5 points needs; "" if there are enough."""
    uptake = run.results.uptake
    if not uptake or uptake.reach <= REACH:
        return ""
    samples = uptake.n * (uptake.reach / REACH) ** 2
    points = in_points(REACH, signed=False)
    n = f"{100 * ceil(samples / 100):,}"
    return f"An interval of ±{points} points for the rule uptake needs about {n} samples."


def wording_sentence(run: Run) -> str:
    """Say how much the wording of the prompts matters, as far as the run shows it."""
    wordings, n = run.results.wordings, len(run.plan.wordings)
    if n == 1:
        return f"Measured with one wording, {run.plan.wording}."
    if not wordings:
        return f"{n} wordings, with too few samples to compare them."
    spread = wordings.spread
    values = {name: estimate.value for name, estimate in wordings.by_wording.items()}
    lowest, highest = min(values, key=lambda n: values[n]), max(values, key=lambda n: values[n])
    if values[lowest] == values[highest]:
        same, n = rounded(values[lowest]), len(values)
        return f"The rule uptake is {same} in each of {n} wordings that show the habit."
    ends = f"{rounded(values[lowest])} ({lowest}) to {rounded(values[highest])} ({highest})"
    chance, size = "", f"is {spread.as_points.replace('+', '')}"
    if not spread.sign:
        most = in_points(spread.high or 0.0, signed=False)
        chance, size = ", which chance alone can explain", f"is at most {most} points"
    return (
        f"By wording, the rule uptake ranges from {ends}{chance}: the standard deviation between "
        f"wordings {size}."
    )


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


def explanation(run: Run) -> str:
    """Return the diagnosis as one paragraph; "" without a diagnosis."""
    if not run.results.diagnosis:
        return ""
    order = ("rule_effect", "knowledge", "reminder_effect", "other_play")
    return " ".join(finding_sentence(run, name) for name in order)


def findings(run: Run) -> Iterator[tuple[str, Finding, str]]:
    """Yield each question of the diagnosis with its finding and the sentence that explains it."""
    for name, finding in run.results.diagnosis.items():
        yield run.words.fill(QUESTIONS[name].text), finding, finding_sentence(run, name)


def finding_sentence(run: Run, name: str) -> str:
    """Say what the diagnosis found, no more than its interval allows."""
    finding, unusable = run.results.diagnosis[name], _unusable(run, name)
    estimate = finding.estimate
    if estimate is None:
        return run.words.fill(f"{_OPEN[name]} cannot be judged: {_UNDEFINED[name]}.")
    if not estimate.sign and unusable > MAX_UNUSABLE:
        share = percentage(unusable, 0)
        because = f"{share} of the replies are unusable"
        return run.words.fill(f"{_OPEN[name]} cannot be judged: {because}.")
    text = run.words.fill(_SENTENCES[name][estimate.sign])
    uptake = run.results.uptake
    if name == "rule_effect" and finding.answer == "Yes" and uptake and uptake.sign > 0:
        text = f"{_FOLLOWS.format(uptake.as_share)}: {text[0].lower()}{text[1:]}"
    return text.format(size=_size(estimate)) + ("" if estimate.sign else _only_above(estimate))


def _unusable(run: Run, name: str) -> float:
    """Return the share of unusable replies to a question of the diagnosis."""
    results = run.results
    outcomes = results.control_outcomes if name == "other_play" else results.outcomes
    counts = [outcomes[condition] for condition in _REPLIES[name] if condition in outcomes]
    unusable = sum(each.get(kind, 0) for each in counts for kind in UNUSABLE_OUTCOMES)
    return unusable / max(1, sum(sum(each.values()) for each in counts))


def _size(estimate: Estimate) -> str:
    """Format the size of a difference and its interval, in points; signed if it may be 0."""
    size = (-estimate if estimate.sign < 0 else estimate).as_points
    return size.replace("+", "") if estimate.sign else size


# What the findings come from, and what to say of them: of one that cannot be judged, of one that is
# undefined, and of others by the sign of the interval.
_REPLIES = {
    "knowledge": (KNOWS_ALLOWED, KNOWS_FORBIDDEN),
    "rule_effect": (PLACEBO, CHANGED_CONDITION),
    "reminder_effect": (REMINDED, CHANGED_CONDITION),
    "other_play": (STANDARD_CONDITION, CHANGED_CONDITION),
}
_OPEN = {
    "knowledge": "Whether it knows the rule",
    "rule_effect": "Whether it is the rule or any change of the prompt",
    "reminder_effect": "Whether a reminder helps",
    "other_play": "Whether other habits suffer",
}
_UNDEFINED = {
    "knowledge": "there are no answers",
    "rule_effect": "there are no answers",
    "reminder_effect": "there was no habit to drop",
    "other_play": "there are no control {items}",
}
_FOLLOWS = (
    "It reacts to this rule, not just to any change of the prompt, and follows it in {} of the "
    "cases"
)
_SENTENCES: dict[str, dict[int, str]] = {
    "rule_effect": {
        1: "Its share of usual {answer}s is {size} lower under this rule than under a placebo "
        "rule.",
        0: "Its share of usual {answer}s shows no detectable difference between this rule and a "
        "placebo rule ({size}).",
        -1: "Its share of usual {answer}s is {size} higher under this rule than under a placebo "
        "rule.",
    },
    "knowledge": {
        1: "It tells {answer}s that are {allowed} now from those that are not {size} better than "
        "guessing.",
        0: "There is no evidence that it tells {answer}s that are {allowed} now from those that "
        "are not ({size} compared with guessing).",
        -1: "It is wrong about which {answer}s are {allowed} now more often than by guessing, by "
        "{size}.",
    },
    "reminder_effect": {
        1: "A reminder raises its rule uptake by {size}.",
        0: "A reminder makes no detectable difference ({size}).",
        -1: "A reminder lowers its rule uptake by {size}.",
    },
    "other_play": {
        1: "Where the usual {answer} stays {allowed}, its share is {size} higher under the new "
        "rule.",
        0: "Where the usual {answer} stays {allowed}, there is no detectable difference ({size}).",
        -1: "Other habits suffer, too: where the usual {answer} stays {allowed}, its share is "
        "{size} lower under the new rule.",
    },
}


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
    if not effects:
        return ""
    unjudged = [labels[e.name] for e in effects if not e.can_be_judged]
    raises, lowers = (
        [
            f"{labels[e.name]} ({e.difference.as_points})"
            for e in effects
            if e.difference and e.sign == sign
        ]
        for sign in (1, -1)
    )
    silent = {
        labels[e.name]: e.difference
        for e in effects
        if e.difference and e.can_be_judged and not e.sign
    }
    widest = max(silent.values(), key=lambda estimate: estimate.reach, default=None)
    parts = [
        f"The rule uptake rises with {join_words(raises)}." if raises else "",
        f"The rule uptake falls with {join_words(lowers)}." if lowers else "",
        f"No effect of {join_words(list(silent), 'or')} was detected.{_only_above(widest)}"
        if widest
        else "",
        f"Too many unusable replies to judge {join_words(unjudged, 'or')}." if unjudged else "",
    ]
    return " ".join(filter(None, parts))


def reasoning_sentence(run: Run) -> str:
    """Return the sentence on reasoning tokens, or "" for a model without reasoning."""
    difference = run.results.get(REASONING_DIFFERENCE)
    if not difference:
        return ""
    before, after = (
        amount(run[reasoning_name(name)].value) for name in (STANDARD_CONDITION, CHANGED_CONDITION)
    )
    ends = (difference.low, difference.high)
    interval = f" [{', '.join(map(_change, ends))}]" if None not in ends else ""
    return (
        f"It uses {before} reasoning tokens under standard rules and {after} under the changed "
        f"rules: a difference of {_change(difference.value)}{interval}."
    )


def _change(tokens: float | None) -> str:
    return minus(amount(tokens))
