"""Questions with a usual answer, and the files that hold them: a JSON object on each line."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from reprlib import repr as shortened
from typing import Any, ClassVar

from ..errors import InvalidInput, unknown_value
from ..files import file_errors


@dataclass(frozen=True)
class QuestionItem:
    """A question with its usual answers, and those that are right after the change.

    If a usual answer stays right, it is a control. ``where`` is its file and line.
    """

    question: str
    usual: tuple[str, ...]
    right: tuple[str, ...]
    group: str = ""
    where: str = field(default="", compare=False)
    source: ClassVar[None] = None
    facts: ClassVar[Mapping[str, float]] = {}

    @cached_property
    def id(self) -> str:
        """A digest of the question and its answers."""
        text = "|".join((self.question, *sorted(self.usual), "", *sorted(self.right)))
        return sha256(text.encode()).hexdigest()[:12]

    @property
    def subject(self) -> str:
        """The question."""
        return self.question

    @property
    def is_control(self) -> bool:
        """Whether a usual answer stays right."""
        return not set(self.usual).isdisjoint(self.right)

    def to_json(self) -> dict[str, Any]:
        """Return the item as a JSON object for one line of a file."""
        usual, right = (
            answers[0] if len(answers) == 1 else list(answers)
            for answers in (self.usual, self.right)
        )
        line = {"question": self.question, "usual": usual, "right": right}
        return line if self.group == self.id else line | {"group": self.group}


_KEYS = ("question", "usual", "right", "group")


def item_from(line: Any) -> QuestionItem:
    """Return the item of a JSON object; keys that an item does not have are ignored.

    Raises:
        ValueError: saying what is wrong with it.
    """
    if not isinstance(line, Mapping):
        raise ValueError(f"an item must be an object with a question, not {shortened(line)}")
    question, group = line.get("question"), line.get("group", "")
    if not isinstance(question, str) or not question.strip():
        raise ValueError(f"'question' must be a text, not {shortened(question)}")
    if not isinstance(group, str | int):
        raise ValueError(f"'group' must be a text or a number, not {shortened(group)}")
    item = QuestionItem(question, _answers(line, "usual"), _answers(line, "right"), str(group))
    return item if item.group else replace(item, group=item.id)


def _answers(line: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = line.get(key)
    answers = value if isinstance(value, list | tuple) else [value]
    texts = [str(answer).strip() for answer in answers if type(answer) in (str, int, float)]
    if not answers or len(texts) < len(answers) or not all(texts):
        raise ValueError(f"{key!r} must be an answer or a list of answers, not {shortened(value)}")
    return tuple(dict.fromkeys(texts))


def read_items(path: Path) -> list[QuestionItem]:
    """Read a file of items.

    Raises:
        InvalidInput: with file, line and reason, at the first line that is not an item, or asks the
            same question as an earlier one.
    """
    with file_errors("read the items", path, error=InvalidInput, caught=(OSError, ValueError)):
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    items = [
        item_at(f"{path}, line {number}", _parsed(line, f"{path}, line {number}"))
        for number, line in enumerate(lines, 1)
        if line.strip()
    ]
    check_distinct(items)
    return items


def _parsed(line: str, where: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as problem:
        raise InvalidInput(f"{where}: not a JSON object: {problem}") from None


def item_at(where: str, values: Any) -> QuestionItem:
    """Return an item from the values at a place in a file.

    Raises:
        InvalidInput: naming the place, if they are not those of an item.
    """
    if isinstance(values, QuestionItem):
        return values
    for key in values if isinstance(values, Mapping) else ():
        if key not in _KEYS:
            raise unknown_value(f"key in {where}", key, _KEYS)
    try:
        return replace(item_from(values), where=where)
    except ValueError as problem:
        raise InvalidInput(f"{where}: {problem}") from None


def check_distinct(items: Sequence[QuestionItem]) -> None:
    """Check that no question is asked twice.

    Raises:
        InvalidInput: naming both places.
    """
    places: dict[str, str] = {}
    for item in items:
        question = " ".join(item.question.split())
        if place := places.get(question):
            raise InvalidInput(f"{item.where}: the same question as {place}, {shortened(question)}")
        places[question] = item.where
