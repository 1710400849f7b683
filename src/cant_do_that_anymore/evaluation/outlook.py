"""What a run comes to in all, told while it goes on."""

from ..client.budget import FREE, Price, is_counted
from ..datasets.storage import Dataset
from ..providers.base import Answer, Usage


class Outlook:
    """The questions and the cost of a run, by its answers so far, kept ones among them.

    Attributes:
        a_sample: how many questions a position takes once it is found.
        beyond: how many positions a run usually takes after those that are measured now.
    """

    def __init__(self, price: Price | None, a_sample: int) -> None:
        self.a_sample = a_sample
        self.beyond = 0
        self._price = price
        self._seen = 0
        self._used = Usage()
        self._counted = True

    def see(self, answer: Answer) -> None:
        """Count an answer."""
        self._seen += 1
        self._used += answer.usage
        self._counted &= bool(answer.error) or is_counted(answer)

    def after(self, dataset: Dataset) -> float:
        """The questions about those positions, to find them and to measure them."""
        each = (dataset.asked or 0) / len(dataset.positions) + self.a_sample
        return max(0, self.beyond) * each

    def in_all(self, to_come: float) -> str:
        """How far a run has come to which so many questions are still to come, and its cost."""
        total = self._seen + to_come
        asked = f"{self._seen:,} of about {total:,.0f} asked"
        return ", ".join(filter(None, (asked, self.cost_of(total))))

    def cost_of(self, questions: float) -> str:
        """What so many questions cost in the mean; in tokens, if nobody knows their price.

        Nothing is said where it is free, or where the tokens were not counted.
        """
        if self._price == FREE or not self._seen or not self._counted:
            return ""
        share = questions / self._seen
        if self._price:
            return f"${share * self._price.of(self._used, self._seen):,.2f}"
        return f"{share * (self._used.input_tokens + self._used.output_tokens):,.0f} tokens"
