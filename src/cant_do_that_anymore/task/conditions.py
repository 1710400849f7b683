"""The table of conditions: the prompt, the rules and the scorer of each.

A run asks about every position under the conditions of its plan. The first is the baseline, under
which a model shows its habits.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from typing import Any, ClassVar, Literal

import chess

from ..errors import InvalidInput, unknown_value
from ..game.position import Position
from ..game.rule_pool import example_of
from ..game.rules import STANDARD, Rules, identity_of, placebo_of, resolve_rules, rules_named
from ..providers.base import Question
from .forms import MOVES, Form, form_named, saved_form
from .prompts import ALL, DEFAULT, LEGAL_MOVES, Prompt, Wording, parse_wording, wordings_named
from .scorer import allowed_move, forbidden_move, judge, judge_knowledge, judge_last_line
from .types import (
    CHANGED_CONDITION,
    STANDARD_CONDITION,
    Condition,
    Plan,
    QueriedMove,
    Scorer,
)

PLACEBO, REMINDED = "placebo", "reminded"
# Legality questions: about a special move, and about a move that the changed rules allow.
KNOWS_FORBIDDEN, KNOWS_ALLOWED = QUESTIONS = ("knows_forbidden", "knows_allowed")
# The conditions of a diagnosis, for every position.
DIAGNOSIS_CONDITIONS = (STANDARD_CONDITION, CHANGED_CONDITION, PLACEBO, REMINDED, *QUESTIONS)
CONTROL_CONDITIONS = (STANDARD_CONDITION, CHANGED_CONDITION, PLACEBO)
MOST_REQUESTS = len(DIAGNOSIS_CONDITIONS) + len(CONTROL_CONDITIONS)  # per sample of a diagnosis


@dataclass(frozen=True)
class ConditionTemplate:
    """How to build a condition for a rule change.

    Attributes:
        rules: returns the rules in force for a change.
        text: returns the task for a wording, a change and a form.
        added: returns the end of the user's last turn for a wording and a change.
        about: returns the move whose legality is asked, if that is the question.
        read: scores the answer.
        again: as in `Prompt`.
        tokens: the token limit of replies that say more than the move, which is their last line; 0
            for that of the run.
        label: what it does, for sentences on interventions.
        asks: what it asks for, if that does not follow from the label.
        name: its name, if it is not in `CONDITIONS`.
    """

    rules: Callable[[Rules], Rules] = lambda change: change
    text: Callable[[Wording, Rules, Form], str] = Wording.changed_prompt
    added: Callable[[Wording, Rules], str] = lambda *_: ""
    about: QueriedMove | None = None
    read: Scorer = judge
    again: str = ""
    tokens: int = 0
    label: str = ""
    asks: str = ""
    name: str = ""


def _placebo_text(wording: Wording, change: Rules, form: Form) -> str:
    return wording.changed_prompt(placebo_of(change), form, ", the placebo of a diagnosis")


def _legality_question(about: QueriedMove, asks: str) -> ConditionTemplate:
    """Return the template that asks whether a move is legal under the changed rules."""
    return ConditionTemplate(
        added=lambda wording, _: wording.legality_question,
        about=about,
        read=partial(judge_knowledge, about),
        asks=asks,
    )


def _with_example(wording: Wording, change: Rules, form: Form) -> str:
    """Return the task with a worked example: another game, whose changed rule is the placebo."""
    others = (placebo_of(change), rules_named("no-castling"))  # one's own may forbid nothing
    rules, position = next((other, game) for other in others if (game := example_of(other)))
    usual, board = chess.Move.from_uci(position.special_moves[0]), position.board()
    reply = min(  # if possible, of the same piece and legal only under the changed rule
        rules.legal_moves(board),
        key=lambda m: (m.from_square != usual.from_square, STANDARD.is_legal(board, m), m.uci()),
    )
    return (
        f"{wording.changed_prompt(change, form)}\n\nHere is a worked example from another game, in "
        f'which another rule was changed: "{rules.statement}" In one position of that game, '
        f"{board.fen()} in FEN, the usual move {usual.uci()} would have broken its rule. A correct "
        f"reply was {reply.uci()}."
    )


CONDITIONS: dict[str, ConditionTemplate] = {
    STANDARD_CONDITION: ConditionTemplate(
        lambda _: STANDARD,
        lambda wording, _, form: wording.standard_prompt(form),
        asks="a move under the standard rules",
    ),
    CHANGED_CONDITION: ConditionTemplate(asks="a move under the changed rules"),
    PLACEBO: ConditionTemplate(
        placebo_of, _placebo_text, asks="a move under a similar change that leaves the habit legal"
    ),
    REMINDED: ConditionTemplate(
        added=Wording.reminder_prompt,
        label="a reminder",
        asks="a move; the prompt repeats the changed rule",
    ),
    KNOWS_FORBIDDEN: _legality_question(forbidden_move, "whether a forbidden move is legal"),
    KNOWS_ALLOWED: _legality_question(allowed_move, "whether an allowed move is legal"),
    "repeated": ConditionTemplate(
        again="Here are the task and the position once more.", label="repeating the prompt"
    ),
    "conflict-named": ConditionTemplate(
        added=lambda *_: (
            "Some moves that are usual in chess are illegal here. Check your move against the new "
            "rule before you answer."
        ),
        label="naming the conflict",
    ),
    "example": ConditionTemplate(text=_with_example, label="a worked example"),
    "legal-moves": ConditionTemplate(
        added=lambda *_: f"The legal moves in this position are: {LEGAL_MOVES}.",
        label="listing the legal moves",
    ),
    "check-first": ConditionTemplate(
        added=lambda *_: (
            "This time, reply in two lines instead of with the move alone. First line: the move "
            "that you would usually play here, and whether it is legal in this game, yes or no. "
            "Second line: the move that you play, in UCI notation, and nothing else."
        ),
        tokens=100,
        label="checking the usual move first",
    ),
    "reason-first": ConditionTemplate(
        added=lambda *_: (
            "This time, do not reply with the move alone. First reason about the position and the "
            "rules of this game in a few sentences. Then end your reply with a line that contains "
            "the move that you play, in UCI notation, and nothing else."
        ),
        tokens=1000,
        label="reasoning first",
    ),
}


def interventions() -> list[str]:
    """Return the names of the conditions that may help the model to follow the rule."""
    return [name for name, template in CONDITIONS.items() if template.label]


def parse_interventions(value: Any) -> tuple[str | ConditionTemplate, ...]:
    """Return interventions given as a list, as names between commas, or all of them for "all".

    Raises:
        InvalidInput: if one is unknown, or cannot be an intervention.
    """
    items = value if isinstance(value, list | tuple) else [value] if value else []
    flat: list[Any] = []
    for item in items:
        flat += item.split(",") if isinstance(item, str) else [item]
    if True in flat or ALL in flat:
        flat = [*interventions(), *(item for item in flat if isinstance(item, ConditionTemplate))]
    for item in flat:
        if isinstance(item, ConditionTemplate):
            asks_for_move = not item.about and item.read is judge
            under_change = item.rules is ConditionTemplate.rules
            if not item.name or item.name in CONDITIONS or not (asks_for_move and under_change):
                raise InvalidInput(
                    f"{item.name!r} cannot be an intervention: it must ask for a move under the "
                    f"changed rules and have a name that is not one of {', '.join(CONDITIONS)}"
                )
            if not isinstance(item.tokens, int) or item.tokens < 0:
                raise InvalidInput(
                    f"tokens of the intervention {item.name!r} must be a whole number from 0, not "
                    f"{item.tokens!r}"
                )
        elif item not in interventions():
            raise unknown_value("intervention", str(item), [*interventions(), ALL])
    order = [*CONDITIONS]  # so that runs do not differ in the order in which they are given
    unique = sorted(
        dict.fromkeys(flat), key=lambda item: order.index(item) if item in order else len(order)
    )
    names = [item.name for item in unique if isinstance(item, ConditionTemplate)]
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput(f"two interventions are named {name!r}; give each its own name")
    return tuple(unique)


def conditions_for(
    names: Iterable[str | ConditionTemplate], change: Rules, *wordings: Wording, form: Form = MOVES
) -> tuple[Condition, ...]:
    """Return the conditions of those names, each with its prompt in every wording.

    Raises:
        InvalidInput: if a name is unknown, or a wording does not fit.
    """
    return tuple(
        condition_named(
            template,
            template.rules(change),
            [_prompt(template, wording, change, form) for wording in wordings],
            form,
        )
        for template in map(_template, names)
    )


def _prompt(template: ConditionTemplate, wording: Wording, change: Rules, form: Form) -> Prompt:
    """Return the texts of a condition in one wording.

    Raises:
        InvalidInput: if a function of the template returns no text.
    """
    text, added = template.text(wording, change, form), template.added(wording, change)
    for field, value in (("text", text), ("added", added)):
        if not isinstance(value, str):
            raise InvalidInput(f"{field} of {template.name!r} must return a text, not {value!r}")
    return Prompt(text, added, wording.role, template.again)


def question(
    position: Position,
    rules: Rules,
    condition: str = CHANGED_CONDITION,
    wording: Wording | str | Mapping[str, str] = DEFAULT,
    form: Form | str = MOVES,
) -> Question:
    """Return the prompt for a position under a condition, as a run with these rules sends it.

    With several wordings, it is that of the position. Wording and form are given as in `Spec`.

    Raises:
        InvalidInput: if the condition is unknown, or the rules or the wording do not allow it.
    """
    wordings = wordings_named(parse_wording(wording))
    (resolved,) = conditions_for(
        [condition], resolve_rules(rules), *wordings, form=form_named(form)
    )
    return resolved.question(position)


def condition_named(
    name: str | ConditionTemplate, rules: Rules, prompts: Iterable[Prompt], form: Form = MOVES
) -> Condition:
    """Return the condition of that name or template with these rules, prompts and form.

    Raises:
        InvalidInput: if the condition is unknown.
    """
    template = _template(name)
    helped = f"a move under the changed rules, with help: {template.label}"
    return Condition(
        template.name,
        rules,
        tuple(prompts),
        judge_last_line if template.tokens else template.read,
        template.about,
        form,
        template.tokens,
        template.label or template.name,
        template.asks or (helped if template.label else ""),
    )


def _template(name: str | ConditionTemplate) -> ConditionTemplate:
    """Return a template with its name.

    Raises:
        InvalidInput: if there is none of that name.
    """
    if isinstance(name, ConditionTemplate):
        return name
    if name not in CONDITIONS:
        raise unknown_value("condition", name, CONDITIONS)
    return replace(CONDITIONS[name], name=name)


def control_conditions(plan: Plan) -> tuple[Condition, ...]:
    """Return the conditions of control positions, with the interventions of the plan."""
    names = {*CONTROL_CONDITIONS, *plan.interventions}
    return tuple(condition for condition in plan.conditions if condition.name in names)


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
    again: str = ""
    form: str = MOVES.name
    tokens: int = 0
    prompts: tuple[Prompt, ...] = ()

    @classmethod
    def json_of(cls, condition: Condition) -> dict[str, Any]:
        """Return the values of a condition that are not defaults."""
        first, *others = condition.prompts
        texts = {"prompts": condition.prompts} if others else vars(first)
        rules, form = identity_of(condition.rules), condition.form.identity
        saved = cls(condition.name, rules, **texts, form=form, tokens=condition.tokens)
        defaults = {item.name: item.default for item in fields(cls)}
        return {name: value for name, value in asdict(saved).items() if value != defaults[name]}

    def condition(self, rules: Mapping[str, Rules], interventions: Collection[str]) -> Condition:
        """Return the condition, with one of these rules; interventions may be the user's own."""
        own = self.name in interventions and self.name not in CONDITIONS
        template = ConditionTemplate(name=self.name) if own else _template(self.name)
        prompts = self.prompts or [Prompt(self.text, self.added, self.role, self.again)]
        return condition_named(
            replace(template, tokens=self.tokens), rules[self.rules], prompts, saved_form(self.form)
        )
