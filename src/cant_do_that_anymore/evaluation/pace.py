"""How long answers take, before they are asked for."""

from dataclasses import dataclass

from ..providers.base import ModelInfo
from ..providers.catalogue import OUR_MODELS

SECONDS_AN_ANSWER = 1.0
TOKENS_A_SECOND = 50.0
OUR_ANSWERS_A_SECOND = 100.0
SECONDS_A_BATCH = 24 * 3600.0
WAVES = 2, 1
"""In so many batches a dataset is found and samples are measured, as a rule."""


@dataclass(frozen=True)
class Pace:
    """How quickly answers come, many at once.

    Attributes:
        looks: where they come in batches, how often all of these have to be waited for.
    """

    known: ModelInfo
    connections: int
    looks: int | None

    def seconds(self, questions: int, tokens: float, waves: int) -> float:
        """For so many answers of so many tokens, or at most for so many waves of them."""
        if self.looks:
            return self.looks * waves * SECONDS_A_BATCH if questions else 0.0
        if self.known.name in OUR_MODELS:
            return questions / OUR_ANSWERS_A_SECOND
        one = max(SECONDS_AN_ANSWER, tokens / TOKENS_A_SECOND)
        return questions * one / self.connections

    @property
    def basis(self) -> str:
        """What the times rest on."""
        if self.looks:
            looks = f", for each of {self.looks} looks at the precision" if self.looks > 1 else ""
            told = "a batch takes 24 h at most, and the dataset takes two, one time in five more"
            return told + looks
        if self.known.name in OUR_MODELS:
            return f"{OUR_ANSWERS_A_SECOND:.0f} answers a second are taken for our own models"
        return (
            f"{TOKENS_A_SECOND:.0f} tokens a second are taken, and {SECONDS_AN_ANSWER:g} s an "
            f"answer at least, with {self.connections} questions at once"
        )
