"""The bundled models: the same habits everywhere, and a reader that a stated rule reaches."""

import asyncio
import importlib
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import chess
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cant_do_that_anymore.errors import UserError
from cant_do_that_anymore.game.position import DATA, Position, shipped_pool
from cant_do_that_anymore.game.rules import BISHOPS_AS_KNIGHTS, CATALOG, STANDARD, Rules
from cant_do_that_anymore.providers import pocket as module
from cant_do_that_anymore.providers.base import Answer, Message, Question, Settings
from cant_do_that_anymore.providers.catalog import model_named
from cant_do_that_anymore.providers.pocket import (
    BATCH,
    POCKET,
    POCKET_RULES,
    READER,
    Network,
    PocketModel,
    Scores,
    Tokenizer,
    Tokens,
    likelihoods_of,
    load_network,
)
from cant_do_that_anymore.task.conditions import question
from custom_rules import KnightsJumpFurther

POSITIONS = shipped_pool("pool")[::200]
DIAGONAL = shipped_pool("diagonal")[::100]
PINNED = """
d2d4 e2e4 f1e2 b1c3 f1b5 c8b7 f8g7 c8d7 e7e6 b1c3 f8c5 d7d5 d7d6 g4g5 c8g4 e4f5 f1b5 c1e3 f1g2 e5e4
d7d5 c8b7 f1d3 c8g4 c2c4 f3e5 g8f6 c1g5 f1d3 f3d4 c8g4 b1c3 b8c6 b1c3 f8d6 e7e5 f8d6 f8g7 g7g6 d8d5
"""
"""What it plays in every five hundredth position of the pool."""


GREEDY = Settings(0.0)


def played(
    name: str,
    histories: list[tuple[str, ...]],
    rules: Rules = STANDARD,
    *,
    temperature: float | None = 0.0,
    seed: int = 0,
    at_once: bool = True,
) -> list[str]:
    asked = [Question(rules, moves, (Message("user", rules.statement),)) for moves in histories]
    return answers(name, asked, Settings(temperature, 16, seed), at_once=at_once)


def answers(
    name: str, asked: list[Question], how: Settings = GREEDY, *, at_once: bool = True
) -> list[str]:
    model = PocketModel(name)

    async def answered() -> list[Answer]:
        if at_once:
            return await asyncio.gather(*(model.answer(each, how) for each in asked))
        return [await model.answer(each, how) for each in asked]

    return [answer.text for answer in asyncio.run(answered())]


def test_it_plays_the_same_moves_on_every_machine() -> None:
    assert (
        played(POCKET, [position.moves for position in shipped_pool("pool")[::500]])
        == PINNED.split()
    )


def test_it_plays_the_same_moves_one_at_a_time_and_in_batches() -> None:
    network = load_network()
    alike = [position for position in shipped_pool("pool") if len(position.moves) == 9][:BATCH]
    positions = [network.tokens(position.moves) for position in alike]
    alone = np.concatenate([network.scores([tokens]) for tokens in positions])
    together = network.scores(positions)
    assert (alone.argmax(1) == together.argmax(1)).all()
    np.testing.assert_allclose(alone, together, atol=1e-4)

    histories = [position.moves for position in POSITIONS[:50]]
    assert played(POCKET, histories) == played(POCKET, histories, at_once=False)


def test_it_has_the_habits_that_its_card_claims_and_no_rule_reaches_it() -> None:
    histories = [position.moves for position in POSITIONS]
    moves = played(POCKET, histories)
    pairs = list(zip(POSITIONS, moves, strict=True))
    legal = sum(STANDARD.is_legal(p.board(), chess.Move.from_uci(move)) for p, move in pairs)
    assert legal / len(pairs) >= 0.99
    assert sum(move in p.special_moves for p, move in pairs) / len(pairs) >= 0.33
    assert played(POCKET, histories, BISHOPS_AS_KNIGHTS) == moves


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("rules", [STANDARD, BISHOPS_AS_KNIGHTS], ids=str)
def test_held_to_the_rules_it_plays_only_what_they_allow(rules: Rules, temperature: float) -> None:
    """At temperature 0 it keeps every habit that they allow."""
    positions = [*POSITIONS, *DIAGONAL]
    histories = [position.moves for position in positions]
    free = played(POCKET, histories)
    held = played(POCKET_RULES, histories, rules, temperature=temperature)
    for position, habit, move in zip(positions, free, held, strict=True):
        assert rules.is_legal(position.board(), chess.Move.from_uci(move)), position
        if not temperature and rules.is_legal(position.board(), chess.Move.from_uci(habit)):
            assert move == habit


