"""Questions with a usual answer, and the files that hold them: a JSON object on each line."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

from ..errors import InvalidInput
from ..validation import parse
from .base import numbered_lines


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


_Answer = str | bool | int | float
_Answers = _Answer | list[_Answer]


@dataclass(frozen=True)
class Line:
    """The keys of an item in a file."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = {"extra": "forbid"}

    question: str
    usual: _Answers
    right: _Answers
    group: str | int = ""


def parse_item(values: str | Mapping[str, Any], where: str) -> QuestionItem:
    """Return the item of a JSON text or object.

    Raises:
        InvalidInput: naming the place and the key, if it is none.
    """
    line = parse(Line, values, where)
    item = QuestionItem(
        line.question, _texts(line.usual), _texts(line.right), str(line.group), where
    )
    if not (item.question.strip() and item.usual and item.right):
        raise InvalidInput(f"{where} must have a question, a usual and a right answer")
    return item if item.group else replace(item, group=item.id)


def _texts(answers: _Answers) -> tuple[str, ...]:
    given = answers if isinstance(answers, list) else [answers]
    return tuple(str(answer).strip() for answer in given)


def read_items(path: Path) -> list[QuestionItem]:
    """Read a file of items.

    Raises:
        InvalidInput: with file, line and reason, at the first line that is not an item.
    """
    return [parse_item(line, where) for line, where in numbered_lines(path)]
