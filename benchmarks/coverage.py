"""How often 95 % intervals hold the truth, and how often tests and verdicts err.

    python benchmarks/coverage.py                # about half an hour
    python benchmarks/coverage.py --quick        # two minutes, rougher
    python benchmarks/coverage.py --diagnosis    # the measures of a diagnosis alone
    python benchmarks/coverage.py --precision    # runs that stop by themselves alone

The models that are made up for this are in `known_models.py`.
"""

import argparse
from collections import Counter
from functools import cache
from itertools import product

import numpy as np
from coverage_of_diagnosis import print_knowing, print_shares_of_some, print_specific
from coverage_of_precision import print_precision
from known_models import COPYING, DESIGNS, Experiment, Model, experiments, random, restart
from measuring import print_heading, print_row

from cant_do_that_anymore.evaluation.statistics.chance import p_value
from cant_do_that_anymore.evaluation.statistics.intervals import (
    DIFFERENCE,
    RELATIVE_CHANGE,
    Ratio,
    difference_tally,
    ratio_interval,
    ratio_tally,
)

SIZES = (20, 100, 1000)
SHARES = (0.1, 0.3, 0.67, 0.95, 1.0)
IMPACTS = (0.0, -0.02, -0.5, -0.98, -1.0)
LOWEST, HIGHEST = 0.93, 0.99

Counts = tuple[tuple[tuple[int, int], int], ...]


def holds(truth: float, experiment: Experiment, is_delta: bool) -> bool | None:
    """Whether the interval of delta, or of the impact factor, holds the truth; None without one."""
    before, after, games = experiment
    changes = [b - a for a, b in zip(before, after, strict=True)]
    if is_delta:
        tally = ratio_tally(changes, [1] * len(games), games, DIFFERENCE)
    else:
        tally = ratio_tally(changes, before, games, RELATIVE_CHANGE)
    return tally.holds(truth) if tally else None


def _holds_alone(truth: float, experiment: Experiment, is_delta: bool) -> bool | None:
    """The same where each game gives one sample: only the counts of the four kinds matter."""
    kinds = Counter(zip(*experiment[:2], strict=True))
    return _holds_of_counts(truth, tuple(sorted(kinds.items())), is_delta)


@cache
def _holds_of_counts(truth: float, kinds: Counts, is_delta: bool) -> bool | None:
    pairs = [pair for pair, count in kinds for _ in range(count)]
    before, after = [before for before, _ in pairs], [after for _, after in pairs]
    return holds(truth, (before, after, list(range(len(pairs)))), is_delta)


def coverage(model: Model, sizes: list[int], times: int) -> tuple[float, float]:
    """The share of intervals that hold the truth, of the impact factor's and of delta's."""
    p, impact, _ = model
    found: tuple[list[bool], list[bool]] = ([], [])
    for experiment in experiments(model, sizes, times):
        for kept, truth, is_delta in zip(found, (impact, p * impact), (False, True), strict=True):
            held = (_holds_alone if max(sizes) == 1 else holds)(truth, experiment, is_delta)
            if held is not None:
                kept.append(held)
    return float(np.mean(found[0])), float(np.mean(found[1]))


def settled_coverage(model: Model, sizes: list[int], times: int) -> tuple[float, float]:
    """The same, measured anew and longer where it is low: the lowest of many is unlucky too."""
    found = coverage(model, sizes, times)
    return coverage(model, sizes, 5 * times) if min(found) < LOWEST + 0.01 else found


