"""Servers that answer each distinct request at random, but always alike; and files for them.

No two questions that differ in anything a request says have one coin, so that an answer in the
wrong place is seen. A larger token limit is the exception: it gives more of the same.
"""

import json
from pathlib import Path
from typing import Any
from zlib import crc32

import chess
from aiohttp import web

from cant_do_that_anymore import Rules, shipped_pool
from cant_do_that_anymore.game.position import write_positions
from cant_do_that_anymore.game.rules import PieceSwap
from loopback import Body, Loopback, asked_about, moves_in
from planted_models import SPECIAL, legal_under_both

LETTERS = 4
"""In a token."""
NO_PART = ("max_tokens", "max_completion_tokens", "path")
"""Of what the coin is tossed for."""
POSITIONS = sorted(shipped_pool("pool"), key=lambda position: len(position.moves))[:32]
FILES = ("pool", "dataset", "wording")
EDITIONS = 3
"""Of every file, and of the rules of one's own."""


class Coins(Loopback):
    """A model that plays its habit, another move or none, by a coin for every question.

    Attributes:
        edition: which model it is: of two editions no answer is the same.
        thinks: whether it thinks first, and takes no temperature.
    """

    def __init__(self, number: int, *, thinks: bool = False) -> None:
        super().__init__(self.said)
        self.number = number
        self.thinks = thinks
        self.become(0)

    def become(self, edition: int) -> None:
        """Be another model; of every second one the server says so."""
        self.edition = edition
        self.model = f"m-{(edition + 1) // 2}"

    def coin(self, request: Body) -> int:
        left_out = (*NO_PART, *(["temperature"] if self.thinks else []))
        asked = {name: value for name, value in request.items() if name not in left_out}
        return crc32(json.dumps([self.number, asked], sort_keys=True).encode())

    def said(self, request: Body) -> str:
        moves, coin = moves_in(request), self.coin(request)
        if asked_about(request):
            return ("yes", "no", "perhaps")[(coin + self.edition) % 3]
        choices = SPECIAL[moves], legal_under_both(moves)[coin % 5], "h8h1"
        words = "Everything considered I would play " if coin // 3 % 2 == 0 else ""
        return words + choices[(coin + self.edition) % 3]

    def completion(self, request: Body) -> dict[str, Any]:
        completion = super().completion(request)
        (choice,) = completion["choices"]
        limit = LETTERS * int(request.get("max_tokens") or request["max_completion_tokens"])
        text, thoughts = choice["message"]["content"], ""
        if self.thinks:
            thoughts = ("What would I play? " * 9)[: self.coin(request) % 120]
            choice["message"]["reasoning"] = thoughts[:limit]
        choice["message"]["content"] = text[: max(0, limit - len(thoughts))]
        if len(thoughts) + len(text) > limit:
            choice["finish_reason"] = "length"
        return completion

    async def answer(self, http: web.Request) -> web.StreamResponse:
        if self.thinks and json.loads(await http.read()).get("temperature", 1) != 1:
            message = "invalid temperature: only 1 is allowed for this model"
            return web.json_response({"error": {"message": message}}, status=400)
        return await super().answer(http)


class _Own(PieceSwap):
    """Rules that change and keep their name and their words."""

    key = "own"
    statement = "Bishops can no longer move diagonally: such a move is now illegal."


OWN_RULES: list[Rules] = [
    _Own(chess.BISHOP, like) for like in (chess.KNIGHT, chess.ROOK, chess.KNIGHT)
]


def write(folder: Path, name: str, edition: int) -> None:
    """One of the files that are edited: a pool, a dataset or a wording."""
    if name == "wording":
        task = f"Play in edition {edition}. {{position}}. Say the next move in UCI, nothing else."
        texts = {
            "standard": f"{task} It is chess.",
            "changed": f"{task} {{change}}",
        }
        lines = (f"{key} = {json.dumps(text)}\n" for key, text in texts.items())
        (folder / "wording.toml").write_text("".join(lines))
        return
    of_pool = POSITIONS[:18], POSITIONS[:12], POSITIONS[14:]
    of_dataset = POSITIONS[:6], POSITIONS[4:12], POSITIONS[:3]
    write_positions(folder / f"{name}.jsonl", (of_pool if name == "pool" else of_dataset)[edition])
