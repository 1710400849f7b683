"""Tables for the terminal: runs, experiments, comparisons."""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..comparison.entries import Standing
from ..comparison.leaderboard import Ranking
from ..comparison.pairwise import Comparison, of_measure
from ..comparison.verdict import advice, heading, verdict
from ..formatting import (
    dollars,
    format_setting,
    in_points,
    number,
    p_value,
    percentage,
    range_in_points,
)
from ..metrics.diagnosis import Contrast, unclaimed
from ..metrics.measures import FORBIDDEN, IMPACT, SHARES, UPTAKE
from ..metrics.types import Measure, Results
from ..progress import duration
from ..runs.results import Run
from ..task.types import CHANGED_CONDITION, OUTCOMES
from .columns import (
    DIAGNOSIS,
    VERDICTS,
    WHY,
    WITH_INTERVAL,
    Columns,
    all_notes,
    columns,
    group_notes,
    legend,
    marked,
    title_of,
)
from .document import Document
from .html import interval
from .run_page import DiagnosisView, headline, main_measures, thinking, why

_ELSEWHERE = {*FORBIDDEN.values(), "variant_legal_proportion"}
"""These stand beside other numbers, or follow from the table of outcomes."""
MOST_WITH_SHARES = 3
"""So many conditions fit into a line with their shares; of more, only counts."""


def summary(run: Run) -> RenderableType:
    """Headline, metrics with intervals, outcomes under each rule set, tokens and notes."""
    return Group(
        Text(headline(run), style="bold"),
        Text(),
        _metrics(run),
        *_thinking(run),
        Text(),
        *(_why(found) if (found := why(run)) else ()),
        _outcomes(run),
        Text(),
        Text(_footer(run), style="dim"),
        *(Text(f"note: {note}", style="yellow") for note in run.notes),
    )


def _thinking(run: Run) -> list[Text]:
    sentence = thinking(run.results)
    return [Text(), Text(sentence)] if sentence else []


def _metrics(run: Run) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("metric", no_wrap=True)
    table.add_column("value", no_wrap=True, justify="right")
    table.add_column("95% interval", no_wrap=True)
    table.add_column("")
    for measure in main_measures(run):
        if measure.name not in _ELSEWHERE:
            value = run.results.metrics[measure.name]
            around = interval(run.results.intervals.get(measure.name))
            remark = Text(_remark(measure, run.results), style="dim")
            table.add_row(measure.name, number(value), around, remark)
            if found := run.results.bounds.get(measure.name):
                ends = f"[{number(found.low)}, {number(found.high)}]"
                complete = Text(f"complete: {number(found.complete)}", style="dim")
                table.add_row("  bounds, without sampling error", "", ends, complete)
    return table


def _remark(measure: Measure | Contrast, results: Results) -> str:
    if measure.name in unclaimed(results):
        return "see the note"
    perfect = "" if measure.perfect is None else f"perfect is {measure.perfect:g}"
    remark = measure.remark or perfect
    for condition, name in SHARES.items():
        if name == measure.name:
            remark = f"forbidden: {number(results.metrics[FORBIDDEN[condition]])}"
    return remark


