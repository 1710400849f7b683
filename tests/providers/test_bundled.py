"""The bundled models: the same moves everywhere, and a reader that follows stated rules."""

import asyncio
import importlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import chess
import pytest

from cant_do_that_anymore.habits.base import Message
from cant_do_that_anymore.habits.chess.position import Position, shipped_pool
from cant_do_that_anymore.habits.chess.rules import BISHOPS_AS_KNIGHTS, CATALOG, STANDARD, Rules
from cant_do_that_anymore.providers.base import Answer, Question, Settings
from cant_do_that_anymore.providers.bundled import (
    MAX_TEXT,
    POCKET,
    POCKET_RULES,
    READER,
    PocketModel,
    load_network,
)
from cant_do_that_anymore.providers.catalog import parse_name
from cant_do_that_anymore.task.conditions import question
from custom_rules import KnightsJumpFurther

POSITIONS = shipped_pool("pool")[::200]
DIAGONAL = shipped_pool("diagonal")[::100]
GREEDY = Settings(0.0)


def replies_of(name: str, questions: Iterable[Question], settings: Settings = GREEDY) -> list[str]:
    """The replies to concurrent questions."""
    model = PocketModel(name)

    async def ask_all() -> list[Answer]:
        return await asyncio.gather(*(model.answer(each, settings) for each in questions))

    return [answer.text for answer in asyncio.run(ask_all())]


def moves_of(
    name: str,
    positions: Sequence[Position],
    rules: Rules = STANDARD,
    settings: Settings = GREEDY,
) -> list[str]:
    return replies_of(name, [Question(rules, position, ()) for position in positions], settings)


def after(*moves: str) -> Position:
    return Position(0, moves, ())


def test_it_has_the_habits_its_card_claims_and_ignores_the_rule() -> None:
    moves = moves_of(POCKET, POSITIONS)
    pairs = list(zip(POSITIONS, moves, strict=True))
    legal = sum(STANDARD.is_legal(p.board(), chess.Move.from_uci(move)) for p, move in pairs)
    assert legal / len(pairs) >= 0.99
    assert sum(move in p.usual for p, move in pairs) / len(pairs) >= 0.33
    assert moves_of(POCKET, POSITIONS, BISHOPS_AS_KNIGHTS) == moves


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("rules", [STANDARD, BISHOPS_AS_KNIGHTS], ids=str)
def test_pocket_rules_plays_only_legal_moves(rules: Rules, temperature: float) -> None:
    """At temperature 0 it plays its habit wherever that is legal."""
    positions = [*POSITIONS, *DIAGONAL]
    habits = moves_of(POCKET, positions)
    moves = moves_of(POCKET_RULES, positions, rules, Settings(temperature))
    for position, habit, move in zip(positions, habits, moves, strict=True):
        assert rules.is_legal(position.board(), chess.Move.from_uci(move)), position
        if not temperature and rules.is_legal(position.board(), chess.Move.from_uci(habit)):
            assert move == habit


def test_pocket_rules_without_a_legal_move_and_under_custom_rules() -> None:
    assert moves_of(POCKET_RULES, [after("f2f3", "e7e5", "g2g4", "d8h4")]) == [""]
    assert moves_of(POCKET_RULES, [after()], KnightsJumpFurther())[0] in ("e2e4", "d2d4")


@pytest.mark.parametrize("rules", CATALOG.values(), ids=str)
def test_its_vocabulary_has_every_legal_move_under_all_rules(rules: Rules) -> None:
    promoting = chess.Board("1n5k/P1P5/8/8/8/8/p1p5/1N5K w - - 0 1")
    for board in (promoting, *(position.board() for position in [*POSITIONS[::4], *DIAGONAL])):
        assert {move.uci() for move in rules.legal_moves(board)} <= load_network().token.keys()


def test_a_stated_rule_changes_the_moves_of_the_reader() -> None:
    kept = {}
    for condition in ("standard", "placebo", "changed"):
        questions = [question(position, BISHOPS_AS_KNIGHTS, condition) for position in POSITIONS]
        pairs = zip(POSITIONS, replies_of(READER, questions), strict=True)
        kept[condition] = sum(move in position.usual for position, move in pairs)
    assert kept["changed"] < 0.7 * kept["placebo"] and kept["placebo"] > 0.8 * kept["standard"]


@pytest.mark.parametrize("text", ["", "\0\ud800é", "?! " * 3000, "e2e4x " * 3000])
def test_any_text_can_be_read(text: str) -> None:
    tokens, _ = load_network().read([Message("system", text)])
    assert 1 <= len(tokens) <= MAX_TEXT


def test_no_training_text_contains_what_the_shipped_prompts_measure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "training"))
    texts = importlib.import_module("texts")
    training = texts.training_texts(2, 20)
    assert not set(texts.HELD_OUT_RULES) & training.keys()
    shipped = texts.shipped_sentences()
    held_out = {p[1:] for group in texts.PHRASES.values() for p in group if p[:1] == "~"}
    plain_phrases = {phrase for phrase in held_out if "{" not in phrase}
    assert len(shipped) > 50 and len(held_out) > 12
    for text in (text for group in training.values() for text in group):
        assert not texts.sentences_of(text) & shipped
        assert not any(phrase in text for phrase in plain_phrases)


def test_a_tag_tells_bundled_models_apart() -> None:
    infos = [parse_name("cdta/random", tag=tag).load().info for tag in ("one", "two", "")]
    assert [info.identity.get("tag") for info in infos] == ["one", "two", None]
