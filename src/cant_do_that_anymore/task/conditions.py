"""The table of conditions: the prompt, the rules and the scorer of each.

A run asks about every item under the conditions of its plan. The first is the baseline, under
which a model shows its habits.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import unknown_value
from ..habits.base import Change, Form, Item
from ..habits.catalog import DEFAULT_FORM, form_for, resolve_change
from ..providers.base import Question
from .prompts import ALL, DEFAULT_WORDING, Prompt, Wording, wordings_named
from .scorer import allowed_answer, forbidden_answer, judge, judge_knowledge, judge_last_line
from .types import (
    CHANGED_CONDITION,
    STANDARD_CONDITION,
    Condition,
    Plan,
    QueriedAnswer,
    Scorer,
)

PLACEBO, REMINDED = "placebo", "reminded"
# Questions about a usual answer, and about an answer that is right under the changed rules.
KNOWS_FORBIDDEN, KNOWS_ALLOWED = QUESTIONS = ("knows_forbidden", "knows_allowed")
# The conditions of a diagnosis, for every position.
DIAGNOSIS_CONDITIONS = (STANDARD_CONDITION, CHANGED_CONDITION, PLACEBO, REMINDED, *QUESTIONS)
# The intervention that not all habits have.
LISTED = "legal-moves"
# The conditions of every run, and all that controls are asked under.
CONTROL_CONDITIONS = (STANDARD_CONDITION, CHANGED_CONDITION)
MOST_REQUESTS = len(DIAGNOSIS_CONDITIONS) + len(CONTROL_CONDITIONS)  # per sample of a diagnosis


@dataclass(frozen=True)
class ConditionTemplate:
    """How to build a condition for a rule change.

    Attributes:
        rules: returns the rules in force for a change; all texts are about these.
        text: returns the task for a wording, the rules and a form.
        added: returns the end of the user's last turn for a wording and the rules.
        about: returns the answer that is in question, if one is.
        read: scores the answer.
        again: returns the text after which the prompt is repeated, for the rules.
        tokens: the token limit of replies that say more than the answer, which is their last line;
            0 for that of the run.
        label: what it does, for sentences on interventions.
        asks: what it asks for, if that does not follow from the label.
    """

    rules: Callable[[Change], Change] = lambda change: change
    text: Callable[[Wording, Change, Form], str] = Wording.changed_prompt
    added: Callable[[Wording, Change], str] = lambda *_: ""
    about: QueriedAnswer | None = None
    read: Scorer = judge
    again: Callable[[Change], str] = lambda _: ""
    tokens: int = 0
    label: str = ""
    asks: str = ""

    def condition(
        self, name: str, change: Change, wordings: Iterable[Wording], form: Form
    ) -> Condition:
        """Return the condition for a rule change, with its prompt in every wording."""
        rules, words = self.rules(change), change.its_habit.words
        again = self.again(rules)
        prompts = [
            Prompt(self.text(each, rules, form), self.added(each, rules), each.role, again)
            for each in wordings
        ]
        with_help = f"a {{answer}} under the changed rules, with help: {self.label}"
        return Condition(
            name=name,
            rules=rules,
            prompts=tuple(prompts),
            read=judge_last_line if self.tokens else self.read,
            about=self.about,
            form=form,
            tokens=self.tokens,
            label=words.fill(self.label),
            asks=words.fill(self.asks or (with_help if self.label else "")),
        )


def _question_about(about: Any, asks: str) -> ConditionTemplate:
    """Return the template that asks whether an answer is right under the changed rules."""
    return ConditionTemplate(
        added=Wording.question_about,
        about=about,
        read=partial(judge_knowledge, about),
        asks=asks,
    )


def _with_example(wording: Wording, rules: Change, form: Form) -> str:
    example = rules.its_habit.worked_example(rules)
    return f"{wording.changed_prompt(rules, form)}\n\n{example}"


def _helping(name: str, label: str, tokens: int = 0) -> ConditionTemplate:
    """Return an intervention that adds the text of its name."""
    return ConditionTemplate(
        added=lambda _, rules: rules.its_habit.help_texts[name], tokens=tokens, label=label
    )


CONDITIONS: dict[str, ConditionTemplate] = {
    STANDARD_CONDITION: ConditionTemplate(
        lambda change: change.standard,
        Wording.standard_prompt,
        asks="a {answer} under the standard rules",
    ),
    CHANGED_CONDITION: ConditionTemplate(asks="a {answer} under the changed rules"),
    PLACEBO: ConditionTemplate(
        lambda change: change.placebo_change,
        asks="a {answer} under a similar change that leaves the habit {allowed}",
    ),
    REMINDED: ConditionTemplate(
        added=Wording.reminder_prompt,
        label="a reminder",
        asks="a {answer}; the prompt repeats the changed rule",
    ),
    KNOWS_FORBIDDEN: _question_about(forbidden_answer, "whether a forbidden {answer} is {allowed}"),
    KNOWS_ALLOWED: _question_about(allowed_answer, "whether an allowed {answer} is {allowed}"),
    "repeated": ConditionTemplate(
        again=lambda rules: rules.its_habit.help_texts["repeated"], label="repeating the prompt"
    ),
    "conflict-named": _helping("conflict-named", "naming the conflict"),
    "example": ConditionTemplate(text=_with_example, label="a worked example"),
    LISTED: _helping(LISTED, "listing the legal moves"),
    "check-first": _helping("check-first", "checking the usual {answer} first", tokens=100),
    "reason-first": _helping("reason-first", "reasoning first", tokens=1000),
}


def interventions() -> list[str]:
    """Return the names of the conditions that may help the model to follow the rule."""
    return [name for name, template in CONDITIONS.items() if template.label]


def interventions_for(change: Change, given: str | Sequence[str]) -> tuple[str, ...]:
    """Return interventions in the order of the table, with those that ``all`` stands for.

    They are given as a list, or as a text with commas.

    Raises:
        InvalidInput: if one is unknown, or makes no sense for the habit of the change.
    """
    texts = [given] if isinstance(given, str) else given
    names = [name for text in texts for name in text.split(",") if name]
    has_listed = LISTED in change.its_habit.help_texts
    available = [name for name in interventions() if name != LISTED or has_listed]
    for name in names:
        if name not in (*available, ALL):
            raise unknown_value("intervention", name, [*available, ALL])
    return tuple(name for name in available if name in names or ALL in names)


def conditions_for(
    names: Iterable[str], change: Change, *wordings: Wording, form: Form | None = None
) -> tuple[Condition, ...]:
    """Return the conditions of those names, each with its prompt in every wording.

    Raises:
        InvalidInput: if a name is unknown, or a wording does not fit.
    """
    conditions, shown = [], form or change.its_habit.form
    for name in names:
        if name not in CONDITIONS:
            raise unknown_value("condition", name, CONDITIONS)
        conditions.append(CONDITIONS[name].condition(name, change, wordings, shown))
    return tuple(conditions)


def question(
    item: Item,
    rules: Change | str | Path,
    condition: str = CHANGED_CONDITION,
    wording: Wording | Path | str = DEFAULT_WORDING,
    form: str = DEFAULT_FORM,
) -> Question:
    """Return the prompt for an item under a condition, as a run with these rules sends it.

    With several wordings, it is that of the item. Rules, wording and form are given as in `Spec`.

    Raises:
        InvalidInput: if the condition is unknown, or the rules or the wording do not allow it.
    """
    change = resolve_change(rules)
    wordings, shown = wordings_named(wording, change), form_for(change, form)
    (resolved,) = conditions_for([condition], change, *wordings, form=shown)
    return resolved.question(item)


def control_conditions(plan: Plan) -> tuple[Condition, ...]:
    """Return the conditions of controls, which come first in every plan."""
    return plan.conditions[: len(CONTROL_CONDITIONS)]
