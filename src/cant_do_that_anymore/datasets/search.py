"""Search a pool for items with the habit.

The search goes through the pool in seeded order at temperature 0 under the baseline condition, and
asks about each item once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil

from ..errors import Unmeasurable
from ..formatting import rounded
from ..habits.base import Item, Message, Pool
from ..providers.base import Answer, ModelInfo, Request, Settings, add_costs, digest
from ..task.spec import Spec
from ..task.types import Outcome, Plan, Score
from .storage import Dataset


@dataclass(frozen=True)
class SelectionConfig:
    """Everything that a dataset depends on besides the model version."""

    model: ModelInfo
    pool: Pool
    plan: Plan

    @cached_property
    def settings(self) -> Settings:
        """The settings of selection: always temperature 0 and the default seed."""
        settings, effort = self.plan.settings, self.plan.select_effort
        return replace(settings, temperature=0.0, seed=Settings.seed, reasoning_effort=effort)

    @cached_property
    def ordered(self) -> Sequence[Item]:
        """The pool in seeded order.

        A pool in random order stays as it is, so that rules with similar pools share requests. Of
        items that the form shows alike (other moves led to the same board), the first remains.
        """
        mixed, form = self.pool.in_seeded_order, self.plan.form
        if self.plan.has_default_form:
            return mixed
        shown: dict[tuple[Message, ...], Item] = {}
        for item in mixed:
            shown.setdefault(tuple(form.render(item)), item)
        return list(shown.values())

    def request(self, item: Item) -> Request:
        """Return the request about an item.

        Raises:
            InvalidInput: if the item is invalid under the rules.
        """
        question = self.plan.baseline.question(self.plan.change.checked(item))
        return Request(question, "selection", self.plan.baseline.name)

    def score(self, answer: Answer, item: Item) -> Score:
        """Score an answer about an item."""
        baseline = self.plan.baseline
        return baseline.read(answer, item, baseline.rules, self.plan.reading)

    @property
    def facts(self) -> dict[str, object]:
        """The metadata to save with a dataset: everything that decides which items it has."""
        prompt, form = self.plan.baseline.prompts[0], self.plan.form
        return {
            "rules": self.plan.change.identity,
            "pool": self.pool.digest,
            "text": prompt.text,
            "role": prompt.role,
            "form": form.name,
            "reading": self.plan.reading,
            "settings": self.settings.non_defaults,
            "identity": dict(self.model.identity),
        }

    @cached_property
    def digest(self) -> str:
        """Digest that distinguishes the datasets of one model version."""
        return digest(self.facts)[:8]


BUILT = "built"
# A search gives up if there are so many items for each hit, and for one more.
MAX_ITEMS_PER_HIT = 400
# It also gives up if, after so many answers, fewer than these shares are legal and usual.
ANSWERS_TO_JUDGE, MIN_LEGAL_SHARE, MIN_HIT_SHARE = 60, 0.25, 0.05
# So many requests of a search are started at least, even if one more item is missing.
MIN_AHEAD = 8


class Search:
    """Goes through the pool until enough items are found.

    Attributes:
        target: how many items are wanted.
        hits: the items found, in the order of the pool.
        searched: how many items of the pool are decided.
    """

    def __init__(self, config: SelectionConfig) -> None:
        self.config, self.target = config, config.plan.wanted
        self.hits: list[Item] = []
        self.searched = self._failed = self._legal = 0
        self._cost: float | None = 0.0

    @property
    def left(self) -> int:
        """How many items of the pool are undecided."""
        return len(self.config.ordered) - self.searched

    def max_ahead(self) -> int:
        """Return how many requests to have started, so that few answers are not needed.

        These are as many as should find the items that are missing, or as many as show that the
        model cannot do the task, while that seems likely.
        """
        rate = (len(self.hits) + 1) / (self.searched + 1)
        wanted = ceil((self.target - len(self.hits)) / rate)
        unjudged = ANSWERS_TO_JUDGE - self.searched
        if unjudged > 0 and self._cannot_do_it(ANSWERS_TO_JUDGE):
            wanted = min(wanted, unjudged)
        return max(MIN_AHEAD, wanted)

    def missing(self, rate: float) -> float:
        """Return how many items are still to be found if such a share of the others qualifies."""
        return min(self.target - len(self.hits), self.left * rate)

    @property
    def done(self) -> bool:
        """Whether enough items were found, or the pool is exhausted."""
        return len(self.hits) >= self.target or not self.left

    def gives_up(self, spec: Spec) -> bool:
        """Whether to end the search early.

        Hits are too rare, and most of the pool is left; or hardly any answer is even legal.
        """
        too_rare = self.searched >= MAX_ITEMS_PER_HIT * (len(self.hits) + 1)
        most_is_left = self.searched < self.left
        cannot_do_it = self.searched >= ANSWERS_TO_JUDGE and self._cannot_do_it(self.searched)
        return ((too_rare and most_is_left) or cannot_do_it) and not spec.keep_looking

    def _cannot_do_it(self, answers: int) -> bool:
        """Whether too few of so many answers are legal and usual, by those that are known."""
        few_legal = self._legal < MIN_LEGAL_SHARE * answers
        return few_legal and len(self.hits) < MIN_HIT_SHARE * answers

    def requests(self) -> Iterator[Request]:
        """Yield the requests about the items that are undecided, in the order of the pool."""
        return map(self.config.request, self.config.ordered[self.searched :])

    def observe(self, answer: Answer) -> Outcome:
        """Process the answer about the next item, and return its outcome."""
        change, item = self.config.plan.change, self.config.ordered[self.searched]
        score = self.config.score(answer, item)
        self.searched += 1
        if score.outcome == "usual":
            self.hits.append(change.checked(item))
        if score.answer:
            self._legal += change.standard.allows(score.answer, item)
        if answer.error:
            self._failed += 1
        else:
            self._cost = add_costs(self._cost, answer.cost)
        return score.outcome

    def dataset(self, version: str) -> Dataset:
        """Return the dataset that was found.

        Raises:
            Unmeasurable: if no item was found, or the search gave up.
        """
        if not (self.hits and self.done):
            raise Unmeasurable(self._few_hits(version))
        return Dataset(
            version=version,
            origin=BUILT,
            items=self.hits,
            rules=self.config.plan.change.identity,
            asked=self.searched,
            failed=self._failed,
            # Failed requests are sent again next time.
            pool_ended=not self.left and not self._failed,
            cost=self._cost,
            pool_name=self.config.pool.label,
        )

    def _few_hits(self, version: str) -> str:
        """Say that the model has the habit too rarely, and what to do."""
        words, hits = self.config.plan.change.its_habit.words, len(self.hits)
        found = f"{version} {words.does} {hits or 'none'} of the {self.searched:,} {words.items}"
        advice = ""
        if self._legal < MIN_LEGAL_SHARE * self.searched:
            advice = f". {words.few_right(rounded(self._legal / self.searched))}"
        if not self.left:
            return f"{found} of the pool, so there is no habit to measure{advice}"
        measurable = f", or -n {hits} to measure the {hits} found" if hits else ""
        stopped = f"The search stopped before the other {self.left:,}{advice}"
        return f"{found}. {stopped}. Use --keep-looking to continue{measurable}"
