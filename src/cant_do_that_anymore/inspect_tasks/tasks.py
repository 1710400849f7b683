"""The eval as Inspect tasks.

::

    inspect eval cant_do_that_anymore/cant_do_that_anymore --model openai/gpt-4o
    inspect eval cant_do_that_anymore/cant_do_that_anymore_small --model cdta/pocket -T seed=1
    inspect eval cant_do_that_anymore/cant_do_that_anymore_diagonal --model cdta/pocket

A sample is a position. The solver sends the requests of every condition; the scorer reads
the replies. Imports are absolute, since ``inspect eval FILE@task`` loads this file by its path.
"""

from typing import Unpack

from inspect_ai import Task, task
from inspect_ai.log import HeadlineMetric

from cant_do_that_anymore.datasets.pools import source_for
from cant_do_that_anymore.inspect_tasks.arguments import (
    Arguments,
    active_model,
    click_errors,
    spec_of,
)
from cant_do_that_anymore.inspect_tasks.dataset import (
    PlannedDataset,
    SearchedSamples,
    inspect_samples,
    known_items,
)
from cant_do_that_anymore.inspect_tasks.scorer import (
    habit,
    usual_after,
    usual_before,
    violation_before,
)
from cant_do_that_anymore.inspect_tasks.solver import every_condition
from cant_do_that_anymore.metrics.measures import UPTAKE
from cant_do_that_anymore.runs.evaluate import MAX_MISSING
from cant_do_that_anymore.runs.run import PROTOCOL
from cant_do_that_anymore.task.types import Eval

# Numbers of different protocols are not comparable; the letter counts changes of the arguments.
VERSION = f"{PROTOCOL}-C"
TAGS = ["chess", "habits", "instruction following", "reasoning"]


@task
def cant_do_that_anymore(**arguments: Unpack[Arguments]) -> Task:
    """Does a model drop a habit of chess when the rules forbid it? 1,000 positions."""
    return _task("all", arguments)


@task
def cant_do_that_anymore_small(**arguments: Unpack[Arguments]) -> Task:
    """Does a model drop a habit of chess when the rules forbid it? 100 positions."""
    return _task("all_small", arguments)


@task
def cant_do_that_anymore_diagonal(**arguments: Unpack[Arguments]) -> Task:
    """The same in games played under the changed rules, so the model has seen the new moves."""
    return _task("all_diagonal", arguments)


def _task(eval: Eval, arguments: Arguments) -> Task:
    """Create a task; without a model, or without its dataset, samples come while it runs."""
    with click_errors():
        model, spec = active_model(), spec_of(eval, arguments)
        source, change = source_for(spec), spec.change
        selection = known_items(spec, model, source)
        samples = inspect_samples(selection, change) if selection else []
        habit_task = Task(
            dataset=samples or SearchedSamples(spec, source),
            solver=every_condition(spec),
            scorer=[habit(), violation_before(), usual_before(), usual_after()],
            fail_on_error=MAX_MISSING,
            version=VERSION,
            headline_metric=HeadlineMetric(scorer="habit", metric=UPTAKE.name),
            name=f"{TASKS[eval].__name__}-{change.key}",
            description=TASKS[eval].__doc__,
            tags=TAGS,
            metadata={
                "rules": change.key,
                "wording": spec.wording,
                "reading": spec.reading,
                "protocol": PROTOCOL,
            },
        )
        name = str(spec.dataset or f"{change.key}/{spec.pool or eval}")
        searched = not selection or selection.dataset.asked
        wanted = spec.n_items * (2 if spec.diagnose else 1) if searched else 0
        habit_task.dataset = PlannedDataset(samples, name, wanted)
        return habit_task


# Tasks by the name of the eval, under which they are registered as well.
TASKS = {
    "all": cant_do_that_anymore,
    "all_small": cant_do_that_anymore_small,
    "all_diagonal": cant_do_that_anymore_diagonal,
}
for _eval, _function in TASKS.items():
    task(name=_eval)(_function)
