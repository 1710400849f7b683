"""Find or build a model's dataset: the positions whose special move it plays by itself.

A dataset belongs to one model: the version that answers, at its address, over its API, with its
settings; two models of one name have two datasets. It is built once, from a pool in seeded order at
temperature 0 under the baseline condition. Every answer is in the store, so a larger dataset goes
on where the last one ended.
"""

import json
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from itertools import islice
from random import Random

from ..errors import Unfinished
from ..game.position import Position
from ..game.rules import BISHOPS_AS_KNIGHTS
from ..models.asking import Asking
from ..models.asks import Ask
from ..models.concessions import NO_TEMPERATURE
from ..models.model import Answer, Known, Settings, Usage
from ..models.names import OPENAI_BASE_MODELS
from ..progress import progress
from .datasets import imported_for, save_dataset, saved_dataset, shipped_datasets
from .pools import SHIPPED, Pool
from .results import Dataset
from .vocabulary import Plan
from .watch import Watch

ORDER_SEED = 20_220_722
"""The pool's order is the same for all models and runs, so that datasets can only grow."""
FEWEST_FAILURES, MOST_FAILURES = 5, 0.05
"""So many questions may fail, or such a share of them, before a dataset is given up."""
BUILT = "built"


@dataclass(frozen=True)
class Criteria:
    """What a dataset depends on besides the version that answers."""

    model: Known
    pool: Pool
    plan: Plan

    @property
    def settings(self) -> Settings:
        """Selection is always at temperature 0, whatever the seed."""
        return replace(self.plan.settings, temperature=0.0, seed=Settings.seed)

    @cached_property
    def ordered(self) -> list[Position]:
        """The pool in seeded order."""
        return Random(ORDER_SEED).sample(self.pool.positions, len(self.pool.positions))

    def asks(self) -> Iterator[Ask]:
        """The pool's questions in that order."""
        baseline = self.plan.baseline
        for position in self.ordered:
            yield Ask(baseline.question(position), "selection", baseline.name)

    @property
    def facts(self) -> dict[str, object]:
        """What to write beside a dataset."""
        return {
            "rules": self.plan.change.key,
            "pool": self.pool.digest,
            "pool_name": self.pool.name,
            "text": self.plan.baseline.text,
            "reading": self.plan.reading,
            "settings": self.settings.asked,
            "identity": dict(self.model.identity),
        }

    @cached_property
    def digest(self) -> str:
        """Tells datasets of one version apart."""
        facts = {name: fact for name, fact in self.facts.items() if name != "pool_name"}
        return sha256(json.dumps(facts).encode()).hexdigest()[:8]


class Search:
    """Goes through the pool's answers in order until enough positions are found."""

    def __init__(self, criteria: Criteria, wanted: int) -> None:
        self._criteria = criteria
        self._wanted = wanted
        self._failed = 0
        self._usage = Usage()
        self._own_temperature = False
        self.hits: list[Position] = []
        self.asked = 0

    @property
    def done(self) -> bool:
        """Whether enough were found, or there are no more."""
        return len(self.hits) >= self._wanted or self.asked == len(self._criteria.ordered)

    def see(self, answer: Answer, watch: Watch | None = None) -> bool:
        """Take the answer to the next position, and say whether it was the special move.

        Raises:
            Unfinished: if too many questions have no answer, or the watch finds the replies of no
                use.
        """
        position, plan = self._criteria.ordered[self.asked], self._criteria.plan
        judgement = plan.baseline.read(answer, position, plan.baseline.rules, plan.reading)
        self._usage += answer.usage
        self._own_temperature |= NO_TEMPERATURE in answer.conceded
        self._failed += answer.stop_reason == "error"
        self.take(hit=judgement.outcome == "special")
        if self._failed > max(FEWEST_FAILURES, MOST_FAILURES * self.asked):
            raise Unfinished(
                f"{self._failed} of the {self.asked} questions to find a dataset have no answer "
                f"(the last: {answer.error}); the others are saved, run the same command again "
                "to go on"
            )
        if watch:
            watch.see(answer, judgement.move, baseline=True)
        return judgement.outcome == "special"

    def take(self, *, hit: bool) -> None:
        """Go on to the next position."""
        if hit:
            self.hits.append(self._criteria.ordered[self.asked])
        self.asked += 1

    def dataset(self, version: str) -> Dataset:
        """What was found.

        Raises:
            Unfinished: if that is nothing.
        """
        if not self.hits:
            raise Unfinished(
                f"{version} plays the special move in none of the {self.asked} positions of the "
                "pool, so there is no habit to measure"
            )
        ended = self.asked == len(self._criteria.ordered)
        return Dataset(
            version=version,
            origin=BUILT,
            positions=self.hits,
            asked=self.asked,
            pool_ended=ended and not self._failed,  # who failed is asked again next time
            usage=self._usage,
            endpoint=self._criteria.model.endpoint,
            built_now=True,
            own_temperature=self._own_temperature,
            pool=self._criteria.pool.digest,
        )


