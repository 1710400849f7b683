"""Experiments: several models, evals, rules, forms, efforts and seeds, each run once."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import chain, product
from pathlib import Path
from typing import Any

from ..client.budget import NOTHING, Budget, BudgetExceeded, Range, budget_for
from ..client.session import model_info
from ..costs.approval import check_approval, forecast_of_spec
from ..costs.forecast import Figures, Forecast
from ..datasets.pools import positions_drawn, positions_for
from ..datasets.storage import Dataset, is_own
from ..errors import InvalidInput, NeedsApproval, NoHabit, Stopped, UserError
from ..files import safe_name
from ..game.rules import BISHOPS_AS_KNIGHTS, CATALOG, Rules
from ..metrics.notes import versions_of
from ..progress import overall_progress
from ..providers.base import EFFORTS, Effort
from ..runs.evaluate import evaluate
from ..runs.identity_check import verify_saved_run
from ..runs.results import PROTOCOL, Run
from ..runs.storage import load_run
from ..task.forms import MOVES, form_named
from ..task.plan import plan_for
from ..task.spec import Spec
from ..task.types import Eval, Plan

Save = Callable[[Run, Path], None]

USUAL_EVALS: tuple[Eval, ...] = ("all", "all_diagonal")
# Stands for all rules that can be measured.
ALL = "all"


def evals_and_rules(
    evals: Iterable[Eval], changes: Iterable[str | Rules], *, own_pool: bool = False
) -> list[tuple[Eval, str | Rules]]:
    """Combine every eval with every rule change, using the defaults where none are given.

    ``all`` stands for all rules that forbid a move. Games under the changed rules only exist for
    the default rules and pool, so their eval is a default only there.
    """
    all_keys = [key for key, rules in CATALOG.items() if rules.forbids_something]
    keys = list(changes) or [BISHOPS_AS_KNIGHTS.key]
    wanted = list(dict.fromkeys(chain(*(all_keys if key == ALL else [key] for key in keys))))
    shipped = wanted == [BISHOPS_AS_KNIGHTS.key] and not own_pool
    default_evals = USUAL_EVALS if shipped else USUAL_EVALS[:1]
    return list(product(list(evals) or default_evals, wanted))


def specs_for(
    evals_and_rules: Sequence[tuple[Eval, str | Rules]],
    efforts: Sequence[Effort | None],
    seeds: Sequence[int],
    **rest: Any,
) -> list[Spec]:
    """Return a spec for every combination; the remaining fields are the same for all.

    ``forms`` are those of the position. With several efforts, the lowest selects the positions for
    all, unless the spec names another.

    Raises:
        InvalidInput: as `Spec` does.
    """
    forms = rest.pop("forms", (MOVES.name,))
    specs = [
        Spec(eval=eval_, rules=change, form=form, reasoning_effort=effort, seed=seed, **rest)
        for (eval_, change), form, effort, seed in product(evals_and_rules, forms, efforts, seeds)
    ]
    if len(efforts) == 1 or specs[0].select_effort:
        return specs
    lowest = next(effort for effort in EFFORTS if effort in efforts)
    return [replace(spec, select_effort=lowest) for spec in specs]


def run_all(
    specs: Mapping[str, Sequence[Spec]], out: Path | None, save: Save, *, quiet: bool
) -> tuple[list[Run], dict[str, UserError]]:
    """Run all specs of each model; return the runs, and the errors by model.

    Every run is saved in a folder of ``out``, if given. If a model's runs exist already, one
    request checks that it has not changed, and one more for each other version in them. A model
    that fails does not stop the others, and a missing habit does not stop the model's other runs.
    All specs share one cost limit. Their total cost is forecast after the first answers of each
    model.

    Raises:
        InvalidInput: if a spec is invalid, or a limit is set and a model has no known price.
        NeedsApproval: if the total exceeds what may be spent without approval; all runs that are
            finished are saved.
        Stopped: if the user stops it.
    """
    runs: list[Run] = []
    failures: dict[str, UserError] = {}
    for model_specs in specs.values():
        _check_specs(model_specs)
    budget = budget_for(next(iter(specs.values()))[0])
    expected = _check_cost(specs, out, budget, quiet=quiet)
    verified: set[tuple[str, str]] = set()
    pairs = [(title, spec) for title, model_specs in specs.items() for spec in model_specs]
    durations: list[float] = []
    for number, (title, spec) in enumerate(pairs, 1):
        if title in failures:
            continue
        later = (_folder(*pair, out) for pair in pairs[number:] if pair[0] not in failures)
        n_remaining = sum(not _exists(folder) for folder in later)
        budget.later = reduce(Range.plus, expected[number:], NOTHING)
        heading = f"run {number} of {len(pairs)}: {_describe(title, spec)}"
        folder = _folder(title, spec, out)
        exists = _exists(folder)
        try:
            with overall_progress(heading, n_remaining, [] if exists else durations):
                run = run_or_load(spec, folder, save, quiet=quiet, budget=budget)
                if exists and (title, run.version) not in verified:
                    verify_saved_run(run, spec, budget, quiet=quiet)
                    verified.add((title, run.version))
                runs.append(run)
        except (Stopped, NeedsApproval):
            raise
        except NoHabit as error:
            form = "" if spec.form == MOVES.name else f" in the form {form_named(spec.form).name}"
            failures[f"{title} under {spec.change.key}{form}"] = error
        except BudgetExceeded as error:
            failures[title] = error
            break
        except UserError as error:
            failures[title] = error
    return runs, failures


def _check_specs(model_specs: Sequence[Spec]) -> None:
    """Reject invalid specs before any request is sent."""
    try:
        info = model_info(model_specs[0])
    except UserError:
        return  # reported when the model's runs start
    for spec in model_specs:
        plan_for(spec, info)
    budget_for(model_specs[0], info)  # a limit needs a price


def _check_cost(
    specs: Mapping[str, Sequence[Spec]], out: Path | None, budget: Budget, *, quiet: bool
) -> list[Range]:
    """Forecast all runs, require approval, and return the cost of each.

    A dataset that several runs share counts once. Each model gets a few requests, and a few more at
    each other effort.
    """
    finding: dict[object, Figures] = {}
    measuring: list[Figures] = []
    expected: list[Range] = []
    probed: dict[object, Forecast] = {}
    cheaper: list[list[str]] = []
    for model, model_specs in specs.items():
        failed = False
        for spec in model_specs:
            expected.append(NOTHING)
            if failed or _exists(_folder(model, spec, out)):
                continue
            try:
                probe = model, spec.reasoning_effort
                result = forecast_of_spec(spec, quiet=quiet, like=probed.get(probe), budget=budget)
            except (Stopped, NeedsApproval):
                raise
            except UserError:
                failed = True  # reported when the model's runs start
                continue
            if result:
                probed.setdefault(probe, result)
                cheaper.append(result.cheaper)
                is_new = result.key is not None and (model, result.key) not in finding
                own = result.total if is_new or not result.key else result.measuring
                expected[-1] = own.dollars or NOTHING
                measuring.append(result.measuring)
                if result.key:
                    known = finding.get((model, result.key), result.dataset)
                    finding[model, result.key] = max(known, result.dataset)
                else:
                    measuring.append(result.dataset)
    if probed:
        total = reduce(Figures.plus, [*finding.values(), *measuring], Figures())
        first, *others = cheaper
        for_all = [option for option in first if all(option in other for other in others)]
        check_approval(total, next(iter(specs.values()))[0], budget, for_all)
    return expected


def _exists(folder: Path | None) -> bool:
    return folder is not None and folder.exists()


def _folder(title: str, spec: Spec, out: Path | None) -> Path | None:
    effort = [spec.reasoning_effort] if spec.reasoning_effort else []
    form = [] if spec.form == MOVES.name else [safe_name(form_named(spec.form).name)]
    parts = [safe_name(title), spec.eval, spec.change.key, *form, *effort, spec.seed]
    return out / "-".join(map(str, parts)) if out else None


def _describe(title: str, spec: Spec) -> str:
    """Describe a run, without the defaults."""
    parts = [title, spec.eval if spec.eval != USUAL_EVALS[0] else "", spec.change.key]
    parts += [form_named(spec.form).name] if spec.form != MOVES.name else []
    return ", ".join(filter(None, [*parts, spec.reasoning_effort, f"seed {spec.seed}"]))


def run_or_load(
    spec: Spec, folder: Path | None, save: Save, *, quiet: bool, budget: Budget | None = None
) -> Run:
    """Evaluate a spec and save the run to a folder, if given, or load the run that is there.

    Raises:
        InvalidInput: if the existing run does not match the spec.
        UserError: as `evaluate` does.
    """
    if not folder or not folder.exists():
        run = evaluate(spec, quiet=quiet, budget=budget)
        try:
            if folder:
                save(run, folder)
            return replace(run, folder=folder)
        except UserError:
            if not folder or not folder.exists():
                raise
    run = load_run(folder)  # maybe by another process with the same experiment
    _check_matches_spec(run, spec, folder)
    return run


def _check_matches_spec(run: Run, spec: Spec, folder: Path) -> None:
    """Reject an existing run that does not match the spec."""
    info = model_info(spec)
    plan = plan_for(spec, info)
    identity = json.loads(json.dumps(dict(info.identity)))
    differences = plan.differences(run.plan) + [
        name
        for name, differs in {
            "number of samples": (plan.wanted, plan.draws) != (run.plan.wanted, run.plan.draws),
            "precision": plan.precision != run.plan.precision,
            "protocol": run.protocol != PROTOCOL,
            "model, its address or its arguments": identity != run.identity,
        }.items()
        if differs
    ]
    if not differences and not _has_positions_of(spec, plan, run):
        differences.append("positions")
    if differences:
        raise InvalidInput(
            f"{str(folder)!r} contains a run that differs in {', '.join(differences)}; give "
            "--out a new folder"
        )


def _has_positions_of(spec: Spec, plan: Plan, run: Run) -> bool:
    """Whether a run has the positions of the spec's dataset, or some of the spec's pool."""
    measured_ids = [sample.position.id for sample in run.samples]
    source = positions_for(spec)
    if isinstance(source, Dataset):
        all_ids = [position.id for position in positions_drawn(source, spec, plan)]
        return measured_ids == (all_ids[: len(measured_ids)] if plan.precision else all_ids)
    same_pool = run.dataset.pool_name == source.display_name(spec.change)
    pool = {position.id for position in source.positions}
    own = is_own(run.dataset, versions_of(run.samples), run.endpoint)
    return own and same_pool and pool.issuperset(measured_ids)
