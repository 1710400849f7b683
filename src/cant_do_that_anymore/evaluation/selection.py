"""Find or build a model's dataset: the positions whose special move it plays by itself.

A dataset belongs to one model: the version that answers, at its address, over its API, with its
settings; two models of one name have two datasets. It is built once, from a pool in seeded order at
temperature 0 under the standard rules. Every answer is in the store, so a larger dataset goes on
where the last one ended.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from itertools import islice
from random import Random

from ..errors import Unfinished
from ..game.position import Position
from ..game.rules import BISHOPS_AS_KNIGHTS, STANDARD, Rules
from ..models.asking import Ask, Asking
from ..models.model import Known, Settings, Usage
from ..models.names import OPENAI_BASE_MODELS
from ..progress import progress
from .datasets import (
    Dataset,
    imported_for,
    save_dataset,
    saved_dataset,
    shipped_datasets,
)
from .judging import Reading, judge
from .watch import Watch
from .wordings import Wording, question

ORDER_SEED = 20_220_722
"""The pool's order is the same for all models and runs, so that datasets can only grow."""
FEWEST_FAILURES, MOST_FAILURES = 5, 0.05
"""So many questions may fail, or such a share of them, before a dataset is given up."""
SHIPPED, BUILT = "shipped", "built"


@dataclass(frozen=True)
class Pool:
    """Positions to choose from."""

    name: str
    positions: Sequence[Position]

    @property
    def digest(self) -> str:
        """Differs whenever the positions differ."""
        return sha256(" ".join(p.id for p in self.positions).encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Criteria:
    """What a dataset depends on besides the version that answers."""

    model: Known
    pool: Pool
    rules: Rules
    wording: Wording
    reading: Reading
    max_tokens: int

    @property
    def digest(self) -> str:
        """Tells datasets of one version apart."""
        parts = {
            "identity": dict(self.model.identity),
            "settings": asdict(self.settings),
            "pool": self.pool.digest,
            "rules": self.rules.key,
            "wording": self.wording.standard,
            "reading": self.reading,
        }
        return sha256(json.dumps(parts).encode()).hexdigest()[:8]

    @property
    def settings(self) -> Settings:
        """Selection is always at temperature 0."""
        return Settings(temperature=0.0, max_tokens=self.max_tokens)

    def ordered(self) -> list[Position]:
        """The pool in seeded order."""
        return Random(ORDER_SEED).sample(self.pool.positions, len(self.pool.positions))

    def asks(self) -> Iterator[Ask]:
        """The pool's questions in that order."""
        for position in self.ordered():
            yield Ask(question(position.moves, STANDARD, self.wording), "selection")

    def facts(self) -> dict[str, object]:
        """What to write beside a dataset."""
        return {
            "rules": self.rules.key,
            "pool": {"name": self.pool.name, "digest": self.pool.digest},
            "wording": self.wording.name,
            "reading": self.reading,
            "settings": asdict(self.settings),
            "identity": dict(self.model.identity),
        }


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
    default_rules = criteria.rules is BISHOPS_AS_KNIGHTS
    own_pool = criteria.pool.name != SHIPPED
    if not (own_pool and default_rules):  # a pool of one's own is for a dataset of one's own
        found = saved_dataset(version, imported_for(criteria.rules))
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


async def dataset_for(
    asking: Asking, version: str, criteria: Criteria, wanted: int, *, quiet: bool
) -> Dataset:
    """Find the dataset of a model version, or build as much of it as is wanted and missing.

    Of a dataset built earlier only as much is taken as would be built now, so that the same run
    draws the same samples however large the dataset has grown.
    """
    found = found_dataset(version, criteria)
    if found and found.origin == BUILT and len(found.positions) >= wanted:
        return replace(found, positions=found.positions[:wanted])
    if found and found.pool_ended:
        return found
    built = await _built(asking, version, criteria, wanted, quiet=quiet)
    save_dataset(built, criteria.digest, criteria.facts())
    return built


async def _built(
    asking: Asking, version: str, criteria: Criteria, wanted: int, *, quiet: bool
) -> Dataset:
    hits: list[Position] = []
    asked, failed, usage = 0, 0, Usage()
    watch = Watch(criteria.max_tokens)
    positions = criteria.ordered()
    with progress(f"building the dataset of {version}", wanted, quiet=quiet) as advance:
        async with aclosing(asking.answers(criteria.asks(), criteria.settings)) as answers:
            async for answer in answers:
                position = positions[asked]
                asked += 1
                usage += answer.usage
                failed += answer.stop_reason == "error"
                if failed > max(FEWEST_FAILURES, MOST_FAILURES * asked):
                    raise Unfinished(
                        f"{failed} of the {asked} questions to find a dataset have no answer (the "
                        f"last: {answer.error}); the others are saved, run the same command again "
                        "to go on"
                    )
                judgement = judge(answer, position, STANDARD, criteria.reading)
                watch.see(answer, judgement.move, STANDARD)
                if judgement.outcome == "special":
                    hits.append(position)
                    advance(remark=f"{asked} asked, {len(hits) / asked:.0%} hits")
                if len(hits) == wanted:
                    break
    if not hits:
        raise Unfinished(
            f"{version} plays the special move in none of the {asked} positions of the pool, so "
            "there is no habit to measure"
        )
    return Dataset(
        version=version,
        origin=BUILT,
        positions=hits,
        asked=asked,
        pool_ended=asked == len(positions) and not failed,  # who failed is asked again next time
        usage=usage,
        endpoint=asking.model.endpoint,
        built_now=True,
    )
