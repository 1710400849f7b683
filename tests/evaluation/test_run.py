"""The evaluation end to end, over a real server on the loopback interface."""

import pytest

from cant_do_that_anymore import Spec, evaluate
from cant_do_that_anymore.evaluation.datasets import shipped_datasets
from cant_do_that_anymore.game.position import shipped_pool
from loopback import Loopback, Request, is_changed, moves_in, serving

POOL = shipped_pool("pool")
SPECIAL = {position.moves: position.special_moves[0] for position in POOL}


def test_shipped_dataset_gives_the_metrics_computed_by_hand() -> None:
    """The server keeps its habit by a fixed function of the conversation."""

    def keeps_habit(moves: tuple[str, ...], *, changed: bool) -> bool:
        return sum(map(ord, "".join(moves))) % 10 < (4 if changed else 9)

    def respond(request: Request) -> str:
        moves = moves_in(request)
        return SPECIAL[moves] if keeps_habit(moves, changed=is_changed(request)) else "a2a3"

    with serving(Loopback(respond, model="gpt-3.5-turbo-0125")) as server:
        run = evaluate(Spec(model="gpt-3.5-turbo", base_url=server.url), quiet=True)

    positions = shipped_datasets(POOL)["gpt-3.5-turbo-0125"].positions
    n = len(positions)
    p = sum(keeps_habit(position.moves, changed=False) for position in positions) / n
    v = sum(keeps_habit(position.moves, changed=True) for position in positions) / n
    lengths = [len(position.moves) for position in positions]
    mean = sum(lengths) / n
    metrics = run.results.metrics
    assert n == 1000
    assert run.dataset.origin == "shipped"
    assert metrics["predicted_move_proportion"] == p
    assert metrics["predicted_move_in_variant_proportion"] == v
    assert metrics["delta"] == pytest.approx(v - p)
    assert metrics["variant_impact_factor"] == pytest.approx((v - p) / p)
    assert metrics["avg_num_previous_moves"] == pytest.approx(mean)
    assert metrics["std_num_previous_moves"] == pytest.approx(
        (sum((length - mean) ** 2 for length in lengths) / n) ** 0.5
    )
    assert len(server.requests) == 2001  # one more to learn the exact version
