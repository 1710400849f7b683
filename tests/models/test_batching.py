"""Batches: the same numbers for half the price, and nothing is paid twice whatever happens."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from batches import BatchServer, Line, failed_line
from cant_do_that_anymore import Run, Spec, evaluate
from cant_do_that_anymore.game.position import shipped_pool, write_positions
from cant_do_that_anymore.models import asking, batches
from cant_do_that_anymore.models.rounds import FEW
from loopback import serving
from players import in_every_second, wavering

POOL = shipped_pool("pool")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "FIRST_POLL", 0.01)
    monkeypatch.setattr(asking, "FIRST_WAIT", 0.001)
    monkeypatch.setattr(asking, "LONGEST_WAIT", 0.01)


def dataset(tmp_path: Path, size: int) -> Path:
    write_positions(tmp_path / "positions.jsonl", POOL[:size])
    return tmp_path / "positions.jsonl"


def a_tenth_fails(line: Line, number: int) -> Line | None:
    failing = int(line["custom_id"], 16) % 10 == number % 10
    return failed_line(line) if failing else None


def test_many_questions_an_expired_batch_and_a_tenth_that_fails_give_the_same_numbers(
    tmp_path: Path, home: Path
) -> None:
    server = BatchServer(
        wavering,
        ends=lambda number: "expired" if number == 0 else "completed",
        spoils=a_tenth_fails,
    )
    positions = dataset(tmp_path, 1000)
    with serving(server):
        spec = Spec(model="m", base_url=server.url, dataset=positions, batch=True)
        run = evaluate(spec, quiet=True)
    assert not server.twice
    assert sum(server.charged.values()) == 2000
    assert FEW <= sum(server.live.values()) <= 2 * FEW
    print(server.sizes)
