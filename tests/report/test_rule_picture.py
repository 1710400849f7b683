"""The diagram of a rule: the moves it adds, and the moves it takes away."""

import re

import chess

from cant_do_that_anymore import Position, Rules, rules_named
from cant_do_that_anymore.habits.chess.picture import rule_picture
from cant_do_that_anymore.report.run_page import page
from custom_rules import NoEnPassant
from run_builders import plan_of, run_from_answers

EN_PASSANT = Position(0, ("e2e4", "a7a6", "e4e5", "d7d5"), ("e5d6",))


def squares(pattern: str, board: str) -> str:
    """Names of the squares with marks that match the pattern."""
    corners = [(float(x), float(y)) for x, y in re.findall(pattern, board)]
    names = [chess.square_name(chess.square(int(x // 45), 7 - int(y // 45))) for x, y in corners]
    return " ".join(sorted(names))


def marks(rules: Rules) -> tuple[str, str, str]:
    """The squares of new and of lost moves, and the forbidden move of the example."""
    diagram = rule_picture(rules)
    assert diagram
    new = r'<circle cx="([\d.]+)" cy="([\d.]+)" r="\d+" class="now new(?: ring)?"'
    lost = r'<path d="M([\d.]+) ([\d.]+)l[^"]*" class="lost"'
    return squares(new, diagram.board), squares(lost, diagram.board), diagram.move


def test_dots_mark_new_moves_and_crosses_lost_moves() -> None:
    bishops = ("a3 a5 b6 d2 d6 e3 e5", "b5 d3 d5 e2 e6 f1 f7", "11. Bxb5")
    assert marks(rules_named("bishops-as-knights")) == bishops
    assert marks(rules_named("no-castling")) == ("", "c1 g1", "12. O-O-O")


def test_a_sample_is_shown_if_the_example_game_has_no_usual_move() -> None:
    plan = plan_of(change=NoEnPassant())
    answers = [(EN_PASSANT, {"standard": "usual", "changed": "legal"})]
    text = page(run_from_answers(answers, plan))  # type: ignore[arg-type]
    assert "Usual move, now illegal: e5d6" in text
    assert 'id="rule"' not in page(run_from_answers([], plan))
