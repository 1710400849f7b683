"""Experiments: several models, evals and seeds, each measured once."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ..errors import BadInput, Problem, Stopped
from ..home import safe_name
from ..models.names import known_by_name
from ..models.purse import Purse, Spent
from .folder import load_run
from .pools import dataset_at_hand, drawn, pool_for
from .prices import check_price
from .results import PROTOCOL, Run
from .run import evaluate
from .spec import Spec, plan_for

Save = Callable[[Run, Path], None]


def measured(
    specs: Mapping[str, Sequence[Spec]], out: Path, save: Save, *, quiet: bool
) -> tuple[list[Run], dict[str, Problem]]:
    """The runs that the specs of each model ask for, and by model why some are missing.

    No model that fails stops the others. The cost limit of the specs is one for all of them.

    Raises:
        BadInput: if there is a limit, and a model without a price to keep it by.
        Stopped: if the user stops it.
    """
    runs: list[Run] = []
    failures: dict[str, Problem] = {}
    purse = _shared_purse([of_model[0] for of_model in specs.values()])
    for model, of_model in specs.items():
        try:
            for spec in of_model:
                runs.append(finished_run(spec, out, save, quiet=quiet, purse=purse))
        except Stopped:
            raise
        except Spent as problem:
            failures[model] = problem
            break
        except Problem as problem:
            failures[model] = problem
    return runs, failures


def _shared_purse(one_a_model: Sequence[Spec]) -> Purse:
    limit = one_a_model[0].max_cost
    if limit is None:
        return Purse()
    for spec in one_a_model:
        try:
            known = known_by_name(spec.model, spec.base_url)
        except Problem:
            continue  # which is said when its turn comes
        check_price(known)
    return Purse(limit)


def finished_run(
    spec: Spec, out: Path, save: Save, *, quiet: bool, purse: Purse | None = None
) -> Run:
    """Measure as the spec says, into a folder of its own, or take the run that is there already.

    Raises:
        BadInput: if the run that is there is another than the spec asks for.
        Problem: as `evaluate` does.
    """
    folder = out / f"{safe_name(spec.model or 'served')}-{spec.eval}-{spec.seed}"
    if folder.exists():
        run = load_run(folder)
        _check_same(run, spec, folder)
        return run
    run = evaluate(spec, quiet=quiet, purse=purse)
    save(run, folder)
    return run


def _check_same(run: Run, spec: Spec, folder: Path) -> None:
    """Refuse a run that the spec would not make."""
    known = known_by_name(spec.model, spec.base_url)
    plan = plan_for(spec, known)
    differences = plan.differences(run.plan)
    if plan.wanted != run.plan.wanted:
        differences.append("number of samples")
    if run.protocol != PROTOCOL:
        differences.append("protocol")
    if json.loads(json.dumps(dict(known.identity))) != run.identity:
        differences.append("model, its address or its arguments")
    if not differences and not _has_positions_of(spec, run):
        differences.append("positions")
    if differences:
        raise BadInput(
            f"{str(folder)!r} holds a run that differs in {', '.join(differences)}; "
            "give --out a new folder"
        )


def _has_positions_of(spec: Spec, run: Run) -> bool:
    """Whether a run has the positions that the spec gives, or some of the pool that it gives."""
    measured_ids = [sample.position.id for sample in run.samples]
    given = dataset_at_hand(spec)
    if given:
        return measured_ids == [position.id for _, position in drawn(given, spec)]
    own_versions = {reply.answer.version for s in run.samples for reply in s.replies.values()}
    pool = {position.id for position in pool_for(spec).positions}
    return run.dataset.version in own_versions and pool.issuperset(measured_ids)
