"""Servers with a random but repeatable answer to each distinct request, and files for them.

Requests that differ in anything get different random numbers, so that an answer in the wrong place
is noticed. The exception is the token limit: a larger one gives more of the same text.
"""

import json
from pathlib import Path
from typing import Any
from zlib import crc32

import chess

from cant_do_that_anymore import shipped_pool
from cant_do_that_anymore.habits.chess.position import write_positions
from cant_do_that_anymore.habits.chess.rules import PieceSwap
from loopback import Body, Loopback, moves_in, queried_move, token_limit
from planted_models import USUAL, legal_under_both

IGNORED_FIELDS = ("max_tokens", "max_completion_tokens", "path")
"""Fields of a request that do not affect its random number."""
POSITIONS = sorted(shipped_pool("pool"), key=lambda position: len(position.moves))[:32]


class RandomServer(Loopback):
    """A model that plays its habit, another move or none, at random for each request.

    Attributes:
        version: which model it is; no two versions have an answer in common.
        is_reasoning: whether it sometimes reasons first, some 900 tokens at most, and does not
            support a temperature.
    """

    def __init__(self, number: int, *, is_reasoning: bool = False) -> None:
        super().__init__(self.reply, rejection=self.rejected)
        self.number = number
        self.is_reasoning = is_reasoning
        self.version = 0

    def number_for(self, request: Body) -> int:
        ignored = (*IGNORED_FIELDS, *(["temperature"] if self.is_reasoning else []))
        fields = {name: value for name, value in request.items() if name not in ignored}
        return crc32(json.dumps([self.number, fields], sort_keys=True).encode())

    def reply(self, request: Body) -> str:
        moves, number = moves_in(request), self.number_for(request)
        if queried_move(request):
            return ("yes", "no", "perhaps")[(number + self.version) % 3]
        choices = USUAL[moves], legal_under_both(moves)[number % 5], "h8h1"
        words = "Everything considered I would play " if number // 3 % 2 == 0 else ""
        return words + choices[(number + self.version) % 3]

    def completion(self, request: Body) -> dict[str, Any]:
        completion = super().completion(request) | {"model": f"m-{self.version}"}
        (choice,) = completion["choices"]
        message, reasoning = choice["message"], ""
        limit = 4 * token_limit(request)  # four characters per token
        if self.is_reasoning:
            length = max(0, self.number_for(request) % 120 - 60) * 60
            reasoning = ("What would I play? " * 200)[:length]
            message["reasoning"] = reasoning[:limit]
        if len(reasoning) + len(message["content"]) > limit:
            choice["finish_reason"] = "length"
        message["content"] = message["content"][: max(0, limit - len(reasoning))]
        return completion

    def rejected(self, request: Body) -> str:
        is_rejected = self.is_reasoning and request.get("temperature", 1) != 1
        return "invalid temperature: only 1 is allowed for this model" if is_rejected else ""


class CustomRules(PieceSwap):
    """Rules that keep their key and statement in every edition."""

    key = "custom"
    statement = "Bishops can no longer move diagonally: such a move is now illegal."


CUSTOM_RULES = [CustomRules(chess.BISHOP, like) for like in (chess.KNIGHT, chess.ROOK)]


def write_files(folder: Path, edition: int) -> None:
    """Write one of two editions of the pool, the dataset and the wording."""
    task = f"Play in edition {edition}. {{position}}. Say the next move in UCI, nothing else."
    texts = {"standard": f"{task} It is chess.", "changed": f"{task} {{change}}"}
    lines = (f"{key} = {json.dumps(text)}\n" for key, text in texts.items())
    (folder / "wording.toml").write_text("".join(lines))
    write_positions(folder / "pool.jsonl", POSITIONS[14 * edition :][:18])
    write_positions(folder / "dataset.jsonl", POSITIONS[4 * edition :][:7])
