"""Unions of datasets, which are fair to several models, by command and by function."""

from pathlib import Path

import pytest

from cant_do_that_anymore.datasets.pools import union
from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.habits.chess.rules import BISHOPS_AS_KNIGHTS, rules_named
from testing import POOL, cdta, positions


def test_a_union_has_every_position_once_in_its_own_order() -> None:
    a, b = str(positions(20)), str(positions(20, first=10))
    forward = union([a, b], BISHOPS_AS_KNIGHTS)
    backward = union([b, a, b], BISHOPS_AS_KNIGHTS)
    ids, expected = [p.id for p in forward], [p.id for p in POOL[:30]]
    assert forward == backward
    assert sorted(ids) == sorted(expected)
    assert ids not in (sorted(expected), expected)


def test_an_unusable_source_is_named() -> None:
    for names, message in (
        (["gpt-4-0314"], "unknown dataset for rooks-as-knights: 'gpt-4-0314'"),
        ([str(positions(30))], "line 1"),
    ):
        with pytest.raises(InvalidInput, match=message):
            union(names, rules_named("rooks-as-knights"))


def test_a_union_is_written_by_a_command_that_knows_models_by_name(tmp_path: Path) -> None:
    path = tmp_path / "both.jsonl"
    result = cdta("dataset", "export", "gpt-4-0314", "gpt-3.5-turbo-0125", "-o", path, code=0)
    assert result.stderr == f"3,415 items in {path}\n"
    assert len(path.read_bytes().splitlines()) == 3415
    for model in ("cdta/pocket", "cdta/random"):
        cdta("dataset", "build", "--model", model, "-n", 3, "--quiet", code=0)
    result = cdta("dataset", "export", "cdta/pocket", "cdta/random", "-o", path, code=0)
    assert result.stderr == f"6 items in {path}\n"
