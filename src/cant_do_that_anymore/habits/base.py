"""What a habit is: items with a usual answer, changes under which it is wrong, ways of asking."""

import gzip
import re
import tomllib
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Literal, Protocol, TextIO, cast

from ..errors import InvalidInput
from ..files import DATA, file_errors
from .words import Words

Role = Literal["system", "user", "assistant"]
# The outcomes of a readable answer.
AnswerOutcome = Literal["usual", "forbidden", "adapted", "legal", "illegal"]
# The statement of a change in a wording; what it says is so now, and what is not so any more.
STATEMENTS = CHANGE, NOW, NO_LONGER = ("{change}", "{now}", "{no_longer}")
# The pool's order is the same for all models and runs, so that datasets can only grow.
ORDER_SEED = 20_220_722


@dataclass(frozen=True)
class Message:
    """One turn of a conversation."""

    role: Role
    content: str


def numbered_lines(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the lines of a file of items, plain or gzip-compressed, with the place of each.

    Blank lines are left out.

    Raises:
        InvalidInput: if it cannot be read.
    """
    opener = gzip.open if path.suffix == ".gz" else open
    problems = (OSError, EOFError, UnicodeDecodeError, zlib.error)
    with (
        file_errors("read", path, error=InvalidInput, caught=problems),
        opener(path, "rt", encoding="utf-8-sig") as file,
    ):
        lines = cast(TextIO, file).readlines()
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield line, f"{path}, line {number}"


def with_user_turn(messages: tuple[Message, ...], text: str) -> tuple[Message, ...]:
    """Add a text to a final user turn, or as a new one: many models require alternating turns."""
    *before, last = messages
    if last.role == "user":
        return (*before, Message("user", f"{last.content}\n\n{text}"))
    return (*messages, Message("user", text))


class Item(Protocol):
    """One case of a habit: a chess position, a question.

    Attributes:
        id: a hexadecimal digest, the same on every machine.
        group: items of one group are not independent.
        subject: what is asked about; items with the same subject are asked the same.
        usual: the usual answers, right before the change and wrong after it (of a control: still
            right).
        source: where it is from, if known.
        facts: numbers that the metrics average over a run, by name.
    """

    @property
    def id(self) -> str: ...  # noqa: D102
    @property
    def group(self) -> Hashable: ...  # noqa: D102
    @property
    def subject(self) -> Hashable: ...  # noqa: D102
    @property
    def usual(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def source(self) -> str | None: ...  # noqa: D102
    @property
    def facts(self) -> Mapping[str, float]: ...  # noqa: D102

    def to_json(self) -> dict[str, Any]:
        """Return the item as a JSON object for one line of a file."""
        ...


@dataclass(frozen=True)
class Form:
    """One way of showing an item.

    Attributes:
        name: the name in options, files and reports.
        description: the clause that tells the model how the item is shown, without a period;
            prompts contain it in place of ``{position}``.
        render: returns the turns that show an item. The last one, if any, is the user's.
    """

    name: str
    description: str
    render: Callable[[Any], Iterable[Message]]


class Change(ABC):
    """The rules that a model is told: what is different from what it is used to, or nothing."""

    if TYPE_CHECKING:  # fields of some classes, and properties of others

        @property
        def key(self) -> str:
            """The name in options and files."""

        @property
        def title(self) -> str:
            """The name in reports."""

        @property
        def statement(self) -> str:
            """The text for the prompt: what has changed, and then what is not so any more."""

    @property
    @abstractmethod
    def its_habit(self) -> "Habit":
        """The habit that it changes."""

    @property
    @abstractmethod
    def standard(self) -> "Change":
        """The rules before the change."""

    @property
    @abstractmethod
    def placebo_change(self) -> "Change":
        """A similar change that leaves the usual answer right.

        Raises:
            InvalidInput: if there is none.
        """

    @property
    def identity(self) -> str:
        """The name in cache keys, files and folders: different rules have different ones."""
        return self.key

    @property
    def forbids_something(self) -> bool:
        """Whether the rules forbid a usual answer, so that there is a habit to break."""
        return True

    def check_forbids_something(self) -> None:
        """Check that there is a habit to break.

        Raises:
            InvalidInput: if these rules forbid nothing.
        """
        if not self.forbids_something:
            raise InvalidInput(
                f"{self.key} forbids no move, so there is no habit to drop (see cdta rules)"
            )

    @property
    def texts(self) -> Mapping[str, str]:
        """The texts of the change that a wording may contain, by placeholder.

        The last sentence of the statement says what is not so any more.
        """
        *now, no_longer = re.split(r"(?<=[.!?])\s+", self.statement)
        return {CHANGE: self.statement, NOW: " ".join(now or [no_longer]), NO_LONGER: no_longer}

    @abstractmethod
    def allows(self, answer: str, item: Any) -> bool:
        """Whether an answer is right under these rules."""

    @abstractmethod
    def read(self, reply: str, item: Any, *, exact: bool, cut_off: bool) -> str | None:
        """Return the answer that a reply gives, or None; exact reading accepts nothing else."""

    @abstractmethod
    def examples(self, item: Any) -> Sequence[str]:
        """Return right answers, if possible only right under these rules."""

    @abstractmethod
    def guesses(self, item: Any) -> Sequence[str]:
        """Return what a model that knows nothing but the rules may answer."""

    def checked(self, item: Any) -> Any:
        """Return an item if it is possible, and its usual answers are usual under these rules.

        Raises:
            InvalidInput: with the file and line, if not.
        """
        return item


@dataclass(frozen=True)
class Pool:
    """Items to choose from.

    Attributes:
        name: what options call it, or its file.
        shuffled: whether they are in random order already.
        label: its name in reports; "" for the default pool of the rules.
    """

    name: str
    items: Sequence[Any]
    shuffled: bool = False
    label: str = ""

    @cached_property
    def digest(self) -> str:
        """Digest of the items."""
        return sha256(" ".join(item.id for item in self.items).encode()).hexdigest()[:12]

    @cached_property
    def in_seeded_order(self) -> Sequence[Any]:
        """The items in the order in which they are asked about."""
        if self.shuffled:
            return self.items
        return Random(ORDER_SEED).sample(self.items, len(self.items))


class Habit(Protocol):
    """A kind of task in which models have an answer ready.

    Attributes:
        name: the name in options and files.
        words: how screens speak of it.
        forms: the ways of showing an item by name; the first one is the default.
        folder: the folder of its wordings and of the texts of interventions.
        pools: the pools that have a name.
        has_one_right_answer: whether one answer to an item is right after a change.
        script: the script of reports that shows an item.
        base_tokens: the token limit of a base model's reply, of which only the first line counts; 0
            for that of the original, which counts every line.
    """

    name: str
    words: Words
    forms: Mapping[str, Form]
    folder: str
    pools: Sequence[str] = ()
    has_one_right_answer: bool = False
    script: str
    base_tokens: int = 0

    @cached_property
    def help_texts(self) -> Mapping[str, str]:
        """The texts that interventions add to a prompt, by the names of interventions."""
        path = DATA / "wordings" / self.folder / "interventions.toml"
        return tomllib.loads(path.read_text(encoding="utf-8"))

    @property
    def form(self) -> Form:
        """The default form."""
        return next(iter(self.forms.values()))

    def pool(self, change: Any, name: str = "", *, quiet: bool = True) -> Pool:
        """Return the pool of a change by name; "" for the default.

        Raises:
            InvalidInput: if there is none.
        """

    def usual_rates(self, pool: str) -> Sequence[float]:
        """Return how often other models give the usual answer to the items of a pool."""

    def items_in(self, path: Path) -> list[Any]:
        """Read a file of items.

        Raises:
            InvalidInput: with file, line and reason, at the first line that is not an item.
        """

    def item(self, line: Any) -> Any:
        """Return an item from its JSON object.

        Raises:
            LookupError, TypeError, ValueError: if it is none.
        """

    def controls(self, change: Any) -> Sequence[Any] | None:
        """Return the control items of a change; None if controls come from the search."""
        return None

    def as_control(self, item: Any, answer: str) -> Any:
        """Return an item to which a model gave an answer that stays right as a control."""
        return item

    def examples(self, change: Any) -> Iterable[Any]:
        """Return items for readers; none if the change forbids nothing."""

    def worked_example(self, change: Any) -> str:
        """Return an example of a right answer after another change, to add to a prompt."""

    def show(self, item: Any) -> str:
        """Return an item as text for terminals and logs."""

    def label(self, item: Any, answer: str) -> str:
        """Return an answer as readers know it."""
        return answer

    def details(self, item: Any) -> dict[str, Any]:
        """Return what the sample browser of a report shows of an item."""
        return dict(item.to_json())

    def named_answers(self, text: str, item: Any, change: Any) -> dict[str, str]:
        """Return the answers that a text names, by how it writes them."""
        return {}

    def picture(self, change: Any) -> Any:
        """Return a picture of a change for reports, or None."""
        return None

    def definitions(self) -> str:
        """Return what its pictures and scripts need within the report, as SVG."""
        return ""
