"""Simulates the coverage of 95% intervals, and the error rates of tests and verdicts.

    python benchmarks/coverage.py --quick --jobs 2             # fewer experiments, no n of 1,000
    python benchmarks/coverage.py --jobs 16 --out tables       # a Markdown file for each part
    python benchmarks/coverage.py --jobs 16 --part intervals   # one part, to standard output
    python benchmarks/coverage.py --insert tables docs/coverage.md    # insert the files

A cell has the same numbers in every part, on every machine and with any number of jobs. The
simulated models are in `simulated_models.py`.
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
from coverage_of_comparisons import print_differences, print_false_equivalence
from coverage_of_diagnosis import print_knowing, print_shares_of_subset, print_specific
from markdown_tables import print_heading, print_row
from simulated_models import (
    COPIED_SHARE,
    DESIGNS,
    FEW_LARGE,
    Design,
    Experiment,
    draw_experiments,
    experiments_per_cell,
    make_design,
    make_designs,
)
from simulator import (
    MAX_COVERAGE,
    MIN_COVERAGE,
    Simulator,
    print_cells_below,
    repeat_if_low,
)

from cant_do_that_anymore.metrics.stats.intervals import (
    DIFFERENCE,
    RELATIVE_CHANGE,
    Ratio,
)
from cant_do_that_anymore.metrics.stats.significance import p_value

SIZES = (20, 100, 1000)
SHARES = (0.1, 0.3, 0.67, 0.95, 1.0)
IMPACTS = (0.0, -0.02, -0.5, -0.7, -0.85, -0.9, -0.95, -0.98, -1.0)
MEASURES = ("impact factor", "delta")

KindCounts = tuple[tuple[tuple[int, int], int], ...]
"""How many samples have each pair of answers."""


def contains(truth: float, experiment: Experiment, is_delta: bool) -> bool | None:
    """Whether the interval of delta, or of the impact factor, contains the truth.

    Returns None if there is no interval.
    """
    before, after, games = experiment
    changes = [b - a for a, b in zip(before, after, strict=True)]
    if is_delta:
        tally = Ratio(changes, [1] * len(games), DIFFERENCE).tally(games)
    else:
        tally = Ratio(changes, before, RELATIVE_CHANGE).tally(games)
    return tally.p(truth) >= 0.05 if tally else None


def _contains_one_per_game(truth: float, experiment: Experiment, is_delta: bool) -> bool | None:
    """Do the same for one sample per game, where only the counts of the four kinds matter."""
    kinds = Counter(zip(*experiment[:2], strict=True))
    return _contains_by_counts(truth, tuple(sorted(kinds.items())), is_delta)


@cache
def _contains_by_counts(truth: float, kinds: KindCounts, is_delta: bool) -> bool | None:
    pairs = [pair for pair, count in kinds for _ in range(count)]
    before, after = [before for before, _ in pairs], [after for _, after in pairs]
    return contains(truth, (before, after, list(range(len(pairs)))), is_delta)


def simulate_coverage(
    design: Design, p: float, impact: float, correlated: bool, count: int
) -> list[float]:
    """Return the coverage of the intervals of the impact factor and of delta."""
    _contains_by_counts.cache_clear()
    return repeat_if_low(
        partial(_simulate_coverage, design, p, impact, correlated), count, MIN_COVERAGE + 0.01
    )


def _simulate_coverage(
    design: Design, p: float, impact: float, correlated: bool, count: int
) -> list[float]:
    check = _contains_one_per_game if design.has_one_per_game else contains
    hits: tuple[list[bool], list[bool]] = ([], [])
    for experiment in draw_experiments((p, impact, correlated), design, count):
        for of_measure, truth, is_delta in zip(
            hits, (impact, p * impact), (False, True), strict=True
        ):
            hit = check(truth, experiment, is_delta)
            if hit is not None:
                of_measure.append(hit)
    return [float(np.mean(of_measure)) for of_measure in hits]


def print_intervals(simulator: Simulator, sizes: tuple[int, ...], count: int) -> None:
    designs = make_designs(DESIGNS, sizes)
    cells = [
        (design, p, impact, correlated, experiments_per_cell(design, count))
        for design, impact, p, correlated in product(designs, IMPACTS, SHARES, (False, True))
    ]
    results = simulator.run("coverage", simulate_coverage, cells)
    print("Lowest coverage over p and both kinds of answers, in %:\n")
    columns = (f"impact {impact:g}" for impact in IMPACTS)
    print_heading("design", "n", "measure", *columns, "mean", "above 99")
    all_shares: dict[str, float] = {}
    for design, (number, measure) in product(designs, enumerate(MEASURES)):
        shares = {cell: row[number] for cell, row in results.items() if cell[0] == design}
        lowest = [min(share for cell, share in shares.items() if cell[2] == i) for i in IMPACTS]
        mean = float(np.mean(list(shares.values())))
        above = sum(share > MAX_COVERAGE for share in shares.values())
        percentages = (f"{100 * share:.1f}" for share in (*lowest, mean))
        print_row(design.name, design.n, measure, *percentages, f"{above} of {len(shares)}")
        all_shares |= {
            f"{design.name}, n = {design.n}, {measure}, p = {p:g}, impact {impact:g}, "
            f"{'correlated' if correlated else 'independent'}": share
            for (_, p, impact, correlated, _), share in shares.items()
        }
    print_cells_below(MIN_COVERAGE, all_shares)


def simulate_width(design: Design, count: int) -> float:
    """Return the mean width of the impact factor's interval."""
    widths = []
    for before, after, games in draw_experiments((0.67, -0.5, False), design, count):
        changes = [b - a for a, b in zip(before, after, strict=True)]
        interval = Ratio(changes, before, RELATIVE_CHANGE).interval(games)
        widths.append(interval.high - interval.low if interval else np.nan)
    return float(np.nanmean(widths))