def test_held_to_the_rules_it_says_nothing_when_mated() -> None:
    assert played(POCKET_RULES, [("f2f3", "e7e5", "g2g4", "d8h4")]) == [""]


def test_above_temperature_0_it_draws_moves_by_their_likelihood() -> None:
    scores = load_network().scores([load_network().tokens(())])[0, :-2].astype(np.float64)
    odds = np.exp(scores - scores.max())
    likelihood = odds[load_network().token["e2e4"]] / odds.sum()
    model = PocketModel(POCKET)

    async def first_moves() -> list[Answer]:
        question = Question(STANDARD, (), ())
        drawn = (model.answer(question, Settings(1.0, 16, seed)) for seed in range(1000))
        return await asyncio.gather(*drawn)

    drawn = [answer.text for answer in asyncio.run(first_moves())]
    assert drawn.count("e2e4") / 1000 == pytest.approx(likelihood, abs=0.05)
    assert len(set(drawn)) > 3


def test_the_seed_decides_what_is_drawn_and_without_heat_the_likeliest_move_is() -> None:
    histories = [position.moves for position in POSITIONS[:50]]
    first = played(POCKET, histories, temperature=1.0, seed=1)
    assert first == played(POCKET, histories, temperature=1.0, seed=1, at_once=False)
    assert first != played(POCKET, histories, temperature=1.0, seed=2)
    likeliest = played(POCKET, histories)
    assert played(POCKET, histories, temperature=1e-9, seed=3) == likeliest
    assert played(POCKET, histories, temperature=None) == likeliest


KNOWN = st.deferred(lambda: st.sampled_from(load_network().moves))


@settings(max_examples=30)
@given(st.lists(KNOWN | st.just("e2e9"), max_size=200))
def test_it_plays_some_move_after_any_history(history: list[str]) -> None:
    (move,) = played(POCKET, [tuple(history)])
    assert move in load_network().token


def test_of_a_long_game_it_reads_the_end_and_keeps_whose_move_it_is() -> None:
    network = load_network()
    for length in range(301):
        moves = network.moves[:length]
        begin, *read = network.tokens(moves)
        assert begin == len(network.moves)
        assert len(read) == length if length < 50 else len(read) in (48, 49)
        assert (length - len(read)) % 2 == 0
        assert [network.moves[token] for token in read] == moves[length - len(read) :]


@pytest.mark.parametrize("rules", CATALOG.values(), ids=str)
def test_it_knows_every_move_that_any_rules_allow(rules: Rules) -> None:
    promoting = chess.Board("1n5k/P1P5/8/8/8/8/p1p5/1N5K w - - 0 1")
    for board in (promoting, *(position.board() for position in [*POSITIONS[::4], *DIAGONAL])):
        assert {move.uci() for move in rules.legal_moves(board)} <= load_network().token.keys()


def test_held_to_rules_of_ones_own_it_plays_the_moves_that_it_knows() -> None:
    assert played(POCKET_RULES, [()], KnightsJumpFurther()) in [[m] for m in ("e2e4", "d2d4")]


