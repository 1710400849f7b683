"""The functions of the Python API: each does what a command does, and returns its results."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from ..client.pricing import CostLimit
from ..comparison.experiment import as_list, run_all, specs_for
from ..comparison.leaderboard import check_baseline, ranking_of
from ..comparison.naming import ModelFields, models_by_name
from ..errors import Incomplete, InvalidInput, UserError
from ..habits.base import Change
from ..habits.catalog import DEFAULT_FORM
from ..providers.base import Effort, Model
from ..runs import cost
from ..runs import evaluate as evaluation
from ..runs import run as results
from ..runs.cost import ExpectedCost
from ..runs.lookup import find_run, runs_to_compare
from ..runs.storage import load_run
from ..task.spec import DEFAULT_MODEL, Spec
from ..task.types import Eval
from .results import Comparison, Experiment, Run, create_folder, save_with_page


def evaluate(
    spec: Spec, model: Model | None = None, *, quiet: bool = False, limit: CostLimit | None = None
) -> Run:
    """Evaluate a model: ``model`` if given, otherwise the one that the spec names.

    Answers are cached under ``CDTA_HOME``, so the same call resumes an interrupted run.
    The run itself is not saved: ``run.save()`` writes its folder and its report.

    Raises:
        InvalidInput: if the spec is invalid.
        Incomplete: if the run was interrupted or too many answers are missing.
        UserError: if the model cannot be reached, or answers cannot be saved.
    """
    return _with_methods(evaluation.evaluate(spec, model, quiet=quiet, limit=limit))


def experiment(
    models: str | Sequence[str | ModelFields | None] = (),
    *,
    rules: str | Change | Sequence[str | Change] = (),
    evals: Eval | Sequence[Eval] = (),
    wordings: Any = (),
    forms: str | Sequence[str] = DEFAULT_FORM,
    efforts: Effort | Sequence[Effort | None] | None = None,
    out: Path | str | None = None,
    quiet: bool = False,
    **options: Any,
) -> Experiment:
    """Evaluate every model under every combination, and rank them.

    Args:
        models: names as in `Spec`, or mappings with fields of `Spec` for one model.
        rules: rule changes or their keys; ``all`` for every one that ships.
        evals: by default ``all`` and ``all_diagonal``; with rules or a pool, ``all``.
        wordings: names or texts of wordings; with several, each position gets one of them.
        forms: how positions are shown.
        efforts: reasoning efforts; they share the positions selected at the lowest.
        out: a folder for the runs; those that it holds already are not repeated.
        quiet: whether to hide the progress.
        options: other fields of `Spec`, the same for all runs.

    Raises:
        InvalidInput: if an option is invalid.
        Incomplete: if no run was finished, or all cost more than the limit; otherwise the
            experiment has the ``failures``.
    """
    one_model = None if options.get("base_url") else DEFAULT_MODEL
    named_models = models_by_name(as_list(models) or [one_model], options.get("base_url"))
    options |= {"rules": rules, "evals": evals, "forms": forms, "efforts": efforts}
    options |= {"wording": wordings} if wordings else {}
    specs = {title: specs_for(**options | own) for title, own in named_models.items()}
    if out:
        create_folder(Path(out))
    runs, failures = run_all(specs, Path(out) if out else None, save_with_page, quiet=quiet)
    if not runs:
        raise failed(failures)
    return Experiment([_with_methods(run) for run in runs], failures)


def failed(failures: Mapping[str, UserError]) -> Incomplete:
    """Return the error that names all models that failed."""
    reasons = "; ".join(f"{model}: {problem}" for model, problem in failures.items())
    return Incomplete(f"some runs failed: {reasons}")


def estimate(*specs: Spec) -> list[ExpectedCost]:
    """Return what each run is expected to cost; it sends no request and needs no key.

    Cached answers cost nothing; they show how long the others will be.

    Raises:
        InvalidInput: if a spec is invalid.
    """
    return [cost.estimate(spec) for spec in specs]


def load(name: Path | str, rules: Change | None = None) -> Run:
    """Load a run by its folder, part of its name, its model's name, its tag, or ``latest``.

    If several match, it is the newest. For a run under custom rules, pass them as ``rules``.

    Raises:
        InvalidInput: if no run matches the name, or the folder is incomplete, was changed after it
            was written, or has a run under other rules.
    """
    return _with_methods(load_run(find_run(name), rules))


def compare(
    *runs: results.Run | Path | str,
    baseline: results.Run | Path | str | None = None,
    tolerance: float = 0.0,
) -> Comparison:
    """Compare every pair of models in rule uptake, on the items that both have.

    Args:
        runs: runs, or their names as `load` takes them. A folder of runs stands for all of them,
            and so does a single name; of several names, each stands for its newest run that the
            others can be compared with.
        baseline: a run; the ``check`` of the result says whether the other is worse.
        tolerance: the drop in rule uptake that the check accepts, in points.

    Raises:
        InvalidInput: if there are fewer than two runs, or they differ in protocol, rules, eval
            or pool, or the tolerance is not from 0 to 100.
    """
    if not 0 <= tolerance <= 100:
        raise InvalidInput(f"the tolerance must be from 0 to 100 points, not {tolerance:g}")
    groups = _loaded([*([] if baseline is None else [baseline]), *runs])
    each_once = {id(run): run for group in groups for run in group}
    ranking = ranking_of(list(each_once.values()))
    check = None if baseline is None else check_baseline(ranking, groups[0], tolerance / 100)
    return Comparison(ranking.entries, ranking.pairs, check)


def _loaded(names_or_runs: Sequence[results.Run | Path | str]) -> list[list[results.Run]]:
    """Return the runs that each name stands for; a folder is always the same run."""
    names = [item for item in names_or_runs if not isinstance(item, results.Run)]
    folders = iter(runs_to_compare(names) if names else [])
    by_folder: dict[Path, results.Run] = {}
    groups: list[list[results.Run]] = []
    for item in names_or_runs:
        if isinstance(item, results.Run):
            groups.append([item])
            continue
        paths = next(folders)
        groups.append([by_folder.setdefault(path.resolve(), load_run(path)) for path in paths])
    return groups


def _with_methods(run: results.Run) -> Run:
    return Run(**{field.name: getattr(run, field.name) for field in fields(run)})
