"""Which interventions are said to help, over runs of models whose reactions are known."""

import pytest

from simulated_interventions import HELPFUL, named_in

RUNS = 8  # benchmarks/interventions.py makes 200 of each


@pytest.mark.parametrize("per_game", [1, 3])
def test_the_helpful_are_found_and_others_seldom_named(per_game: int) -> None:
    """Another one is named in at most 5% of the runs: in more than 2 of 8 once in 170 times."""
    named = [named_in(seed, per_game=per_game) for seed in range(RUNS)]
    assert sum(bool(names - HELPFUL) for names in named) <= 2
    assert sum(names >= HELPFUL for names in named) >= RUNS - 1
