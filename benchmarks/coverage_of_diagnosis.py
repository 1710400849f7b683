"""How often the intervals of a diagnosis hold the truth: tables for `coverage.py`.

The impact factors of the placebo and of the reminder, the corrected one and the collateral change
are ratios like the impact factor itself, whose table is there. New are shares of some of the
samples (who of those that know the rule keeps the habit), the difference that knowing makes, and
the specific impact factor, of samples and controls.
"""

from collections.abc import Iterator
from functools import cache, partial
from itertools import product

import numpy as np
from known_models import (
    ALL_ALIKE,
    ALONE,
    BIG,
    FEW_LARGE,
    TWOS,
    Design,
    Experiment,
    Model,
    design,
    designs,
    experiments,
    random,
)
from measuring import print_heading, print_row
from simulating import Simulator, print_below, settled

from cant_do_that_anymore.metrics.stats.clusters import Tally
from cant_do_that_anymore.metrics.stats.intervals import (
    RELATIVE_CHANGE,
    SHARE_OF_SOME,
    Difference,
    Quotient,
    Ratio,
)

LOWEST, HIGHEST = 0.93, 0.99
COUNTED = (0.1, 0.3, 0.67, 1.0)
"""Shares of samples that count."""
HITS = (0.02, 0.25, 0.5, 0.92, 1.0)
SAMPLES = (
    *((0.3, -0.5), (0.67, 0.0), (0.67, -0.5), (0.95, -0.02), (0.95, -0.5)),
    *((0.9, -0.85), (0.9, -0.95), (0.95, -0.98)),
)
CONTROLS = ((0.67, 0.0), (0.95, -0.1), (0.67, -0.5))
"""The share of habits under the placebo, and how much of them the change takes away."""
KNOWN = (0.1, 0.5, 0.9)
"""Shares of samples where the rule is known."""
KEPT = ((0.5, 0.5), (0.1, 0.9), (0.02, 0.02), (0.3, 0.98), (0.0, 1.0))
"""The share of habits kept where the rule is known, and elsewhere."""


