"""Stops early when a token limit spoils the answers, before more is spent on them."""

from ..errors import Unfinished
from ..game.rules import STANDARD, Rules
from ..models.model import Answer

FEWEST_TO_JUDGE = 20
TOO_MANY = 0.2


class CutOffWatch:
    """Counts replies that the token limit cut off before a move, or left empty.

    An empty reply counts only under the standard rules, and so does not stop the run of a model
    that falls silent when the rules change: that is a result.
    """

    def __init__(self, max_tokens: int) -> None:
        self._max_tokens = max_tokens
        self._seen = 0
        self._spoiled = 0

    def see(self, answer: Answer, move: str | None, rules: Rules) -> None:
        """Count one answer and the move read from it.

        Raises:
            Unfinished: if more than a fifth of the replies so far are spoiled.
        """
        cut_off = answer.stop_reason == "length" and move is None
        empty = answer.stop_reason == "stop" and not answer.text.strip() and rules is STANDARD
        self._seen += 1
        self._spoiled += cut_off or empty
        if self._seen >= FEWEST_TO_JUDGE and self._spoiled > TOO_MANY * self._seen:
            raise Unfinished(
                f"{self._spoiled} of the first {self._seen} replies were empty or cut off before a "
                f"move; raise --max-tokens (now {self._max_tokens}): models that reason first need "
                "hundreds"
            )
