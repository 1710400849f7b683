"""The prompts of every condition, bundled or from a TOML file."""

import ast
import re
import tomllib
import zipfile
import zlib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from ..errors import InvalidInput, error_reason, nearest, unknown_value
from ..game.rules import BISHOPS_AS_KNIGHTS, Rules
from .knowledge import ANSWERS, MOVE

CHANGE = "{change}"
"""Stands in a wording for the sentence that states the change of the rules."""

ORIGINAL_PREFIX = "openai-evals:"
_ORIGINAL_TEXTS = "evals/elsuite/cant_do_that_anymore/defaults.py"
_ORIGINAL_NAMES = ("TASK_DESCRIPTION", "TASK_DESCRIPTION_VARIANT")
_NO_WHEEL = (
    *(OSError, LookupError, ValueError, TypeError, SyntaxError, RuntimeError, MemoryError),
    *(zipfile.BadZipFile, zlib.error),
)
"""What reading may raise where a file is no wheel of the original."""

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
    """How the rules are put to the model.

    Attributes:
        standard: the task under the standard rules.
        changed: the task under changed ones; it holds ``{change}`` where the change is stated.
            Without that, the text is about bishops that move as knights do and fits no other
            change.
        reminder: what is added to the user's last turn to state the change once more.
        question: what is added there to ask whether ``{move}`` is legal; ``{answers}`` is "yes or
            no", or the other way round.
    """

    name: str
    standard: str
    changed: str
    reminder: str = _REMINDER
    question: str = _QUESTION

    def changed_prompt(self, change: Rules, used: str = "") -> str:
        """The text for the changed rules, where an error may say what they are used for.

        Raises:
            InvalidInput: if the texts are about another change.
        """
        if CHANGE not in self.changed and change is not BISHOPS_AS_KNIGHTS:
            raise InvalidInput(
                f"the wording {self.name!r} states only {BISHOPS_AS_KNIGHTS.key}, "
                f"not {change.key}{used}; write {CHANGE} in it where the change belongs"
            )
        return self.changed.replace(CHANGE, change.statement)

    def reminder_prompt(self, change: Rules) -> str:
        """The reminder of the change."""
        return self.reminder.replace(CHANGE, change.statement)


DEFAULT = Wording(
    "default",
    _TASK.replace("{game}", "chess"),
    _TASK.replace("{game}", "chess with one rule changed") + _CHANGED,
)
_PLACEHOLDERS: dict[str, tuple[str, ...]] = {
    "standard": (),
    "changed": (CHANGE,),
    "reminder": (CHANGE,),
    "question": (MOVE, ANSWERS),
}
"""The keys of a file, and the placeholders that are filled in in each text."""
_IN_BRACES = re.compile(r"(\\[A-Za-z]+)?(\{\s*[^\W\d]+\s*\})")
"""A word in braces, perhaps as the argument of a LaTeX command, which is no placeholder."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f]")


def wording_named(name: str) -> Wording:
    """The default wording, one read from a TOML file, or the original's own.

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
        told = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as problem:
        raise InvalidInput(f"cannot read {where}: {error_reason(problem)}") from None
    for key in told:
        if key not in _PLACEHOLDERS:
            raise unknown_value(f"key in {where}", key, _PLACEHOLDERS)
    for key in ("standard", "changed"):
        if key not in told:
            raise InvalidInput(f"{where} lacks the key {key!r}")
    for key, text in told.items():
        _check_text(f"{key!r} of {where}", text, _PLACEHOLDERS[key])
    if told["standard"].split() == told["changed"].split():
        raise InvalidInput(
            f"'standard' and 'changed' of {where} are the same text; write {CHANGE} in 'changed' "
            "where the rule is stated"
        )
    return Wording(str(path), **told)


def _check_text(which: str, text: object, placeholders: Collection[str]) -> None:
    """Refuse what cannot be told to a model.

    Raises:
        InvalidInput: if it is no text or an empty one, holds a control character or an unknown
            placeholder, or asks about no move.
    """
    if not isinstance(text, str):
        raise InvalidInput(f"{which} must be a text, not {text!r:.60}")
    if not text.strip():
        raise InvalidInput(f"{which} is empty; write what the model is told")
    if control := _CONTROL.search(text):
        raise InvalidInput(
            f"{which} holds the control character {control[0]!r}; to write a backslash in TOML, as "
            r"in \boxed{}, put the text in 'single quotes'"
        )
    for command, given in _IN_BRACES.findall(text):
        if not command and given not in placeholders:
            none = f"this text takes none; {CHANGE} belongs in 'changed'"
            valid = nearest(given, placeholders) if placeholders else none
            raise InvalidInput(f"unknown placeholder in {which}: {given!r} ({valid})")
    if MOVE in placeholders and MOVE not in text:
        raise InvalidInput(f"{which} asks about no move; write {MOVE} where the move belongs")


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected a text, got {value!r}")
    return value


def _original(name: str, path: Path) -> Wording:
    try:
        if path.is_dir():
            source = (path / _ORIGINAL_TEXTS).read_text(encoding="utf-8")
        else:
            with zipfile.ZipFile(path) as wheel, wheel.open(_ORIGINAL_TEXTS) as file:
                source = file.read().decode()
        texts = {
            target.id: _string(ast.literal_eval(statement.value))
            for statement in ast.parse(source).body
            if isinstance(statement, ast.Assign)
            for target in statement.targets
            if isinstance(target, ast.Name) and target.id in _ORIGINAL_NAMES
        }
        return Wording(name, *(texts[each] for each in _ORIGINAL_NAMES))
    except _NO_WHEEL as problem:
        raise InvalidInput(
            f"cannot read the original's texts from {str(path)!r} ({error_reason(problem)}); "
            "get the wheel with: pip download --no-deps evals"
        ) from None
