"""Datasets joined into one that is fair to several models, by the command and by its function."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from cant_do_that_anymore.datasets.pools import union
from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.game.position import (
    Position,
    read_positions,
    shipped_pool,
    write_positions,
)
from cant_do_that_anymore.game.rules import BISHOPS_AS_KNIGHTS, rules_named
from processes import cdta

POOL = shipped_pool("pool")[:30]
DIAGONAL = shipped_pool("diagonal")


def written(path: Path, positions: Sequence[Position]) -> str:
    write_positions(path, positions)
    return str(path)


def test_every_position_is_there_once_in_an_order_that_no_source_decides(tmp_path: Path) -> None:
    a, b = written(tmp_path / "a.jsonl", POOL[:20]), written(tmp_path / "b.jsonl", POOL[10:])
    there, back = union([a, b], BISHOPS_AS_KNIGHTS), union([b, a, b], BISHOPS_AS_KNIGHTS)
    assert {p.id for p in there.positions} == {p.id for p in POOL}
    assert len(there.positions) == 30
    assert there.positions == back.positions
    assert [p.id for p in there.positions] not in (sorted(p.id for p in POOL), [p.id for p in POOL])
    assert there.sentence == f"30 positions: 20 of {a}, 20 of {b}; 10 of them in more than one"


def test_games_of_one_number_in_files_of_other_origin_stay_apart(tmp_path: Path) -> None:
    here = [replace(position, game=number) for number, position in enumerate(POOL[:10])]
    there = [replace(position, game=number) for number, position in enumerate(POOL[10:20])]
    names = [written(tmp_path / "a.jsonl", here), written(tmp_path / "b.jsonl", there)]
    assert len({p.game for p in union(names, BISHOPS_AS_KNIGHTS).positions}) == 20


def test_positions_of_one_game_in_two_files_stay_of_one_game(tmp_path: Path) -> None:
    of_one_game = [p for p in DIAGONAL if p.game == DIAGONAL[0].game]
    early, *_, late = sorted(of_one_game, key=lambda position: len(position.moves))
    names = [written(tmp_path / "a.jsonl", [late]), written(tmp_path / "b.jsonl", [early])]
    assert [p.game for p in union(names, BISHOPS_AS_KNIGHTS).positions] == [late.game] * 2


def test_a_source_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="unknown dataset: 'nobody'"):
        union(["gpt-4-0314", "nobody"], BISHOPS_AS_KNIGHTS)
    with pytest.raises(InvalidInput, match="is for bishops-as-knights, not for rooks-as-knights"):
        union(["gpt-4-0314"], rules_named("rooks-as-knights"))
    file = written(tmp_path / "a.jsonl", POOL)
    with pytest.raises(InvalidInput, match="line 1"):
        union([file], rules_named("rooks-as-knights"))


def test_two_models_are_measured_on_the_union_and_compared(tmp_path: Path) -> None:
    both = tmp_path / "both.jsonl"
    made = cdta("dataset", "union", "gpt-4-0314", "gpt-3.5-turbo-0125", "-o", both)
    assert made.returncode == 0, made.stderr
    assert made.stdout == (
        "3,415 positions: 3,114 of gpt-4-0314, 1,000 of gpt-3.5-turbo-0125; 699 of them in more "
        f"than one; in {both}\n"
    )
    assert len(read_positions(both, BISHOPS_AS_KNIGHTS)) == 3415
    runs = [tmp_path / "lenient", tmp_path / "exact"]
    for run in runs:
        asked = ["run", "--model", "cdta/random", "--dataset", both, "-n", "20", "--quiet"]
        result = cdta(*asked, "--reading", run.name, "--out", run)
        assert result.returncode == 0, result.stderr
    compared = cdta("compare", *runs)
    assert compared.returncode == 0, compared.stderr
    assert f"All on one dataset: {both}" in compared.stdout.replace("\n", "")
    assert "cdta dataset union" not in compared.stdout
    nowhere = cdta("dataset", "union", "gpt-4-0314", "-o", tmp_path)
    assert nowhere.returncode == 1
    assert "cannot write" in nowhere.stderr