def print_widths(simulator: Simulator, _: tuple[int, ...], count: int) -> None:
    designs = [make_design(name, n) for n, name in product((100, 1000), DESIGNS)]
    copied_shares = (0.0, COPIED_SHARE, 1.0)
    rows = {
        design: [(replace(design, copying=share), count // 20) for share in copied_shares]
        for design in (*designs, FEW_LARGE)
    }
    cells = [cell for row in rows.values() for cell in row]
    widths = simulator.run("width", simulate_width, cells)
    print(
        "Mean width of the impact factor's interval (p = .67, impact -.5), by the share of copied "
        "samples:\n"
    )
    print_heading("design", "n", *(f"{share:.0%} copying" for share in copied_shares))
    for design, row in rows.items():
        print_row(design.name, design.n, *(f"{widths[cell]:.2f}" for cell in row))


def simulate_false_positives(design: Design, p: float, count: int) -> float:
    """Return the share of tests with p < 0.05 if nothing changes."""
    is_significant = [
        p_value([b - a for a, b in zip(before, after, strict=True)], games) < 0.05
        for before, after, games in draw_experiments((p, 0.0, False), design, count)
    ]
    return float(np.mean(is_significant))


def print_tests(simulator: Simulator, sizes: tuple[int, ...], count: int) -> None:
    designs = make_designs(DESIGNS, sizes)
    cells = product(designs, (0.3, 0.95), (count,))
    results = simulator.run("false_positives", simulate_false_positives, cells)
    print("Tests at 5%: share of p < .05 if nothing changes and answers are independent:\n")
    print_heading("design", "n", "p = 0.3", "p = 0.95")
    for design in designs:
        shares = (results[design, p, count] for p in (0.3, 0.95))
        print_row(design.name, design.n, *(f"{100 * share:.1f}%" for share in shares))


TablePrinter = Callable[[Simulator, tuple[int, ...], int], None]
PARTS: dict[str, tuple[TablePrinter, ...]] = {
    "intervals": (print_intervals, print_widths, print_tests),
    "comparisons": (print_differences, print_false_equivalence),
    "diagnosis": (print_shares_of_subset, print_knowing, print_specific),
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
}


def part_text(part: str, simulator: Simulator, sizes: tuple[int, ...], count: int) -> str:
    """Return the tables of a part, with the command and the date."""
    command = f"`python benchmarks/coverage.py --part {part}`, {datetime.now(UTC):%Y-%m-%d}."
    counts = (count, count // 4, count // 20, 10 * count)
    paragraphs = [f"{command} {EXPERIMENTS[part].format(*counts)}"]
    for print_table in PARTS[part]:
        with redirect_stdout(StringIO()) as output:
            print_table(simulator, sizes, count)
        paragraphs.append(output.getvalue().strip())
    return "\n\n".join(paragraphs) + "\n"


def insert_parts(folder: Path, document: Path) -> None:
    """Replace the text between the markers of each part that has a file in the folder."""
    text = document.read_text()
    for part in PARTS:
        if (file := folder / f"{part}.md").exists():
            begin, end = f"<!-- coverage: {part} -->\n", f"<!-- end of coverage: {part} -->"
            _, begin_found, after = text.partition(begin)
            old, end_found, _ = after.partition(end)
            if not begin_found or not end_found:
                sys.exit(f"{document} has no markers {begin.strip()} and {end}")
            text = text.replace(begin + old + end, f"{begin}\n{file.read_text()}\n{end}")
    document.write_text(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer experiments, no n of 1,000")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes")
    parser.add_argument("--part", action="append", choices=PARTS, help="only this one; repeatable")
    parser.add_argument("--out", type=Path, help="folder for a Markdown file of each part")
    parser.add_argument(
        "--insert",
        nargs=2,
        type=Path,
        metavar=("FOLDER", "DOCUMENT"),
        help="insert the files of a folder into a document, without any simulation",
    )
    options = parser.parse_args()
    if options.insert:
        insert_parts(*options.insert)
        return
    sizes, count = (SIZES[:2], 200) if options.quick else (SIZES, 2000)
    simulator = Simulator(options.jobs)
    for part in options.part or PARTS:
        text = part_text(part, simulator, sizes, count)
        if options.out:
            options.out.mkdir(parents=True, exist_ok=True)
            (options.out / f"{part}.md").write_text(text)
        else:
            print(text)


if __name__ == "__main__":
    main()
