"""Resolve a spec into a plan: everything it names, checked against the model."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..errors import InvalidInput
from ..habits.base import Change
from ..habits.catalog import DEFAULT_FORM, form_for
from ..providers.base import ModelInfo
from .conditions import conditions_for
from .prompts import DEFAULT_WORDING, Prompt, shipped_wording, wordings_named
from .spec import Spec
from .types import CHANGED_CONDITION, STANDARD_CONDITION, Condition, Plan


def plan_for(spec: Spec, model: ModelInfo) -> Plan:
    """Resolve everything that the spec names.

    Raises:
        InvalidInput: if something it names does not exist or does not fit.
    """
    change, form = spec.change, form_for(spec.change, spec.form)
    habit, wordings = change.its_habit, wordings_named(spec.wording, change)
    if model.only_habit not in ("", habit.name):
        advice = "give --model or --base-url, or try cdta/random"
        raise InvalidInput(f"{model.name} plays only {model.only_habit}; {advice}")
    for effort in (spec.reasoning_effort, spec.select_effort):
        if effort not in (None, "none") and not model.may_reason:
            raise InvalidInput(
                f"{model.name} is not a reasoning model; leave out the effort {effort!r}"
            )
    selection = None  # several wordings share the items that the plain one selects
    if len(wordings) > 1:
        plain = shipped_wording(DEFAULT_WORDING, change)
        (selection,) = conditions_for([STANDARD_CONDITION], change, plain, form=form)
    names = [wording.name for wording in wordings]
    conditions = conditions_for(spec.all_conditions, change, *wordings, form=form)
    return replace(_plan(spec, names, conditions), selection=selection)


def saved_plan(
    change: Change, options: Mapping[str, Any], prompts: Mapping[str, Mapping[str, Prompt]]
) -> Plan:
    """Return the plan of a saved run, from its options and its prompts by condition and wording.

    Raises:
        InvalidInput, LookupError: if the values are not those of a run.
    """
    wordings = list(prompts[STANDARD_CONDITION])
    if not wordings:
        raise InvalidInput(f"there is no prompt for the condition {STANDARD_CONDITION!r}")
    names = dict.fromkeys((STANDARD_CONDITION, CHANGED_CONDITION, *prompts))
    form = form_for(change, options.get("form", DEFAULT_FORM))
    conditions = [
        replace(condition, prompts=tuple(prompts[condition.name][name] for name in wordings))
        for condition in conditions_for(names, change, form=form)
    ]
    return _plan(Spec(**{**options, "rules": change}), wordings, conditions)


def _plan(spec: Spec, wordings: Sequence[str], conditions: Sequence[Condition]) -> Plan:
    return Plan(
        eval=spec.eval,
        reading=spec.reading,
        settings=spec.settings,
        select_effort=spec.select_effort or spec.reasoning_effort,
        wanted=min(spec.n_items, spec.max_samples or spec.n_items),
        change=spec.change,
        wordings=tuple(wordings),
        conditions=tuple(conditions),
        interventions=tuple(sorted(spec.interventions)),
    )
