"""Golden runs: every number and every scored reply of twelve runs stays the same.

``python tests/test_golden.py`` writes the file again. A change in it needs a new protocol and an
entry in the changelog.
"""

import gzip
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from cant_do_that_anymore import shipped_pool
from cant_do_that_anymore.providers import bundled
from cant_do_that_anymore.providers.bundled import NO_TEXT, POCKET, READER, Logits, Tokens
from testing import Body, Run, checksum, is_changed, measure, moves_in, serving

# Processors, batches and versions of onnxruntime change scores by less (docs/pocket.md).
TOLERANCE = 3e-5
# Draws so close to the boundary between two illegal moves that such a difference decides.
CLOSE_DRAWS = ("4e896220bd8e", "6a98725d146b")
FILE = Path(__file__).parent / "golden.json.gz"
SERVED = "a server"
COUNTS = ("counts", "tokens")
MODELS = (POCKET, READER, "cdta/random", SERVED)
USUAL = {p.moves: p.usual[0] for name in ("pool", "diagonal") for p in shipped_pool(name)}
REPLIES = ("a2a3", "", "I play Nf3.", "e7e5", "Bb5", "**g1f3**", "castle", "f1g3", "none", "c1e3")


def respond(request: Body) -> str:
    """A fixed function: the usual move at some positions, replies of all kinds at others."""
    moves = moves_in(request)
    digit = checksum(moves) % 10
    return USUAL[moves] if digit < (3 if is_changed(request) else 8) else REPLIES[digit]


EVALS = {"all": 300, "all_small": None, "all_diagonal": 300}
"""The number of samples by eval."""


def runs_of(model: str, evals: Iterable[str] = EVALS) -> dict[str, dict[str, Any]]:
    """One run per eval, by its key in the file. all_small uses the search of all."""
    with serving(respond, model="served", listed=("served",)) as server:
        options: dict[str, Any] = {"model": None} if model == SERVED else {}
        return {
            f"{model} {eval}": numbers_and_replies(
                measure(server if model == SERVED else model, eval=eval, n=EVALS[eval], **options)
            )
            for eval in evals
        }


def numbers_and_replies(run: Run) -> dict[str, Any]:
    """All numbers and all scored replies of a run."""
    replies = [
        " ".join([sample.item.id, *(f"{r.outcome}:{r.answer}" for r in sample.replies.values())])
        for sample in run.samples
    ]
    results, usage = run.results, run.results.usage
    return {
        "estimates": {
            name: [end for end in (each.value, each.low, each.high) if end is not None]
            for name, each in results.estimates.items()
        },
        "counts": [results.n, results.groups, results.failed],
        "tokens": [usage.input_tokens, usage.output_tokens],
        "replies": replies,
    }


def stable_replies(run: dict[str, Any]) -> list[str]:
    """The scored replies that are the same on every machine."""
    return [reply for reply in run["replies"] if not reply.startswith(CLOSE_DRAWS)]


@pytest.fixture(scope="module")
def golden() -> Any:
    return json.loads(gzip.decompress(FILE.read_bytes()))


def test_a_network_that_cannot_read_keeps_its_habit(golden: Any) -> None:
    _, low, high = golden[f"{POCKET} all_small"]["estimates"]["rule_uptake"]
    assert low <= 0 <= high


def check(model: str, golden: Any, *evals: str) -> None:
    for key, run in runs_of(model, evals or EVALS).items():
        expected = golden[key]
        assert stable_replies(run) == stable_replies(expected), key
        assert [run[name] for name in COUNTS] == [expected[name] for name in COUNTS], key
        assert run["estimates"].keys() == expected["estimates"].keys(), key
        for name, numbers in expected["estimates"].items():
            assert run["estimates"][name] == pytest.approx(numbers, rel=1e-12), (key, name)


@pytest.mark.parametrize("model", [model for model in MODELS if model != READER])
def test_runs_match_the_golden_file(model: str, golden: Any) -> None:
    check(model, golden)


def test_reader_runs_match_despite_float_differences(
    golden: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def with_noise(scores: Logits, text: Tokens, game: Tokens) -> Logits:
        """Add noise that depends on the position but not on its batch."""
        random = np.random.default_rng(crc32(repr((text, game)).encode()))
        return scores + random.uniform(-TOLERANCE, TOLERANCE, scores.shape).astype(np.float32)

    class NoisyNetwork(bundled.Network):
        def scores(self, positions: Sequence[Tokens], text: Tokens = NO_TEXT) -> Logits:
            rows = zip(super().scores(positions, text), positions, strict=True)
            return np.stack([with_noise(row, text, game) for row, game in rows])

    exact, noisy = bundled.Network(), NoisyNetwork()
    for network, evals in ((exact, EVALS), (noisy, ("all_small", "all_diagonal"))):
        monkeypatch.setattr(bundled, "load_network", lambda network=network: network)
        monkeypatch.setenv("CDTA_HOME", str(tmp_path / type(network).__name__))
        check(READER, golden, *evals)


if __name__ == "__main__":
    runs = {key: run for model in MODELS for key, run in runs_of(model).items()}
    FILE.write_bytes(gzip.compress(json.dumps(runs).encode(), mtime=0))
