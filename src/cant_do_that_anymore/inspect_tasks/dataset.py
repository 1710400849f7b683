"""The samples of a task: at once if the dataset is known, else built while the task runs.

Inspect does not tell a task how many samples it will run (``--limit``). So a model's dataset
is built step by step, whenever Inspect requests more samples.
"""

from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import replace
from itertools import count, takewhile

from inspect_ai import SampleSource
from inspect_ai.dataset import MemoryDataset
from inspect_ai.dataset import Sample as InspectSample
from inspect_ai.log import EvalSample
from inspect_ai.model import Model, get_model

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
from ..task.types import Eval
from .arguments import Arguments, inspect_terms, spec_for
from .model import TaskModel
from .scorer import CHANGE_KEY, CONTROL_KEY, DRAW, GROUP, ITEM, RULES_KEY

# Inspect's model for trying out a task. It has no habits, so its samples are the pool itself.
MOCK = "mockllm/"


def steps(most: int) -> Iterator[int]:
    """Yield the number of samples after each step; usual limits are among them.

    >>> list(steps(150))
    [1, 2, 5, 10, 20, 50, 100, 150]
    """
    sizes = (unit * 10**power for power in count() for unit in (1, 2, 5))
    yield from takewhile(lambda size: size < most, sizes)
    yield most


# The steps left, the samples returned and the cost limit, for each run of a task: it may run
# several times, with different models.
_PROGRESS: ContextVar[tuple[Iterator[int], set[object], list[CostLimit]]] = ContextVar("progress")


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

    def __init__(self, eval: Eval, arguments: Arguments, available: Dataset | Pool) -> None:
        self._eval, self._arguments, self._available = eval, arguments, available
        self._completed: set[object] = set()

    async def sample_complete(self, sample: EvalSample) -> None:
        """Note which samples Inspect ran."""
        self._completed.add(sample.id)

    async def next_samples(self) -> list[InspectSample] | None:
        """Return the samples of the next step, or None when there are no more."""
        spec = spec_for(self._eval, self._arguments, get_model())
        steps_left, returned, limits = _PROGRESS.get((steps(spec.n_items), set(), []))
        _PROGRESS.set((steps_left, returned, limits))
        if returned and not returned & self._completed:
            raise InvalidInput(
                "--sample-id names no sample of the dataset as far as it is built; build it first "
                "with cdta dataset build, or leave out --sample-id"
            )
        for size in steps_left:
            selection = await self._select(spec, size, limits)
            samples = inspect_samples(selection, spec.change, size)
            new = [sample for sample in samples if sample.id not in returned]
            returned.update(sample.id for sample in new)
            if new or selection.dataset.pool_ended:
                return new or None
        return None

    async def _select(self, spec: Spec, size: int, limits: list[CostLimit]) -> Selection:
        """Select the items of a step; all steps share a limit."""
        with inspect_terms():
            if selection := selection_of_task(spec, get_model(), self._available):
                return selection
            model = TaskModel(get_model())
            if not limits:
                limits.append(cost_limit_for(spec, model.info))
            step = replace(plan_for(spec, model.info), wanted=size)
            async with open_client(spec, model, limits[0]) as client:
                return await from_cache_again(
                    lambda: select_items(spec, step, self._available, client, quiet=True)
                )


def selection_of_task(
    spec: Spec, task_model: Model | None, available: Dataset | Pool
) -> Selection | None:
    """Return the items of the task if that takes no request to the model, else None."""
    if isinstance(available, Pool) and str(task_model).startswith(MOCK):
        available = Dataset("", available.name, list(available.items))
    if isinstance(available, Dataset):
        return Selection(available, [*drawn(available, spec).values()], [])
    if not task_model:
        return None
    info = TaskModel(task_model).info
    with open_cache(info) as cache:
        return known_selection(spec, plan_for(spec, info), available, info, cache)


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
            RULES_KEY: change.key,
            CHANGE_KEY: saved_change(change),
            GROUP: item.group,
            ITEM: item.to_json(),
            **item.facts,
            DRAW: draw,
            **({CONTROL_KEY: True} if control else {}),
        },
    )
