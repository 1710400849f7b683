"""Runs, comparisons and experiments, with methods for frames, plots and reports."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ..comparison.leaderboard import BaselineCheck, Ranking, rankings, verdicts
from ..errors import InvalidInput, UserError, unknown_value
from ..files import check_new_dir, file_errors
from ..report import pages
from ..report.exports import EXPORTS
from ..report.formats.csv import as_flat
from ..report.html import PAGE_NAME, write_text
from ..report.rows import build_document, measure_rows, pair_row, sample_row
from ..report.run_page import page, rankings_html, run_html, run_line
from ..report.sentences import headline
from ..runs import run as results
from ..runs.lookup import check_free, new_run_dir
from ..runs.storage import save_run

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

Rows = Literal["measures", "pairs", "samples"]
# Plots by preference, by the beginning of their names.
PLOTS_NEEDED = "plots need matplotlib: pip install 'cant-do-that-anymore[plots]'"
_PLOTS = ("rules", "curve", "uptake")


class Result(ABC):
    """Base class of runs, comparisons and experiments: summaries, tables, plots and files."""

    @property
    @abstractmethod
    def rankings(self) -> Sequence[Ranking]:
        """The leaderboards, each with the best model first; that of a run has one entry."""

    def summary(self) -> str:
        """Return the headline: what was found, and how certain it is."""
        return "\n".join(verdicts(self.rankings))

    def to_frame(self, rows: Rows = "measures") -> "DataFrame":
        """Return the results as a pandas frame.

        Args:
            rows: ``measures`` for one row per model and measure, the best model first, with the
                value, its 95% interval (``low``, ``high``) and ``n``; ``pairs`` for one row per
                pair of models; ``samples`` for one row per sample: item, usual answers, and each
                reply with its outcome.

        Raises:
            UserError: if pandas is not installed.
        """
        ranked = self.rankings
        entries = list(chain(*(ranking.entries for ranking in ranked)))
        if rows == "measures":
            return _frame(measure_rows(entries))
        if rows == "pairs":
            return _frame([as_flat(pair_row(pair)) for rank in ranked for pair in rank.pairs])
        if rows == "samples":
            return _frame([sample_row(e, sample) for e in entries for sample in e.run.samples])
        raise unknown_value("rows", rows, ("measures", "pairs", "samples"))

    def plot(self, name: str = "") -> "Figure":
        """Draw a plot of the report as a matplotlib figure.

        Args:
            name: the name of a file of ``cdta experiment``, or its beginning: ``uptake``,
                ``outcomes``, ``curve`` (several efforts) or ``rules`` (several rules).

        Raises:
            InvalidInput: if there is no such plot of these results.
            UserError: if matplotlib is not installed.
        """
        try:
            from ..report.plots import charts
        except ModuleNotFoundError:
            raise UserError(PLOTS_NEEDED) from None
        plots = charts(self.rankings)
        for wanted in (name,) if name else _PLOTS:
            for stem, draw in plots.items():
                if stem == wanted or stem.startswith(f"{wanted}-"):
                    return draw()
        raise unknown_value("plot", name, plots)

    def report(self, path: Path | str) -> Path:
        """Write the HTML report to a file, and return its path.

        Raises:
            UserError: if it cannot be written.
        """
        ranked, path = self.rankings, Path(path)
        document = build_document(ranked, path.parent)
        return write_text(pages.experiment_page(ranked, document), path)

    def export(self, folder: Path | str, organization: str = "", format: str = "eee") -> list[Path]:
        """Write the results in a schema that others read, and return the files.

        Args:
            folder: where the files go.
            organization: who ran the evaluation.
            format: "eee" for Every Eval Ever, or "hub" for model pages of the Hugging Face Hub.

        Raises:
            InvalidInput: if a run has no result to share.
            UserError: if a file cannot be written.
        """
        if format not in EXPORTS:
            raise unknown_value("format", format, EXPORTS)
        entries = chain(*(ranking.entries for ranking in self.rankings))
        texts = EXPORTS[format](entries, organization)
        return [write_text(text, Path(folder) / name) for name, text in texts.items()]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.summary()}>"

    def _repr_html_(self) -> str:
        return rankings_html(self.rankings)


class Run(Result, results.Run):
    """The results of one model on one dataset, with methods to save and display them."""

    @property
    def rankings(self) -> Sequence[Ranking]:
        """A leaderboard with this run alone."""
        return rankings([self])

    def summary(self) -> str:
        """Return the headline: how often the model follows the new rule, and how certain it is."""
        return headline(self)

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

    def report(self, path: Path | str) -> Path:
        """Write the HTML report to a file, and return its path.

        Raises:
            UserError: if it cannot be written.
        """
        return write_text(page(self), Path(path))

    def __repr__(self) -> str:
        return run_line(self)

    def _repr_html_(self) -> str:
        return run_html(self)


@dataclass(frozen=True, repr=False)
class Comparison(Result, Ranking):
    """A comparison of models: the leaderboard, every pair, and the verdict.

    Attributes:
        check: whether the run is worse than the baseline, if one was given.
    """

    check: BaselineCheck | None = None

    @property
    def rankings(self) -> Sequence[Ranking]:
        """The only leaderboard of the comparison."""
        return [self]


@dataclass(frozen=True, repr=False)
class Experiment(Result):
    """Several runs side by side.

    Attributes:
        runs: all that were finished.
        failures: the errors of models that failed, by name.
    """

    runs: Sequence[Run]
    failures: Mapping[str, UserError] = field(default_factory=dict)

    @cached_property
    def rankings(self) -> Sequence[Ranking]:
        """A leaderboard for each eval, rule change, form and pool, the best model first."""
        return rankings(self.runs)

    def save(self, folder: Path | str, title: str = "") -> list[Path]:
        """Write tables, plots and the report into a folder, and return the files.

        Raises:
            UserError: if they cannot be written.
        """
        folder = Path(folder)
        create_folder(folder)
        failures = {name: str(error) for name, error in self.failures.items()}
        document = build_document(self.rankings, folder, title) | {"failures": failures}
        return pages.write(self.rankings, document, folder)

    def _repr_html_(self) -> str:
        return rankings_html(self.rankings, [f"{n}: {e}" for n, e in self.failures.items()])


def save_with_page(run: results.Run, folder: Path) -> None:
    """Write the folder of a run with its report.

    Raises:
        UserError: if they cannot be written.
    """
    save_run(run, folder)
    write_text(page(run), folder / PAGE_NAME)


def create_folder(folder: Path) -> None:
    """Create the folder of an experiment before the work, to fail early."""
    with file_errors("write to", folder, error=InvalidInput):
        folder.mkdir(parents=True, exist_ok=True)
        check_new_dir(folder / "run")


def _frame(rows: Sequence[Mapping[str, object]]) -> "DataFrame":
    try:
        from pandas import DataFrame
    except ImportError:
        raise UserError("a frame needs pandas: pip install pandas") from None
    return DataFrame(rows)