async def version_of(asking: Asking, criteria: Criteria) -> str:
    """The exact version the model answers as, learnt from the first question of the pool.

    Raises:
        Unfinished: if it does not answer.
    """
    first_ask = islice(criteria.asks(), 1)
    async with aclosing(asking.answers(first_ask, criteria.settings)) as answers:
        first = await anext(answers)
    if first.stop_reason == "error":
        raise Unfinished(f"{asking.model.name} does not answer ({first.error})")
    return first.version


def found_dataset(version: str, criteria: Criteria) -> Dataset | None:
    """The dataset of a model version as far as it exists."""
    change = criteria.plan.change
    default_rules = change == BISHOPS_AS_KNIGHTS
    own_pool = criteria.pool.name != SHIPPED
    if not (own_pool and default_rules):  # a pool of one's own is for a dataset of one's own
        found = saved_dataset(version, imported_for(change))
        if not found and default_rules and _is_the_originals(criteria.model, version):
            found = shipped_datasets(criteria.pool.positions).get(version)
        if found:
            return found
    return saved_dataset(version, criteria.digest)


def _is_the_originals(model: Known, version: str) -> bool:
    """Whether it is OpenAI's own model, asked over the API that the original asked it over.

    A server may call its model what it likes.
    """
    as_text = model.identity.get("api") == "completions"
    return model.provider == "openai" and version.startswith(OPENAI_BASE_MODELS) == as_text


def enough_of(found: Dataset | None, wanted: int) -> Dataset | None:
    """As much of a dataset as is wanted, if it has that or can have no more.

    Of one built earlier only as much is taken as would be built now, so that the same run draws the
    same samples however large the dataset has grown.
    """
    if found and found.origin == BUILT and len(found.positions) >= wanted:
        return replace(found, positions=found.positions[:wanted])
    return found if found and found.pool_ended else None


async def dataset_for(
    asking: Asking, version: str, criteria: Criteria, *, quiet: bool, fresh: bool = False
) -> Dataset:
    """Find the dataset of a model version, or build as much of it as is wanted and missing.

    A fresh one is built anew, and not kept.
    """
    wanted = criteria.plan.wanted
    found = enough_of(found_dataset(version, criteria), wanted)
    if found and not (fresh and found.origin == BUILT):
        return found
    search, watch = Search(criteria, wanted), Watch(criteria.settings.max_tokens)
    with progress(f"building the dataset of {version}", wanted, quiet=quiet) as advance:
        async with aclosing(asking.answers(criteria.asks(), criteria.settings)) as answers:
            async for answer in answers:
                if search.see(answer, watch):
                    rate = len(search.hits) / search.asked
                    advance(remark=f"{search.asked} asked, {rate:.0%} hits")
                if search.done:
                    break
    built = search.dataset(version)
    if not fresh:
        save_dataset(built, criteria.digest, criteria.facts)
    return built
