"""The samples of a task: at once if the dataset is known, else built while the task runs.

Inspect does not tell a task how many samples it will run (``--limit``). So a model's dataset
is built step by step, whenever Inspect requests more samples.
"""

from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar
from dataclasses import replace
from itertools import count, takewhile

from inspect_ai import SampleSource
from inspect_ai.dataset import MemoryDataset
from inspect_ai.dataset import Sample as InspectSample
from inspect_ai.log import EvalSample
from inspect_ai.model import Model as InspectModel
from inspect_ai.model import get_model

from ..client.cache import open_cache
from ..client.client import from_cache_again
from ..client.pricing import CostLimit, cost_limit_for
from ..client.session import open_client
from ..datasets.pools import drawn
from ..datasets.selection import Selection, known_selection, select_items
from ..datasets.storage import Dataset
from ..errors import InvalidInput
from ..habits.base import Change, Item, Pool
from ..habits.catalog import saved_change
from ..task.plan import plan_for
from ..task.samples import with_draws
from ..task.spec import Spec
from .arguments import inspect_terms, spec_for
from .model import MOCK, TaskModel
from .scorer import ANSWERS, CHANGE_KEY, CONTROL_KEY, DRAW, ITEM


def steps(most: int) -> Iterator[int]:
    """Yield the number of samples after each step; usual limits are among them.

    >>> list(steps(150))
    [1, 2, 5, 10, 20, 50, 100, 150]
    """
    sizes = (unit * 10**power for power in count() for unit in (1, 2, 5))
    yield from takewhile(lambda size: size < most, sizes)
    yield most


# The batches of samples of a run of a task: it may run several times, with different models.
_BATCHES: ContextVar[AsyncIterator[list[InspectSample]]] = ContextVar("batches")


class PlannedDataset(MemoryDataset):
    """The samples that are known, with the length of all that the task asks for.

    ``inspect eval-set`` compares that length with a log to tell whether the log is complete.
    """

    def __init__(self, samples: list[InspectSample], name: str, wanted: int) -> None:
        super().__init__(samples, name)
        self._wanted = wanted

    def __len__(self) -> int:
        return max(self._wanted, super().__len__())


class SearchedSamples(SampleSource):
    """Samples of a dataset that is built while the task runs, by asking the task's model."""

    def __init__(self, spec: Spec, source: Dataset | Pool) -> None:
        self._spec, self._source = spec, source
        self._measured: set[object] = set()

    async def sample_complete(self, sample: EvalSample) -> None:
        """Note which samples Inspect ran, with our solver."""
        if ANSWERS in sample.store:
            self._measured.add(sample.id)

    async def next_samples(self) -> list[InspectSample] | None:
        """Return the samples of the next step, or None when there are no more."""
        batches = _BATCHES.get(None) or self._batches(get_model())
        _BATCHES.set(batches)
        with inspect_terms():
            return await anext(batches, None)

    async def _batches(self, model: InspectModel) -> AsyncIterator[list[InspectSample]]:
        """Yield the samples that each step adds; all steps share a cost limit."""
        spec, task_model = spec_for(self._spec, model), TaskModel(model)
        limit = cost_limit_for(spec, task_model.info)
        returned: set[object] = set()
        for size in steps(spec.n_items):
            selection = await self._select(spec, size, task_model, limit)
            samples = inspect_samples(selection, spec.change, size)
            if new := [sample for sample in samples if sample.id not in returned]:
                yield new
                returned.update(sample.id for sample in new)
                if not returned & self._measured:
                    raise InvalidInput(
                        "no sample was measured; leave out --solver, and --sample-id until the "
                        "dataset is built (cdta dataset build)"
                    )
            elif selection.dataset.pool_ended:
                return

    async def _select(self, spec: Spec, size: int, model: TaskModel, limit: CostLimit) -> Selection:
        """Select the items of a step."""
        step = replace(plan_for(spec, model.info), wanted=size)
        async with open_client(spec, model, limit) as client:
            return await from_cache_again(
                lambda: select_items(spec, step, self._source, client, quiet=True)
            )


def known_items(spec: Spec, model: InspectModel | None, source: Dataset | Pool) -> Selection | None:
    """Return the items of the task if that takes no request to the model, else None."""
    if isinstance(source, Pool) and str(model).startswith(MOCK):  # which has no habits
        source = Dataset("", source.name, list(source.items))
    if isinstance(source, Dataset):
        return Selection(source, [*drawn(source, spec).values()], [])
    if not model:
        return None
    spec, info = spec_for(spec, model), TaskModel(model).info
    with open_cache(info) as cache:
        return known_selection(spec, plan_for(spec, info), source, info, cache)


def inspect_samples(
    selection: Selection, change: Change, size: int | None = None
) -> list[InspectSample]:
    """Return up to ``size`` samples, and for a diagnosis as many controls.

    Items found by asking the model stay in the order of the search, so that the first samples
    are always the same.
    """
    items = list(selection.items)
    if selection.dataset.asked:
        order = {item.id: index for index, item in enumerate(selection.dataset.items)}
        items.sort(key=lambda item: order[item.id])
    n = len(items[:size])
    drawn = enumerate(with_draws([*items[:size], *selection.controls[:size]]))
    return [_sample(item, draw, change, control=index >= n) for index, (item, draw) in drawn]


def _sample(item: Item, draw: int, change: Change, *, control: bool) -> InspectSample:
    habit = change.its_habit
    usual = ", ".join(habit.label(item, answer) for answer in item.usual)
    return InspectSample(
        input=f"```\n{habit.show(item)}\n```\n\nUsual {habit.words.answer}: {usual}",
        target=list(item.usual),
        id=f"{item.id}-{draw + 1}" if draw else item.id,
        metadata={
            "rules": change.key,
            "group": item.group,
            CHANGE_KEY: saved_change(change),
            ITEM: item.to_json(),
            **item.facts,
            DRAW: draw,
            **({CONTROL_KEY: True} if control else {}),
        },
    )
