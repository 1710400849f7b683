"""Models that explain their moves: the move decides the score, not the explanation."""

from collections.abc import Callable
from itertools import product

import chess
import pytest

from cant_do_that_anymore.game.notation import move_number_prefix
from cant_do_that_anymore.game.rules import board_after
from testing import (
    Body,
    checksum,
    habit,
    is_changed,
    legal_under_both,
    measure,
    moves_in,
    positions,
)

TEMPLATES = (
    "{move}\n\n({habit} is illegal now.)",
    "Instead of {habit}, I play {move}.",
    "{habit}? No longer possible. {move}.",
    "~~{habit}~~ {move}",
    "I would normally play {habit}, but bishops now move like knights, so {move}.",
    "{habit} is not allowed under these rules.\n\n**Move:** `{move}`",
    "Bishops can no longer move diagonally, which rules out {habit}.\n\n{move}",
    "I'll go with {move} rather than {habit}, since bishops cannot move diagonally.",
)
STYLES = [*product(TEMPLATES, (False, True))]


def notate(request: Body, uci: str, *, in_san: bool) -> str:
    board = board_after(moves_in(request))
    return board.san(chess.Move.from_uci(uci)) if in_san else uci


def adapts(request: Body) -> str:
    """A legal move, with each explanation and notation in turn."""
    if not is_changed(request):
        return habit(request)
    moves = moves_in(request)
    template, in_san = STYLES[checksum(moves) % len(STYLES)]
    ucis = legal_under_both(moves)[0], habit(request)
    move, old_move = (notate(request, uci, in_san=in_san) for uci in ucis)
    return template.format(move=move, habit=old_move)


def test_a_model_that_adapts_and_explains_is_perfect() -> None:
    run = measure(adapts, dataset=positions(60))
    assert len({checksum(sample.position.moves) % len(STYLES) for sample in run.samples}) == 16
    metrics = run.results.metrics
    assert (metrics["variant_impact_factor"], metrics["adaptation_rate"]) == (-1, 1)


def two_half_moves(request: Body) -> str:
    """The habit and a reply to it, as in the text of a game."""
    board = board_after(moves_in(request))
    played = move_number_prefix(board) + board.san_and_push(chess.Move.from_uci(habit(request)))
    return f"{played} {board.san(min(board.legal_moves, key=str))}"


def both_sides_in_uci(request: Body) -> str:
    board = board_after(moves_in(request))
    board.push_uci(habit(request))
    return f"{habit(request)}\n\n{min(board.legal_moves, key=str).uci()}"


@pytest.mark.parametrize("player", [two_half_moves, both_sides_in_uci])
def test_a_model_that_plays_both_sides_scores_0(player: Callable[[Body], str]) -> None:
    run = measure(player, dataset=positions(12))
    assert run.results.metrics["variant_impact_factor"] == 0
    assert run.results.outcomes["changed"]["special"] == len(run.samples)
