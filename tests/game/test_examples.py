"""Every change that forbids anything has an example."""

import chess
import pytest

from cant_do_that_anymore.game.examples import example_of
from cant_do_that_anymore.game.rules import CATALOGUE, STANDARD, Rules, board_after, rules_named


@pytest.mark.parametrize("rules", CATALOGUE.values(), ids=lambda rules: rules.key)
def test_the_example_is_a_move_that_the_rules_forbid(rules: Rules) -> None:
    example = example_of(rules)
    assert bool(example) == rules.takes_away
    if example:
        board = board_after(example.moves, STANDARD)
        (special,) = example.special_moves
        assert rules.forbids(board, chess.Move.from_uci(special))
        assert rules.concerns(board, chess.Move.from_uci(special))


def test_the_example_is_the_one_that_shows_most_moves() -> None:
    example = example_of(rules_named("bishops-as-knights"))
    assert example
    assert (len(example.moves), example.special_moves) == (20, ("c4b5",))
