"""What a run comes to in all, told while it goes on."""

from ..models.model import Answer, Usage
from ..models.purse import FREE, Price


class Outlook:
    """The questions and the cost of a run, by its answers so far, kept ones among them.

    Attributes:
        a_sample: how many questions a position takes once it is found.
    """

    def __init__(self, price: Price | None, a_sample: int) -> None:
        self.a_sample = a_sample
        self._price = price
        self._seen = 0
        self._used = Usage()

    def see(self, answer: Answer) -> None:
        """Count an answer."""
        self._seen += 1
        self._used += answer.usage

    def in_all(self, to_come: float) -> str:
        """What the run comes to if so many questions are still to come."""
        questions = self._seen + to_come
        return ", ".join(filter(None, (f"about {questions:,.0f} in all", self.cost_of(questions))))

    def cost_of(self, questions: float) -> str:
        """What so many questions cost in the mean; in tokens, if nobody knows their price."""
        if self._price == FREE or not self._seen:
            return ""
        share = questions / self._seen
        if self._price:
            return f"${share * self._price.of(self._used, self._seen):,.2f}"
        return f"{share * (self._used.input_tokens + self._used.output_tokens):,.0f} tokens"
