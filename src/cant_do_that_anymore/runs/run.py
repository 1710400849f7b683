"""The evaluation of one model: a run with its samples, results and notes."""

import platform
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ..datasets.storage import Dataset
from ..habits.catalog import saved_change
from ..habits.words import Words
from ..metrics.compute import Results
from ..metrics.estimates import Estimate
from ..providers.base import add_costs
from ..task.spec import OPTIONS
from ..task.types import CHANGED_CONDITION, Plan, Sample, Samples, answers_of

# Changes whenever scores are no longer comparable with those of earlier versions.
PROTOCOL = "5"
ALL_CACHED = "all answers came from the cache; use another --seed to sample again"


@cache
def versions_here() -> dict[str, str]:
    """Return the versions of all software that affects the numbers."""
    packages = ("cant-do-that-anymore", "chess", "numpy", "genai-prices")
    versions = {package: version(package) for package in packages}
    return versions | {"python": platform.python_version()}


@dataclass(frozen=True)
class Cost:
    """Cost in US dollars; None if the price is unknown or tokens were not counted.

    Attributes:
        total: of all answers of the run, and of all requests that built its dataset; at least what
            this command spent, lost answers included.
        spent: of the requests that this command itself sent; cached answers cost nothing.
    """

    total: float | None = None
    spent: float | None = None


def cost_of(samples: Samples, dataset: Dataset, spent: float | None) -> Cost:
    """Return the cost of a run: of its answers, of building its dataset, and what it spent."""
    costs = [answer.cost for answer in answers_of(samples) if not answer.error]
    total = add_costs(*costs, dataset.cost if dataset.asked else 0.0)
    return Cost(None if total is None else max(total, spent or 0.0), spent)


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """What is known about a run besides its samples; attributes as in `Run`."""

    model: str
    version: str
    endpoint: str
    identity: Mapping[str, Any]
    options: Mapping[str, Any]
    dataset: Dataset
    notes: list[str]
    started_at: str
    seconds: float
    cost: Cost = field(default_factory=Cost)
    protocol: str = PROTOCOL
    versions: dict[str, str] = field(default_factory=versions_here)


@dataclass(frozen=True, kw_only=True)
class Run(RunFacts):
    """The evaluation of one model on one dataset under one plan.

    Attributes:
        model: the requested name; ``version`` is the name in all its answers, or else the requested
            one.
        endpoint: the server's address, if there is one.
        identity: everything about the model that can change an answer.
        options: the options that are not the defaults, as plain values.
        dataset: the source of the items.
        samples: every item with all its answers.
        seconds: the time it took; cached answers take none.
        notes: warnings and remarks for readers of the numbers, one sentence each.
        folder: the folder of the run, if it was saved.
        controls: items whose usual answer stays right, with their answers; only in a diagnosis.
        protocol: runs of different protocols cannot be compared.
        versions: of the software that computed the run.
    """

    plan: Plan
    samples: list[Sample] = field(repr=False)
    results: Results
    controls: list[Sample] = field(repr=False, default_factory=list)
    folder: Path | None = field(default=None, compare=False)

    def __getitem__(self, name: str) -> Estimate:
        return self.results[name]

    @property
    def token_limit(self) -> int:
        """The largest token limit of its requests."""
        return max((answer.limit for answer in answers_of(self.samples)), default=0)

    @property
    def words(self) -> Words:
        """How screens speak of its habit."""
        return self.plan.change.its_habit.words

    @property
    def after_change(self) -> dict[str, float]:
        """The shares of samples that kept the usual answer, gave the right one, or neither.

        Without one right answer, as in chess, it is empty. With one, the rule uptake alone cannot
        tell a habit from a lack of ability.
        """
        counts, n = self.results.outcomes[CHANGED_CONDITION], len(self.samples)
        if not self.plan.change.its_habit.has_one_right_answer or not n:
            return {}
        kept, right = counts["usual"], counts["adapted"]
        return {"kept": kept / n, "right": right / n, "neither": (n - kept - right) / n}

    @property
    def answered(self) -> list[Sample]:
        """The samples that enter the measures."""
        return [sample for sample in self.samples if sample.answered]


def command_of(run: Run, model: str, base_url: str = "") -> str:
    """Return a command that repeats the run with a model; an own file is ``FILE``."""
    words = ["cdta", "run", "--model", model]
    words += ["--base-url", base_url] if base_url else []
    for name, value in run.options.items():
        if name not in OPTIONS or name in ("model", "base_url"):
            continue
        flag = f"--{name.replace('_', '-')}" if len(name) > 1 else f"-{name}"
        text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
        is_file = name in ("pool", "dataset") and bool(Path(text).suffix)
        is_file = is_file or (name == "rules" and isinstance(saved_change(run.plan.change), dict))
        words += [flag, *([] if value is True else ["FILE" if is_file else text])]
    return shlex.join(words)
