"""A model that plays uniformly random legal moves: the floor of every scale."""

from collections.abc import Mapping
from random import Random

from ..game.rules import board_after
from .model import CHAT_TOKENS, Answer, Form, Question, Settings


class RandomModel:
    """Plays a seeded, uniformly random move that is legal under the rules of the question."""

    name = "cdta/random"
    endpoint = provider = ""
    connections = 64
    max_tokens = CHAT_TOKENS
    may_think = False

    @property
    def identity(self) -> Mapping[str, object]:
        """The name says it all."""
        return {"name": self.name}

    async def answer(self, question: Question, settings: Settings, form: Form = ()) -> Answer:
        """Play one move, or nothing where there is none; say yes or no to what asks for that."""
        board = board_after(question.moves)
        moves = sorted(move.uci() for move in question.rules.legal_moves(board))
        choices = ["yes", "no"] if question.about else moves
        text = Random(settings.seed).choice(choices) if choices else ""
        return Answer(text, version=self.name)

    async def close(self) -> None:
        """Nothing to let go of."""
