"""Resolve a spec into a plan: everything it names, checked against the model."""

from dataclasses import fields

from ..errors import InvalidInput
from ..providers.base import ModelInfo, Settings
from .conditions import conditions_for
from .forms import form_named
from .prompts import DEFAULT, wordings_named
from .spec import SETTINGS, Spec
from .types import STANDARD_CONDITION, Plan, PlanOptions

# The plain values of a plan that are options of a run.
PLAN_OPTIONS = [item.name for item in fields(PlanOptions) if hasattr(Spec, item.name)]


def plan_for(spec: Spec, model: ModelInfo) -> Plan:
    """Resolve everything that the spec names.

    Raises:
        InvalidInput: if something it names does not exist or does not fit.
    """
    change, wordings, form = spec.change, wordings_named(spec.wording), form_named(spec.form)
    for effort in (spec.reasoning_effort, spec.select_effort):
        if effort not in (None, "none") and not model.may_reason:
            raise InvalidInput(
                f"{model.name} is not a reasoning model; leave out the effort {effort!r}"
            )
    selection = None  # several wordings share the positions that the default one selects
    if len(wordings) > 1:
        (selection,) = conditions_for([STANDARD_CONDITION], change, DEFAULT, form=form)
    return Plan(
        **{name: getattr(spec, name) for name in PLAN_OPTIONS if name != "select_effort"},
        change=change,
        wordings=tuple(wording.name for wording in wordings),
        conditions=conditions_for(spec.all_conditions, change, *wordings, form=form),
        selection=selection,
        interventions=tuple(
            sorted(i if isinstance(i, str) else i.name for i in spec.interventions)
        ),
        settings=Settings(**{name: getattr(spec, name) for name in SETTINGS}),
        select_effort=spec.select_effort or spec.reasoning_effort,
        wanted=min(spec.n_positions, spec.max_samples or spec.n_positions),
    )
