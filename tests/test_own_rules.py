"""Rules of one's own, from Python: a short class, its pool, its runs and its files."""

import re
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Any

import chess
import pytest

from cant_do_that_anymore import Rules, Spec, evaluate, load
from cant_do_that_anymore.datasets.storage import all_datasets
from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.game import rule_pool
from cant_do_that_anymore.game.rules import CATALOGUE, STANDARD, copy_as, identity_of, placebo_of
from own_rules import NoEnPassant
from processes import cdta

DOCUMENT = Path(__file__).parents[1] / "docs" / "rules.md"


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_pool, "POOL_SIZE", 20)


def test_the_example_of_the_documentation_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    (definition,) = re.findall(r"class .*?\n\n(?=\w)", example, re.DOTALL)
    assert len(definition.strip().splitlines()) <= 15
    monkeypatch.chdir(tmp_path)
    made: dict[str, Any] = {}
    exec(example, made)
    assert made["run"].results.metrics["variant_impact_factor"] == -1
    assert made["again"].samples == made["run"].samples
    assert made["again"].plan.change.statement in (tmp_path / "my-run/report.html").read_text()


def test_a_run_under_rules_of_ones_own_is_read_back_only_with_them(tmp_path: Path) -> None:
    run = evaluate(Spec(model="cdta/pocket", rules=NoEnPassant(), n=5), quiet=True)
    run.save(tmp_path / "run")
    assert load(tmp_path / "run", rules=NoEnPassant()).plan == run.plan
    with pytest.raises(
        InvalidInput, match=r"rules 'no-en-passant-\w{8}', which are not in the cat"
    ):
        load(tmp_path / "run")
    with pytest.raises(InvalidInput, match="not under those given, 'no-castling'"):
        load(tmp_path / "run", rules=CATALOGUE["no-castling"])
    told = cdta("compare", tmp_path / "run", tmp_path / "run")
    assert told.returncode == 2 and "load(FOLDER, rules=...)" in told.stderr


def test_rules_of_ones_own_are_diagnosed() -> None:
    spec = Spec(model="cdta/pocket-rules", rules=NoEnPassant(), n=5, temperature=0, diagnose=True)
    metrics = evaluate(spec, quiet=True).results.metrics
    assert metrics["corrected_impact_factor"] == -1
    assert metrics["placebo_impact_factor"] == 0
    assert metrics["rule_knowledge"] == 1


def test_datasets_under_rules_of_ones_own_are_listed() -> None:
    evaluate(Spec(model="cdta/pocket", rules=NoEnPassant(), n=3), quiet=True)
    listed = [facts["rules"] for _, facts in all_datasets().values()]
    assert identity_of(NoEnPassant()) in listed
    assert identity_of(NoEnPassant()) in cdta("dataset", "list").stdout


class NoCapturesEnPassantByWhite(NoEnPassant):
    """The same key and statement, but another rule."""

    def view(self, board: chess.Board) -> chess.Board:
        return super().view(board) if board.turn else board.copy(stack=False)


def test_rules_that_were_edited_are_other_rules(home: Path) -> None:
    """Their pool is mined again, and models that cannot read are asked again."""
    for rules in (NoEnPassant(), NoCapturesEnPassantByWhite()):
        run = evaluate(Spec(model="cdta/pocket-rules", rules=rules, n=20), quiet=True)
        assert run.results.metrics["variant_impact_factor"] == -1
    assert len(list(home.glob("pools/no-en-passant-*"))) == 2
    sides = {len(sample.position.moves) % 2 for sample in run.samples}
    assert sides == {0}


def test_rules_of_the_catalogue_are_known_by_their_key_and_equal_rules_by_one_digest() -> None:
    assert identity_of(STANDARD) == "standard"
    assert identity_of(CATALOGUE["rooks-as-bishops"]) == "rooks-as-bishops"
    assert identity_of(NoEnPassant()) == identity_of(NoEnPassant())
    assert identity_of(NoEnPassant()) == "no-en-passant-cf963b25"  # in every process


class Unnamed(NoEnPassant):
    key = "No en passant!"


class Taken(NoEnPassant):
    key = "no-castling"


class Careless(NoEnPassant):
    key = "careless"

    def view(self, board: chess.Board) -> chess.Board:
        board.ep_square = None
        return copy_as(chess.Board, board)


class Coin(NoEnPassant):
    """Sometimes nobody may castle."""

    key = "coin"
    coin = Random(0)

    def view(self, board: chess.Board) -> chess.Board:
        view = super().view(board)
        if self.coin.random() < 0.5:
            view.castling_rights = 0
        return view


class EverySecond(NoEnPassant):
    key = "every-second"
    strict = cycle([True, False])

    def view(self, board: chess.Board) -> chess.Board:
        view = super().view(board)
        if next(self.strict):
            view.castling_rights = 0
        return view


class NotTwice(NoEnPassant):
    """Depends on the last move, which the board knows."""

    key = "not-twice"

    def view(self, board: chess.Board) -> chess.Board:
        view = board.copy(stack=False)
        if board.move_stack and board.peek().to_square in (chess.E4, chess.E5):
            view.castling_rights = 0
        return view


def test_rules_may_depend_on_the_moves_of_the_board() -> None:
    assert identity_of(NotTwice()).startswith("not-twice-")


@pytest.mark.parametrize(
    ("rules", "sentence"),
    [
        (Unnamed(), "'no-en-passant', not 'No en passant!'"),
        (Taken(), "'no-castling' is one of the catalogue"),
        (Careless(), r"view\(\) of careless changes the board"),
        (Coin(), r"view\(\) of coin answers differently when asked twice .*e[18][cg][18] in"),
        (EverySecond(), "every-second answers differently when asked twice"),
        (NoEnPassant, r"a value such as MyRule\(\), not <class"),
        (3, "not 3"),
    ],
    ids=["key", "taken", "view", "random", "stateful", "class", "number"],
)
def test_rules_that_cannot_work_are_refused_in_one_sentence(rules: Any, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        evaluate(Spec(model="cdta/random", rules=rules, n=2), quiet=True)


def test_the_placebo_of_rules_that_name_none_is_that_nobody_castles() -> None:
    assert isinstance(NoEnPassant(), Rules)
    assert placebo_of(NoEnPassant()) == CATALOGUE["no-castling"]
