"""How often the intervals of a diagnosis hold the truth: tables for `coverage.py`.

The impact factors of the placebo and of the reminder, the corrected one and the collateral change
are ratios like the impact factor itself, whose table is there. New are shares of some of the
samples (who of those that know the rule keeps the habit), the difference that knowing makes, and
the specific impact factor, of samples and controls.
"""

from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import product

import numpy as np
from known_models import COPYING, DESIGNS, Experiment, Model, experiments, random
from measuring import print_heading, print_row

from cant_do_that_anymore.evaluation.statistics.intervals import (
    RELATIVE_CHANGE,
    SHARE_OF_SOME,
    ratio_tally,
)
from cant_do_that_anymore.evaluation.statistics.quotient import Difference, Quotient
from cant_do_that_anymore.evaluation.statistics.tally import Tally

LOWEST, HIGHEST = 0.93, 0.99
COUNTED = (0.1, 0.3, 0.67, 1.0)
"""Shares of samples that count."""
HITS = (0.02, 0.25, 0.5, 0.92, 1.0)
SAMPLES = ((0.3, -0.5), (0.67, 0.0), (0.67, -0.5), (0.95, -0.02), (0.95, -0.5), (0.95, -0.98))
CONTROLS = ((0.67, 0.0), (0.95, -0.1), (0.67, -0.5))
"""The share of habits under the placebo, and how much of them the change takes away."""
KEPT = ((0.5, 0.5), (0.1, 0.9), (0.02, 0.02), (0.3, 0.98), (0.0, 1.0))
"""The share of habits kept where the rule is known, and elsewhere."""
BOTH_DESIGNS = ("1 sample a game", "2 samples a game", "24 games")


def print_shares_of_some(sizes: tuple[int, ...], times: int) -> None:
    print("\nShares of some samples: lowest coverage over the share that counts, in %:\n")
    print_heading("design", "n", *(f"true {hit:g}" for hit in HITS), "mean", "above 99")
    below: list[str] = []
    for (name, design), n in product(DESIGNS.items(), sizes):
        if name == "24 games" and n < 24:
            continue
        fewer = n == 1000 and name != "1 sample a game"
        found = {
            (hit, counted): _settled(
                partial(_of_share, counted, hit, design(n)), times // 4 if fewer else times
            )
            for hit, counted in product(HITS, COUNTED)
        }
        lowest = [min(found[hit, counted] for counted in COUNTED) for hit in HITS]
        mean, above = np.mean(list(found.values())), sum(c > HIGHEST for c in found.values())
        cells = (f"{100 * share:.1f}" for share in (*lowest, float(mean)))
        print_row(name, n, *cells, f"{above} of {len(found)}")
        below += [
            f"{name}, n = {n}, {counted:g} count, true {hit:g}: {100 * share:.1f} %"
            for (hit, counted), share in found.items()
            if share < LOWEST
        ]
    _print_below(below)


def _settled(coverage: Callable[[int], float], times: int) -> float:
    """Measured anew and longer where it is low: the lowest of many is unlucky too."""
    found = coverage(times)
    return coverage(5 * times) if found < LOWEST + 0.01 else found


def _of_share(counted: float, hit: float, sizes: list[int], times: int) -> float:
    held = []
    for parts, wholes, games in _shares(counted, hit, sizes, times):
        tally = ratio_tally(parts, wholes, games, SHARE_OF_SOME)
        if tally:
            held.append(tally.holds(hit))
    return float(np.mean(held))


def _shares(counted: float, hit: float, sizes: list[int], times: int) -> Iterator[Experiment]:
    """Parts, wholes and games; samples copy a common one of their game as elsewhere."""
    games = np.repeat(np.arange(len(sizes)), sizes)
    for _ in range(times):
        wholes = random.random(len(games)) < counted
        hits = random.random(len(games)) < hit
        if max(sizes) > 1:
            copied = random.random(len(games)) < COPYING
            common_wholes = random.random(len(sizes)) < counted
            common_hits = random.random(len(sizes)) < hit
            wholes = np.where(copied, common_wholes[games], wholes)
            hits = np.where(copied, common_hits[games], hits)
        parts = (wholes & hits).astype(int)
        yield parts.tolist(), wholes.astype(int).tolist(), games.tolist()