class TestReader:
    """`cdta/reader` gets the messages and nothing else, and what they say changes what it plays."""

    @pytest.fixture(scope="class")
    def habits(self) -> list[Position]:
        """Positions where it plays a special move, as long as nobody states a rule."""
        positions = shipped_pool("pool")[::120]
        moves = played(POCKET, [position.moves for position in positions])
        pairs = zip(positions, moves, strict=True)
        return [position for position, move in pairs if move in position.special_moves]

    def share(self, habits: list[Position], condition: str, *messages: Message) -> float:
        """How often it plays a special move, under a condition or with other messages first."""
        asked = [question(position, BISHOPS_AS_KNIGHTS, condition) for position in habits]
        if messages:
            asked = [replace(each, messages=(*messages, *each.messages[1:])) for each in asked]
        pairs = zip(habits, answers(READER, asked), strict=True)
        return sum(move in position.special_moves for position, move in pairs) / len(habits)

    def test_a_stated_rule_changes_what_it_plays(self, habits: list[Position]) -> None:
        standard = self.share(habits, "standard")
        assert standard > 0.9
        assert self.share(habits, "changed") < 0.6 * standard
        assert self.share(habits, "placebo") > 0.9 * standard

    @pytest.mark.parametrize("text", ["", "Colorless green ideas sleep.", "Лиса 123 ...", "pqzrv"])
    def test_text_without_a_rule_changes_nothing(self, habits: list[Position], text: str) -> None:
        assert self.share(habits[::2], "standard", Message("system", text)) > 0.9

    def test_it_reads_the_messages_alone(self, habits: list[Position]) -> None:
        (position, *_) = habits
        asked = question(position, BISHOPS_AS_KNIGHTS)
        (reply,) = answers(READER, [asked])
        assert answers(READER, [replace(asked, rules=STANDARD, moves=(), about="e2e4")]) == [reply]

    @pytest.mark.parametrize("condition", ["knows_forbidden", "knows_allowed"])
    def test_it_answers_questions_of_legality_with_yes_or_no(
        self, habits: list[Position], condition: str
    ) -> None:
        asked = [question(p, BISHOPS_AS_KNIGHTS, condition) for p in habits[::2]]
        replies = answers(READER, asked)
        assert sum(reply in ("yes", "no") for reply in replies) / len(replies) > 0.95

    def test_lines_of_turns_that_are_moves_are_the_game_and_all_else_is_text(self) -> None:
        network = load_network()
        text, game = network.read(
            [
                Message("system", "e2e4\nPlay."),
                Message("user", "Now\n\ne2e4"),
                Message("assistant", "e7e5"),
                Message("user", "g1f3\n\nIs e5e4 legal?"),
            ]
        )
        assert game == network.tokens(["e2e4", "e7e5", "g1f3"])
        assert text == network.read([Message("system", "e2e4 Play. Now Is e5e4 legal?")])[0]

    @given(st.text(max_size=3000))
    def test_any_text_can_be_read(self, text: str) -> None:
        tokens, _ = load_network().read([Message("system", text)])
        assert 1 <= len(tokens) <= module.MAX_TEXT

    def test_an_unknown_word_becomes_its_longest_known_pieces(self) -> None:
        tokenizer = Tokenizer(["e2e4"], ["bishop", "like"])
        assert tokenizer.tokens("bishoplike") == tokenizer.tokens("Bishop like")
        assert tokenizer.tokens("bisho") == tokenizer.tokens("b i s h o")
        assert tokenizer.tokens("e2e4") == (0,)


class TestTrainingTexts:
    """What the shipped prompts measure must not have been trained."""

    @pytest.fixture(scope="class")
    def texts(self) -> ModuleType:
        folder = Path(__file__).parents[2] / "training"
        with pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(str(folder))
            return importlib.import_module("texts")

    def test_no_training_text_has_a_sentence_of_a_shipped_prompt(self, texts: ModuleType) -> None:
        shipped = texts.shipped_sentences()
        written = [text for each in texts.training_texts(2, 20).values() for text in each]
        assert len(shipped) > 50
        assert not any(texts.sentences_of(text) & shipped for text in written)

    def test_no_training_text_states_a_held_out_rule_or_uses_a_held_out_phrase(
        self, texts: ModuleType
    ) -> None:
        written = texts.training_texts(2, 20)
        assert not set(texts.HELD_OUT_RULES) & written.keys()
        held_out = {p[1:] for each in texts.PHRASES.values() for p in each if p[:1] == "~"}
        plain = {phrase for phrase in held_out if "{" not in phrase}
        assert len(held_out) > 12
        assert not any(
            phrase in text for each in written.values() for text in each for phrase in plain
        )


