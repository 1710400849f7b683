"""Resolve a spec into a plan: everything it names, checked against the model."""

from collections.abc import Mapping
from typing import Any

from ..errors import InvalidInput
from ..habits.base import Change
from ..habits.catalog import DEFAULT_FORM, form_for
from ..providers.base import ModelInfo
from .conditions import SavedCondition, conditions_for
from .prompts import DEFAULT_WORDING, shipped_wording, wordings_named
from .spec import SETTINGS, Spec
from .types import CHANGED_CONDITION, STANDARD_CONDITION, Plan

# The options from which a saved plan is restored; its prompts are saved themselves.
RESTORED = (*("eval", "reading", "n", "max_samples", "select_effort"), *SETTINGS)


def plan_for(spec: Spec, model: ModelInfo) -> Plan:
    """Resolve everything that the spec names.

    Raises:
        InvalidInput: if something it names does not exist or does not fit.
    """
    change, form = spec.change, form_for(spec.change, spec.form)
    habit, wordings = change.its_habit, wordings_named(spec.wording, change)
    if model.only_habit not in ("", habit.name):
        raise InvalidInput(
            f"{model.name} plays {model.only_habit} only; for {change.key}, name a model with "
            "--model or a server with --base-url, or try cdta/random"
        )
    for effort in (spec.reasoning_effort, spec.select_effort):
        if effort not in (None, "none") and not model.may_reason:
            raise InvalidInput(
                f"{model.name} is not a reasoning model; leave out the effort {effort!r}"
            )
    selection = None  # several wordings share the items that the plain one selects
    if len(wordings) > 1:
        plain = shipped_wording(DEFAULT_WORDING, change)
        (selection,) = conditions_for([STANDARD_CONDITION], change, plain, form=form)
    return Plan(
        **_options(spec),
        wordings=tuple(wording.name for wording in wordings),
        conditions=conditions_for(spec.all_conditions, change, *wordings, form=form),
        interventions=tuple(sorted(spec.interventions)),
        selection=selection,
    )


def saved_plan(
    change: Change, options: Mapping[str, Any], saved: Mapping[str, SavedCondition]
) -> Plan:
    """Return the plan of a saved run, from its options and the prompts of its conditions.

    Raises:
        InvalidInput, LookupError: if the values are not those of a run.
    """
    form = form_for(change, options.get("form", DEFAULT_FORM))
    conditions = {name: entry.condition(name, change, form) for name, entry in saved.items()}
    if missing := {STANDARD_CONDITION, CHANGED_CONDITION} - conditions.keys():
        raise KeyError(f"no condition {' and '.join(missing)}")
    wordings = tuple(saved[STANDARD_CONDITION].prompts)
    if not wordings or any(tuple(entry.prompts) != wordings for entry in saved.values()):
        raise LookupError("the conditions have different wordings")
    spec = Spec(rules=change, **{name: options[name] for name in RESTORED if name in options})
    return Plan(
        **_options(spec),
        wordings=wordings,
        conditions=tuple(conditions.values()),
        interventions=tuple(sorted(options.get("interventions", ()))),
    )


def _options(spec: Spec) -> dict[str, Any]:
    """Return the fields of a plan that come from the options alone."""
    return {
        "eval": spec.eval,
        "reading": spec.reading,
        "settings": spec.settings,
        "select_effort": spec.select_effort or spec.reasoning_effort,
        "wanted": min(spec.n_items, spec.max_samples or spec.n_items),
        "change": spec.change,
    }
