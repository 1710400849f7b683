"""The Python API: evaluate, load, compare, and runs that save and show themselves.

What they do is done in the rooms below; here it becomes a method.
"""

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
from .report.notebook import comparison_html, run_html, run_line, sample_rows
from .report.pages import write_comparison
from .report.run_page import save_with_page
from .runs import evaluate as measuring
from .runs import results
from .runs.lookup import check_free, find_run, new_run_dir
from .runs.storage import load_run
from .task.spec import Spec

if TYPE_CHECKING:
    from pandas import DataFrame


class Run(results.Run):
    """One model on one dataset under one plan, with all that can be done with it."""

    def save(self, path: Path | str | None = None) -> Path:
        """Write its folder with its page, and say where: among the others, or at a path.

        Raises:
            InvalidInput: if something is there already.
            UserError: if it cannot be written.
        """
        folder = Path(path) if path else new_run_dir(self)
        check_free(folder)
        save_with_page(self, folder)
        object.__setattr__(self, "folder", folder)  # the only thing of a run that ever changes
        return folder

    def to_frame(self) -> "DataFrame":
        """One row a sample: the position, its special moves, and every reply with its outcome.

        Raises:
            UserError: if pandas is not installed.
        """
        return _frame(sample_rows(self))

    def __repr__(self) -> str:
        return run_line(self)

    def _repr_html_(self) -> str:
        return run_html(self)


class Comparisons(Ranking):
    """What `compare` found: the models, the best first, every pair of them, and the verdict."""

    @property
    def verdict(self) -> str:
        """Who adapts best, whether that is significant, and who cannot be ranked."""
        return verdict(self)

    def save(self, path: Path | str) -> Path:
        """Write its page, as ``cdta compare -o`` does, and say where.

        Raises:
            UserError: if it cannot be written.
        """
        return write_comparison(self, Path(path))

    def to_frame(self) -> "DataFrame":
        """One row for each pair and measure.

        Raises:
            UserError: if pandas is not installed.
        """
        return _frame([pair_row(each) for each in self.comparisons])

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.verdict}>"

    def _repr_html_(self) -> str:
        return comparison_html(self)


def evaluate(
    spec: Spec, model: Model | None = None, *, quiet: bool = False, purse: Budget | None = None
) -> Run:
    """Measure a model: the one that the spec names, unless another is given.

    Every answer is kept under ``CDTA_HOME``, so that the same call goes on where one was stopped.
    The run itself is not saved: ``run.save()`` writes its folder and its page.

    Raises:
        InvalidInput: if the spec cannot work.
        Incomplete: if the run was stopped or too many answers are missing.
        UserError: if the model cannot be reached, or answers cannot be saved.
    """
    return _ours(measuring.evaluate(spec, model, quiet=quiet, purse=purse))


def load(name: Path | str, rules: Rules | None = None) -> Run:
    """Read a run back: by its folder, a part of its name, its model's name, or ``latest``.

    Rules of one's own under which it was measured have to be given.

    Raises:
        InvalidInput: if no run or several go by that name, or the folder is not a whole run, not as
            it was written, or one under other rules.
    """
    return _ours(load_run(find_run(name), rules))


def compare(*runs: results.Run) -> Comparisons:
    """Compare every pair of models in every measure, on the positions the two share.

    Raises:
        InvalidInput: if there are fewer than two models, or their protocols, rules, evals, ways of
            selection or pools differ.
    """
    found = ranking_of(runs)
    return Comparisons(found.standings, found.comparisons)


def _ours(run: results.Run) -> Run:
    return Run(**{each.name: getattr(run, each.name) for each in fields(run)})


def _frame(rows: Sequence[Mapping[str, object]]) -> "DataFrame":
    try:
        from pandas import DataFrame
    except ImportError:
        raise UserError(
            "a frame needs pandas, which is not installed: pip install pandas"
        ) from None
    return DataFrame(rows)
