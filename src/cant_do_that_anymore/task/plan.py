"""Resolve a spec into a plan: everything it names, checked against the model."""

from dataclasses import fields

from ..errors import InvalidInput
from ..habits.catalog import form_for
from ..providers.base import ModelInfo, Settings
from .conditions import conditions_for
from .prompts import DEFAULT_WORDING, shipped_wording, wordings_named
from .spec import SETTINGS, Spec
from .types import STANDARD_CONDITION, Plan, PlanOptions

# The plain values of a plan that are options of a run.
PLAN_OPTIONS = [item.name for item in fields(PlanOptions) if hasattr(Spec, item.name)]


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
    selection = None  # several wordings share the items that the default one selects
    if len(wordings) > 1:
        default = shipped_wording(DEFAULT_WORDING, change)
        (selection,) = conditions_for([STANDARD_CONDITION], change, default, form=form)
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
        wanted=min(spec.n_items, spec.max_samples or spec.n_items),
    )