def print_knowing(sizes: tuple[int, ...], times: int) -> None:
    print("\nThe effect of knowing, by the share of habits kept; coverage in %:\n")
    heading = (f"known {known:g}, elsewhere {other:g}" for known, other in KEPT)
    print_heading("design", "n", "share that knows", *heading)
    below: list[str] = []
    for name, n, share in product(BOTH_DESIGNS, sizes, (0.1, 0.5, 0.9)):
        if name == "24 games" and n < 24:
            continue
        fewer = name != "1 sample a game"
        design, some = DESIGNS[name](n), times // (4 if fewer else 1)
        row = {kept: _settled(partial(_of_knowing, share, kept, design), some) for kept in KEPT}
        print_row(name, n, f"{share:g}", *(f"{100 * each:.1f}" for each in row.values()))
        below += [
            f"{name}, n = {n}, {share:g} know, kept {kept[0]:g} and {kept[1]:g}: {100 * each:.1f} %"
            for kept, each in row.items()
            if each < LOWEST
        ]
    _print_below(below)


def _of_knowing(share: float, kept: tuple[float, float], sizes: list[int], times: int) -> float:
    games = np.repeat(np.arange(len(sizes)), sizes)
    held = []
    for _ in range(times):
        draws = random.random((2, len(games)))
        if max(sizes) > 1:
            common = random.random((2, len(sizes)))[:, games]
            draws = np.where(random.random(len(games)) < COPYING, common, draws)
        knows = draws[0] < share
        keeps = draws[1] < np.where(knows, *kept)
        known, others = (
            ratio_tally((some & keeps).tolist(), some.tolist(), games.tolist(), SHARE_OF_SOME)
            for some in (knows, ~knows)
        )
        if known and others:
            held.append(Difference(known, others).holds(kept[0] - kept[1]))
    return float(np.mean(held))


def print_specific(sizes: tuple[int, ...], times: int) -> None:
    print("\nThe specific impact factor, n samples and n controls; coverage in %:\n")
    heading = (f"controls {share:g}, {impact:g}" for share, impact in CONTROLS)
    print_heading("design", "n", "placebo share, corrected impact", *heading)
    below: list[str] = []
    for name, n, samples in product(BOTH_DESIGNS, sizes, SAMPLES):
        if name == "24 games" and n < 24:
            continue
        design = DESIGNS[name](n)
        fewer = name != "1 sample a game"
        row = [
            _settled(
                partial(_of_specific, (*samples, True), (*controls, True), design),
                times // (4 if fewer else 1),
            )
            for controls in CONTROLS
        ]
        print_row(name, n, f"{samples[0]:g}, {samples[1]:g}", *(f"{100 * c:.1f}" for c in row))
        below += [
            f"{name}, n = {n}, samples {samples[0]:g}, {samples[1]:g}, controls "
            f"{controls[0]:g}, {controls[1]:g}: {100 * share:.1f} %"
            for controls, share in zip(CONTROLS, row, strict=True)
            if share < LOWEST
        ]
    _print_below(below)


def _of_specific(samples: Model, controls: Model, sizes: list[int], times: int) -> float:
    truth = (1 + samples[1]) / (1 + controls[1])
    held = []
    pairs = zip(
        experiments(samples, sizes, times), experiments(controls, sizes, times), strict=True
    )
    for ours, beside in pairs:
        if max(sizes) == 1:
            held.append(_holds_alone(_counts(ours), _counts(beside), truth))
        else:
            held.append(_holds(_tally(*ours), _tally(*beside), truth))
    return float(np.mean([each for each in held if each is not None]))


def _counts(experiment: Experiment) -> tuple[int, int, int, int]:
    """How many samples were what: where each game gives one, nothing else matters."""
    before, after, _ = experiment
    kinds = [2 * one + other for one, other in zip(before, after, strict=True)]
    return (kinds.count(0), kinds.count(1), kinds.count(2), kinds.count(3))


@cache
def _holds_alone(
    ours: tuple[int, int, int, int], beside: tuple[int, int, int, int], truth: float
) -> bool | None:
    return _holds(_tally(*_samples(ours)), _tally(*_samples(beside)), truth)


def _samples(counts: tuple[int, int, int, int]) -> Experiment:
    kinds = [kind for kind, count in enumerate(counts) for _ in range(count)]
    return [kind // 2 for kind in kinds], [kind % 2 for kind in kinds], list(range(len(kinds)))


def _tally(before: list[int], after: list[int], games: list[int]) -> Tally | None:
    changes = [b - a for a, b in zip(before, after, strict=True)]
    return ratio_tally(changes, before, games, RELATIVE_CHANGE)


def _holds(ours: Tally | None, beside: Tally | None, truth: float) -> bool | None:
    quotient = Quotient(ours, beside) if ours and beside else None
    return quotient.holds(truth) if quotient and quotient.value is not None else None


def _print_below(below: list[str]) -> None:
    print(f"\nBelow {100 * LOWEST:.0f} %:\n")
    print("\n".join(f"- {line}" for line in below) if below else "- none")
