"""The cells of the benchmark of coverage that too narrow intervals fail first."""

import runpy
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SINGLES, GROUPS = "50 in groups of 1", "50 in groups of 5"


@pytest.mark.parametrize(
    ("models", "design", "junk", "repeats"),
    [
        ([(0.7, 0.5)], SINGLES, 0, 100),  # fails with a critical value of 1.64
        ([(0.7, 0.5)], GROUPS, 0, 100),  # fails without a design effect
        ([(1, 0.9)], SINGLES, 0.05, 100),  # fails if unreadable replies do not widen intervals
        ([(0.7, 0.5)] * 2, GROUPS, 0, 100),
        ([(0.9, 0.9), (0.9, 0.9), (0.4, 0.9)], SINGLES, 0, 40),  # fails without Bonferroni
    ],
)
def test_printed_intervals_contain_the_truth(
    models: list[tuple[float, float]],
    design: str,
    junk: float,
    repeats: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The seeds are fixed, so the result does not depend on luck."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    benchmark = runpy.run_path(str(BENCHMARKS / "coverage.py"))
    cell = benchmark["Cell"](tuple(models), design, junk)
    assert min(benchmark["coverage"](cell, repeats)) >= benchmark["TARGET"]
