"""How long answers take, before they are asked for."""

from dataclasses import dataclass

from ..models.model import Known
from ..models.names import OUR_MODELS

SECONDS_AN_ANSWER = 1.0
TOKENS_A_SECOND = 50.0
OUR_ANSWERS_A_SECOND = 100.0
SECONDS_A_BATCH = 24 * 3600.0
WAVES = 2, 1
"""In so many batches a dataset is found and samples are measured, as a rule, at one look."""


@dataclass(frozen=True)
class Pace:
    """How quickly answers come, many at once."""

    known: Known
    connections: int
    measured: float | None
    in_batches: bool

    def seconds(self, questions: int, tokens: float, waves: int) -> float:
        """For so many answers of so many tokens, or at most for so many waves of them."""
        if self.in_batches:
            return waves * SECONDS_A_BATCH if questions else 0.0
        if self.known.name in OUR_MODELS:
            return questions / OUR_ANSWERS_A_SECOND
        one = self.measured or max(SECONDS_AN_ANSWER, tokens / TOKENS_A_SECOND)
        return questions * one / self.connections

    @property
    def basis(self) -> str:
        """What the times rest on."""
        if self.in_batches:
            return (
                "a batch takes 24 h at most, and the dataset takes two, one time in five more; "
                "with a precision, every look takes one of each"
            )
        if self.known.name in OUR_MODELS:
            return f"{OUR_ANSWERS_A_SECOND:.0f} answers a second are taken for our own models"
        if self.measured:
            one = f"{self.measured:.1f} s an answer, as in the pilot"
        else:
            least = f"{SECONDS_AN_ANSWER:g} s an answer at least"
            one = f"{TOKENS_A_SECOND:.0f} tokens a second are taken, and {least}"
        return f"{one}, with {self.connections} questions at once"
