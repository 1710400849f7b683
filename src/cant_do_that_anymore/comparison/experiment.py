"""Experiments: several models, evals, rules, forms and efforts, each combination run once."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import product
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from ..client.pricing import FREE, CostLimit, CostLimitReached, cost_limit_for, price_for
from ..client.session import model_info
from ..datasets.pools import source_for
from ..errors import InvalidInput, Stopped, Unmeasurable, UserError
from ..files import safe_name
from ..formatting import last_part
from ..habits.base import Change
from ..habits.catalog import DEFAULT_FORM, changes_named, form_for
from ..progress import announce
from ..providers.base import EFFORTS
from ..runs.cost import ExpectedCost, estimate
from ..runs.cost_limit import check_affordable, limit_reached
from ..runs.evaluate import evaluate
from ..runs.run import PROTOCOL, Run
from ..runs.storage import load_run
from ..task.plan import plan_for
from ..task.prompts import ORIGINAL_RULES
from ..task.spec import Spec
from .naming import WITHOUT_EFFECT

Save = Callable[[Run, Path], None]


class Dimension(NamedTuple):
    """An option of `Spec` that takes several values in an experiment.

    Attributes:
        plural: the name of its values.
        text: what folders and messages call the value of a spec; "" leaves it out.
        default: describes the default.
    """

    plural: str
    text: Callable[[Spec], str]
    default: str = ""


def _form(spec: Spec) -> str:
    form = form_for(spec.change, spec.form)
    return "" if form is spec.change.its_habit.form else form.name


# By the name of the option, in the order of folder names. The command, its file, the Python
# function, folders and messages follow.
DIMENSIONS = {
    "eval": Dimension("evals", attrgetter("eval"), "all,all_diagonal; with --rules or --pool all"),
    "rules": Dimension(
        "rules",
        attrgetter("change.identity"),
        f"{ORIGINAL_RULES}; all or a habit: its rules",
    ),
    "form": Dimension("forms", _form, DEFAULT_FORM),
    "reasoning_effort": Dimension("efforts", lambda spec: spec.reasoning_effort or ""),
}


def specs_for(**options: Any) -> list[Spec]:
    """Return a spec for every combination of values; other options are the same for all.

    Args:
        options: fields of `Spec`; those in `DIMENSIONS` by their plural, with one value, several,
            or none for the default. The rules may be ``all``. With several efforts, the lowest
            selects the items for all.

    Raises:
        InvalidInput: as `Spec` does.
    """
    given = {name: as_list(options.pop(d.plural, ())) for name, d in DIMENSIONS.items()}
    given["rules"] = _expanded(given["rules"])
    # Games under the changed rules exist only for the default rules and pool.
    has_games = given["rules"] in ([], [ORIGINAL_RULES]) and not options.get("pool")
    if has_games and not given["eval"]:
        given["eval"] = ["all", "all_diagonal"]
    if len(given["reasoning_effort"]) > 1:
        chosen = (effort for effort in EFFORTS if effort in given["reasoning_effort"])
        options["select_effort"] = next(chosen, None)  # Spec rejects unknown efforts
    values = [given[name] or [getattr(Spec, name)] for name in DIMENSIONS]
    return [
        Spec(**dict(zip(DIMENSIONS, combination, strict=True)), **options)
        for combination in product(*values)
    ]


def _expanded(rules: Sequence[str | Change]) -> list[str | Change]:
    """Replace ``all`` and names of habits by the keys of their changes."""
    expanded: dict[str | Change, None] = {}
    for rule in rules:
        named = changes_named(rule) if isinstance(rule, str) else {}
        expanded |= dict.fromkeys(named or [rule])
    return list(expanded)


def as_list(value: Any) -> list[Any]:
    """Return a list of values that was given as one, none or several."""
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


# A run of an experiment: the name of its model, its spec, and its folder, if it is saved.
_Planned = tuple[str, Spec, Path | None]


def run_all(
    specs: Mapping[str, Sequence[Spec]], out: Path | None, save: Save, *, quiet: bool
) -> tuple[list[Run], dict[str, UserError]]:
    """Run all specs of each model; return the runs, and the errors by model or run.

    Every run is saved in a folder of ``out``, if given, and loaded if it exists already. A model
    that fails does not stop the others, and a task that does not suit a model not its other runs.
    All specs share one cost limit, which is checked against their expected cost.

    Raises:
        InvalidInput: if a spec is invalid, or a limit is set and a model has no known price.
        Incomplete: if the low end of the expected cost exceeds the limit.
        Stopped: if the user stops it.
    """
    for model_specs in specs.values():
        _check_specs(model_specs)
    planned = [
        (model, spec, out / _folder_name(model, spec) if out else None)
        for model, model_specs in specs.items()
        for spec in model_specs
    ]
    first = planned[0][1]
    limit = CostLimit() if first.max_cost is None else CostLimit(first.max_cost)
    check_affordable(_expected_costs(planned), limit)
    runs: list[Run] = []
    failures: dict[str, UserError] = {}
    for number, (model, spec, folder) in enumerate(planned, 1):
        if model in failures:
            continue
        if not quiet and len(planned) > 1:
            announce(f"run {number} of {len(planned)}: {_name(model, spec)}")
        try:
            runs.append(_run_or_load(spec, folder, save, limit, quiet=quiet))
        except Stopped:
            raise
        except CostLimitReached:
            rest = [run for run in planned[number - 1 :] if run[0] not in failures]
            failures[model] = limit_reached(_expected_costs(rest), limit)
            break
        except Unmeasurable as error:
            failures[_name(model, spec)] = error
        except UserError as error:
            failures[model] = error
    return runs, failures


def _name(model: str, spec: Spec) -> str:
    """Return the name of a run in messages: its model, and its values of the dimensions."""
    return ", ".join([model, *_values(spec)])


def _folder_name(model: str, spec: Spec) -> str:
    """Return the model's name with the values that are not the defaults, as a safe file name."""
    usual = [*_values(Spec()), str(Spec.seed)]
    special = [text for text in (*_values(spec), str(spec.seed)) if text not in usual]
    return safe_name("-".join([last_part(model), *special]))


