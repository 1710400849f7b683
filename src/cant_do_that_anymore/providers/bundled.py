"""The bundled models: a small transformer trained on human games and on prompts, in three modes.

``cdta/reader`` reads the messages. ``cdta/pocket`` gets the moves only, so no prompt can affect it.
``cdta/pocket-rules`` does the same, restricted to legal moves. docs/pocket.md is the model card.
``cdta/random`` gives random answers and needs no network.
"""

import asyncio
import json
import os
import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from random import Random
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from ..files import DATA
from ..habits.base import Message
from .base import Answer, Model, Question, Settings, local_info

READER = "cdta/reader"
POCKET = "cdta/pocket"
POCKET_RULES = "cdta/pocket-rules"
BATCH = 64
MAX_TEXT = 1024  # tokens; of a longer text, the last ones are read
# Batches evaluated at once, one thread each: several threads on one batch would mostly wait.
WORKERS = min(4, os.cpu_count() or 1)

CANNOT_READ = "I know moves and cannot read."

_CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789.:?"
_WORD = re.compile(r"[a-h][1-8][a-h][1-8][nbrq]?\b|[^\W\d_]+|\d|[.:?]")
OTHER = "<other>"  # any letter that is not in the alphabet above

Tokens: TypeAlias = tuple[int, ...]
NO_TEXT: Tokens = (-1,)
Logits: TypeAlias = NDArray[np.float32]
# A text and the length of a game: all positions of a kind are evaluated together.
_Kind: TypeAlias = tuple[Tokens, int]


class Tokenizer:
    """Turns text into tokens: a move in UCI and a known word are one token each.

    Any other word becomes the longest known pieces of it, down to single letters, so that every
    text can be read.

    >>> Tokenizer(["e2e4"], ["bishop"]).tokens("E2E4: bishops")
    (0, 39, 42, 20)
    """

    def __init__(self, moves: Sequence[str], words: Sequence[str]) -> None:
        self.start = len(moves)  # the token before a game or a text
        vocabulary = (*_CHARACTERS, OTHER, *words)
        self._tokens = {word: self.start + 1 + index for index, word in enumerate(vocabulary)}
        self._tokens |= {move: token for token, move in enumerate(moves)}

    @staticmethod
    def words_of(text: str) -> list[str]:
        """Return the moves, words, digits and stops of a text; other punctuation is left out."""
        return _WORD.findall(text.lower())

    def tokens(self, text: str) -> tuple[int, ...]:
        """Return the tokens of a text."""
        words = self.words_of(text)
        return tuple(self._tokens[piece] for word in words for piece in self._split(word))

    def _split(self, word: str) -> Iterator[str]:
        while word:
            ends = range(len(word), 0, -1)
            piece = next((word[:end] for end in ends if word[:end] in self._tokens), OTHER)
            yield piece
            word = word[1 if piece == OTHER else len(piece) :]


class Network:
    """The network: logits of the reply, given a text and the moves so far.

    Attributes:
        moves: the vocabulary of moves, in the order of the scores.
        replies: the moves, then "yes" and "no".
        token: the index of each move in the vocabulary.
        digest: the SHA-256 digest of the weights.
    """

    def __init__(self) -> None:
        import onnxruntime  # type: ignore[import-untyped]  # takes long

        about: dict[str, Any] = json.loads((DATA / "pocket.json").read_bytes())
        self.moves: list[str] = about["moves"]
        self.replies = [*self.moves, "yes", "no"]
        self.digest: str = about["sha256"]
        self.token = {move: token for token, move in enumerate(self.moves)}
        self._tokenizer = Tokenizer(self.moves, about["words"])
        self._max_moves: int = about["context"] - 1
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession((DATA / "pocket.onnx").read_bytes(), options)

    def read(self, messages: Sequence[Message]) -> tuple[Tokens, Tokens]:
        """Return the tokens of a conversation: those of its text, and those of its game.

        A line of a turn that is a move belongs to the game; everything else is text. A game that is
        shown twice is one game.
        """
        text: list[str] = []
        moves: list[str] = []
        for message in messages:
            for line in message.content.splitlines():
                is_move = message.role != "system" and line in self.token
                (moves if is_move else text).append(line)
        once = len(moves) // 2
        if moves[:once] == moves[once:]:
            moves = moves[:once]
        return self._text_tokens("\n".join(text))[-MAX_TEXT:], self.tokens(moves)

    @lru_cache(maxsize=256)  # noqa: B019 (there is one network)
    def _text_tokens(self, text: str) -> Tokens:
        return self._tokenizer.tokens(text) or NO_TEXT

    def tokens(self, moves: Sequence[str]) -> Tokens:
        """Return the tokens of a game: the start token, then as many last moves as fit."""
        start = self._tokenizer.start
        excess = max(0, len(moves) - self._max_moves)
        last = moves[excess + excess % 2 :]  # whole pairs, since the parity tells the side
        return (start, *(self.token.get(move, start) for move in last))

    def scores(self, positions: Sequence[Tokens], text: Tokens = NO_TEXT) -> Logits:
        """Return a row of scores per position; all must have one length, so none needs padding."""
        tokens, words = np.array(positions, dtype=np.int64), np.array([text], dtype=np.int64)
        parts = (tokens[start : start + BATCH] for start in range(0, len(tokens), BATCH))
        inputs = ({"text": words, "tokens": part} for part in parts)
        return np.concatenate([self._session.run(None, batch)[0] for batch in inputs])


