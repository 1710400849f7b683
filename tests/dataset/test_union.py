"""Datasets joined into one that is fair to several models, by the command and by its function."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from cant_do_that_anymore.datasets.pools import union
from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.game.position import Position, shipped_pool, write_positions
from cant_do_that_anymore.game.rules import BISHOPS_AS_KNIGHTS, rules_named
from testing import POOL, cdta, positions


def games_in_union(folder: Path, *sources: Sequence[Position]) -> list[int]:
    names = [str(folder / f"{number}.jsonl") for number, _ in enumerate(sources)]
    for name, source in zip(names, sources, strict=True):
        write_positions(Path(name), source)
    positions, _ = union(names, BISHOPS_AS_KNIGHTS)
    return [position.game for position in positions]


def test_every_position_is_there_once_in_an_order_that_no_source_decides() -> None:
    a, b = str(positions(20)), str(positions(20, first=10))
    (there, told), (back, _) = (union(names, BISHOPS_AS_KNIGHTS) for names in ([a, b], [b, a, b]))
    ids, given = [p.id for p in there], [p.id for p in POOL[:30]]
    assert there == back
    assert sorted(ids) == sorted(given)
    assert ids not in (sorted(given), given)
    assert told == f"30 positions: 20 of {a}, 20 of {b}; 10 of them in more than one"


def test_games_of_one_number_in_files_of_other_origin_stay_apart(tmp_path: Path) -> None:
    here, there = (
        [replace(position, game=number) for number, position in enumerate(POOL[first : first + 10])]
        for first in (0, 10)
    )
    assert len({*games_in_union(tmp_path, here, there)}) == 20


def test_positions_of_one_game_in_two_files_stay_of_one_game(tmp_path: Path) -> None:
    diagonal = shipped_pool("diagonal")
    of_one_game = [p for p in diagonal if p.game == diagonal[0].game]
    early, *_, late = sorted(of_one_game, key=lambda position: len(position.moves))
    assert games_in_union(tmp_path, [late], [early]) == [late.game] * 2


@pytest.mark.parametrize(
    ("names", "rules", "sentence"),
    [
        (["gpt-4-0314", "nobody"], "bishops-as-knights", "unknown dataset: 'nobody'"),
        (["gpt-4-0314"], "rooks-as-knights", "is for bishops-as-knights, not for rooks-as-knights"),
        ([str(positions(30))], "rooks-as-knights", "line 1"),
    ],
    ids=["unknown", "for other rules", "a file for other rules"],
)
def test_a_source_that_cannot_be_used_is_named(names: list[str], rules: str, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        union(names, rules_named(rules))


def test_two_models_are_measured_on_the_union_and_compared(tmp_path: Path) -> None:
    both = tmp_path / "both.jsonl"
    made = cdta("dataset", "union", "gpt-4-0314", "gpt-3.5-turbo-0125", "-o", both, code=0)
    assert made.stdout == (
        "3,415 positions: 3,114 of gpt-4-0314, 1,000 of gpt-3.5-turbo-0125; 699 of them in more "
        f"than one; in {both}\n"
    )
    assert len(both.read_bytes().splitlines()) == 3415
    runs = [tmp_path / "lenient", tmp_path / "exact"]
    for run in runs:
        command = ["run", "--model", "cdta/random", "--dataset", both, "-n", "20", "--quiet"]
        cdta(*command, "--reading", run.name, "--out", run, code=0)
    compared = cdta("compare", *runs, code=0)
    assert f"All models on one dataset: {both}" in compared.stdout.replace("\n", "")
    assert "cdta dataset union" not in compared.stdout
    nowhere = cdta("dataset", "union", "gpt-4-0314", "-o", tmp_path, code=2)
    assert "is a directory" in nowhere.stderr
