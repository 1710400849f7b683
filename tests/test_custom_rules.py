"""Custom rules from Python: a short class, its pool, its runs and its files."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import chess
import pytest

from cant_do_that_anymore import Rules, load, question, read_move
from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.habits.chess import rule_pool
from cant_do_that_anymore.habits.chess.rules import CATALOG, copy_as
from custom_rules import NoEnPassant
from testing import POOL, cdta, measure, positions_of

DOCUMENT = Path(__file__).parents[1] / "docs" / "rules.md"


@pytest.fixture(autouse=True)
def pool_of_20(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_pool, "POOL_SIZE", 20)


def test_the_documented_example_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    (definition,) = re.findall(r"class .*?\n\n(?=\w)", example, re.DOTALL)
    assert len(definition.strip().splitlines()) <= 15
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {}
    exec(example, namespace)
    assert namespace["run"].results["variant_impact_factor"].value == -1
    assert namespace["again"].samples == namespace["run"].samples
    assert namespace["again"].plan.change.statement in (tmp_path / "my-run/report.html").read_text()


def test_a_run_under_custom_rules_loads_only_with_them(tmp_path: Path) -> None:
    """The rules can be diagnosed; their dataset is listed under their name."""
    run = measure("cdta/pocket-rules", rules=NoEnPassant(), n=5, temperature=0, diagnose=True)
    values = {name: f.estimate and f.estimate.value for name, f in run.results.diagnosis.items()}
    assert (values["knowledge"], values["rule_effect"]) == (1, 1)
    assert NoEnPassant().identity in cdta("dataset", "list").stdout
    run.save(tmp_path / "run")
    assert load(tmp_path / "run", rules=NoEnPassant()).plan == run.plan
    for rules in (None, CATALOG["no-castling"]):
        with pytest.raises(InvalidInput, match=r"has the rules 'no-en-passant-\w{8}'; in Python"):
            load(tmp_path / "run", rules=rules)
    result = cdta("compare", tmp_path / "run", tmp_path / "run", code=2)
    assert "load(FOLDER, rules=...)" in result.stderr


class NoCapturesEnPassantByWhite(NoEnPassant):
    """The same key and statement, but another rule."""

    def view(self, board: chess.Board) -> chess.Board:
        return super().view(board) if board.turn else board.copy(stack=False)


def test_edited_rules_are_different_rules(home: Path) -> None:
    """Their pool is mined again, and models are asked again even if they cannot read."""
    for rules in (NoEnPassant(), NoCapturesEnPassantByWhite()):
        run = measure("cdta/pocket-rules", rules=rules, n=20)
        assert run.results["variant_impact_factor"].value == -1
    assert len(list(home.glob("pools/no-en-passant-*"))) == 2
    assert {len(position.moves) % 2 for position in positions_of(run.samples)} == {0}
    assert NoEnPassant().identity == "no-en-passant-cf963b25"  # the same in every process
    assert NoEnPassant().placebo_change == CATALOG["no-castling"]


def rules_with(key: str, view: Callable[[chess.Board], Any] | None = None, **texts: Any) -> Rules:
    """`NoEnPassant` with another key, other texts and another view."""
    methods = {"view": lambda _, board: view(board)} if view else {}
    return type("Named", (NoEnPassant,), {"key": key, **texts, **methods})()  # type: ignore[no-any-return]


def board_changing_view(board: chess.Board) -> chess.Board:
    board.ep_square = None
    return copy_as(chess.Board, board)


def turn_flipped_in_check(board: chess.Board) -> chess.Board:
    view = board.copy(stack=False)
    view.turn = board.turn ^ board.is_check()
    return view


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (rules_with("No en passant!"), "'no-en-passant', not 'No en passant!'"),
        (rules_with("no-castling"), "the key 'no-castling' is in the catalog"),
        (rules_with("careless", board_changing_view), "of careless must .* not change the board"),
        (rules_with("mute", statement=None), "need a title, a statement and a key"),
        (rules_with("nameless", title=""), "need a title"),
        (rules_with("fen", chess.Board.fen), "of fen must return a copy"),
        (rules_with("sometimes", turn_flipped_in_check), "of sometimes must return a copy"),
        (NoEnPassant, r"an object such as MyRule\(\), not <class"),
    ],
    ids=lambda value: getattr(value, "key", None) if isinstance(value, Rules) else "",
)
def test_invalid_rules_are_refused_with_one_sentence(rules: Any, message: str) -> None:
    for call in (
        lambda: measure("cdta/random", rules=rules, n=2),
        lambda: question(POOL[0], rules),
        lambda: read_move("e4", rules=rules),
    ):
        with pytest.raises(InvalidInput, match=message):
            call()
