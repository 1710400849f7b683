"""Numbers that stay the same whatever becomes of the code: twelve runs, every number, every reply.

``python tests/test_golden.py`` writes the file anew; a change in it belongs to a change of the
protocol and to the changelog.
"""

import gzip
import json
from itertools import product
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from cant_do_that_anymore import shipped_pool
from cant_do_that_anymore.providers import pocket
from cant_do_that_anymore.task.types import Eval
from testing import Body, Run, is_changed, measure, moves_in, number_of, serving

# Other processors, batches and versions of onnxruntime change scores by less (docs/pocket.md).
TOLERANCE = 3e-5
# A draw so close to the line between two illegal moves that such a difference decides.
CLOSE_DRAW = "4e896220bd8e"
FILE = Path(__file__).parent / "golden.json.gz"
MODELS = ("cdta/pocket", "cdta/reader", "cdta/random", "a server")
SPECIAL = {p.moves: p.special_moves[0] for name in ("pool", "diagonal") for p in shipped_pool(name)}
REPLIES = ("a2a3", "", "I play Nf3.", "e7e5", "Bb5", "**g1f3**", "castle", "f1g3", "none", "c1e3")


def respond(request: Body) -> str:
    """A habit that yields in some positions, to replies of all kinds, by a fixed function."""
    moves = moves_in(request)
    fate = number_of(moves) % 10
    return SPECIAL[moves] if fate < (3 if is_changed(request) else 8) else REPLIES[fate]


def measured(model: str, eval: Eval) -> Run:
    options: dict[str, Any] = {"eval": eval, "n": None if eval == "all_small" else 300}
    if model != "a server":
        return measure(model, **options)
    with serving(respond, model="served", listed=("served",)) as server:
        return measure(server, model=None, **options)


def told(run: Run) -> dict[str, Any]:
    """All numbers of a run, and all that was made of its replies."""
    replies = [
        " ".join([sample.position.id, *(f"{r.outcome}:{r.move}" for r in sample.replies.values())])
        for sample in run.samples
    ]
    intervals = {name: [i.low, i.high] for name, i in run.results.intervals.items()}
    return {"metrics": run.results.metrics, "intervals": intervals, "replies": replies}


def steady(run: dict[str, Any]) -> list[str]:
    """The scored replies that every machine gives."""
    return [reply for reply in run["replies"] if not reply.startswith(CLOSE_DRAW)]


@pytest.fixture(scope="module")
def golden() -> Any:
    return json.loads(gzip.decompress(FILE.read_bytes()))


@pytest.mark.parametrize(("model", "eval"), list(product(MODELS, get_args(Eval))))
def test_the_numbers_are_those_they_always_were(model: str, eval: Eval, golden: Any) -> None:
    found, expected = told(measured(model, eval)), golden[f"{model} {eval}"]
    assert steady(found) == steady(expected)
    assert found["metrics"] == pytest.approx(expected["metrics"], rel=1e-12)
    assert found["intervals"].keys() == expected["intervals"].keys()
    for name, bounds in expected["intervals"].items():
        assert found["intervals"][name] == pytest.approx(bounds, rel=1e-12), name


@pytest.mark.parametrize("eval", ["all", "all_diagonal"])
def test_no_float_difference_within_the_tolerance_changes_a_reply(
    eval: Eval, golden: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise = np.random.default_rng(1)

    class Elsewhere(pocket.Network):
        def scores(self, *asked: Any) -> pocket.Scores:
            scores = super().scores(*asked)
            return scores + noise.uniform(-TOLERANCE, TOLERANCE, scores.shape).astype(np.float32)

    network = Elsewhere()
    monkeypatch.setattr(pocket, "load_network", lambda: network)
    found, expected = told(measured("cdta/reader", eval)), golden[f"cdta/reader {eval}"]
    assert steady(found) == steady(expected)
    assert found["metrics"] == pytest.approx(expected["metrics"], rel=1e-12)


if __name__ == "__main__":
    runs = {f"{m} {e}": told(measured(m, e)) for m, e in product(MODELS, get_args(Eval))}
    FILE.write_bytes(gzip.compress(json.dumps(runs).encode(), mtime=0))
