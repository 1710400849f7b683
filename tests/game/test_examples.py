"""Every change that forbids anything has an example."""

from pathlib import Path

import chess
import pytest

from cant_do_that_anymore.game.rule_pool import example_of
from cant_do_that_anymore.game.rules import CATALOGUE, STANDARD, Rules, board_after, rules_named

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("rules", CATALOGUE.values(), ids=lambda rules: rules.key)
def test_the_example_is_a_move_that_the_rules_forbid(rules: Rules) -> None:
    example = example_of(rules)
    assert bool(example) == rules.forbids_something
    if example:
        board = board_after(example.moves, STANDARD)
        (special,) = example.special_moves
        assert rules.is_special(board, chess.Move.from_uci(special))


@pytest.mark.parametrize("rules", CATALOGUE.values(), ids=lambda rules: rules.key)
def test_the_documentation_shows_the_rule_as_it_is(rules: Rules) -> None:
    """As ``tools/rule_pictures.py`` writes it."""
    row = f"| `{rules.key}` | {rules.statement} |"
    assert (row in (DOCS / "rules.md").read_text(encoding="utf-8")) == rules.forbids_something
    assert (DOCS / "images" / "rules" / f"{rules.key}.png").exists() == rules.forbids_something


def test_the_example_is_the_one_that_shows_most_moves() -> None:
    example = example_of(rules_named("bishops-as-knights"))
    assert example
    assert (len(example.moves), example.special_moves) == (20, ("c4b5",))
