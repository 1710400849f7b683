"""Student's t against tables and closed forms."""

from math import atan, pi, sqrt

import pytest

from cant_do_that_anymore.metrics.stats.score_interval import t_quantile, t_two_sided


@pytest.mark.parametrize(
    ("degrees", "t"),
    [
        *((1, 12.70620474), (2, 4.30265273), (10, 2.22813885), (24, 2.06389856)),
        *((1000, 1.96233908), (1e7, 1.95996422)),  # nearly the normal distribution
    ],
)
def test_quantiles_match_the_tables(degrees: float, t: float) -> None:
    assert t_quantile(degrees) == pytest.approx(t, abs=1e-8)


@pytest.mark.parametrize("t", [0, 0.01, 0.7, 3, 50, 1e6])
def test_one_and_two_degrees_of_freedom_have_closed_forms(t: float) -> None:
    assert t_two_sided(t, 1) == pytest.approx(1 - 2 / pi * atan(t), abs=1e-12)
    assert t_two_sided(t, 2) == pytest.approx(1 - t / sqrt(2 + t * t), abs=1e-12)


def test_degrees_of_freedom_can_be_fractional() -> None:
    assert t_quantile(3) < t_quantile(2.5) < t_quantile(2)
