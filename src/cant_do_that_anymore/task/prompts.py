"""The prompts of every condition: the forms of a position, and the wordings of the task."""

import ast
import re
import tomllib
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ..errors import InvalidInput, error_reason, nearest, unknown_value
from ..game.position import Position
from ..game.rules import BISHOPS_AS_KNIGHTS, Rules
from ..providers.base import Message, Role
from ..providers.request_variants import with_user_turn
from ..validation import parse

# Placeholders in a wording: the sentence that states the rule change, the move in question, and the
# answer options.
CHANGE, MOVE, ANSWERS = "{change}", "{move}", "{answers}"

ORIGINAL_PREFIX = "openai-evals:"
_ORIGINAL_TEXTS = "evals/elsuite/cant_do_that_anymore/defaults.py"
_ORIGINAL_NAMES = ("TASK_DESCRIPTION", "TASK_DESCRIPTION_VARIANT")
# Errors from reading a file that is not a wheel of the original eval.
_READ_ERRORS = (
    *(OSError, LookupError, ValueError, TypeError, SyntaxError, RuntimeError, MemoryError),
    *(zipfile.BadZipFile, zlib.error),
)

# A form of a position: the turns that show it. The last one, if any, is the user's.
Form = Callable[[Position], Iterable[Message]]


def moves_by_turns(position: Position) -> Iterator[Message]:
    """Yield the moves so far, one per turn: the side to move is the assistant."""
    roles: tuple[Role, Role] = ("assistant", "user")
    to_move = len(position.moves) % 2
    return (_turn(roles[(ply - to_move) % 2], move) for ply, move in enumerate(position.moves))


TURNS = "turns"
FORMS: dict[str, Form] = {TURNS: moves_by_turns}


def check_form(name: str, where: str = "a condition") -> None:
    """Check that there is a form of this name; an error says where it was given.

    Raises:
        InvalidInput: if there is none.
    """
    if name not in FORMS:
        raise unknown_value(f"form of {where}", name, FORMS)


def messages_for(position: Position, text: str, suffix: str, form: str) -> tuple[Message, ...]:
    """Return the system prompt and the position in a form; its last turn ends with the suffix."""
    messages = (_turn("system", text), *FORMS[form](position))
    return with_user_turn(messages, suffix) if suffix else messages


@lru_cache(maxsize=8192)
def _turn(role: Role, content: str) -> Message:
    """Return a cached message: many positions share their first moves."""
    return Message(role, content)


def answers_for(position: Position) -> str:
    """Return the answer options: "yes" comes first for half of the positions, by their ids.

    So a preference for the first or the last option does not count as knowledge.
    """
    return "no or yes" if int(position.id, 16) % 2 else "yes or no"


_TASK = """\
You are playing a game of {game}. The moves so far are given turn by turn; it is your move. \
Choose the best one.

Reply with that one move and nothing else, in UCI notation: the square the piece leaves, then the \
square it arrives on.
- An ordinary move or a capture: e2e4
- Castling is written as the king's move: e1g1
- A promotion ends in the letter of the new piece: e7e8q"""

_CHANGED = """

The rules of this game differ from those of standard chess in one point. {change} \
All other pieces move as they always did."""

_REMINDER = "Remember the rules of this game. {change}"

_QUESTION = """\
Do not move yet: first a question. Under the rules of this game, is {move} a legal move for you in \
this position? Reply with {answers} and nothing else."""


@dataclass(frozen=True)
class Wording:
    """The prompt texts that state the rules to the model.

    Attributes:
        standard: the task under the standard rules.
        changed: the task under changed rules, with ``{change}`` where the change is stated. Without
            it, the text is about bishops that move as knights do and fits no other change.
        reminder: the suffix of the user's last turn that states the change once more.
        question: the suffix that asks whether ``{move}`` is legal; ``{answers}`` becomes "yes or
            no" or "no or yes".
        form: how the position is shown, one of `FORMS`; the texts say how to read it.
    """

    name: str
    standard: str
    changed: str
    reminder: str = _REMINDER
    question: str = _QUESTION
    form: str = TURNS

    def changed_prompt(self, change: Rules, purpose: str = "") -> str:
        """Return the text for the changed rules; an error names their ``purpose``.

        Raises:
            InvalidInput: if the text is about another change.
        """
        if CHANGE not in self.changed and change is not BISHOPS_AS_KNIGHTS:
            raise InvalidInput(
                f"the wording {self.name!r} states only {BISHOPS_AS_KNIGHTS.key}, "
                f"not {change.key}{purpose}; write {CHANGE} in it where the change belongs"
            )
        return self.changed.replace(CHANGE, change.statement)

    def reminder_prompt(self, change: Rules) -> str:
        """Return the reminder of the change."""
        return self.reminder.replace(CHANGE, change.statement)


