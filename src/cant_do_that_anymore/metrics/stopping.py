"""Sequential stopping by precision, and the sample sizes to expect.

A run with a target precision checks the interval of the impact factor, bounds included, after
`FIRST_LOOK` samples and again each time their number has grown by half. Checking several times and
stopping once the interval is narrow would be wrong more often than 5% of the time, because the
interval is narrow where the estimate is extreme. Every interval of such a run is therefore widened
by `CRITICAL_FACTOR`, which simulations determined: ``benchmarks/coverage.py --part precision``.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from ..formatting import percentage, pluralize
from ..task.conditions import CONTROL_CONDITIONS, DIAGNOSIS_CONDITIONS, MOST_REQUESTS
from ..task.types import Plan, Samples
from .bounds import answered, estimate_of, ratio_of
from .measures import IMPACT, MEASURES
from .stats.clusters import Tally
from .stats.intervals import RELATIVE_CHANGE
from .stats.score_interval import Cell
from .types import Results

# Fewer samples can all have the same outcome by chance.
FIRST_LOOK = 50
# Factor on the critical values of a run that checks its interval several times.
CRITICAL_FACTOR = 1.1


def critical_factor_of(*plans: Plan) -> float:
    """Return the factor on critical values: above 1 if any of the runs may stop early."""
    return CRITICAL_FACTOR if any(plan.precision for plan in plans) else 1.0


def looks(most: int) -> Iterator[int]:
    """Yield the sample sizes at which a run checks its interval, up to all samples.

    >>> list(looks(300)), list(looks(20))
    ([50, 75, 112, 168, 252, 300], [20])
    """
    size = FIRST_LOOK
    while size < most:
        yield size
        size += size // 2
    yield most


def stages(plan: Plan) -> Iterator[Plan]:
    """Yield the plan with the sample size of each look, or once as it is without a precision."""
    for size in looks(plan.wanted) if plan.precision else [plan.wanted]:
        yield replace(plan, wanted=size)


def is_reached(samples: Samples, plan: Plan) -> bool:
    """Whether the interval of the impact factor is within the plan's precision."""
    if not plan.precision:
        return False
    value, interval = estimate_of(MEASURES[IMPACT], samples, CRITICAL_FACTOR)
    if value is None or interval is None:
        return False
    return max(value - interval.low, interval.high - value) <= plan.precision


def precision_notes(n: int, results: Results, plan: Plan) -> list[str]:
    """Return a note on why a run with a target precision stopped after n samples."""
    value, interval = results.metrics[IMPACT], results.intervals.get(IMPACT)
    if not plan.precision:
        return []
    not_reached = f"the target precision of {plan.precision:g} was not reached"
    if value is None or interval is None:
        no_habit = "the model never played the special move under the standard rules"
        why = no_habit if results.metrics["n_samples"] else "no sample has all its answers"
        return [f"{not_reached}: {why}, so the impact factor is undefined"]
    below, above = value - interval.low, interval.high - value
    text = (
        f"after {pluralize(n, 'sample')}, the 95% interval extends {below:.3f} below the impact "
        f"factor and {above:.3f} above it"
    )
    if max(below, above) <= plan.precision:
        return [f"stopped at the target precision of {plan.precision:g}: {text}"]
    limited = "-n allows no more samples; use a larger -n to continue"
    why = "there are no more positions" if n < plan.wanted_samples else limited
    if IMPACT in results.bounds:
        why += "; answers without a move widen the interval"
    return [f"{not_reached}: {text}; {why}"]


# Typical values for a first forecast: the bundled model's share, and halfway to perfect.
USUAL_SHARE, USUAL_IMPACT = 0.67, -0.5
NO_LIMIT = 10**9


def diagnosis_note() -> str:
    """Say how many requests and samples a diagnosis takes; a test computes the numbers again."""
    return (
        f"diagnosis: {len(DIAGNOSIS_CONDITIONS)} requests per sample and "
        f"{len(CONTROL_CONDITIONS)} per control, so up to {MOST_REQUESTS} per sample instead of 2. "
        "For an interval of ±0.05, the corrected impact factor needs about -n 952 to 1,514 and the "
        "specific one 1,331 to 3,028. This assumes that the model drops half of its habit or none, "
        f"and plays {percentage(USUAL_SHARE, 0)} special moves under the placebo"
    )


# How often a sample has each pair of part and whole of the impact factor.
Shares = Mapping[tuple[int, int], float]


def shares_expected(samples: Samples) -> Shares:
    """Return the shares in these samples."""
    ratio = ratio_of(MEASURES[IMPACT], answered(samples))
    counts = Counter(zip(ratio.parts, ratio.wholes, strict=True))
    return {pair: count / counts.total() for pair, count in counts.items()}


