"""Habits that are data: each change of what questions mean is one TOML file."""

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ..errors import InvalidInput
from ..files import DATA, file_errors
from ..validation import check, parse
from .answers import AnswerKind, normalized, read_answer
from .base import CHANGE, NO_LONGER, NOW, Change, Form, Habit, Message, Pool
from .question_items import QuestionItem, parse_item, read_items
from .words import Words

# What the wordings of all questions contain besides the statements of a change.
TASK, REPLY = "{task}", "{reply}"
_ITEM_KEYS = ("question", "usual", "right", "group")
SHIPPED_FOLDER = Path(str(DATA / "questions"))


class Meaning(Change):
    """What questions mean: after a change, before it, or under its placebo."""

    if TYPE_CHECKING:

        @property
        def of(self) -> "QuestionChange":
            """The change."""

    @property
    def its_habit(self) -> "Questions":
        """The habit of the change."""
        return Questions(self.of.habit or self.of.key)

    @property
    def standard(self) -> "UsualMeaning":
        """The usual meaning."""
        return UsualMeaning(self.of, "standard", "As usual", "")

    @property
    def placebo_change(self) -> "UsualMeaning":
        """The usual meaning, with the statement of the placebo."""
        change = self.of
        if not change.placebo:
            missing = f"{change.key} has no placebo, which a diagnosis needs"
            raise InvalidInput(f"{missing}; add the key 'placebo' to its file")
        return UsualMeaning(change, f"{change.identity}-placebo", "Placebo", change.placebo)

    @property
    def is_changed(self) -> bool:
        """Whether the change is in force."""
        return self is self.of

    @property
    def texts(self) -> Mapping[str, str]:
        """The texts that a wording may contain; a placebo's stands whole in place of any part."""
        of, whole = self.of, self.statement
        now, no_longer = (of.now, of.no_longer) if self.is_changed else (whole, whole)
        return {TASK: of.task, REPLY: of.reply, CHANGE: whole, NOW: now, NO_LONGER: no_longer}

    def allows(self, answer: str, item: QuestionItem) -> bool:
        """Whether an answer is right."""
        return answer in self.examples(item)

    def examples(self, item: QuestionItem) -> Sequence[str]:
        """Return all right answers."""
        return item.right if self.is_changed else item.usual

    def read(self, reply: str, item: QuestionItem, *, exact: bool, cut_off: bool) -> str | None:
        """Return the answer that a reply gives."""
        if exact:
            return reply.strip() or None
        if cut_off:  # whatever answers it names on the way
            return None
        return read_answer(
            reply,
            question=item.question,
            usual=item.usual,
            right=item.right,
            answer=self.of.answer,
            changed=self.is_changed,
        )

    def guesses(self, item: QuestionItem) -> Sequence[str]:
        """Return a usual and a right answer, and the usual one of another item."""
        others = self.of.items or [item]
        other = others[int(item.id, 16) % len(others)]
        return [item.usual[0], item.right[0], other.usual[0]]


@dataclass(frozen=True, kw_only=True)
class QuestionChange(Meaning):
    """A change of what a kind of question means, with its items: what a TOML file holds.

    Attributes:
        key: the name in options and files; that of a file is the file's name.
        title: completes "when ...", such as "the minus sign means plus".
        task: what the model does, as a sentence.
        reply: how it is to reply, as a sentence.
        now: what is so now, as a sentence.
        no_longer: what is not so any more, as a sentence.
        answer: how replies are read: ``number``, ``word`` or ``line``.
        items: questions, each with a usual and a right answer; mappings with the keys of a file.
        placebo: the statement of a similar change that leaves the usual answers right.
        habit: the name of the habit that it belongs to; by default the key.

    Raises:
        InvalidInput: if it cannot be used.
    """

    __pydantic_config__: ClassVar[Mapping[str, str]] = {"extra": "forbid"}

    title: str
    task: str
    reply: str
    now: str
    no_longer: str
    answer: AnswerKind
    items: Sequence[Any] = field(compare=False, repr=False)
    placebo: str = ""
    habit: str = ""
    key: str = "own"

    def __post_init__(self) -> None:
        required = [name for name in _TEXTS if name not in ("placebo", "habit")]
        if empty := [name for name in required if not getattr(self, name)]:
            raise InvalidInput(f"{empty[0]!r} of {self.key} is empty")
        check(AnswerKind, self.answer, f"answer of {self.key}")
        items = [
            item if isinstance(item, QuestionItem) else parse_item(item, f"item {n} of {self.key}")
            for n, item in enumerate(self.items, 1)
        ]
        object.__setattr__(self, "items", tuple(map(self._normalized, items)))

    def _normalized(self, item: QuestionItem) -> QuestionItem:
        """Return an item in which equal answers are written alike.

        Raises:
            InvalidInput: if an answer is not of the kind that replies are read for.
        """
        spelling: dict[str, str] = {}

        def alike(answer: str) -> str:
            normal = normalized(answer, self.answer)
            if not normal:
                raise InvalidInput(f"{item.where}: {answer!r} is not a {self.answer}")
            return spelling.setdefault(normal, answer)

        usual, right = (
            tuple(dict.fromkeys(map(alike, answers))) for answers in (item.usual, item.right)
        )
        return replace(item, usual=usual, right=right)

    @property
    def of(self) -> "QuestionChange":
        """This change."""
        return self

    @property
    def statement(self) -> str:
        """What is so now, and what is not so any more."""
        return f"{self.now} {self.no_longer}"

    @cached_property
    def identity(self) -> str:
        """The key; with a digest of the texts, if the change is the user's own."""
        texts = json.dumps(self.to_json(), sort_keys=True)
        is_shipped = self.key in shipped_keys() and shipped_change(self.key) == self
        return self.key if is_shipped else f"{self.key}-{sha256(texts.encode()).hexdigest()[:8]}"

    def to_json(self) -> dict[str, str]:
        """Return the texts of the change, without its items."""
        return {name: getattr(self, name) for name in _TEXTS}

    def checked(self, item: QuestionItem) -> QuestionItem:
        """Return an item of a pool or dataset, in which equal answers are written alike."""
        checked = self._normalized(item)
        if checked.is_control and not item.is_control:
            raise InvalidInput(f"{item.where}: the usual answer stays right")
        return checked


