"""Servers with a random but repeatable answer to each distinct request, and files for them.

Requests that differ in anything get different random numbers, so that an answer in the wrong place
is noticed. The exception is the token limit: a larger one gives more of the same text.
"""

import json
from pathlib import Path
from typing import Any
from zlib import crc32

import chess
from aiohttp import web

from cant_do_that_anymore import Rules, shipped_pool
from cant_do_that_anymore.habits.chess.position import write_positions
from cant_do_that_anymore.habits.chess.rules import PieceSwap
from loopback import Body, Loopback, moves_in, queried_move
from planted_models import USUAL, legal_under_both

CHARACTERS_PER_TOKEN = 4
IGNORED_FIELDS = ("max_tokens", "max_completion_tokens", "path")
"""Fields of a request that do not affect its random number."""
POSITIONS = sorted(shipped_pool("pool"), key=lambda position: len(position.moves))[:32]
FILES = ("pool", "dataset", "wording")
EDITIONS = 3
"""The number of editions of each file and of the custom rules."""


class RandomServer(Loopback):
    """A model that plays its habit, another move or none, at random for each request.

    Attributes:
        edition: which model it is; no two editions have an answer or a version in common.
        is_reasoning: whether it sometimes reasons first, some 900 tokens at most, and does not
            support a temperature.
    """

    def __init__(self, number: int, *, is_reasoning: bool = False) -> None:
        super().__init__(self.reply)
        self.number = number
        self.is_reasoning = is_reasoning
        self.replace_model(0)

    def replace_model(self, edition: int) -> None:
        """Become another model."""
        self.edition = edition
        self.model = f"m-{edition}"

    def number_for(self, request: Body) -> int:
        ignored = (*IGNORED_FIELDS, *(["temperature"] if self.is_reasoning else []))
        fields = {name: value for name, value in request.items() if name not in ignored}
        return crc32(json.dumps([self.number, fields], sort_keys=True).encode())

    def reply(self, request: Body) -> str:
        moves, number = moves_in(request), self.number_for(request)
        if queried_move(request):
            return ("yes", "no", "perhaps")[(number + self.edition) % 3]
        choices = USUAL[moves], legal_under_both(moves)[number % 5], "h8h1"
        words = "Everything considered I would play " if number // 3 % 2 == 0 else ""
        return words + choices[(number + self.edition) % 3]

    def completion(self, request: Body) -> dict[str, Any]:
        completion = super().completion(request)
        (choice,) = completion["choices"]
        message = choice["message"]
        limit = CHARACTERS_PER_TOKEN * int(
            request.get("max_tokens") or request["max_completion_tokens"]
        )
        reasoning = ""
        if self.is_reasoning:
            length = max(0, self.number_for(request) % 120 - 60) * 60
            reasoning = ("What would I play? " * 200)[:length]
            message["reasoning"] = reasoning[:limit]
        if len(reasoning) + len(message["content"]) > limit:
            choice["finish_reason"] = "length"
        message["content"] = message["content"][: max(0, limit - len(reasoning))]
        return completion

    async def answer(self, http: web.Request) -> web.StreamResponse:
        if self.is_reasoning and json.loads(await http.read()).get("temperature", 1) != 1:
            message = "invalid temperature: only 1 is allowed for this model"
            return web.json_response({"error": {"message": message}}, status=400)
        return await super().answer(http)


class _CustomRules(PieceSwap):
    """Rules that change but keep their key and statement."""

    key = "custom"
    statement = "Bishops can no longer move diagonally: such a move is now illegal."


CUSTOM_RULES: list[Rules] = [
    _CustomRules(chess.BISHOP, like) for like in (chess.KNIGHT, chess.ROOK, chess.KNIGHT)
]


def write_edition(folder: Path, name: str, edition: int) -> None:
    """Write an edition of a file: the pool, the dataset or the wording."""
    if name == "wording":
        task = f"Play in edition {edition}. {{position}}. Say the next move in UCI, nothing else."
        texts = {"standard": f"{task} It is chess.", "changed": f"{task} {{change}}"}
        lines = (f"{key} = {json.dumps(text)}\n" for key, text in texts.items())
        (folder / "wording.toml").write_text("".join(lines))
        return
    pools = POSITIONS[:18], POSITIONS[:12], POSITIONS[14:]
    datasets = POSITIONS[:6], POSITIONS[4:12], POSITIONS[:3]
    write_positions(folder / f"{name}.jsonl", (pools if name == "pool" else datasets)[edition])
