"""The games inside the package, and what is drawn from them."""

from collections.abc import Sequence
from hashlib import sha256
from itertools import islice, pairwise

import chess
import pytest

from cant_do_that_anymore.game import games
from cant_do_that_anymore.game.games import FILE, move_of, positions_in_games, shipped_games
from cant_do_that_anymore.game.position import Position
from cant_do_that_anymore.game.rules import STANDARD, Rules, board_after, rules_named

DRAWN = {
    "knights-as-bishops": "63c76de6b14b",
    "knights-as-rooks": "63c76de6b14b",
    "knights-as-queens": "63c76de6b14b",
    "bishops-as-knights": "4b4b28164b92",
    "bishops-as-rooks": "4b4b28164b92",
    "rooks-as-knights": "f0164055fac8",
    "rooks-as-bishops": "f0164055fac8",
    "queens-as-knights": "778ac44582fe",
    "queens-as-bishops": "c95992becbd7",
    "queens-as-rooks": "4878246102be",
    "no-castling": "783d23ec80f2",
    "pawns-one-step": "176e7246256e",
    "knights-cannot-jump": "62ef2326f515",
}
"""The first hundred positions of every pool: others are another edition."""


def first(rules: Rules, count: int) -> list[Position]:
    return list(islice(positions_in_games(rules), count))


def digest(positions: Sequence[Position]) -> str:
    return sha256(" ".join(position.id for position in positions).encode()).hexdigest()[:12]


def test_there_are_fifty_thousand_games_in_a_small_file() -> None:
    played = shipped_games()
    assert len(played) == 50_000
    assert all(one < other for one, other in pairwise(played))
    assert max(map(len, played)) == 50
    assert len(FILE.read_bytes()) < 2_000_000


def test_the_games_are_games_of_standard_chess() -> None:
    for game in shipped_games()[::250]:
        board_after([move_of(character).uci() for character in game], STANDARD)


@pytest.mark.parametrize("key", DRAWN)
def test_the_same_positions_are_drawn_everywhere(key: str) -> None:
    rules = rules_named(key)
    found = first(rules, 100)
    assert digest(found) == DRAWN[key]
    for position in found:
        (special,) = position.special_moves
        move = chess.Move.from_uci(special)
        assert rules.forbids(position.board(), move) and rules.concerns(position.board(), move)


def test_positions_differ_and_reach_from_the_opening_into_the_middlegame() -> None:
    found = first(rules_named("pawns-one-step"), 600)
    assert len({position.moves for position in found}) == len({p.game for p in found}) == 600
    plies = sorted(len(position.moves) for position in found)
    assert plies[0] == 0 and plies[-1] >= 45
    assert plies[60] < 10 and 10 < plies[300] < 30


def test_a_pool_is_full_some_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(games, "POOL", 5)
    assert len(list(positions_in_games(rules_named("no-castling")))) == 5
