"""A bundled model that plays random moves."""

from random import Random

from ..game.position import Position
from .base import Adjustments, Answer, Model, Question, Settings, local_info


class RandomModel(Model):
    """Plays a seeded, uniformly random move that is legal under the rules of the question."""

    info = local_info("cdta/random", connections=64)

    async def answer(
        self, question: Question, settings: Settings, adjustments: Adjustments = ()
    ) -> Answer:
        """Play one move, or none if there is none; answer yes or no to questions of legality."""
        board = Position(0, question.moves, ()).board()  # cached, for its score as well
        moves = sorted(move.uci() for move in question.rules.legal_moves(board))
        choices = ["yes", "no"] if question.about else moves
        text = Random(settings.seed).choice(choices) if choices else ""
        return Answer(text, version=self.info.name)
