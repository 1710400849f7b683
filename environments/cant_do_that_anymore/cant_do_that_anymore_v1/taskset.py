"""Tasks under usual and changed rules; the reward is for answers right under those stated.

Each item is asked about twice: under the usual rules, where its usual answer is right, and under
changed rules, where it is wrong. So neither keeping a habit nor always dropping it pays off.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from random import Random
from typing import Any, Literal

import verifiers.v1 as vf

from cant_do_that_anymore import Answer, judge, question
from cant_do_that_anymore.habits.base import Change
from cant_do_that_anymore.habits.catalog import changes_named, resolve_change

Condition = Literal["standard", "changed"]
# The outcomes of a right answer under the usual and under changed rules.
RIGHT: dict[Condition, tuple[str, ...]] = {
    "standard": ("usual", "legal"),
    "changed": ("legal", "adapted"),
}


class HabitsData(vf.TaskData):
    """One question: an item of a habit, under the rules that its prompt states."""

    condition: Condition
    change: str
    item: dict[str, Any]


class HabitsTask(vf.Task[HabitsData]):
    """Rewards an answer that is right under the stated rules."""

    @property
    def key(self) -> str:
        """The change, the condition and the item, which stay when tasks are added."""
        return str(self.data.id)

    @vf.reward
    async def right(self, trace: vf.Trace) -> float:
        """Return 1 for an answer that is right under the stated rules, else 0."""
        return float(self.outcome(trace) in RIGHT[self.data.condition])

    @vf.metric
    async def kept_habit(self, trace: vf.Trace) -> float:
        """Return 1 for the usual answer, which is right under the usual rules only."""
        return float(self.outcome(trace) == "usual")

    @vf.metric
    async def unreadable(self, trace: vf.Trace) -> float:
        """Return 1 for a reply that gives no answer."""
        return float(self.outcome(trace) in ("unreadable", "truncated"))

    def outcome(self, trace: vf.Trace) -> str:
        """Return the outcome of the last reply under the stated rules."""
        cut_off = trace.is_truncated
        return self.outcome_of(Answer(trace.last_reply, "length" if cut_off else "stop"))

    def outcome_of(self, answer: Answer) -> str:
        """Return the outcome of an answer under the stated rules."""
        rules = self.change if self.data.condition == "changed" else self.change.standard
        return judge(answer, self.item, rules).outcome

    @property
    def change(self) -> Change:
        """The changed rules."""
        return resolve_change(self.data.change)

    @property
    def item(self) -> Any:
        """The chess position or the question."""
        return self.change.its_habit.item(self.data.item)

    async def validate(self, runtime: vf.Runtime) -> bool:
        """Check that an answer is right here, and the usual one under the usual rules only."""
        is_changed = self.data.condition == "changed"
        usual = self.item.usual[0]
        example = self.change.examples(self.item)[0] if is_changed else usual
        right = RIGHT[self.data.condition]
        usual_is_right = self.outcome_of(Answer(usual)) in right
        return self.outcome_of(Answer(example)) in right and usual_is_right != is_changed


class HabitsConfig(vf.TasksetConfig):
    """Which changes of rules to ask about."""

    rules: str = "all"
    """Changes or habits between commas, such as "chess,base-9", or "all" of those shipped."""
    held_out: str = ""
    """Changes or habits to hold out of training, as in `rules`, so that transfer can be seen."""
    split: Literal["train", "held-out"] = "train"
    """"train" has the rules that are not held out; "held-out" has only those that are."""
    items: int = 100
    """How many items per change; each makes two tasks."""
    wording: str = "all"
    """The wording of the prompts; "all" deals one of eight to each item."""
    seed: int = 0
    """Decides which items are drawn."""


class HabitsTaskset(vf.Taskset[HabitsTask, HabitsConfig]):
    """Items of all changes in turn, each under the usual and under the changed rules."""

    def load(self) -> Iterator[HabitsTask]:
        """Yield the tasks: for each item the usual rules, then the changed ones."""
        drawn = [self._drawn(change) for change in self._changes()]
        for number in range(self.config.items):
            for change, items in drawn:
                if number < len(items):
                    yield from self._tasks(change, items[number])

    def _changes(self) -> Sequence[Change]:
        """Return the changes of the split.

        Raises:
            InvalidInput: if a name is unknown.
            ValueError: if no change is left.
        """
        held_out = _named(self.config.held_out)
        if self.config.split == "held-out":
            chosen = held_out
        else:
            chosen = {key: c for key, c in _named(self.config.rules).items() if key not in held_out}
        if not chosen:
            raise ValueError(f"no rules are in the split {self.config.split!r}; see held_out")
        return list(chosen.values())

    def _drawn(self, change: Change) -> tuple[Change, Sequence[Any]]:
        """Return a change with the items to ask about."""
        items = list(change.its_habit.pool(change).items)
        Random(self.config.seed).shuffle(items)
        with_answer = (item for item in items if change.examples(item))
        return change, list(islice(with_answer, self.config.items))

    def _tasks(self, change: Change, item: Any) -> Iterator[HabitsTask]:
        conditions: tuple[Condition, ...] = ("standard", "changed")
        for condition in conditions:
            asked = question(item, change, condition, self.config.wording)
            messages = [{"role": turn.role, "content": turn.content} for turn in asked.messages]
            data = HabitsData(
                id=f"{change.key}/{condition}/{item.id}",
                prompt=messages,
                condition=condition,
                change=change.key,
                item=item.to_json(),
            )
            yield HabitsTask(data, self.config.task)


def _named(names: str) -> dict[str, Change]:
    """Return the changes that names between commas stand for, by key."""
    changes: dict[str, Change] = {}
    for name in filter(None, names.split(",")):
        changes |= changes_named(name) or {name: resolve_change(name)}
    return changes