def shares_if(impact: float) -> Shares:
    """Return the shares for a usual habit and independent answers, if the rule changes it so much.

    Args:
        impact: the relative change due to the rule, negative.
    """
    before, after = USUAL_SHARE, USUAL_SHARE * (1 + impact)
    return {(-1, 1): before * (1 - after), (0, 1): before * after, (1, 0): (1 - before) * after}


def expected_samples(precision: float, most: int, shares: Shares) -> int:
    """Return the sample size at which a run is expected to stop, with one sample per game.

    >>> expected_samples(0.1, 1000, shares_if(-0.5))
    378
    >>> expected_samples(0.1, 1000, shares_if(-1))
    75
    """
    for size in looks(most):
        cells = [Cell(*pair, round(size * shares.get(pair, 0.0))) for pair in RELATIVE_CHANGE]
        tally = Tally(tuple(cells), CRITICAL_FACTOR)
        if sum(cell.count * cell.whole for cell in cells) and tally.is_narrower_than(precision):
            break
    return size


def sample_sizes(precision: float | None, most: int, samples: Samples) -> tuple[int, int, int]:
    """Return the smallest, the expected and the largest sample size of a run.

    >>> sample_sizes(0.1, 1000, []), sample_sizes(None, 1000, [])
    ((75, 378, 567), (1000, 1000, 1000))
    """
    if not precision:
        return most, most, most
    if len(answered(samples)) >= FIRST_LOOK:
        expected = expected_samples(precision, most, shares_expected(samples))
        return max(len(samples), round(expected / 1.5)), expected, min(most, round(expected * 1.5))
    low, expected, high = sorted(
        expected_samples(precision, most, shares_if(impact)) for impact in (-1.0, USUAL_IMPACT, 0.0)
    )
    return low, expected, high


def expected_sample_size(precision: float | None, most: int) -> int:
    """Return the expected sample size of a run: the maximum, or fewer with a target precision.

    >>> [expected_sample_size(*args) for args in ((None, 1000), (0.1, 1000), (0.1, 60))]
    [1000, 378, 60]
    """
    return sample_sizes(precision, most, [])[1]


def expected_samples_notes(precision: float | None, most: int, samples: Samples) -> list[str]:
    """Describe how many samples a run with a target precision takes; empty without one.

    The number comes from the cached samples, or else from three typical models.
    """
    if not precision:
        return []

    def expected(shares: Shares) -> str:
        return f"{expected_samples(precision, NO_LIMIT, shares):,}"

    text, allowed = f"a precision of {precision:g} takes about", f"; -n allows {most:,}"
    if len(answered(samples)) >= FIRST_LOOK:
        basis = f"samples, judging by {len(samples):,} cached ones"
        return [f"{text} {expected(shares_expected(samples))} {basis}{allowed}"]
    half, none, whole = (expected(shares_if(impact)) for impact in (USUAL_IMPACT, 0.0, -1.0))
    return [
        f"{text} {half} samples if the model drops half of its habit (assumed here), {none} if it "
        f"drops none and {whole} if it drops all (with {percentage(USUAL_SHARE, 0)} special moves "
        f"under the standard rules){allowed}"
    ]


MOST_DRAWS = 10
# How much answers about one position may correlate, for the advice on draws.
CORRELATIONS = 0.2, 0.5


def relative_cost(draws: int, hit_rate: float, correlation: float, per_draw: int = 2) -> float:
    """Return the requests for one independent sample's worth of information.

    Finding a position takes ``1 / hit_rate`` requests and each draw ``per_draw``. Draws of one
    position that correlate are worth ``draws / (1 + (draws - 1) * correlation)`` samples.
    """
    worth = draws / (1 + (draws - 1) * correlation)
    return (1 / hit_rate + per_draw * draws) / worth


def best_draws(hit_rate: float, correlation: float, per_draw: int = 2) -> int:
    """Return the number of draws per position that takes the fewest requests for a precision.

    >>> [best_draws(0.075, correlation) for correlation in (0.1, 0.2, 0.5, 0.8)]
    [8, 5, 3, 1]
    """
    return min(
        range(1, MOST_DRAWS + 1),
        key=lambda draws: relative_cost(draws, hit_rate, correlation, per_draw),
    )


def draws_notes(hit_rate: float, per_draw: int) -> list[str]:
    """Say how many draws per position make a run cheaper; empty if none do."""
    most, fewest = (best_draws(hit_rate, correlation, per_draw) for correlation in CORRELATIONS)
    if fewest < 2:
        return []
    saved = [
        1
        - relative_cost(fewest, hit_rate, correlation, per_draw)
        / relative_cost(1, hit_rate, correlation, per_draw)
        for correlation in CORRELATIONS
    ]
    return [
        f"draws: if answers about one position correlate by {CORRELATIONS[0]:g} to "
        f"{CORRELATIONS[1]:g}, {fewest} to {most} draws per position take the fewest requests for "
        f"the same precision; --draws {fewest} with a smaller -n takes {percentage(saved[1], 0)} "
        f"to {percentage(saved[0], 0)} fewer"
    ]
