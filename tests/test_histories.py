"""A hundred short random histories; docs/reliability.md has the command for longer ones."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cant_do_that_anymore.files import atomic_write_text
from crashes import has_died, started
from histories import USUAL, Step, history, shortest, three_servers
from home_events import Fresh
from random_servers import Coins
from testing import needs_posix

pytestmark = needs_posix
HISTORIES, TOGETHER, STEPS = 100, 20, 2


@pytest.fixture(scope="module")
def servers() -> Iterator[list[Coins]]:
    with three_servers() as servers:
        yield servers


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Fresh:
    return Fresh(tmp_path_factory.mktemp("inputs"))


@pytest.mark.parametrize("first", range(0, HISTORIES, TOGETHER))
def test_after_every_step_all_numbers_are_those_of_a_fresh_home(
    first: int, servers: list[Coins], fresh: Fresh
) -> None:
    for seed in range(first, first + TOGETHER):
        broken = shortest(seed, servers, fresh, history(seed, STEPS))
        assert not broken, broken


def test_answers_of_an_earlier_model_do_not_pass_for_those_of_the_current_one(
    servers: list[Coins], fresh: Fresh
) -> None:
    """The check of the model is about positions that the run uses, not about others of the file."""
    diagonal = Step("run", (USUAL | {"positions": "diagonal"},))
    steps = [diagonal, Step("become", (0, 1)), Step("run", (USUAL,)), diagonal]
    broken = shortest(32, servers, fresh, steps)
    assert not broken, broken


def test_who_dies_while_it_writes_leaves_half_of_it(tmp_path: Path) -> None:
    """Else no kill of a history would tell anything."""

    def work() -> None:
        atomic_write_text(tmp_path / "file", "x" * 100)

    left = set()
    for step in range(1, 7):
        died = has_died(started(work, tmp_path / "said", step))
        left.add((died, *(path.stat().st_size for path in tmp_path.iterdir())))
        for path in tmp_path.iterdir():
            path.unlink()
    assert left == {(True,), (True, 50), (True, 100), (False, 100)}
