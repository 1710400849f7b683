"""The bundled model: a small transformer trained on human games.

It sees moves only, so prompts cannot affect it. docs/pocket.md is its model card.
"""

import asyncio
import json
import os
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from random import Random
from typing import Any, TypeAlias

import numpy as np
import onnxruntime  # type: ignore[import-untyped]
from numpy.typing import NDArray

from ..errors import UserError
from ..game.position import DATA
from ..game.rules import board_after
from .base import Answer, Model, Question, RequestVariant, Settings, local_info

POCKET = "cdta/pocket"
POCKET_RULES = "cdta/pocket-rules"
BATCH = 64
MAX_CACHED_POSITIONS = 4096  # at 8 kB each
# Batches evaluated at once, one thread each: several threads on one batch would mostly wait.
WORKERS = min(4, os.cpu_count() or 1)

CANNOT_READ = "I know moves and cannot read."

Tokens: TypeAlias = tuple[int, ...]
Scores: TypeAlias = NDArray[np.float32]


class Network:
    """The network: logits of the next move, given the moves so far.

    Attributes:
        moves: the vocabulary, in the order of the scores.
        token: the index of each move in the vocabulary.
        digest: the SHA-256 digest of the weights.
    """

    def __init__(self) -> None:
        about, packed = _load_files()
        self.moves: list[str] = about["moves"]
        self.digest: str = about["sha256"]
        self.token = {move: token for token, move in enumerate(self.moves)}
        self._max_moves: int = about["context"] - 1
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(packed, options)
        self._cache: dict[Tokens, Scores] = {}

    def tokens(self, moves: Sequence[str]) -> Tokens:
        """Return the network's input: the start token, then as many last moves as fit."""
        start = len(self.moves)
        excess = max(0, len(moves) - self._max_moves)
        last = moves[excess + excess % 2 :]  # whole pairs, since the parity tells the side
        return (start, *(self.token.get(move, start) for move in last))

    def scores(self, positions: Sequence[Tokens]) -> Scores:
        """Return a row of scores per position; all must have one length, so none needs padding."""
        tokens = np.array(positions, dtype=np.int64)
        parts = (tokens[start : start + BATCH] for start in range(0, len(tokens), BATCH))
        return np.concatenate([self._session.run(None, {"tokens": part})[0] for part in parts])

    def share(self, scores: Scores, moves: Sequence[str]) -> float:
        """Return the total probability of these moves."""
        likelihoods = np.exp((scores - scores.max()).astype(np.float64))
        tokens = [self.token[move] for move in moves if move in self.token]
        return float(likelihoods[tokens].sum() / likelihoods.sum())

    def cached_scores(self, position: Tokens) -> Scores | None:
        """Return the cached scores of a position, if any: a run asks about each more than once."""
        return self._cache.get(position)

    def cache_scores(self, position: Tokens, scores: Scores) -> None:
        """Cache the scores, dropping the oldest ones."""
        if len(self._cache) >= MAX_CACHED_POSITIONS:
            del self._cache[next(iter(self._cache))]
        self._cache[position] = scores


def _load_files() -> tuple[dict[str, Any], bytes]:
    try:
        about = json.loads((DATA / "pocket.json").read_bytes())
        packed = (DATA / "pocket.onnx").read_bytes()
        intact = about["sha256"] == sha256(packed).hexdigest()
    except (OSError, ValueError, KeyError, TypeError):
        intact = False
    if not intact:
        raise UserError("the bundled model is damaged or missing; install the package again")
    return about, packed


load_network = cache(Network)


@dataclass
class _Batch:
    """Positions of one length that the network will evaluate together."""

    evaluation: asyncio.Task[Scores]
    positions: list[Tokens] = field(default_factory=list)


class PocketModel(Model):
    """The network (``cdta/pocket``), or restricted to legal moves (``cdta/pocket-rules``)."""

    def __init__(self, name: str) -> None:
        self._network = load_network()
        self.info = local_info(name, connections=4 * BATCH, weights=self._network.digest)
        self._open: dict[int, _Batch] = {}
        self._workers = asyncio.Semaphore(WORKERS)

    async def answer(
        self, question: Question, settings: Settings, variant: RequestVariant = ()
    ) -> Answer:
        """Play the most likely move, or sample one; reply "" if there is no legal move.

        To a question of legality, ``cdta/pocket-rules`` answers yes or no, and ``cdta/pocket`` that
        it cannot read.
        """
        if question.about and self.info.name == POCKET:
            return Answer(CANNOT_READ, version=self.info.name)
        if question.about:
            return Answer("yes" if question.is_legal else "no", version=self.info.name)
        scores = await self._scores(self._network.tokens(question.moves))
        moves = self._network.moves
        if self.info.name == POCKET_RULES:
            legal = question.rules.legal_moves(board_after(question.moves))
            moves = sorted(move.uci() for move in legal)
            scores = scores[[self._network.token[move] for move in moves]]
        return Answer(_pick_move(moves, scores, settings) if moves else "", version=self.info.name)

    async def _scores(self, tokens: Tokens) -> Scores:
        """Return the scores of a position, evaluated with all waiting ones of its length."""
        cached = self._network.cached_scores(tokens)
        if cached is not None:
            return cached
        batch = self._open.get(len(tokens))
        if batch is None:
            batch = _Batch(asyncio.create_task(self._evaluate(len(tokens))))
            self._open[len(tokens)] = batch
        row = len(batch.positions)
        batch.positions.append(tokens)
        scores: Scores = (await asyncio.shield(batch.evaluation))[row]
        self._network.cache_scores(tokens, scores)
        return scores

    async def _evaluate(self, length: int) -> Scores:
        async with self._workers:
            positions = self._open.pop(length).positions
            return await asyncio.to_thread(self._network.scores, positions)


def likelihoods_of(queries: Sequence[tuple[Sequence[str], Sequence[str]]]) -> list[float]:
    """Return the probability of the given next moves after the given moves, per query.

    Raises:
        UserError: if the network's files are missing or damaged.
    """
    network = load_network()
    shares = [0.0] * len(queries)
    waiting: defaultdict[int, list[int]] = defaultdict(list)
    for index, (moves, wanted) in enumerate(queries):
        tokens = network.tokens(moves)
        cached = network.cached_scores(tokens)
        if cached is None:
            waiting[len(tokens)].append(index)
        else:
            shares[index] = network.share(cached, wanted)
    batches = [
        indices[start : start + BATCH]
        for indices in waiting.values()
        for start in range(0, len(indices), BATCH)
    ]

    def evaluate(indices: list[int]) -> Scores:
        return network.scores([network.tokens(queries[index][0]) for index in indices])

    with ThreadPoolExecutor(WORKERS) as workers:
        for indices, rows in zip(batches, workers.map(evaluate, batches), strict=True):
            for index, scores in zip(indices, rows, strict=True):
                shares[index] = network.share(scores, queries[index][1])
    return shares


def _pick_move(moves: Sequence[str], scores: Scores, settings: Settings) -> str:
    if not settings.temperature:
        return moves[int(scores.argmax())]
    relative = (scores - scores.max()).astype(np.float64)
    likelihoods = np.exp(relative / settings.temperature).cumsum()
    threshold = Random(settings.seed).random() * likelihoods[-1]
    return moves[int(likelihoods.searchsorted(threshold, side="right"))]
