"""Eighty short random histories; docs/reliability.md has the command for longer ones."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cant_do_that_anymore.files import atomic_write_text
from crashes import start, was_killed
from histories import DEFAULT_OPTIONS, Step, history, shortest_failure, three_servers
from home_events import FreshHomes
from random_servers import RandomServer
from testing import needs_posix

pytestmark = needs_posix
HISTORIES, PER_TEST, STEPS = 60, 20, 2


@pytest.fixture(scope="module")
def servers() -> Iterator[list[RandomServer]]:
    with three_servers() as servers:
        yield servers


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> FreshHomes:
    return FreshHomes(tmp_path_factory.mktemp("inputs"))


@pytest.mark.parametrize("first", range(0, HISTORIES, PER_TEST))
def test_any_history_gives_the_numbers_of_a_fresh_home(
    first: int, servers: list[RandomServer], fresh: FreshHomes
) -> None:
    for seed in range(first, first + PER_TEST):
        failure = shortest_failure(seed, servers, fresh, history(seed, STEPS))
        assert not failure, failure


def test_answers_of_an_earlier_model_do_not_count_for_the_current_one(
    servers: list[RandomServer], fresh: FreshHomes
) -> None:
    diagonal = Step("run", (DEFAULT_OPTIONS | {"positions": "diagonal"},))
    steps = [diagonal, Step("replace_model", (0, 1)), Step("run", (DEFAULT_OPTIONS,)), diagonal]
    failure = shortest_failure(32, servers, fresh, steps)
    assert not failure, failure


def test_a_killed_process_leaves_a_half_written_file(tmp_path: Path) -> None:
    """Otherwise the kills in histories would test nothing."""

    def work() -> None:
        atomic_write_text(tmp_path / "file", "x" * 100)

    outcomes = set()
    for step in range(1, 7):
        died = was_killed(start(work, tmp_path / "error", step))
        outcomes.add((died, *(path.stat().st_size for path in tmp_path.iterdir())))
        for path in tmp_path.iterdir():
            path.unlink()
    assert outcomes == {(True,), (True, 50), (True, 100), (False, 100)}