def _why(found: DiagnosisView) -> Iterator[RenderableType]:
    """Who knows the rule, and who drops the habit; and how the controls fared."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(f"of {number(found.habits)} with the habit", no_wrap=True)
    for does in ("drop it", "keep it"):
        table.add_column(does, justify="right", no_wrap=True)
        table.add_column("", justify="right", no_wrap=True)
    for row in found.rows:
        cells = (text for p in row.parts for text in (number(p.count), percentage(p.share)))
        table.add_row(f"{row.title}: {number(row.count)}", *cells)
    yield table
    if found.controls:
        shares = ", ".join(f"{percentage(share)} {name}" for name, share in found.controls.items())
        yield Text(f"habits at controls: {shares}", style="dim")
    yield Text()


def _outcomes(run: Run) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("outcome")
    roomy = len(run.plan.conditions) <= MOST_WITH_SHARES
    for condition in run.plan.conditions:
        heading = condition.name.replace("_", "\n")
        if condition.name == CHANGED_CONDITION and roomy:
            heading = condition.rules.key
        table.add_column(heading, justify="right")
        if roomy:
            table.add_column("", justify="right")
    counts = run.results.outcomes.values()
    for outcome in OUTCOMES:
        if any(count.get(outcome) for count in counts):
            cells = [_cells(count.get(outcome), len(run.samples)) for count in counts]
            table.add_row(outcome, *(c for each in cells for c in each[: 1 + roomy]))
    return table


def _cells(count: int | None, n: int) -> tuple[str, str]:
    """How many, and what share that is; nothing of what cannot be."""
    return ("", "") if count is None else (number(count), percentage(count / n))


def _footer(run: Run) -> str:
    metrics, dataset = run.results.metrics, f"dataset: {run.dataset.provenance}"
    tokens_in, tokens_out = metrics["usage_prompt_tokens"], metrics["usage_completion_tokens"]
    cached = metrics.get("usage_cached_tokens")
    share = f" ({percentage(cached / tokens_in)} cached)" if cached and tokens_in else ""
    tokens = f"{tokens_in:,} tokens in{share}, {tokens_out:,} out"
    parts = [dataset, _sampling(run), tokens, _cost(run), duration(run.seconds)]
    return "; ".join(filter(None, parts))


def _sampling(run: Run) -> str:
    """The usual settings always, any other where it is not left at its default."""
    settings = run.plan.settings
    own = "the provider's own" if run.own_temperature else format_setting(settings.temperature)
    usual = {
        "temperature": f"temperature {own}",
        "max_tokens": f"at most {settings.max_tokens} tokens",
        "seed": f"seed {settings.seed}",
    }
    others = [
        f"{name.replace('_', ' ')} {format_setting(value)}"
        for name, value in settings.non_defaults.items()
        if name not in usual
    ]
    return ", ".join((*usual.values(), *others))


def _cost(run: Run) -> str:
    """What the answers cost, and apart from that what was spent now: kept answers are free."""
    if run.cost.measuring == 0:
        return ""
    text = dollars(run.cost.measuring)
    if run.cost.dataset is not None:
        text += f", the dataset {dollars(run.cost.dataset)}"
    if run.cost.spent is not None:
        text += f", spent now {dollars(run.cost.spent)}"
    return text


_LEFT = ("rule uptake", "impact factor", *WITH_INTERVAL)


def experiment_table(ranked: Sequence[Ranking], told: Document) -> RenderableType:
    """The verdicts, a table for each ranking, a line a model, and what should be known of them."""
    found = [standing for ranking in ranked for standing in ranking.standings]
    parts = [part for ranking in ranked for part in (*_of_ranking(ranking.standings), Text())]
    return Group(
        *verdict_lines(ranked, told),
        Text(),
        *parts,
        *(Text(line, style="dim") for line in legend(found)),
        *_in_all(told),
    )


def verdict_lines(ranked: Sequence[Ranking], told: Document) -> Iterator[Text]:
    """What is said first; where there are several rankings, each with its title."""
    for ranking, row in zip(ranked, told["verdicts"], strict=True):
        of = f"{title_of(ranking.standings)}: " if len(ranked) > 1 else ""
        yield Text(f"{of}{row['verdict']}", style="bold")


def standings_table(group: Sequence[Standing]) -> Table:
    """Those of one ranking, two lines a model."""
    return _table("model", group, columns(group))


def _of_ranking(group: Sequence[Standing]) -> list[RenderableType]:
    notes = (Text(f"note on {note}", style="yellow") for note in group_notes(group))
    found: list[RenderableType] = [Text(title_of(group), style="bold"), standings_table(group)]
    if diagnosed := [standing for standing in group if standing.is_diagnosed]:
        found += [Text(), _table(WHY, diagnosed, DIAGNOSIS)]
    return [*found, *notes]


def _in_all(told: Document) -> Iterator[Text]:
    """What all of it took, as far as that is known."""
    total = told["total"]
    if told["runs"]:
        answers = f"{total['tokens']:,} tokens, {dollars(total['dollars'])}"
        spent = f"; spent {dollars(total['spent_dollars'])}" if total["spent_dollars"] else ""
        took = duration(total["seconds"])
        yield Text(f"All answers: {answers}{spent}; all runs: {took}.", style="dim")


def _table(name: str, group: Sequence[Standing], told: Columns) -> Table:
    """Two lines a model, so that it fits 80 columns."""
    # One space between columns: names of models are long.
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column(name, overflow="fold")
    for column in told:
        table.add_column(
            column,
            justify="left" if column in _LEFT else "right",
            no_wrap=True,
        )
    for standing in group:
        cells = (_cell(*of(standing).split("\n")) for of in told.values())
        table.add_row(Text(marked(standing)), *cells, style="yellow" if standing.is_suspect else "")
    return table


def _cell(value: str, below: str = "") -> Text:
    return Text.assemble(value, ("\n" + below, "dim")) if below else Text(value)


def comparison_table(ranking: Ranking) -> RenderableType:
    """The verdict, one row a pair, every model on its own, and what to keep in mind."""
    models = ranking.contenders
    hint = advice(models)
    return Group(
        Text(verdict(ranking), style="bold"),
        Text(),
        Text(heading(models), style="bold"),
        _pairs(ranking),
        Text(
            "Differences in points, [95% interval]; p corrected for all pairs and measures. "
            "significant: p < 0.05 and the interval excludes 0. equivalent: the interval lies "
            "within 5 points of 0. Below 0 in the impact factor, the first drops more of its "
            "habit; * significant.",
            style="dim",
        ),
        Text(),
        Text("Each model alone, on all its positions", style="bold"),
        standings_table(ranking.standings),
        *(Text(line, style="dim") for line in legend(ranking.standings)),
        *([Text(hint)] if hint else []),
        *(Text(f"note: {note}", style="yellow") for note in all_notes(models)),
    )


def _pairs(ranking: Ranking) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("lead of ... over", overflow="fold", min_width=12)
    table.add_column("shared", justify="right")
    table.add_column("rule uptake", no_wrap=True)
    table.add_column("p", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("impact\nfactor", no_wrap=True)
    for pair in ranking.pairs:
        [uptake], [impact] = (of_measure(pair, name) for name in (UPTAKE, IMPACT))
        table.add_row(
            Text(f"{uptake.second.label} over {uptake.first.label}"),
            number(uptake.n_samples),
            _difference(uptake),
            p_value(uptake.corrected_p),
            Text(VERDICTS[uptake.verdict], style="bold" if uptake.is_significant else ""),
            Text(in_points(impact.difference) + ("*" if impact.is_significant else "")),
        )
    return table


def _difference(comparison: Comparison) -> Text:
    found = comparison.interval
    around = f" [{range_in_points(found.low, found.high, ', ')}]" if found else ""
    return Text.assemble(in_points(comparison.difference), (around, "dim"))
