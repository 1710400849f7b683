"""Samples in groups: what the special moves come to in each, and any forbidden ones."""

from typing import Any

from cant_do_that_anymore.game.position import shipped_pool
from cant_do_that_anymore.metrics.groups import by_earlier_moves, by_opening
from cant_do_that_anymore.task.types import CHANGED_CONDITION, STANDARD_CONDITION
from run_builders import run_of, with_other_forbidden_moves


def test_any_forbidden_moves_are_counted_beside_the_special_ones() -> None:
    after_e4_e5 = [p for p in with_other_forbidden_moves(50) if p.moves[:2] == ("e2e4", "e7e5")]
    said: Any = [("special", "special"), ("forbidden", "forbidden"), ("legal", "forbidden")]
    said += [("special", "adapted")]
    asked = [
        (p, {STANDARD_CONDITION: b, CHANGED_CONDITION: a})
        for p, (b, a) in zip(after_e4_e5, said, strict=False)
    ]
    run = run_of(asked)
    (group,) = by_opening(run.answered, run.plan)
    shares = {name: (share.value, share.forbidden) for name, share in group.shares.items()}
    assert shares == {STANDARD_CONDITION: (0.5, 0.75), CHANGED_CONDITION: (0.25, 0.75)}


def test_every_sample_with_an_answer_is_in_one_group() -> None:
    said: Any = [
        {STANDARD_CONDITION: "special", CHANGED_CONDITION: after} for after in ("special", "error")
    ]
    asked = [(p, said[number % 2]) for number, p in enumerate(shipped_pool("pool")[:200])]
    run = run_of(asked)
    for groups in (by_earlier_moves(run.answered, run.plan)[1], by_opening(run.answered, run.plan)):
        assert sum(group.uptake.n for group in groups) == 100
