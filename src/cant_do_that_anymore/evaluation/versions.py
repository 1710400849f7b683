"""What a model calls itself: the version that answers name."""

from collections import Counter
from collections.abc import Collection, Iterable

from ..datasets.storage import Dataset
from ..task.types import Sample, answers_of

SHOWN = 3
"""Of several versions so many are named."""


def versions_of(samples: Iterable[Sample]) -> Counter[str]:
    """How many answers name which version."""
    return Counter(each.version for each in answers_of(samples) if each.version and not each.error)


def version_of_all(versions: Collection[str], name: str) -> str:
    """The one that all answers name; else the name that the model was asked for by."""
    return next(iter(versions)) if len(versions) == 1 else name


def on_versions(versions: Counter[str]) -> list[str]:
    """A note if they are several."""
    if len(versions) < 2:
        return []
    shown = [f"{version} ({count})" for version, count in versions.most_common(SHOWN)]
    more = len(versions) - len(shown)
    told = ", ".join(shown) + f" and {more:,} more" * bool(more)
    return [f"more than one model version answered: {told}"]


def on_moved_alias(dataset: Dataset, versions: Collection[str]) -> list[str]:
    """A dataset of one version says little about the habits of the next."""
    if not dataset.version or dataset.version in versions or len(versions) != 1:
        return []
    return [
        f"the dataset is one of {dataset.version}, and {next(iter(versions))} answered: "
        "the name stands for another model now; --fresh finds its habits anew"
    ]