def print_shares_of_some(simulator: Simulator, sizes: tuple[int, ...], times: int) -> None:
    places = designs(sizes)
    cells = [
        (of, counted, hit, times // 4 if of.n >= 1000 and not of.is_alone else times)
        for of, hit, counted in product(places, HITS, COUNTED)
    ]
    found = {cell: share for cell, (share,) in simulator.each(share_of_some, cells).items()}
    print("Shares of a subset of the samples: lowest coverage over the share that counts, in %:\n")
    print_heading("design", "n", *(f"true {hit:g}" for hit in HITS), "mean", "above 99")
    for of in places:
        here = {cell: share for cell, share in found.items() if cell[0] == of}
        lowest = [min(share for cell, share in here.items() if cell[2] == hit) for hit in HITS]
        shown = (f"{100 * share:.1f}" for share in (*lowest, float(np.mean(list(here.values())))))
        above = sum(share > HIGHEST for share in here.values())
        print_row(of.name, of.n, *shown, f"{above} of {len(here)}")
    print_below(
        LOWEST,
        {
            f"{of.name}, n = {of.n}, {counted:g} count, true {hit:g}": share
            for (of, counted, hit, _), share in found.items()
        },
    )


def share_of_some(of: Design, counted: float, hit: float, times: int) -> list[float]:
    return settled(partial(_of_share, of, counted, hit), times, LOWEST + 0.01)


def _of_share(of: Design, counted: float, hit: float, times: int) -> list[float]:
    held = []
    for parts, wholes, games in _shares(of, counted, hit, times):
        tally = Ratio(parts, wholes, SHARE_OF_SOME).tally(games)
        if tally:
            held.append(tally.contains(hit))
    return [float(np.mean(held))]


def _shares(of: Design, counted: float, hit: float, times: int) -> Iterator[Experiment]:
    """Parts, wholes and games; samples copy a common one of their game as elsewhere."""
    games = of.of_sample
    for _ in range(times):
        wholes = random.random(len(games)) < counted
        hits = random.random(len(games)) < hit
        if not of.is_alone:
            copied = random.random(len(games)) < of.copying
            common_wholes = random.random(len(of.games)) < counted
            common_hits = random.random(len(of.games)) < hit
            wholes = np.where(copied, common_wholes[games], wholes)
            hits = np.where(copied, common_hits[games], hits)
        parts = (wholes & hits).astype(int)
        yield parts.tolist(), wholes.astype(int).tolist(), games.tolist()


def print_knowing(simulator: Simulator, sizes: tuple[int, ...], times: int) -> None:
    places = [design(*each) for each in product((ALONE, TWOS, BIG), sizes) if each != (BIG, 20)]
    places += [FEW_LARGE, ALL_ALIKE]
    cells = [
        (of, share, kept, times if of.is_alone else times // 4)
        for of, share, kept in product(places, KNOWN, KEPT)
    ]
    found = {cell: held for cell, (held,) in simulator.each(knowing, cells).items()}
    print("The effect of knowing, by the share of habits kept; coverage in %:\n")
    heading = (f"known {known:g}, elsewhere {other:g}" for known, other in KEPT)
    print_heading("design", "n", "share that knows", *heading)
    shares = iter(found.values())
    for of, share in product(places, KNOWN):
        print_row(of.name, of.n, f"{share:g}", *(f"{100 * next(shares):.1f}" for _ in KEPT))
    print_below(
        LOWEST,
        {
            f"{of.name}, n = {of.n}, {share:g} know, kept {kept[0]:g} and {kept[1]:g}": held
            for (of, share, kept, _), held in found.items()
        },
    )


def knowing(of: Design, share: float, kept: tuple[float, float], times: int) -> list[float]:
    return settled(partial(_of_knowing, of, share, kept), times, LOWEST + 0.01)


def _of_knowing(of: Design, share: float, kept: tuple[float, float], times: int) -> list[float]:
    games = of.of_sample
    held = []
    for _ in range(times):
        draws = random.random((2, len(games)))
        if not of.is_alone:
            common = random.random((2, len(of.games)))[:, games]
            draws = np.where(random.random(len(games)) < of.copying, common, draws)
        knows = draws[0] < share
        keeps = draws[1] < np.where(knows, *kept)
        known, others = (
            Ratio((some & keeps).tolist(), some.tolist(), SHARE_OF_SOME).tally(games.tolist())
            for some in (knows, ~knows)
        )
        if known and others:
            held.append(Difference(known, others).holds(kept[0] - kept[1]))
    return [float(np.mean(held))]


def print_specific(simulator: Simulator, sizes: tuple[int, ...], times: int) -> None:
    places = [design(*each) for each in product((ALONE, TWOS, BIG), sizes) if each != (BIG, 20)]
    places += [FEW_LARGE, ALL_ALIKE]
    cells = [
        (of, (*samples, True), (*controls, True), times if of.is_alone else times // 4)
        for of, samples, controls in product(places, SAMPLES, CONTROLS)
    ]
    found = {cell: share for cell, (share,) in simulator.each(specific, cells).items()}
    shares = iter(found.values())
    print("The specific impact factor, n samples and n controls; coverage in %:\n")
    heading = (f"controls {share:g}, {impact:g}" for share, impact in CONTROLS)
    print_heading("design", "n", "placebo share, corrected impact", *heading)
    for of, (share, impact) in product(places, SAMPLES):
        row = (f"{100 * next(shares):.1f}" for _ in CONTROLS)
        print_row(of.name, of.n, f"{share:g}, {impact:g}", *row)
    print_below(
        LOWEST,
        {
            f"{of.name}, n = {of.n}, samples {samples[0]:g}, {samples[1]:g}, controls "
            f"{controls[0]:g}, {controls[1]:g}": share
            for (of, samples, controls, _), share in found.items()
        },
    )


def specific(of: Design, samples: Model, controls: Model, times: int) -> list[float]:
    _holds_alone.cache_clear()
    return settled(partial(_of_specific, of, samples, controls), times, LOWEST + 0.01)


def _of_specific(of: Design, samples: Model, controls: Model, times: int) -> list[float]:
    truth = (1 + samples[1]) / (1 + controls[1])
    held = []
    pairs = zip(experiments(samples, of, times), experiments(controls, of, times), strict=True)
    for ours, beside in pairs:
        if of.is_alone:
            held.append(_holds_alone(_counts(ours), _counts(beside), truth))
        else:
            held.append(_holds(_tally(*ours), _tally(*beside), truth))
    return [float(np.mean([each for each in held if each is not None]))]


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
    return Ratio(changes, before, RELATIVE_CHANGE).tally(games)


def _holds(ours: Tally | None, beside: Tally | None, truth: float) -> bool | None:
    quotient = Quotient(ours, beside) if ours and beside else None
    return quotient.holds(truth) if quotient and quotient.value is not None else None