DEFAULT = Wording(
    "default",
    _TASK.replace("{game}", "chess"),
    _TASK.replace("{game}", "chess with one rule changed") + _CHANGED,
)
# The texts of a TOML file, and the placeholders that each may contain.
_PLACEHOLDERS: dict[str, tuple[str, ...]] = {
    "standard": (),
    "changed": (CHANGE,),
    "reminder": (CHANGE,),
    "question": (MOVE, ANSWERS),
}
# A word in braces. After a LaTeX command it is an argument, not a placeholder.
_IN_BRACES = re.compile(r"(\\[A-Za-z]+)?(\{\s*[^\W\d]+\s*\})")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f]")


def wording_named(name: str) -> Wording:
    """Return the default wording, one from a TOML file, or that of the original eval.

    Args:
        name: ``default``, the path of a TOML file with the texts of a `Wording`, or
            ``openai-evals:FILE`` with a wheel of the package ``evals`` (``pip download --no-deps
            evals``) or the folder it was unpacked to.

    Raises:
        InvalidInput: if there is no such wording.
    """
    if name == DEFAULT.name:
        return DEFAULT
    if name.startswith(ORIGINAL_PREFIX):
        return _original(name, Path(name.removeprefix(ORIGINAL_PREFIX)))
    if name.endswith(".toml"):
        return _from_toml(Path(name))
    raise unknown_value("wording", name, [DEFAULT.name, "FILE.toml", f"{ORIGINAL_PREFIX}FILE"])


def _from_toml(path: Path) -> Wording:
    where = f"the wording {str(path)!r}"
    try:
        texts = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        raise InvalidInput(f"cannot read {where}: {error_reason(error)}") from None
    for key in texts.keys() - {*_PLACEHOLDERS, "form"}:
        raise unknown_value(f"key in {where}", key, [*_PLACEHOLDERS, "form"])
    wording = parse(Wording, {**texts, "name": str(path)}, where)
    check_form(wording.form, where)
    for key, placeholders in _PLACEHOLDERS.items():
        _check_text(f"{key!r} of {where}", getattr(wording, key), placeholders)
    if wording.standard.split() == wording.changed.split():
        raise InvalidInput(
            f"'standard' and 'changed' of {where} are the same text; write {CHANGE} in 'changed' "
            "where the rule is stated"
        )
    return wording


def _check_text(label: str, text: str, placeholders: Collection[str]) -> None:
    """Check that a text can be sent to a model.

    Raises:
        InvalidInput: if it is empty, holds a control character or an unknown placeholder, or asks
            about no move.
    """
    if not text.strip():
        raise InvalidInput(f"{label} is empty; write the text that the model gets")
    if control := _CONTROL.search(text):
        raise InvalidInput(
            f"{label} contains the control character {control[0]!r}; to write a backslash in TOML, "
            r"as in \boxed{}, put the text in 'single quotes'"
        )
    for command, placeholder in _IN_BRACES.findall(text):
        if not command and placeholder not in placeholders:
            no_placeholders = f"this text takes none; {CHANGE} belongs in 'changed'"
            valid = nearest(placeholder, placeholders) if placeholders else no_placeholders
            raise InvalidInput(f"unknown placeholder in {label}: {placeholder!r} ({valid})")
    if MOVE in placeholders and MOVE not in text:
        raise InvalidInput(f"{label} asks about no move; write {MOVE} where the move belongs")


def _original(name: str, path: Path) -> Wording:
    try:
        if path.is_dir():
            source = (path / _ORIGINAL_TEXTS).read_text(encoding="utf-8")
        else:
            with zipfile.ZipFile(path) as wheel, wheel.open(_ORIGINAL_TEXTS) as file:
                source = file.read().decode()
        texts = {
            target.id: ast.literal_eval(statement.value)
            for statement in ast.parse(source).body
            if isinstance(statement, ast.Assign)
            for target in statement.targets
            if isinstance(target, ast.Name) and target.id in _ORIGINAL_NAMES
        }
        standard, changed = (texts[constant] for constant in _ORIGINAL_NAMES)
        return parse(Wording, {"name": name, "standard": standard, "changed": changed}, name)
    except _READ_ERRORS as error:
        raise InvalidInput(
            f"cannot read the original's texts from {str(path)!r} ({error_reason(error)}); "
            "get the wheel with: pip download --no-deps evals"
        ) from None