load_network = cache(Network)


class RandomModel(Model):
    """Gives a seeded, uniformly random answer: a legal move, or one of three answers."""

    info = local_info("cdta/random", connections=64)

    async def answer(self, question: Question, settings: Settings) -> Answer:
        """Give one answer, or none if there is none; yes or no to questions about an answer."""
        choices = ["yes", "no"] if question.about else question.rules.guesses(question.item)
        text = Random(settings.seed).choice(choices) if choices else ""
        return Answer(text, version=self.info.name)


class PocketModel(Model):
    """The network that reads the prompt (``cdta/reader``), or that does not (``cdta/pocket``).

    ``cdta/pocket-rules`` does not read either and is restricted to legal moves.
    """

    def __init__(self, name: str) -> None:
        self._network = load_network()
        self.info = local_info(name, 4 * BATCH, "chess", weights=self._network.digest)
        self._loop: asyncio.AbstractEventLoop | None = None

    async def answer(self, question: Question, settings: Settings) -> Answer:
        """Give the most likely reply, or sample one; reply "" if there is no legal move.

        To a question of legality, ``cdta/pocket-rules`` answers yes or no, and ``cdta/pocket`` that
        it cannot read.
        """
        reply = await self._reply(question, settings)
        return Answer(reply, version=self.info.name)

    async def _reply(self, question: Question, settings: Settings) -> str:
        network, name = self._network, self.info.name
        if name == READER:
            text, game = network.read(question.messages)
            return _pick(network.replies, await self.scores(text, game), settings)
        if question.about and name == POCKET:
            return CANNOT_READ
        rules, position = question.rules, cast(Any, question.item)  # a position: only_habit
        if question.about:
            return "yes" if rules.allows(question.about, position) else "no"
        scores = await self.scores(NO_TEXT, network.tokens(position.moves))
        moves, scores = network.moves, scores[: len(network.moves)]
        if name == POCKET_RULES:
            # Rules of your own may allow moves that no piece can make in chess.
            moves = [move for move in rules.guesses(position) if move in network.token]
            scores = scores[[network.token[move] for move in moves]]
        return _pick(moves, scores, settings) if moves else ""

    async def scores(self, text: Tokens, game: Tokens) -> Logits:
        """Return the scores of a position, evaluated with all waiting ones of its kind."""
        if self._loop is not asyncio.get_running_loop():  # a model may outlive an event loop
            self._loop = asyncio.get_running_loop()
            self._waiting: dict[_Kind, tuple[list[Tokens], asyncio.Task[Logits]]] = {}
            self._workers = asyncio.Semaphore(WORKERS)
        kind = text, len(game)
        if kind not in self._waiting:
            self._waiting[kind] = [], asyncio.create_task(self._evaluate(kind))
        positions, evaluation = self._waiting[kind]
        row = len(positions)
        positions.append(game)
        scores: Logits = (await asyncio.shield(evaluation))[row]
        return scores

    async def _evaluate(self, kind: _Kind) -> Logits:
        async with self._workers:
            positions, _ = self._waiting.pop(kind)
            return await asyncio.to_thread(self._network.scores, positions, kind[0])


def _pick(replies: Sequence[str], scores: Logits, settings: Settings) -> str:
    if not settings.temperature:
        return replies[int(scores.argmax())]
    relative = (scores - scores.max()).astype(np.float64)
    likelihoods = np.exp(relative / settings.temperature).cumsum()
    threshold = Random(settings.seed).random() * likelihoods[-1]
    return replies[int(likelihoods.searchsorted(threshold, side="right"))]
