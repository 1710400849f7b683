"""The bundled model: a small transformer trained on human games.

It sees moves and nothing else, so no wording can reach it; docs/pocket.md is its card.
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
from .base import CHAT_TOKENS, Answer, Question, RequestVariant, Settings

POCKET = "cdta/pocket"
POCKET_RULES = "cdta/pocket-rules"
BATCH = 64
MEMORY = 4096
"""So many positions are remembered, at 8 kB each."""
WORKERS = min(4, os.cpu_count() or 1)
"""So many batches are read at once, one thread each: threads that share a batch mostly wait."""

CANNOT_READ = "I know moves and cannot read."

Tokens: TypeAlias = tuple[int, ...]
Scores: TypeAlias = NDArray[np.float32]


class Network:
    """Scores for the next move, given the moves so far.

    Attributes:
        moves: the moves it knows, in the order of the scores.
        token: where in that order a move stands.
        digest: differs whenever its weights do.
    """

    def __init__(self) -> None:
        about, packed = _shipped()
        self.moves: list[str] = about["moves"]
        self.digest: str = about["sha256"]
        self.token = {move: token for token, move in enumerate(self.moves)}
        self._longest: int = about["context"] - 1
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(packed, options)
        self._known: dict[Tokens, Scores] = {}

    def tokens(self, moves: Sequence[str]) -> Tokens:
        """What the network reads: the token that begins a game, then the last moves played."""
        begin = len(self.moves)
        too_many = max(0, len(moves) - self._longest)
        read = moves[too_many + too_many % 2 :]  # pairs, since a move's place tells whose it is
        return (begin, *(self.token.get(move, begin) for move in read))

    def scores(self, positions: Sequence[Tokens]) -> Scores:
        """A row of scores for each position, all of one length: then none needs padding."""
        tokens = np.array(positions, dtype=np.int64)
        parts = (tokens[start : start + BATCH] for start in range(0, len(tokens), BATCH))
        return np.concatenate([self._session.run(None, {"tokens": part})[0] for part in parts])

    def share(self, scores: Scores, moves: Sequence[str]) -> float:
        """The part of all likelihood that falls on these moves."""
        likelihoods = np.exp((scores - scores.max()).astype(np.float64))
        tokens = [self.token[move] for move in moves if move in self.token]
        return float(likelihoods[tokens].sum() / likelihoods.sum())

    def known(self, position: Tokens) -> Scores | None:
        """The scores of a position that was read not long ago: a run asks about each again."""
        return self._known.get(position)

    def remember(self, position: Tokens, scores: Scores) -> None:
        """Keep the scores for a while."""
        if len(self._known) >= MEMORY:
            del self._known[next(iter(self._known))]
        self._known[position] = scores


def _shipped() -> tuple[dict[str, Any], bytes]:
    try:
        about = json.loads((DATA / "pocket.json").read_bytes())
        packed = (DATA / "pocket.onnx").read_bytes()
        intact = about["sha256"] == sha256(packed).hexdigest()
    except (OSError, ValueError, KeyError, TypeError):
        intact = False
    if not intact:
        raise UserError("the embedded model is damaged or missing: install the package again")
    return about, packed


the_network = cache(Network)


@dataclass
class _Batch:
    """Positions of one length that will be read together."""

    reading: asyncio.Task[Scores]
    positions: list[Tokens] = field(default_factory=list)


class PocketModel:
    """The network alone (``cdta/pocket``), or held to the rules (``cdta/pocket-rules``)."""

    endpoint = provider = ""
    connections = 4 * BATCH
    max_tokens = CHAT_TOKENS
    may_think = False

    def __init__(self, name: str) -> None:
        self.name = name
        self._network = the_network()
        self.identity = {"name": name, "weights": self._network.digest}
        self._open: dict[int, _Batch] = {}
        self._workers = asyncio.Semaphore(WORKERS)

    async def answer(
        self, question: Question, settings: Settings, form: RequestVariant = ()
    ) -> Answer:
        """Play the likeliest move, or one drawn by likelihood; nothing where there is no move.

        Asked whether a move is legal, say so, or that there is no telling.
        """
        if question.about:
            return Answer(self._said_of(question), version=self.name)
        scores = await self._scores(self._network.tokens(question.moves))
        moves = self._network.moves
        if self.name == POCKET_RULES:
            legal = question.rules.legal_moves(board_after(question.moves))
            moves = sorted(move.uci() for move in legal)
            scores = scores[[self._network.token[move] for move in moves]]
        return Answer(_played(moves, scores, settings) if moves else "", version=self.name)

    async def close(self) -> None:
        """Nothing to let go of."""

    def _said_of(self, question: Question) -> str:
        if self.name == POCKET:
            return CANNOT_READ
        return "yes" if question.is_legal else "no"

    async def _scores(self, tokens: Tokens) -> Scores:
        """The scores of one position, read with all others of its length that wait by then."""
        known = self._network.known(tokens)
        if known is not None:
            return known
        batch = self._open.get(len(tokens))
        if batch is None:
            batch = _Batch(asyncio.create_task(self._read(len(tokens))))
            self._open[len(tokens)] = batch
        row = len(batch.positions)
        batch.positions.append(tokens)
        scores: Scores = (await asyncio.shield(batch.reading))[row]
        self._network.remember(tokens, scores)
        return scores

    async def _read(self, length: int) -> Scores:
        async with self._workers:
            positions = self._open.pop(length).positions
            return await asyncio.to_thread(self._network.scores, positions)


def likelihoods_of(asked: Sequence[tuple[Sequence[str], Sequence[str]]]) -> list[float]:
    """How likely the network finds it that, after some moves, one of some others comes next.

    Raises:
        UserError: if the network cannot be read.
    """
    network = the_network()
    shares = [0.0] * len(asked)
    waiting: defaultdict[int, list[int]] = defaultdict(list)
    for place, (moves, wanted) in enumerate(asked):
        tokens = network.tokens(moves)
        known = network.known(tokens)
        if known is None:
            waiting[len(tokens)].append(place)
        else:
            shares[place] = network.share(known, wanted)
    batches = [
        places[start : start + BATCH]
        for places in waiting.values()
        for start in range(0, len(places), BATCH)
    ]

    def read(places: list[int]) -> Scores:
        return network.scores([network.tokens(asked[place][0]) for place in places])

    with ThreadPoolExecutor(WORKERS) as workers:
        for places, rows in zip(batches, workers.map(read, batches), strict=True):
            for place, scores in zip(places, rows, strict=True):
                shares[place] = network.share(scores, asked[place][1])
    return shares


def _played(moves: Sequence[str], scores: Scores, settings: Settings) -> str:
    if not settings.temperature:
        return moves[int(scores.argmax())]
    behind = (scores - scores.max()).astype(np.float64)
    likelihoods = np.exp(behind / settings.temperature).cumsum()
    drawn = Random(settings.seed).random() * likelihoods[-1]
    return moves[int(likelihoods.searchsorted(drawn, side="right"))]
