"""Groups of samples: their shares of special moves and of all forbidden moves."""

from typing import Any

from cant_do_that_anymore.game.position import shipped_pool
from cant_do_that_anymore.metrics.groups import by_earlier_moves, by_opening
from cant_do_that_anymore.task.types import CHANGED_CONDITION, STANDARD_CONDITION
from run_builders import run_from_answers, with_other_forbidden_moves


def test_a_group_has_shares_of_special_and_of_all_forbidden_moves() -> None:
    after_e4_e5 = [p for p in with_other_forbidden_moves(50) if p.moves[:2] == ("e2e4", "e7e5")]
    outcomes: Any = [("special", "special"), ("forbidden", "forbidden"), ("legal", "forbidden")]
    outcomes += [("special", "adapted")]
    samples = [
        (position, {STANDARD_CONDITION: before, CHANGED_CONDITION: after})
        for position, (before, after) in zip(after_e4_e5, outcomes, strict=False)
    ]
    run = run_from_answers(samples)
    (group,) = by_opening(run.answered, run.plan)
    shares = {name: (share.value, share.forbidden) for name, share in group.shares.items()}
    assert shares == {STANDARD_CONDITION: (0.5, 0.75), CHANGED_CONDITION: (0.25, 0.75)}


def test_every_answered_sample_is_in_one_group() -> None:
    outcomes: Any = [
        {STANDARD_CONDITION: "special", CHANGED_CONDITION: after} for after in ("special", "error")
    ]
    positions = shipped_pool("pool")[:200]
    run = run_from_answers(
        [(position, outcomes[index % 2]) for index, position in enumerate(positions)]
    )
    for groups in (by_earlier_moves(run.answered, run.plan)[1], by_opening(run.answered, run.plan)):
        assert sum(group.uptake.n for group in groups) == 100
