"""The evaluation as Inspect tasks.

::

    inspect eval cant_do_that_anymore/cant_do_that_anymore --model openai/gpt-4o
    inspect eval cant_do_that_anymore/cant_do_that_anymore_small --model cdta/pocket -T seed=1
    inspect eval cant_do_that_anymore/cant_do_that_anymore_diagonal --model cdta/pocket

A sample is a position: its solver asks under every condition, its score says what came of it.
Imports are absolute, since ``inspect eval FILE@task`` loads this file by its path.
"""

from typing import Any, Unpack

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset
from inspect_ai.log import HeadlineMetric
from inspect_ai.util import registry_info

from cant_do_that_anymore.datasets.pools import positions_for
from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.inspect_tasks.dataset import Found, known_already, samples_of
from cant_do_that_anymore.inspect_tasks.model import Arguments, active_model, one_sentence, spec_for
from cant_do_that_anymore.inspect_tasks.scorer import habit
from cant_do_that_anymore.inspect_tasks.solver import every_condition
from cant_do_that_anymore.metrics.measures import IMPACT
from cant_do_that_anymore.runs.results import PROTOCOL
from cant_do_that_anymore.task.types import Eval

VERSION = f"{PROTOCOL}-A"
"""Numbers of another protocol cannot be compared; the letter counts changes of the arguments."""
DESCRIPTIONS: dict[Eval, str] = {
    "all": "Does a model drop a habit of chess when the rules forbid it? 1,000 positions.",
    "all_small": "Does a model drop a habit of chess when the rules forbid it? 100 positions.",
    "all_diagonal": "The same in games that were played under the changed rules, so that the "
    "habit was broken before the model's eyes.",
}
TAGS = ["chess", "habits", "instruction following", "reasoning"]


@task
def cant_do_that_anymore(**arguments: Unpack[Arguments]) -> Task:
    """Measure whether a model drops a habit of chess when the rules forbid it."""
    return _task("all", arguments)


@task
def cant_do_that_anymore_small(**arguments: Unpack[Arguments]) -> Task:
    """The same with a tenth of the samples."""
    return _task("all_small", arguments)


@task
def cant_do_that_anymore_diagonal(**arguments: Unpack[Arguments]) -> Task:
    """The same in games that were played under the changed rules."""
    return _task("all_diagonal", arguments)


class HabitTask(Task):
    """A task whose epochs are averaged: Inspect sets the reducer before anything is asked."""

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse any other reducer, such as that of ``--epochs-reducer max``."""
        for reducer in value or () if name == "epochs_reducer" else ():
            if (given := registry_info(reducer).name.split("/")[-1]) != "mean":
                with one_sentence():
                    raise InvalidInput(
                        f"the epochs reducer {given!r} cannot work: these metrics are ratios over "
                        "all epochs, so leave out --epochs-reducer, or give it 'mean'"
                    )
        super().__setattr__(name, value)


def _task(eval: Eval, arguments: Arguments) -> Task:
    """A task that needs no model until it runs; where one is known, so may be its dataset."""
    with one_sentence():
        model = active_model()
        spec = spec_for(eval, arguments, model)
        at_hand, change = positions_for(spec), spec.change
        chosen = known_already(spec, model, at_hand)
        made = HabitTask(
            dataset=samples_of(chosen, change) if chosen else Found(eval, arguments, at_hand),
            solver=every_condition(eval, **arguments),
            scorer=habit(),
            fail_on_error=spec.max_error_rate,
            version=VERSION,
            headline_metric=HeadlineMetric(scorer="habit", metric=IMPACT),
            description=DESCRIPTIONS[eval],
            tags=TAGS,
            metadata={
                "rules": change.key,
                "wording": spec.wording,
                "reading": spec.reading,
                "protocol": PROTOCOL,
                "dataset": chosen.dataset.provenance if chosen else "found while the task runs",
            },
        )
        name = str(spec.dataset or f"{change.key}/{spec.pool or eval}")
        made.dataset = MemoryDataset(list(made.dataset), name)
        return made


TASKS = {
    "all": cant_do_that_anymore,
    "all_small": cant_do_that_anymore_small,
    "all_diagonal": cant_do_that_anymore_diagonal,
}
"""By the names of the evals, which are names of the tasks as well."""
for _eval, _made in TASKS.items():
    task(name=_eval)(_made)
