"""Wordings of the task, from TOML files, and the prompts they give for an item."""

import ast
import re
import tomllib
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal

from ..errors import InvalidInput, unknown_value
from ..files import DATA, file_errors
from ..habits.base import STATEMENTS, Change, Form, Item, Message, with_user_turn
from ..providers.request_fields import without_system
from ..validation import parse

# Placeholders in a wording besides the statements of a change: how a position is shown; what a
# question asks for; the move or the answer in question; the options of such a question.
POSITION, TASK, REPLY = "{position}", "{task}", "{reply}"
QUERIED, ANSWERS = ("{move}", "{answer}"), "{answers}"
# In what conditions add to a prompt: all legal moves, in UCI.
LEGAL_MOVES = "{legal_moves}"
# The rules of the original eval, which its texts are about.
ORIGINAL_RULES = "bishops-as-knights"

ORIGINAL_PREFIX = "openai-evals:"
_ORIGINAL_TEXTS = "evals/elsuite/cant_do_that_anymore/defaults.py"
_ORIGINAL_NAMES = ("TASK_DESCRIPTION", "TASK_DESCRIPTION_VARIANT")


@dataclass(frozen=True)
class Prompt:
    """The texts of one condition in one wording.

    Attributes:
        text: the task.
        added: what the user's last turn ends with.
        role: whether the task is a system message, or part of the first user turn.
        again: if not empty, this text and then the task and the item once more come before what is
            added.
    """

    text: str
    added: str = ""
    role: Literal["system", "user"] = "system"
    again: str = ""

    def messages(self, item: Item, suffix: str, form: Form) -> tuple[Message, ...]:
        """Return the task and the item in a form; its last turn ends with the suffix."""
        messages = (Message("system", self.text), *form.render(item))
        if self.role == "user":
            messages = without_system(messages)
        if self.again:
            task, *turns = without_system(
                (Message("system", f"{self.again}\n\n{self.text}"), *form.render(item))
            )
            messages = (*with_user_turn(messages, task.content), *turns)
        return with_user_turn(messages, suffix) if suffix else messages


def answers_for(item: Item) -> str:
    """Return the answer options: "yes" comes first for half of the items, by their ids.

    So a preference for the first or the last option does not count as knowledge.
    """
    return "no or yes" if int(item.id, 16) % 2 else "yes or no"


def choice_for(item: Item, choices: int) -> int:
    """Return which of several wordings an item gets: by its id, the same for every model.

    It does not depend on the order of the answer options, which the last bit of the id decides.
    """
    return (int(item.id, 16) >> 1) % choices


@dataclass(frozen=True)
class Wording:
    """The prompt texts that state the rules to the model.

    Attributes:
        standard: the task under the standard rules. Of chess, with ``{position}`` for the clause
            that says how the position is shown; without it, the text fits only the form ``moves``.
            Of questions, with ``{task}`` and ``{reply}``, the texts of the change's file.
        changed: the task under changed rules, also with ``{change}`` where the change is stated
            (``{now}``: only what is so now, ``{no_longer}``: only what is not so any more).
            Without any of them, the text is about bishops that move as knights do and fits no
            other change.
        reminder: the suffix of the user's last turn that states the change once more.
        question: the suffix that asks whether ``{move}`` (of questions: ``{answer}``) is right;
            ``{answers}`` becomes "yes or no" or "no or yes".
        role: ``user`` puts the task into the first user turn instead of a system message.
    """

    __pydantic_config__: ClassVar[Mapping[str, str]] = {"extra": "forbid"}

    name: str
    standard: str
    changed: str
    reminder: str = ""
    question: str = ""
    role: Literal["system", "user"] = "system"

    def standard_prompt(self, change: Change, form: Form | None = None) -> str:
        """Return the text for the standard rules of a change."""
        return self._filled(self.standard, change.standard, form)

    def changed_prompt(self, change: Change, form: Form | None = None) -> str:
        """Return the text for the changed rules.

        Raises:
            InvalidInput: if the text is about another change, another habit or another form.
        """
        own_words = not any(statement in self.changed for statement in STATEMENTS)
        if own_words and change.identity != ORIGINAL_RULES:
            raise InvalidInput(
                f"the wording {self.name!r} states only {ORIGINAL_RULES}, not {change.key}; write "
                f"{STATEMENTS[0]} where the change, or the placebo of a diagnosis, belongs"
            )
        return self._filled(self.changed, change, form)

    def reminder_prompt(self, change: Change) -> str:
        """Return the reminder of the change."""
        return _stated(self.reminder or shipped_wording(DEFAULT_WORDING, change).reminder, change)

    def question_about(self, change: Change) -> str:
        """Return the question whether an answer is right."""
        return self.question or shipped_wording(DEFAULT_WORDING, change).question

    def _filled(self, text: str, change: Change, form: Form | None) -> str:
        habit = change.its_habit
        if form and POSITION not in text and form is not habit.form:
            raise InvalidInput(
                f"the wording {self.name!r} does not say how the position is shown, so it fits "
                f"only the form {habit.form.name}, not {form.name}; write {POSITION} in its texts"
            )
        if any((name in text) != (name in change.texts) for name in (TASK, REPLY)):
            raise InvalidInput(
                f"the wording {self.name!r} is not for {habit.folder}: a wording for questions "
                f"contains {TASK} and {REPLY}, and one for chess does not"
            )
        return _stated(text.replace(POSITION, (form or habit.form).description), change)


