"""The types of a finished run."""

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path

from ..costs.approval import Cost
from ..datasets.storage import Dataset
from ..metrics.types import Results
from ..providers.request_variants import NO_TEMPERATURE
from ..task.types import Plan, Sample, answers_of

PROTOCOL = "3"
"""Changes whenever scores stop being comparable with those of earlier versions."""


@cache
def versions_here() -> dict[str, str]:
    """The versions of all software that has a part in the numbers."""
    packages = ("cant-do-that-anymore", "chess", "numpy", "genai-prices")
    return {
        **{package: version(package) for package in packages},
        "python": platform.python_version(),
    }


@dataclass(frozen=True)
class Run:
    """One model on one dataset under one plan.

    Attributes:
        model: the name it was asked for by; ``version`` is what all its answers call it, or else
            that name.
        endpoint: its address, where it has one.
        identity: everything about the model that can change an answer.
        dataset: where the positions came from.
        samples: every position with all its replies.
        notes: what a reader of the numbers should know, one sentence each.
        folder: where it lies, if it was saved.
        kept: whether its answers are kept elsewhere, so that it need not be asked again.
        controls: positions whose habit stays legal, with their replies, if it is a diagnosis.
        protocol: runs of different protocols cannot be compared.
        versions: of the software that made it.
    """

    model: str
    version: str
    endpoint: str
    identity: Mapping[str, object]
    plan: Plan
    dataset: Dataset
    samples: list[Sample] = field(repr=False)
    results: Results
    notes: list[str]
    started_at: str
    seconds: float
    cost: Cost = field(default_factory=Cost)
    folder: Path | None = field(default=None, compare=False)
    kept: bool = field(default=True, compare=False)
    controls: list[Sample] = field(repr=False, default_factory=list)
    protocol: str = PROTOCOL
    versions: dict[str, str] = field(default_factory=versions_here)

    @property
    def own_temperature(self) -> bool:
        """Whether any answer came at the provider's own temperature, not at the one asked for."""
        return any(NO_TEMPERATURE in answer.conceded for answer in answers_of(self.samples))

    @property
    def answered(self) -> list[Sample]:
        """The samples that enter the measures."""
        return [sample for sample in self.samples if sample.answered]