def print_coverage(sizes: tuple[int, ...], times: int) -> None:
    below: list[str] = []
    print("Lowest coverage over p and both kinds of answers, in %:\n")
    print_heading(
        "design", "n", "of", *(f"impact {impact:g}" for impact in IMPACTS), "mean", "above 99"
    )
    for (name, design), n in product(DESIGNS.items(), sizes):
        if name == "24 games" and n < 24:
            continue
        lowest = {"impact factor": [1.0] * len(IMPACTS), "delta": [1.0] * len(IMPACTS)}
        every: dict[str, list[float]] = {measure: [] for measure in lowest}
        for (column, impact), p, tied in product(enumerate(IMPACTS), SHARES, (False, True)):
            fewer = n == 1000 and name != "1 sample a game"
            found = settled_coverage((p, impact, tied), design(n), times // 4 if fewer else times)
            for measure, share in zip(lowest, found, strict=True):
                lowest[measure][column] = min(lowest[measure][column], share)
                every[measure].append(share)
                if share < LOWEST:
                    kind = "correlated" if tied else "independent"
                    below.append(
                        f"{name}, n = {n}, {measure}, p = {p:g}, impact {impact:g}, "
                        f"{kind}: {100 * share:.1f} %"
                    )
        for measure, shares in lowest.items():
            shown = (f"{100 * share:.1f}" for share in (*shares, float(np.mean(every[measure]))))
            above = sum(share > HIGHEST for share in every[measure])
            print_row(name, n, measure, *shown, f"{above} of {len(every[measure])}")
    print(f"\nBelow {100 * LOWEST:.0f} %:\n")
    print("\n".join(f"- {line}" for line in below) if below else "- none")


def print_widths(times: int) -> None:
    print("\nMean width of the impact factor's interval (p = .67, impact -.5):\n")
    print_heading("n", "design", "no copying", f"{COPYING:.0%} copying")
    for n, (name, design) in product((100, 1000), DESIGNS.items()):
        widths = []
        for copying in (0.0, COPYING):
            found = []
            for before, after, games in experiments((0.67, -0.5, False), design(n), times, copying):
                parts = [b - a for a, b in zip(before, after, strict=True)]
                interval = ratio_interval(parts, before, games, RELATIVE_CHANGE)
                found.append(interval.high - interval.low if interval else np.nan)
            widths.append(f"{np.nanmean(found):.2f}")
        print_row(n, name, *widths)


def print_false_positives(sizes: tuple[int, ...], times: int) -> None:
    print("\nTests at 5 %: share of p < .05 where nothing changes, answers independent:\n")
    print_heading("design", *(f"n = {n}, p = {p:g}" for n, p in product(sizes, (0.3, 0.95))))
    for name, design in DESIGNS.items():
        row = []
        for n, p in product(sizes, (0.3, 0.95)):
            wrong = [
                p_value([b - a for a, b in zip(before, after, strict=True)], games) < 0.05
                for before, after, games in experiments((p, 0.0, False), design(n), times)
            ]
            row.append(f"{100 * float(np.mean(wrong)):.1f} %")
        print_row(name, *row)


def print_differences(sizes: tuple[int, ...], times: int) -> None:
    print(
        "\nImpact factors of two models on shared positions; equal ones share half their answers:\n"
    )
    print_heading("p and impact of one", "of the other", "design", "n", "coverage", "p < .05")
    models = [
        ((0.67, -0.5), (0.67, -0.5)),
        ((0.95, -0.02), (0.95, -0.02)),
        ((0.9, -0.1), (0.3, -0.1)),
        ((0.9, -0.98), (0.3, -0.98)),
        ((0.67, -0.1), (0.67, -0.9)),
    ]
    designs = ("1 sample a game", "2 samples a game", "24 games")
    for (one, other), name, n in product(models, designs, sizes):
        if name == "24 games" and n < 24:
            continue
        held, different = [], []
        mine = experiments((*one, True), DESIGNS[name](n), times)
        yours = experiments((*other, True), DESIGNS[name](n), times)
        for (before1, after1, games), (before2, after2, _) in zip(mine, yours, strict=True):
            if one == other:
                shared = (random.random(n) < 0.5).tolist()
                before2 = [a if s else b for a, b, s in zip(before1, before2, shared, strict=True)]
                after2 = [a if s else b for a, b, s in zip(after1, after2, shared, strict=True)]
            tally = difference_tally(relative(before1, after1), relative(before2, after2), games)
            if tally:
                held.append(tally.holds(other[1] - one[1]))
                different.append(tally.p(0.0) < 0.05)
        shares = (f"{100 * float(np.mean(found)):.1f} %" for found in (held, different))
        print_row(f"{one[0]:g}, {one[1]:g}", f"{other[0]:g}, {other[1]:g}", name, n, *shares)


def relative(before: list[int], after: list[int]) -> Ratio:
    return Ratio([b - a for a, b in zip(before, after, strict=True)], before, RELATIVE_CHANGE)


def print_false_equality(times: int) -> None:
    print("\nFalse “equal to within 5 points” at a true difference of 5 points:\n")
    sizes = (29, 40, 72, 73, 100, 150, 200, 500, 1000)
    print_heading("differ, one way and the other", *(f"n = {n}" for n in sizes))
    for won, lost in ((0.05, 0.0), (0.06, 0.01), (0.1, 0.05), (0.3, 0.25)):
        row = []
        for n in sizes:
            drawn = random.multinomial(n, (won, lost, 1 - won - lost), size=times)
            wrong = [_equal(more, less, n) for more, less, _ in drawn.tolist()]
            row.append(f"{100 * float(np.mean(wrong)):.1f} %")
        print_row(f"{100 * won:.0f} %, {100 * lost:.0f} %", *row)


@cache
def _equal(won: int, lost: int, n: int) -> bool:
    differences = [1] * won + [-1] * lost + [0] * (n - won - lost)
    interval = ratio_interval(differences, [1] * n, range(n), DIFFERENCE)
    return interval is not None and interval.low >= -0.05 and interval.high <= 0.05


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer experiments, no n of 1,000")
    parser.add_argument("--diagnosis", action="store_true", help="its measures alone")
    parser.add_argument("--precision", action="store_true", help="runs that stop alone")
    given = parser.parse_args()
    sizes, times = (SIZES[:2], 200) if given.quick else (SIZES, 2000)
    everything = not given.diagnosis and not given.precision
    if everything:
        print_coverage(sizes, times)
        restart()
        print_widths(times // 20)
        restart()
        print_false_positives(sizes, times)
        restart()
        print_differences(sizes, times // 4)
        restart()
        print_false_equality(10 * times)
    if everything or given.diagnosis:
        restart()
        print_shares_of_some(sizes, times)
        restart()
        print_knowing(sizes, times)
        restart()
        print_specific(sizes, times)
    if everything or given.precision:
        restart()
        print_precision(times)


if __name__ == "__main__":
    main()
