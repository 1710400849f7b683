"""Tables for the terminal: runs, experiments, comparisons."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Column
from rich.table import Table as RichTable
from rich.text import Text

from ..comparison.leaderboard import Ranking, settings_of, verdicts
from ..formatting import dollars, duration, number, rounded
from ..metrics.measures import LENGTHS, ORIGINAL
from ..runs.run import Run
from ..task.types import OUTCOMES, Outcome
from .rows import (
    Row,
    Table,
    diagnosis_table,
    finding_table,
    group_notes,
    intervention_table,
    leaderboard_table,
    pair_table,
    wording_table,
)
from .sentences import explanation, headline, helps_sentence, remarks_on

MANY_COLUMNS = 7  # stand closer together
_NOT_IN_FOOTER = ("wording", "form", "reading", "max tokens")


def summary(run: Run, *, verbose: bool = False) -> RenderableType:
    """Return the summary of a run; ``verbose`` adds the numbers of the original eval."""
    return Group(
        Text(headline(run), style="bold"),
        *_paragraph(explanation(run)),
        *_paragraph(remarks_on(run)),
        *_printed(wording_table(run)),
        *_printed(finding_table(run)),
        *_paragraph(helps_sentence(run)),
        *_printed(intervention_table(run)),
        *_printed(_outcomes(run)),
        *(_printed(_original(run)) if verbose else ()),
        Text(),
        Text(_footer(run), style="dim"),
        *_notes(run.notes),
    )


def _paragraph(sentence: str) -> list[Text]:
    return [Text(), Text(sentence)] if sentence else []


def _notes(notes: Sequence[str]) -> Iterator[Text]:
    for note in notes:
        yield Text(f"note: {note}", style="yellow")


def _printed(table: Table) -> Iterator[RenderableType]:
    """Yield a table without lines, below an empty line, and its note; nothing without rows."""
    if not table:
        return
    first, *others = table.headings
    printed = RichTable(
        Column(first, overflow="fold"),
        *(Column(heading, justify="right", overflow="fold") for heading in others),
        box=None,
        pad_edge=False,
        padding=(0, 2 if len(others) < MANY_COLUMNS else 1, 0, 0),
        header_style="bold",
    )
    for row in table.rows:
        printed.add_row(*map(Text, row))
    yield from (Text(), printed)
    if table.note:
        yield Text(table.note, style="dim")


def _original(run: Run) -> Table:
    """Return the numbers of the original eval, under its own names."""
    rows = []
    for name in (*(measure.name for measure in ORIGINAL), *LENGTHS):
        if estimate := run.results.get(name):
            ends = estimate.low, estimate.high
            interval = "" if None in ends else f"[{number(ends[0])}, {number(ends[1])}]"
            rows.append([name, number(estimate.value), interval])
    return Table(["OpenAI Evals", "value", "95% interval"], rows)


def outcomes_in(counts: Iterable[Mapping[Outcome, int]]) -> list[Outcome]:
    """Return the outcomes that any of these counts has."""
    occurring = {outcome for each in counts for outcome, n in each.items() if n}
    return [outcome for outcome in OUTCOMES if outcome in occurring]


def _outcomes(run: Run) -> Table:
    """Return the shares of the outcomes, a row for each condition."""
    counts, n = run.results.outcomes, len(run.samples)
    outcomes = outcomes_in(counts.values())

    def share(count: int | None) -> str:
        return rounded(None if count is None else count / n)

    rows = [[name, *(share(each.get(kind)) for kind in outcomes)] for name, each in counts.items()]
    return Table(["condition", *map(run.words.label, outcomes)], rows)


def _footer(run: Run) -> str:
    usage = run.results.usage
    counts = f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out"
    tokens = counts if usage.output_tokens else ""  # not of bundled models
    shown = settings_of(run).items()
    settings = ", ".join(f"{name} {text}" for name, text in shown if name not in _NOT_IN_FOOTER)
    limit, seed = f"at most {run.token_limit:,} tokens", f"seed {run.plan.settings.seed}"
    parts = [f"dataset: {run.dataset.provenance}", settings, limit, seed, tokens, _cost(run)]
    return "; ".join(filter(None, [*parts, duration(run.seconds)]))


def _cost(run: Run) -> str:
    """Return what the run cost in total, and what was spent now: cached answers are free."""
    if not run.cost.total:
        return "" if run.cost.total == 0 else dollars(None)
    now = "" if run.cost.spent is None else f", {dollars(run.cost.spent)} now"
    return f"{dollars(run.cost.total)} in total{now}"


def experiment_table(ranked: Sequence[Ranking], document: Row) -> RenderableType:
    """Return the verdicts, a leaderboard for each ranking, and the totals."""
    return Group(
        *(Text(line, style="bold") for line in verdicts(ranked)),
        *(part for ranking in ranked for part in _of_ranking(ranking)),
        Text(),
        _totals(document),
    )


def _of_ranking(ranking: Ranking) -> Iterator[RenderableType]:
    entries = ranking.entries
    yield from (Text(), Text(entries[0].title, style="bold"))
    yield from _printed(leaderboard_table(entries, in_terminal=True))
    yield from _printed(diagnosis_table(entries))
    yield from _notes(group_notes(entries))


def _totals(document: Row) -> Text:
    """Return the line with total tokens, time and cost."""
    total = document["total"]
    tokens = f"All answers: {total['tokens']:,} tokens. " if total["tokens"] else ""
    cost = f", {dollars(total['spent_dollars'])} spent" if total["spent_dollars"] else ""
    return Text(f"{tokens}All runs: {duration(total['seconds'])}{cost}.", style="dim")


def comparison_table(ranking: Ranking) -> RenderableType:
    """Return the verdict, one row for each pair, the leaderboard, and the notes."""
    leaderboard = leaderboard_table(ranking.entries, in_terminal=True)
    on_all = f"Each model on all its {ranking.entries[0].run.words.items}."
    return Group(
        Text(ranking.verdict, style="bold"),
        *_printed(pair_table(ranking)),
        *_printed(leaderboard._replace(note=on_all)),
        *_notes(group_notes(ranking.entries)),
    )
