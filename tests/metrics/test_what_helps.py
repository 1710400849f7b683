"""Which interventions are reported to help, in simulated runs with known effects."""

import pytest

from simulated_interventions import HELPFUL, significant_interventions

RUNS = 8


@pytest.mark.parametrize("per_game", [1, 3])
def test_helpful_interventions_are_named_and_others_rarely(per_game: int) -> None:
    """Others are named in at most 5% of runs, so in 3 or more of 8 only once in 170 times."""
    named = [significant_interventions(seed, per_game=per_game) for seed in range(RUNS)]
    assert sum(bool(names - HELPFUL) for names in named) <= 2
    assert sum(names >= HELPFUL for names in named) >= RUNS - 1