_TEXTS = ("title", "task", "reply", "now", "no_longer", "answer", "placebo", "habit", "key")


@dataclass(frozen=True)
class UsualMeaning(Meaning):
    """The rules under which the usual answers are right: before a change, or a placebo."""

    of: QuestionChange
    key: str
    title: str
    statement: str


_QUESTION = Form("question", "", lambda item: [Message("user", item.question)])


class Questions(Habit):
    """A habit of giving the usual answers to a kind of question."""

    folder = "questions"
    forms: Mapping[str, Form] = {"question": _QUESTION}
    has_one_right_answer: bool = True
    words: Words = Words(
        item="question",
        as_usual="as usual",
        cannot="of its answers are right as usual",
        hopeless="this model can't do this task; try another one (see cdta rules)",
        labels={"adapted": "right answer", "illegal": "another answer"},
    )
    script = "question.js"
    base_tokens = 16

    def __init__(self, name: str) -> None:
        self.name = name

    def pool(self, change: QuestionChange, name: str = "", *, quiet: bool = True) -> Pool:
        """Return the items of a change, without its controls."""
        items = list(self.examples(change))
        if not items:
            raise InvalidInput(f"{change.key} has no item whose usual answer becomes wrong")
        if name:
            option = "--eval all_diagonal" if name == "diagonal" else f"--pool {name}"
            raise InvalidInput(f"{option} is for chess, not for {change.key}; leave it out")
        return Pool(change.key, items)

    def usual_rates(self, pool: str) -> Sequence[float]:
        """Return how often small models give the usual answers to the shipped questions."""
        return 0.4, 0.9, 1.0

    def controls(self, change: QuestionChange) -> Sequence[QuestionItem]:
        """Return the items whose usual answer stays right."""
        return [item for item in change.items if item.is_control]

    def items_in(self, path: Path) -> list[QuestionItem]:
        """Read a file of items, without its controls."""
        return [item for item in read_items(path) if not item.is_control]

    def item(self, line: Any) -> QuestionItem:
        """Return an item from its JSON object."""
        return parse_item({key: line[key] for key in _ITEM_KEYS if key in line}, "the item")

    def examples(self, change: QuestionChange) -> Iterator[QuestionItem]:
        """Yield the items of a change."""
        return (item for item in change.items if not item.is_control)

    def worked_example(self, change: QuestionChange) -> str:
        """Return an example from another shipped change."""
        other = shipped_change(next(key for key in shipped_keys() if key != change.key))
        item = next(self.examples(other))
        return (
            "Here is a worked example of another task, in which another rule was changed: "
            f'"{other.statement}" The question was "{item.question}". The usual answer, '
            f"{item.usual[0]}, would have broken its rule. The correct reply was {item.right[0]}."
        )

    def show(self, item: QuestionItem) -> str:
        """Return the question and the right answer."""
        return f"{item.question}\nRight after the change: {' or '.join(item.right)}"


def read_change(path: Path) -> QuestionChange:
    """Read a change from a TOML file, with its items.

    Raises:
        InvalidInput: with the file and the reason, if it cannot be used.
    """
    with file_errors("read the change", path, error=InvalidInput, caught=(OSError, ValueError)):
        values = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    items = values.get("items")
    if isinstance(items, str):
        values["items"] = read_items(path.parent / items)
    elif isinstance(items, list):  # keys below the first [[items]] are those of an item
        keys = {key for item in items if isinstance(item, dict) for key in item}
        misplaced = [key for key in _TEXTS if key in keys]
        if misplaced:
            raise InvalidInput(f"{misplaced[0]!r} in {path} must stand above the first [[items]]")
    change = parse(QuestionChange, values | {"key": path.stem}, str(path))
    _ = change.its_habit.pool(change)  # it has items
    return change


@cache
def shipped_keys() -> list[str]:
    """Return the keys of the shipped changes."""
    return sorted(path.stem for path in SHIPPED_FOLDER.glob("*.toml"))


@cache
def shipped_change(key: str) -> QuestionChange:
    """Return a shipped change, with its items."""
    return read_change(SHIPPED_FOLDER / f"{key}.toml")
