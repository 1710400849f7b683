"""The table of conditions: the prompt, the rules and the scorer of each.

A run asks about every position under the conditions of its plan. The first is the baseline, under
which a model shows its habits.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import partial
from typing import Any, ClassVar, Literal

from ..errors import InvalidInput, unknown_value
from ..game.position import Position
from ..game.rules import STANDARD, Rules, identity_of, placebo_of
from ..providers.base import Question
from .forms import MOVES, Form, saved_form
from .knowledge import allowed_move, forbidden_move, judge_knowledge
from .prompts import DEFAULT, Prompt, Wording
from .scorer import judge
from .types import (
    CHANGED_CONDITION,
    STANDARD_CONDITION,
    Condition,
    QueriedMove,
    Scorer,
)

PLACEBO, REMINDED = "placebo", "reminded"
# Legality questions: about a special move, and about a move that the changed rules allow.
KNOWS_FORBIDDEN, KNOWS_ALLOWED = QUESTIONS = ("knows_forbidden", "knows_allowed")
# The conditions of a diagnosis, for every position.
OF_DIAGNOSIS = (STANDARD_CONDITION, CHANGED_CONDITION, PLACEBO, REMINDED, *QUESTIONS)
OF_CONTROLS = (STANDARD_CONDITION, CHANGED_CONDITION, PLACEBO)


@dataclass(frozen=True)
class ConditionTemplate:
    """How to build a condition for a rule change.

    Attributes:
        rules: returns the rules in force for a change.
        text: returns the task for a wording, a change and a form.
        added: returns the end of the user's last turn for a wording and a change.
        about: returns the move whose legality is asked, if that is the question.
        read: scores the answer.
    """

    rules: Callable[[Rules], Rules]
    text: Callable[[Wording, Rules, Form], str] = Wording.changed_prompt
    added: Callable[[Wording, Rules], str] = lambda *_: ""
    about: QueriedMove | None = None
    read: Scorer = judge


def _changed(change: Rules) -> Rules:
    return change


def _placebo_text(wording: Wording, change: Rules, form: Form) -> str:
    return wording.changed_prompt(placebo_of(change), form, ", the placebo of a diagnosis")


def _legality_question(about: QueriedMove) -> ConditionTemplate:
    """Return the template that asks whether a move is legal under the changed rules."""
    return ConditionTemplate(
        _changed,
        added=lambda wording, _: wording.legality_question,
        about=about,
        read=partial(judge_knowledge, about),
    )


CONDITIONS: dict[str, ConditionTemplate] = {
    STANDARD_CONDITION: ConditionTemplate(
        lambda _: STANDARD, lambda wording, _, form: wording.standard_prompt(form)
    ),
    CHANGED_CONDITION: ConditionTemplate(_changed),
    PLACEBO: ConditionTemplate(placebo_of, _placebo_text),
    REMINDED: ConditionTemplate(_changed, added=Wording.reminder_prompt),
    KNOWS_FORBIDDEN: _legality_question(forbidden_move),
    KNOWS_ALLOWED: _legality_question(allowed_move),
}


def conditions_for(
    names: Iterable[str], change: Rules, *wordings: Wording, form: Form = MOVES
) -> tuple[Condition, ...]:
    """Return the conditions of those names, each with its prompt in every wording.

    Raises:
        InvalidInput: if a name is unknown, or a wording does not fit.
    """
    return tuple(
        condition_named(
            name,
            template.rules(change),
            [
                Prompt(
                    template.text(wording, change, form),
                    template.added(wording, change),
                    wording.role,
                )
                for wording in wordings
            ],
            form,
        )
        for name in names
        for template in [_template(name)]
    )


def question(
    position: Position,
    rules: Rules,
    condition: str = CHANGED_CONDITION,
    wording: Wording = DEFAULT,
    form: Form = MOVES,
) -> Question:
    """Return the prompt for a position under a condition, as a run with these rules sends it.

    Raises:
        InvalidInput: if the condition is unknown, or the rules or the wording do not allow it.
    """
    (resolved,) = conditions_for([condition], rules, wording, form=form)
    return resolved.question(position)


def condition_named(
    name: str, rules: Rules, prompts: Iterable[Prompt], form: Form = MOVES
) -> Condition:
    """Return the condition of that name with these rules, prompts and form of the position.

    Raises:
        InvalidInput: if the condition is unknown.
    """
    template = _template(name)
    return Condition(name, rules, tuple(prompts), template.read, template.about, form)


def _template(name: str) -> ConditionTemplate:
    if name not in CONDITIONS:
        raise unknown_value("condition", name, CONDITIONS)
    return CONDITIONS[name]


def check_conditions(names: tuple[str, ...]) -> None:
    """Check that the conditions make a run.

    Raises:
        InvalidInput: if a name is unknown or repeated, or the first two are not the standard and
            the changed condition.
    """
    for name in names:
        _template(name)
    if names[:2] != (STANDARD_CONDITION, CHANGED_CONDITION) or len(set(names)) < len(names):
        raise InvalidInput(
            f"the conditions of a run must start with {STANDARD_CONDITION!r} and "
            f"{CHANGED_CONDITION!r} and be distinct, not {names!r}"
        )


@dataclass(frozen=True)
class SavedCondition:
    """A condition in ``run.json``; its rules are known by their identity.

    With several wordings, ``prompts`` has the texts of each.
    """

    __pydantic_config__: ClassVar[Mapping[str, str]] = {"extra": "forbid"}

    name: str
    rules: str
    text: str = ""
    added: str = ""
    role: Literal["system", "user"] = "system"
    form: str = MOVES.name
    prompts: tuple[Prompt, ...] = ()

    @classmethod
    def of(cls, condition: Condition) -> "SavedCondition":
        """Return the saved form of a condition."""
        several = condition.prompts if len(condition.prompts) > 1 else ()
        texts = {} if several else asdict(condition.prompts[0])
        rules, form = identity_of(condition.rules), condition.form.identity
        return cls(condition.name, rules, **texts, form=form, prompts=several)

    def to_json(self) -> dict[str, Any]:
        """Return the values that are not defaults."""
        defaults = {item.name: item.default for item in fields(self)}
        return {name: value for name, value in asdict(self).items() if value != defaults[name]}

    def condition(self, rules: Mapping[str, Rules]) -> Condition:
        """Return the condition, with one of these rules."""
        prompts = self.prompts or [Prompt(self.text, self.added, self.role)]
        return condition_named(self.name, rules[self.rules], prompts, saved_form(self.form))