def _stated(text: str, change: Change) -> str:
    """Fill in the statement of a change, and what else it says."""
    texts = change.texts
    return re.sub("|".join(map(re.escape, texts)), lambda match: texts[match[0]], text)


# The wording that runs use by default, and what stands for all of the other shipped ones.
DEFAULT_WORDING, ALL = "plain", "all"
SHIPPED_WORDINGS = (
    *("terse", "formal", "conversational", "rule-first", "rule-last"),
    *("positive", "negative", "user-turn"),
)


def wordings_named(source: Any, change: Change) -> tuple[Wording, ...]:
    """Return wordings: one, or those of a list or of names between commas.

    Args:
        source: a `Wording`, a name, or a list of them. Names are ``plain``, one of the shipped
            wordings, ``all`` for all of these, a TOML file with the texts of a `Wording`, or
            ``openai-evals:FILE`` with a wheel of the package ``evals`` (``pip download --no-deps
            evals``) or the folder it was unpacked to.
        change: decides which texts the shipped names stand for.

    Raises:
        InvalidInput: if there is no such wording, or two have the same name.
    """
    given = source.split(",") if isinstance(source, str) else source
    sources = [given] if isinstance(given, Wording | Path) else list(given)
    if ALL in sources:
        sources = [*SHIPPED_WORDINGS, *(other for other in sources if other != ALL)]
    wordings = tuple(_wording(source, change) for source in sources)
    names = [wording.name for wording in wordings]
    if not names or len(set(names)) < len(names):
        raise InvalidInput(f"give at least one wording, and each once, not {', '.join(names)!r}")
    return wordings


def _wording(source: Wording | Path | str, change: Change) -> Wording:
    if isinstance(source, Wording):
        return source
    name = str(source).strip()
    if name in (DEFAULT_WORDING, *SHIPPED_WORDINGS):
        return shipped_wording(name, change)
    if name.startswith(ORIGINAL_PREFIX):
        return _original(name)
    if name.endswith(".toml"):
        return _from_toml(Path(name))
    names = [DEFAULT_WORDING, *SHIPPED_WORDINGS, ALL, "FILE.toml", f"{ORIGINAL_PREFIX}FILE"]
    raise unknown_value("wording", name, names)


def shipped_wording(name: str, change: Change) -> Wording:
    """Return a wording that comes with the package, for the habit of a change."""
    return _shipped(name, change.its_habit.folder)


@cache
def _shipped(name: str, folder: str) -> Wording:
    path = DATA / "wordings" / folder / f"{name}.toml"
    return Wording(name, **tomllib.loads(path.read_text(encoding="utf-8")))


def _from_toml(path: Path) -> Wording:
    with file_errors("read the wording", path, error=InvalidInput, caught=(OSError, ValueError)):
        texts = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    return parse(Wording, {**texts, "name": str(path)}, f"the wording {str(path)!r}")


def _original(name: str) -> Wording:
    path = Path(name.removeprefix(ORIGINAL_PREFIX))
    advice = "get the wheel with: pip download --no-deps evals"
    reading = "read the original's texts from"
    with file_errors(reading, path, advice, error=InvalidInput, caught=(Exception,)):
        folder = path if path.is_dir() else zipfile.Path(path)
        source = (folder / _ORIGINAL_TEXTS).read_text(encoding="utf-8")
        texts = {
            target.id: ast.literal_eval(statement.value)
            for statement in ast.parse(source).body
            if isinstance(statement, ast.Assign)
            for target in statement.targets
            if isinstance(target, ast.Name) and target.id in _ORIGINAL_NAMES
        }
        standard, changed = (texts[constant] for constant in _ORIGINAL_NAMES)
        return parse(Wording, {"name": name, "standard": standard, "changed": changed}, name)
