"""How often 95% intervals hold the truth, and how often tests and verdicts err.

    python benchmarks/coverage.py --quick --jobs 2             # fewer experiments, no n of 1,000
    python benchmarks/coverage.py --jobs 16 --out tables       # a Markdown file for each part
    python benchmarks/coverage.py --jobs 16 --part precision   # one part, to standard output
    python benchmarks/coverage.py --insert tables docs/coverage.md    # put them into the document

The same cell has the same numbers in every part, on every machine and with any number of jobs.
The models that are made up for this are in `known_models.py`.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, partial
from io import StringIO
from itertools import product
from pathlib import Path

import numpy as np
from coverage_of_comparisons import print_differences, print_false_equality
from coverage_of_diagnosis import print_knowing, print_shares_of_some, print_specific
from coverage_of_precision import print_differences_of_stopped, print_precision
from known_models import (
    COPYING,
    DESIGNS,
    FEW_LARGE,
    Design,
    Experiment,
    design,
    designs,
    experiments,
)
from measuring import print_heading, print_row
from simulating import Simulator, print_below, settled

from cant_do_that_anymore.metrics.stats.intervals import (
    DIFFERENCE,
    RELATIVE_CHANGE,
    Ratio,
)
from cant_do_that_anymore.metrics.stats.significance import p_value

SIZES = (20, 100, 1000)
SHARES = (0.1, 0.3, 0.67, 0.95, 1.0)
IMPACTS = (0.0, -0.02, -0.5, -0.7, -0.85, -0.9, -0.95, -0.98, -1.0)
LOWEST, HIGHEST = 0.93, 0.99
MEASURES = ("impact factor", "delta")

Counts = tuple[tuple[tuple[int, int], int], ...]


def holds(truth: float, experiment: Experiment, is_delta: bool) -> bool | None:
    """Whether the interval of delta, or of the impact factor, holds the truth; None without one."""
    before, after, games = experiment
    changes = [b - a for a, b in zip(before, after, strict=True)]
    if is_delta:
        tally = Ratio(changes, [1] * len(games), DIFFERENCE).tally(games)
    else:
        tally = Ratio(changes, before, RELATIVE_CHANGE).tally(games)
    return tally.contains(truth) if tally else None


def _holds_alone(truth: float, experiment: Experiment, is_delta: bool) -> bool | None:
    """The same where each game gives one sample: only the counts of the four kinds matter."""
    kinds = Counter(zip(*experiment[:2], strict=True))
    return _holds_of_counts(truth, tuple(sorted(kinds.items())), is_delta)


@cache
def _holds_of_counts(truth: float, kinds: Counts, is_delta: bool) -> bool | None:
    pairs = [pair for pair, count in kinds for _ in range(count)]
    before, after = [before for before, _ in pairs], [after for _, after in pairs]
    return holds(truth, (before, after, list(range(len(pairs)))), is_delta)


def coverage(of: Design, p: float, impact: float, tied: bool, times: int) -> list[float]:
    """The share of intervals that hold the truth, of the impact factor's and of delta's."""
    _holds_of_counts.cache_clear()
    return settled(partial(_coverage, of, p, impact, tied), times, LOWEST + 0.01)


def _coverage(of: Design, p: float, impact: float, tied: bool, times: int) -> list[float]:
    found: tuple[list[bool], list[bool]] = ([], [])
    for experiment in experiments((p, impact, tied), of, times):
        for kept, truth, is_delta in zip(found, (impact, p * impact), (False, True), strict=True):
            held = (_holds_alone if of.is_alone else holds)(truth, experiment, is_delta)
            if held is not None:
                kept.append(held)
    return [float(np.mean(held)) for held in found]


def experiments_of(of: Design, times: int) -> int:
    """How many experiments per cell takes: fewer of those that take long."""
    return times // 4 if of.n >= 1000 and not of.is_alone else times


def print_intervals(simulator: Simulator, sizes: tuple[int, ...], times: int) -> None:
    places = designs(sizes)
    cells = [
        (of, p, impact, tied, experiments_of(of, times))
        for of, impact, p, tied in product(places, IMPACTS, SHARES, (False, True))
    ]
    found = simulator.each(coverage, cells)
    print("Lowest coverage over p and both kinds of answers, in %:\n")
    columns = (f"impact {impact:g}" for impact in IMPACTS)
    print_heading("design", "n", "of", *columns, "mean", "above 99")
    every: dict[str, float] = {}
    for of, (number, measure) in product(places, enumerate(MEASURES)):
        here = {cell: shares[number] for cell, shares in found.items() if cell[0] == of}
        lowest = [min(share for cell, share in here.items() if cell[2] == i) for i in IMPACTS]
        shown = (f"{100 * share:.1f}" for share in (*lowest, float(np.mean(list(here.values())))))
        above = sum(share > HIGHEST for share in here.values())
        print_row(of.name, of.n, measure, *shown, f"{above} of {len(here)}")
        every |= {
            f"{of.name}, n = {of.n}, {measure}, p = {p:g}, impact {impact:g}, "
            f"{'correlated' if tied else 'independent'}": share
            for (_, p, impact, tied, _), share in here.items()
        }
    print_below(LOWEST, every)


def width(of: Design, times: int) -> float:
    found = []
    for before, after, games in experiments((0.67, -0.5, False), of, times):
        parts = [b - a for a, b in zip(before, after, strict=True)]
        interval = Ratio(parts, before, RELATIVE_CHANGE).interval(games)
        found.append(interval.high - interval.low if interval else np.nan)
    return float(np.nanmean(found))


def print_widths(simulator: Simulator, _: tuple[int, ...], times: int) -> None:
    places = [design(name, n) for n, name in product((100, 1000), DESIGNS)]
    copying = (0.0, COPYING, 1.0)
    kinds = {of: [replace(of, copying=share) for share in copying] for of in (*places, FEW_LARGE)}
    found = simulator.each(width, [(each, times // 20) for of in kinds.values() for each in of])
    print(
        "Mean width of the impact factor's interval (p = .67, impact -.5), by the share of copied "
        "samples:\n"
    )
    print_heading("design", "n", *(f"{share:.0%} copying" for share in copying))
    for of, each in kinds.items():
        print_row(of.name, of.n, *(f"{found[one, times // 20]:.2f}" for one in each))


def false_positives(of: Design, p: float, times: int) -> float:
    wrong = [
        p_value([b - a for a, b in zip(before, after, strict=True)], games) < 0.05
        for before, after, games in experiments((p, 0.0, False), of, times)
    ]
    return float(np.mean(wrong))


def print_tests(simulator: Simulator, sizes: tuple[int, ...], times: int) -> None:
    places = designs(sizes)
    found = simulator.each(false_positives, product(places, (0.3, 0.95), (times,)))
    print("Tests at 5%: share of p < .05 if nothing changes and answers are independent:\n")
    print_heading("design", "n", "p = 0.3", "p = 0.95")
    for of in places:
        shares = (found[of, p, times] for p in (0.3, 0.95))
        print_row(of.name, of.n, *(f"{100 * share:.1f}%" for share in shares))


Print = Callable[[Simulator, tuple[int, ...], int], None]
PARTS: dict[str, tuple[Print, ...]] = {
    "intervals": (print_intervals, print_widths, print_tests),
    "comparisons": (print_differences, print_false_equality),
    "diagnosis": (print_shares_of_some, print_knowing, print_specific),
    "precision": (print_precision, print_differences_of_stopped),
}
EXPERIMENTS = {
    "intervals": "{0:,} experiments per cell ({1:,} with several samples per game and n of 1,000 "
    "or more). Cells below 94% were repeated with five times as many new experiments. Widths: "
    "{2:,} experiments.",
    "comparisons": "Differences: {1:,} experiments per cell. False equivalence: {3:,} with one "
    "sample per game, otherwise {0:,}.",
    "diagnosis": "{0:,} experiments per cell ({1:,} with several samples per game; for shares of a "
    "subset, only if n is also 1,000 or more). Cells below 94% were repeated with five times as "
    "many new experiments.",
    "precision": "{0:,} experiments per cell (half as many with up to 4,000 samples; {1:,} with "
    "several samples per game). Cells below 94.5% were repeated with five times as many new "
    "experiments. Samples come in random order, whatever their games.",
}


def text_of(part: str, simulator: Simulator, sizes: tuple[int, ...], times: int) -> str:
    """The tables of a part, and what made them."""
    made = f"`python benchmarks/coverage.py --part {part}`, {datetime.now(UTC):%Y-%m-%d}."
    counts = (times, times // 4, times // 20, 10 * times)
    texts = [f"{made} {EXPERIMENTS[part].format(*counts)}"]
    for table in PARTS[part]:
        with redirect_stdout(StringIO()) as told:
            table(simulator, sizes, times)
        texts.append(told.getvalue().strip())
    return "\n\n".join(texts) + "\n"


def insert(folder: Path, document: Path) -> None:
    """Replace what stands between the marks of each part whose file is in the folder."""
    text = document.read_text()
    for part in PARTS:
        if (file := folder / f"{part}.md").exists():
            begin, end = f"<!-- coverage: {part} -->\n", f"<!-- end of coverage: {part} -->"
            _, marked, after = text.partition(begin)
            old, ended, _ = after.partition(end)
            if not marked or not ended:
                sys.exit(f"{document} has no marks {begin.strip()} and {end}")
            text = text.replace(begin + old + end, f"{begin}\n{file.read_text()}\n{end}")
    document.write_text(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer experiments, no n of 1,000")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes to use")
    parser.add_argument("--part", action="append", choices=PARTS, help="only this one; repeatable")
    parser.add_argument("--out", type=Path, help="a folder for a Markdown file of each part")
    parser.add_argument(
        "--insert",
        nargs=2,
        type=Path,
        metavar=("FOLDER", "DOCUMENT"),
        help="simulate nothing, but put the files of a folder into a document",
    )
    given = parser.parse_args()
    if given.insert:
        insert(*given.insert)
        return
    sizes, times = (SIZES[:2], 200) if given.quick else (SIZES, 2000)
    simulator = Simulator(given.jobs)
    for part in given.part or PARTS:
        text = text_of(part, simulator, sizes, times)
        if given.out:
            given.out.mkdir(parents=True, exist_ok=True)
            (given.out / f"{part}.md").write_text(text)
        else:
            print(text)


if __name__ == "__main__":
    main()
