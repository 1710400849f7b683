"""The bundled games: pools drawn from them for any rules, and an example of each rule."""

from hashlib import sha256
from itertools import islice
from pathlib import Path

import chess
import pytest

from cant_do_that_anymore.habits.chess import rule_pool
from cant_do_that_anymore.habits.chess.rule_pool import (
    character_of,
    positions_in_games,
)
from cant_do_that_anymore.habits.chess.rules import (
    CATALOG,
    Rules,
    rules_named,
)

DOCS = Path(__file__).parents[3] / "docs"
every_rule = pytest.mark.parametrize("rules", CATALOG.values(), ids=lambda rules: rules.key)
POOL_DIGESTS = {
    "knights-as-bishops": "83ee8ac43287",
    "knights-as-rooks": "83ee8ac43287",
    "knights-as-queens": "83ee8ac43287",
    "bishops-as-knights": "58c2ea70453b",
    "bishops-as-rooks": "58c2ea70453b",
    "rooks-as-knights": "e73f26cbd096",
    "rooks-as-bishops": "e73f26cbd096",
    "queens-as-knights": "872f826803e9",
    "queens-as-bishops": "1a2604a72a62",
    "queens-as-rooks": "e751d32353f0",
    "no-castling": "a1a65b483c65",
    "pawns-one-step": "6f911ec53c87",
    "knights-cannot-jump": "b8fde099b3f7",
}
"""Digests of the first 100 positions of every pool: other positions need a new POOL_VERSION."""


@pytest.mark.parametrize("key", POOL_DIGESTS)
def test_the_first_positions_of_a_pool_are_fixed(key: str) -> None:
    rules = rules_named(key)
    positions = list(islice(positions_in_games(rules), 100))
    ids = " ".join(position.id for position in positions)
    assert sha256(ids.encode()).hexdigest()[:12] == POOL_DIGESTS[key]
    for position in positions:
        (usual,) = position.usual
        assert rules.is_habit(position.board(), chess.Move.from_uci(usual))


def test_positions_without_a_legal_move_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Knights that move like queens give mate with Nxf7, so Black has no legal move to adapt to."""
    moves = "e2e4 e7e5 g1f3 b8c6 d2d4 e5d4 f1c4 f8c5 f3g5 g8h6 g5f7 h6f7"
    game = "".join(character_of(chess.Move.from_uci(uci)) for uci in moves.split())
    monkeypatch.setattr(rule_pool, "shipped_games", lambda: [game] * 10)
    positions = positions_in_games(rules_named("knights-as-queens"))
    assert sorted(len(position.moves) for position in positions) == [2, 3, 8, 9, 10]


@every_rule
def test_the_docs_show_every_rule(rules: Rules) -> None:
    """As ``tools/rule_pictures.py`` writes them."""
    row = f"| `{rules.key}` | {rules.statement} |"
    assert (row in (DOCS / "rules.md").read_text(encoding="utf-8")) == rules.forbids_something
    assert (DOCS / "images" / "rules" / f"{rules.key}.png").exists() == rules.forbids_something
