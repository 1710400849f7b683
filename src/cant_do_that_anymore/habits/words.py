"""How screens speak of a habit."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Words:
    """How screens speak of a habit; by default, of any.

    Attributes:
        item: one item.
        answer: what a reply names.
        verb: what a model does with an answer; ``past`` is its past tense.
        place: the preposition between the answer and the items.
        as_usual: the rules before the change.
        allowed: what an answer is if the rules allow it; ``disallowed`` if not.
        group: what several items may be from.
        cannot: the end of a sentence about a model with few right answers, after their share.
        hopeless: what to think of a model without such answers, and what to try.
        labels: names of outcomes, where the outcome's own name does not fit.
    """

    item: str = "item"
    answer: str = "answer"
    verb: str = "gives"
    past: str = "gave"
    place: str = "to"
    as_usual: str = "under standard rules"
    allowed: str = "right"
    disallowed: str = "wrong"
    group: str = "group"
    cannot: str = ""
    hopeless: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def items(self) -> str:
        """Several items."""
        return f"{self.item}s"

    def few_right(self, share: str) -> str:
        """The sentence about a model with too few right answers."""
        how_many = "None" if share == "0%" else f"Only {share}"
        return f"{how_many} {self.cannot}: {self.hopeless}"

    @property
    def does(self) -> str:
        """What a model with the habit does, up to the number of items."""
        return f"{self.verb} its usual {self.answer} {self.place}"

    def label(self, outcome: str) -> str:
        """The name of an outcome on screens."""
        return self.labels.get(outcome, outcome)

    def fill(self, text: str) -> str:
        """Put the words into a text, in place of their names in braces.

        >>> ANY_HABIT.fill("a {answer} to {items} that is {allowed}")
        'an answer to items that is right'
        """

        def filled(found: re.Match[str]) -> str:
            article, name = found.groups(default="")
            word = str(getattr(self, name, f"{{{name}}}"))
            return ("an " if article and word[0] in "aeiou" else article) + word

        return re.sub(r"(\ba )?\{(\w+)\}", filled, text)


# How screens speak of several habits at once.
ANY_HABIT = Words()