class TestGathering:
    """Questions that come together are read together."""

    @pytest.fixture(autouse=True)
    def fresh(self) -> None:
        """A network that remembers nothing of other tests."""
        load_network.cache_clear()

    @pytest.fixture
    def sizes(self, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        sizes: list[int] = []
        scores = Network.scores

        def counted(network: Network, positions: list[Tokens], *text: Tokens) -> Scores:
            sizes.append(len(positions))
            return scores(network, positions, *text)

        monkeypatch.setattr(Network, "scores", counted)
        return sizes

    def test_questions_of_one_length_make_one_batch_if_they_come_at_once(
        self, sizes: list[int]
    ) -> None:
        played(POCKET, [(move,) for move in ("e2e4", "d2d4", "c2c4", "g1f3")])
        played(POCKET, [(move,) for move in ("b2b3", "b2b4")], at_once=False)
        assert sizes == [4, 1, 1]

    def test_each_question_gets_its_own_answer_from_many_batches(self, sizes: list[int]) -> None:
        histories = [position.moves for position in POSITIONS[:100]] * 2
        moves = played(POCKET, histories)
        assert moves[:100] == moves[100:]
        assert len(sizes) < len(histories) / 4

    def test_it_remembers_scores(self, sizes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
        first, second = POSITIONS[0].moves, POSITIONS[1].moves
        played(POCKET, [first])
        assert played(POCKET_RULES, [first]) == played(POCKET_RULES, [first])
        likelihoods_of([(first, ())])
        assert sizes == [1]
        monkeypatch.setattr(module, "MAX_CACHED_POSITIONS", 1)
        played(POCKET, [second])
        played(POCKET, [first])
        assert sizes == [1, 1, 1]

    def test_how_usual_a_move_is_follows_from_the_likelihoods(self, sizes: list[int]) -> None:
        network = load_network()
        asked = [(p.moves, p.special_moves) for p in POSITIONS[:30]]
        found = likelihoods_of(asked)
        for share, (moves, special) in zip(found, asked, strict=True):
            (scores,) = network.scores([network.tokens(moves)])
            all_likely = np.exp(scores[: len(network.moves)].astype(float))
            likely = sum(all_likely[network.token[move]] for move in special)
            assert share == pytest.approx(likely / all_likely.sum(), rel=1e-4)
        assert likelihoods_of([((), ("e2e4", "d2d4", "P@e4"))])[0] > 0.5
        assert likelihoods_of([]) == []

    def test_a_fault_reaches_everyone_in_the_batch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(network: Network, *_: object) -> Scores:
            raise RuntimeError("out of memory")

        monkeypatch.setattr(Network, "scores", broken)
        model = PocketModel(POCKET)
        question = Question(STANDARD, (), ())

        async def faults() -> list[object]:
            asked = [model.answer(question, Settings(0.0, 16)) for _ in range(3)]
            return list(await asyncio.gather(*asked, return_exceptions=True))

        assert [str(fault) for fault in asyncio.run(faults())] == ["out of memory"] * 3


class TestShippedFiles:
    """A damaged installation is said to be one."""

    @pytest.fixture
    def data(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
        for name in ("pocket.onnx", "pocket.json"):
            shutil.copy(str(DATA / name), tmp_path)
        monkeypatch.setattr(module, "DATA", tmp_path)
        load_network.cache_clear()
        yield tmp_path
        load_network.cache_clear()

    @pytest.mark.parametrize("name", ["pocket.onnx", "pocket.json"])
    @pytest.mark.parametrize("half", [slice(0, 1000), slice(1000, None), slice(0, 0), None])
    def test_a_bad_file_is_one_sentence(self, data: Path, name: str, half: slice | None) -> None:
        whole = (data / name).read_bytes()
        (data / name).unlink()
        if half:
            (data / name).write_bytes(whole[half])
        with pytest.raises(UserError, match="damaged or missing; install the package") as found:
            model_named(POCKET)
        assert found.value.exit_code == 1
        (data / name).write_bytes(whole)
        assert model_named(POCKET).info.name == POCKET

    def test_the_network_is_small(self) -> None:
        assert len((DATA / "pocket.onnx").read_bytes()) < 11_000_000
