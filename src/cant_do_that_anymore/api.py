"""The Python API: evaluate, load, compare, and runs with methods to save and display them."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from .client.budget import Budget
from .comparison.leaderboard import Ranking, ranking_of
from .comparison.verdict import verdict
from .errors import UserError
from .game.rules import Rules
from .providers.base import Model
from .report.document import pair_row
from .report.html import PAGE_NAME
from .report.notebook import comparison_html, run_html, run_line, sample_rows
from .report.run_page import write_page
from .runs import evaluate as evaluation
from .runs import results
from .runs.lookup import check_free, find_run, new_run_dir
from .runs.storage import load_run, save_run
from .task.spec import Spec

if TYPE_CHECKING:
    from pandas import DataFrame


class Run(results.Run):
    """The results of one model on one dataset, with methods to save and display them."""

    def save(self, path: Path | str | None = None) -> Path:
        """Write the run folder with its report, and return its path.

        Without ``path``, the folder is a new one under ``CDTA_HOME``.

        Raises:
            InvalidInput: if ``path`` already exists.
            UserError: if the folder cannot be written.
        """
        folder = Path(path) if path else new_run_dir(self)
        check_free(folder)
        save_with_page(self, folder)
        object.__setattr__(self, "folder", folder)  # the only field that ever changes
        return folder

    def to_frame(self) -> "DataFrame":
        """Return one row per sample: position, special moves, and each reply with its outcome.

        Raises:
            UserError: if pandas is not installed.
        """
        return _frame(sample_rows(self))

    def __repr__(self) -> str:
        return run_line(self)

    def _repr_html_(self) -> str:
        return run_html(self)


class Comparisons(Ranking):
    """A comparison of models: the leaderboard, every pair, and the verdict."""

    @property
    def verdict(self) -> str:
        """Which model adapts best, whether its lead is significant, and which are not ranked."""
        return verdict(self)

    def save(self, path: Path | str) -> Path:
        """Write the HTML report, as ``cdta compare -o`` does, and return its path.

        Raises:
            UserError: if the report cannot be written.
        """
        from .report.pages import write_comparison  # imports matplotlib

        return write_comparison(self, Path(path))

    def to_frame(self) -> "DataFrame":
        """Return one row for each pair of models and each measure.

        Raises:
            UserError: if pandas is not installed.
        """
        return _frame([pair_row(comparison) for comparison in self.comparisons])

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.verdict}>"

    def _repr_html_(self) -> str:
        return comparison_html(self)


def evaluate(
    spec: Spec, model: Model | None = None, *, quiet: bool = False, budget: Budget | None = None
) -> Run:
    """Evaluate a model: ``model`` if given, otherwise the one that the spec names.

    Answers are cached under ``CDTA_HOME``, so the same call resumes an interrupted run.
    The run itself is not saved: ``run.save()`` writes its folder and its report.

    Raises:
        InvalidInput: if the spec is invalid.
        Incomplete: if the run was interrupted or too many answers are missing.
        UserError: if the model cannot be reached, or answers cannot be saved.
    """
    return _with_methods(evaluation.evaluate(spec, model, quiet=quiet, budget=budget))


def load(name: Path | str, rules: Rules | None = None) -> Run:
    """Load a run by its folder, part of its name, its model's name, its tag, or ``latest``.

    For a run under custom rules, pass them as ``rules``.

    Raises:
        InvalidInput: if no run or several match the name, or the folder is incomplete, was changed
            after it was written, or has a run under other rules.
    """
    return _with_methods(load_run(find_run(name), rules))


def compare(*runs: results.Run) -> Comparisons:
    """Compare every pair of models in every measure, on the positions that both have.

    Runs of one model that differ only in the seed are pooled, unless there is no other model; then
    each run is separate.

    Raises:
        InvalidInput: if there are fewer than two runs, or they differ in protocol, rules, eval,
            selection or pool.
    """
    ranking = ranking_of(*([run] for run in runs))
    return Comparisons(ranking.entries, ranking.comparisons)


def save_with_page(run: results.Run, folder: Path) -> None:
    """Write the folder of a run with its report.

    Raises:
        UserError: if they cannot be written.
    """
    save_run(run, folder)
    write_page(run, folder / PAGE_NAME)


def _with_methods(run: results.Run) -> Run:
    return Run(**{field.name: getattr(run, field.name) for field in fields(run)})


def _frame(rows: Sequence[Mapping[str, object]]) -> "DataFrame":
    try:
        from pandas import DataFrame
    except ImportError:
        raise UserError("a frame needs pandas: pip install pandas") from None
    return DataFrame(rows)