def _values(spec: Spec) -> list[str]:
    return list(filter(None, (dimension.text(spec) for dimension in DIMENSIONS.values())))


def _check_specs(model_specs: Sequence[Spec]) -> None:
    """Reject invalid specs before any request is sent."""
    try:
        info = model_info(model_specs[0])
    except UserError:
        return  # reported when the model's runs start
    for spec in model_specs:
        plan_for(spec, info)
    cost_limit_for(model_specs[0], info)  # a limit needs a price


def _expected_costs(planned: Sequence[_Planned]) -> list[ExpectedCost]:
    """Return the expected cost of all runs with a price that do not exist.

    A dataset counts once.
    """
    built: dict[str, set[str]] = {model: set() for model, _, _ in planned}
    expected = []
    for model, spec, folder in planned:
        with suppress(UserError):  # reported when the model's runs start
            exists = folder and folder.exists()
            if not exists and price_for(spec, model_info(spec)) not in (None, FREE):
                expected.append(estimate(spec, built[model]))
    return expected


def _run_or_load(
    spec: Spec, folder: Path | None, save: Save, limit: CostLimit, *, quiet: bool
) -> Run:
    """Evaluate a spec and save the run to a folder, if given, or load the run that is there.

    Raises:
        InvalidInput: if the existing run does not match the spec.
        UserError: as `evaluate` does.
    """
    if folder and folder.exists():
        run = load_run(folder)
        _check_matches_spec(run, spec, folder)
        return run
    run = evaluate(spec, quiet=quiet, limit=limit)
    if folder:
        save(run, folder)
    return replace(run, folder=folder)


def _check_matches_spec(run: Run, spec: Spec, folder: Path) -> None:
    """Reject an existing run that does not match the spec."""
    saved, given = run.options, spec.non_defaults
    options = sorted((given.keys() | saved.keys()) - WITHOUT_EFFECT)
    differences = [name for name in options if given.get(name) != saved.get(name)]
    info, pool = model_info(spec), {item.id for item in source_for(spec).items}
    checks = {
        "protocol": run.protocol == PROTOCOL,
        "prompts": run.plan.conditions == plan_for(spec, info).conditions,
        "the model or its arguments": run.identity == dict(info.identity),
        run.words.items: pool.issuperset(sample.item.id for sample in run.samples),
    }
    differences += [name for name, is_same in checks.items() if not is_same]
    if differences:
        which = ", ".join(differences).replace("_", " ")
        raise InvalidInput(
            f"{str(folder)!r} contains a run that differs in {which}; give --out a new folder"
        )
