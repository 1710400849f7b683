"""Experiments: several models, evals, rules, efforts and seeds, each run once."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, product
from pathlib import Path
from typing import Any

from ..client.budget import Budget, BudgetExceeded
from ..client.pricing import check_price
from ..client.session import model_info
from ..costs.approval import CostItem, forecast_cost_of_spec, require_approval
from ..datasets.pools import positions_drawn, positions_for
from ..datasets.storage import Dataset, is_own
from ..errors import InvalidInput, NoHabit, Stopped, UserError
from ..files import safe_name
from ..game.rules import BISHOPS_AS_KNIGHTS, CATALOGUE
from ..metrics.notes import versions_of
from ..progress import overall_progress
from ..providers.base import EFFORTS, Effort
from ..runs.evaluate import evaluate
from ..runs.identity_check import check_identity
from ..runs.results import PROTOCOL, Run
from ..runs.storage import load_run
from ..task.spec import Spec, plan_for
from ..task.types import Eval, Plan
from .naming import Entrant

Save = Callable[[Run, Path], None]

USUAL_EVALS: tuple[Eval, ...] = ("all", "all_diagonal")
ALL = "all"
"""In place of rules: every one that can be measured."""


def evals_and_rules(
    evals: Iterable[Eval], changes: Iterable[str], *, own_pool: bool = False
) -> list[tuple[Eval, str]]:
    """Every eval under every change of rules, those that are usual where none are given.

    ``all`` are all the rules that take a move away. Games under the changed rules are at hand for
    the usual ones alone, so neither other rules nor a pool that is given are asked about them
    unless that is wanted.
    """
    every = [key for key, rules in CATALOGUE.items() if rules.forbids_something]
    given = list(changes) or [BISHOPS_AS_KNIGHTS.key]
    wanted = list(dict.fromkeys(chain(*(every if key == ALL else [key] for key in given))))
    shipped = wanted == [BISHOPS_AS_KNIGHTS.key] and not own_pool
    usual = USUAL_EVALS if shipped else USUAL_EVALS[:1]
    return list(product(list(evals) or usual, wanted))


def specs_for(
    evals_and_rules: Sequence[tuple[Eval, str]],
    efforts: Sequence[Effort | None],
    seeds: Sequence[int],
    **rest: Any,
) -> list[Spec]:
    """Everything in every way; the rest is the same for all.

    Of several efforts the lowest selects the positions for all, unless another is to.

    Raises:
        InvalidInput: as `Spec` does.
    """
    specs = [
        Spec(eval=eval_, rules=change, reasoning_effort=effort, seed=seed, **rest)
        for (eval_, change), effort, seed in product(evals_and_rules, efforts, seeds)
    ]
    if len(efforts) == 1 or specs[0].select_effort:
        return specs
    lowest = next(effort for effort in EFFORTS if effort in efforts)
    return [replace(spec, select_effort=lowest) for spec in specs]


def specs_of(
    entrants: Mapping[str, Entrant],
    evals_and_rules: Sequence[tuple[Eval, str]],
    efforts: Sequence[Effort | None],
    seeds: Sequence[int],
    **rest: Any,
) -> dict[str, list[Spec]]:
    """Those of each that takes part, whose own settings go before the rest; raises as `Spec`."""
    found = {}
    for title, entrant in entrants.items():
        own = dict(entrant)
        own_efforts = own.pop("efforts", efforts)
        found[title] = specs_for(evals_and_rules, own_efforts, seeds, **rest | own)
    return found


def measured(
    specs: Mapping[str, Sequence[Spec]], out: Path, save: Save, *, quiet: bool
) -> tuple[list[Run], dict[str, UserError]]:
    """The runs that the specs of each model ask for, and why some are missing, by model.

    Of a model whose runs are there already, one question tells whether it is still the same, and
    one more of each other version that answered in them.
    No model that fails stops the others, and no habit that it lacks the rest of it. The cost limit
    of the specs is one for all of them; what they cost together is told after the first answers of
    each model.

    Raises:
        InvalidInput: if a spec cannot work, or there is a limit and a model without a price to keep
            it by.
        TooDear: if all of it costs more than may be spent without a word.
        Stopped: if the user stops it.
    """
    runs: list[Run] = []
    failures: dict[str, UserError] = {}
    for of_model in specs.values():
        _check(of_model)
    _check_bills(specs, out, quiet=quiet)
    limit = next(iter(specs.values()))[0].max_cost
    purse = Budget() if limit is None else Budget(limit)
    recognised: set[tuple[str, str]] = set()
    works = [(title, spec) for title, of_model in specs.items() for spec in of_model]
    took: list[float] = []
    for number, (title, spec) in enumerate(works, 1):
        if title in failures:
            continue
        later = (_folder(*work, out) for work in works[number:] if work[0] not in failures)
        ahead = sum(not folder.exists() for folder in later)
        told = f"run {number} of {len(works)}: {_in_words(title, spec)}"
        folder = _folder(title, spec, out)
        there = folder.exists()
        try:
            with overall_progress(told, ahead, [] if there else took):
                run = finished_run(spec, folder, save, quiet=quiet, purse=purse)
                if there and (title, run.version) not in recognised:
                    check_identity(run, spec, purse, quiet=quiet)
                    recognised.add((title, run.version))
                runs.append(run)
        except Stopped:
            raise
        except NoHabit as problem:
            failures[f"{title} under {spec.change.key}"] = problem
        except BudgetExceeded as problem:
            failures[title] = problem
            break
        except UserError as problem:
            failures[title] = problem
    return runs, failures


def _check(of_model: Sequence[Spec]) -> None:
    """Refuse what cannot work before anything is asked."""
    try:
        known = model_info(of_model[0])
    except UserError:
        return  # which is said when its turn comes
    for spec in of_model:
        plan_for(spec, known)
    if of_model[0].max_cost is not None:
        check_price(of_model[0], known)


def _check_bills(specs: Mapping[str, Sequence[Spec]], out: Path, *, quiet: bool) -> None:
    """Learn what all of it costs; a dataset that serves several runs is found once.

    Each model is asked for a few answers, and for a few more at each other effort.
    """
    finding: dict[object, CostItem] = {}
    measuring: list[CostItem] = []
    learnt = set()
    for model, of_model in specs.items():
        for spec in of_model:
            if _folder(model, spec, out).exists():
                continue
            try:
                lesson = model, spec.reasoning_effort
                bill = forecast_cost_of_spec(spec, quiet=quiet, may_ask=lesson not in learnt)
                learnt.add(lesson)
            except Stopped:
                raise
            except UserError:
                break  # which is said when its turn comes
            if bill:
                serves = model, spec.eval, spec.change.key, spec.select_effort
                finding[serves] = max(bill.finding, finding.get(serves, bill.finding))
                measuring.append(bill.measuring)
    require_approval(list(finding.values()), measuring, list(chain(*specs.values())))


def _folder(title: str, spec: Spec, out: Path) -> Path:
    effort = [spec.reasoning_effort] if spec.reasoning_effort else []
    parts = [safe_name(title), spec.eval, spec.change.key, *effort, spec.seed]
    return out / "-".join(map(str, parts))


def _in_words(title: str, spec: Spec) -> str:
    """Which run it is: what is as usual goes without saying."""
    parts = [title, spec.eval if spec.eval != USUAL_EVALS[0] else "", spec.change.key]
    return ", ".join(filter(None, [*parts, spec.reasoning_effort, f"seed {spec.seed}"]))


def finished_run(
    spec: Spec, folder: Path, save: Save, *, quiet: bool, purse: Budget | None = None
) -> Run:
    """Measure as the spec says, into a folder, or take the run that is there already.

    Raises:
        InvalidInput: if the run that is there is another than the spec asks for.
        UserError: as `evaluate` does.
    """
    if folder.exists():
        run = load_run(folder)
        _check_same(run, spec, folder)
        return run
    run = evaluate(spec, quiet=quiet, purse=purse)
    save(run, folder)
    return replace(run, folder=folder)


def _check_same(run: Run, spec: Spec, folder: Path) -> None:
    """Refuse a run that the spec would not make."""
    known = model_info(spec)
    plan = plan_for(spec, known)
    differences = plan.differences(run.plan)
    if plan.wanted != run.plan.wanted:
        differences.append("number of samples")
    if plan.precision != run.plan.precision:
        differences.append("precision")
    if run.protocol != PROTOCOL:
        differences.append("protocol")
    if json.loads(json.dumps(dict(known.identity))) != run.identity:
        differences.append("model, its address or its arguments")
    if not differences and not _has_positions_of(spec, plan, run):
        differences.append("positions")
    if differences:
        raise InvalidInput(
            f"{str(folder)!r} holds a run that differs in {', '.join(differences)}; "
            "give --out a new folder"
        )


def _has_positions_of(spec: Spec, plan: Plan, run: Run) -> bool:
    """Whether a run has the positions that the spec gives, or some of the pool that it gives."""
    measured_ids = [sample.position.id for sample in run.samples]
    at_hand = positions_for(spec)
    if isinstance(at_hand, Dataset):
        all_ids = [position.id for position in positions_drawn(at_hand, spec, plan)]
        return measured_ids == (all_ids[: len(measured_ids)] if plan.precision else all_ids)
    same_pool = run.dataset.pool_name == at_hand.display_name(spec.change)
    pool = {position.id for position in at_hand.positions}
    own = is_own(run.dataset, versions_of(run.samples), run.endpoint)
    return own and same_pool and pool.issuperset(measured_ids)
