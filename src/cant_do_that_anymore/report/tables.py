"""Tables for the terminal: runs, experiments, comparisons."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from rich.console import Group, RenderableType
from rich.table import Column, Table
from rich.text import Text

from ..comparison.entries import Entry
from ..comparison.leaderboard import Ranking, advice, heading, verdicts
from ..formatting import dollars, duration, format_setting, minus, number, percentage, rounded
from ..metrics.measures import LENGTHS, ORIGINAL
from ..runs.run import Run
from ..task.types import CHANGED_CONDITION, OUTCOMES, Outcome
from .rows import (
    Document,
    columns_of,
    diagnosis_cells,
    group_notes,
    pair_cells,
    wording_cells,
    words_of,
)
from .sentences import (
    effect_text,
    explanation,
    findings,
    headline,
    helps_sentence,
    reasoning_sentence,
    size_sentence,
    wording_sentence,
)

# Tables without lines, and their columns.
_table = partial(Table, box=None, pad_edge=False, header_style="bold")
_left, _right = partial(Column, no_wrap=True), partial(Column, no_wrap=True, justify="right")
MOST_WITH_SHARES = 3  # conditions that fit in a line with their shares; with more, only counts
YES_OR_NO = (
    "“Yes” and “No” need an interval on one side of 0; for knowing the rule, also on one side of "
    "50 points."
)
CHANCE = (
    "Differences are in points; their 95% intervals hold for all pairs together. Different: the "
    "interval excludes 0. Equivalent: it is within ±5 points. Inconclusive: neither."
)


def summary(run: Run, *, verbose: bool = False) -> RenderableType:
    """Return the summary of a run; ``verbose`` adds the numbers of the original eval."""
    return Group(
        Text(headline(run), style="bold"),
        *_paragraph(explanation(run)),
        *_paragraph(f"{wording_sentence(run)} {size_sentence(run)}".strip()),
        *_paragraph(reasoning_sentence(run)),
        *_by_wording(run),
        *_diagnosis(run),
        *_what_helps(run),
        Text(),
        _outcomes(run),
        *(_original(run) if verbose else ()),
        Text(),
        Text(_footer(run), style="dim"),
        *(Text(f"note: {note}", style="yellow") for note in run.notes),
    )


def _paragraph(sentence: str) -> list[Text]:
    return [Text(), Text(sentence)] if sentence else []


def _by_wording(run: Run) -> Iterator[RenderableType]:
    """Yield the table of rule uptake by wording, highest first, if there are several."""
    if not run.results.wordings:
        return
    table = _table(_left("wording"), _right("samples"), _left("rule uptake"))
    by_name = run.results.wordings.by_wording
    for name in sorted(by_name, key=lambda name: -by_name[name].value):
        table.add_row(name, number(by_name[name].n), by_name[name].as_share)
    yield from (Text(), table)


def _diagnosis(run: Run) -> Iterator[RenderableType]:
    """Yield the questions of a diagnosis with their answers and numbers, if there is one."""
    if not run.results.diagnosis:
        return
    table = _table("question", "answer", _left("points"))
    for question, finding in findings(run):
        points = finding.estimate.as_difference if finding.estimate else "–"
        table.add_row(question, finding.answer, points)
    yield from (Text(), table, Text(YES_OR_NO, style="dim"))


def _what_helps(run: Run) -> Iterator[RenderableType]:
    """Yield the interventions with their effects, if there are any."""
    if not run.results.interventions:
        return
    counted = [_right("tokens")] if run.results.usage.output_tokens else []  # not bundled models
    table = _table("intervention", _left("rule uptake"), "effect in points", *counted)
    uptake = run.results.uptake
    table.add_row("(none)", uptake.as_share if uptake else "–")
    for effect in run.results.interventions:
        own = effect.rule_uptake.as_share if effect.rule_uptake and effect.can_be_judged else "–"
        extra = [minus(f"{effect.extra_tokens:+,.0f}")] if counted else []
        table.add_row(effect.name, own, effect_text(run, effect, unit=False), *extra)
    yield from (Text(), Text(helps_sentence(run)), Text(), table)


def _original(run: Run) -> Iterator[RenderableType]:
    """Yield the numbers of the original eval, under its own names."""
    table = _table(_left("OpenAI Evals"), _right("value"), _left("95% interval"))
    for name in (*(measure.name for measure in ORIGINAL), *LENGTHS):
        if estimate := run.results.get(name):
            ends = estimate.low, estimate.high
            interval = "" if None in ends else f"[{number(ends[0])}, {number(ends[1])}]"
            table.add_row(name, number(estimate.value), interval)
    yield from (Text(), table)


def outcomes_in(counts: Mapping[str, Mapping[Outcome, int]]) -> list[Outcome]:
    """Return the outcomes that occur under any of the conditions."""
    return [outcome for outcome in OUTCOMES if any(count.get(outcome) for count in counts.values())]


def _outcomes(run: Run) -> Table:
    if run.plan.interventions:  # too many conditions for columns
        return _outcomes_by_row(run)
    table = _table("outcome")
    roomy = len(run.plan.conditions) <= MOST_WITH_SHARES
    for condition in run.plan.conditions:
        title = condition.name.replace("_", "\n")
        if condition.name == CHANGED_CONDITION and roomy:
            title = condition.rules.key
        table.add_column(title, justify="right")
        if roomy:
            table.add_column("", justify="right")
    counts = run.results.outcomes
    for outcome in outcomes_in(counts):
        cells = [_cells(count.get(outcome), len(run.samples)) for count in counts.values()]
        table.add_row(
            run.words.label(outcome), *(cell for pair in cells for cell in pair[: 1 + roomy])
        )
    return table


def _outcomes_by_row(run: Run) -> Table:
    counts = run.results.outcomes
    outcomes = outcomes_in(counts)
    labels = map(run.words.label, outcomes)
    table = _table("condition", *(Column(label, justify="right") for label in labels))
    for name, count in counts.items():
        table.add_row(name, *(number(count.get(outcome), "") for outcome in outcomes))
    return table


def _cells(count: int | None, n: int) -> tuple[str, str]:
    """Format a count and its share; both are empty if the outcome is impossible."""
    return ("", "") if count is None else (number(count), rounded(count / n))


def _footer(run: Run) -> str:
    usage = run.results.usage
    cached, given = usage.cached_tokens, usage.input_tokens
    share = f" ({percentage(cached / given, 0)} cached)" if cached and given else ""
    tokens = f"{given:,} tokens in{share}, {usage.output_tokens:,} out"
    dataset = f"dataset: {run.dataset.provenance}"
    parts = [dataset, _sampling(run), tokens, _cost(run), duration(run.seconds)]
    return "; ".join(filter(None, parts))


def _sampling(run: Run) -> str:
    """Return temperature, token limit and seed, and other settings that are not defaults."""
    settings = run.plan.settings
    always = {
        "temperature": f"temperature {format_setting(run.temperature_used)}",
        "max_tokens": f"at most {run.token_limit:,} tokens",
        "seed": f"seed {settings.seed}",
    }
    others = [
        f"{name.replace('_', ' ')} {format_setting(value)}"
        for name, value in settings.non_defaults.items()
        if name not in always
    ]
    return ", ".join((*always.values(), *others))


def _cost(run: Run) -> str:
    """Return what the run cost in total, and what was spent now: cached answers are free."""
    if not run.cost.total:
        return "" if run.cost.total == 0 else dollars(None)
    now = "" if run.cost.spent is None else f", {dollars(run.cost.spent)} now"
    return f"{dollars(run.cost.total)} in total{now}"


def experiment_table(ranked: Sequence[Ranking], document: Document) -> RenderableType:
    """Return the verdicts, a leaderboard for each ranking, and the totals."""
    return Group(
        *(Text(line, style="bold") for line in verdicts(ranked)),
        Text(),
        *(part for ranking in ranked for part in (*_of_ranking(ranking), Text())),
        _totals(document),
    )


def _of_ranking(ranking: Ranking) -> Iterator[RenderableType]:
    yield Text(ranking.title, style="bold")
    yield _leaderboard(ranking)
    yield from _cells_table(diagnosis_cells(ranking.entries))
    yield from _cells_table(wording_cells(ranking.entries))
    for note in group_notes(ranking.entries):
        yield Text(f"note: {note}", style="yellow")


def _leaderboard(ranking: Ranking) -> Table:
    """Return a table that fits 80 columns."""
    entries: Sequence[Entry] = ranking.entries
    columns, fill = columns_of(entries, in_terminal=True), words_of(entries).fill
    headings = (_right(fill(column.title)) for column in columns)
    table = _table(Column("model", overflow="fold"), *headings, padding=(0, 2, 0, 0))
    for entry in entries:
        style = "yellow" if entry.label in ranking.why_unranked else ""
        table.add_row(Text(entry.label), *(c.text(entry) for c in columns), style=style)
    return table


def _cells_table(cells: Sequence[Sequence[str]]) -> Iterator[RenderableType]:
    """Yield a table of texts; the first line has the headings, the first column names."""
    if not cells:
        return
    (name, *titles), *rows = cells
    headings = (Column(title, justify="right", overflow="fold") for title in titles)
    table = _table(Column(name, overflow="fold"), *headings, padding=(0, 2, 0, 0))
    for first, *rest in rows:
        table.add_row(Text(first), *rest)
    yield from (Text(), table)


def _totals(document: Document) -> Text:
    """Return the line with total tokens, time and cost."""
    total = document["total"]
    took, spent = duration(total["seconds"]), total["spent_dollars"]
    cost = f", {dollars(spent)} spent" if spent else ""
    return Text(f"All answers: {total['tokens']:,} tokens; all runs: {took}{cost}.", style="dim")


def comparison_table(ranking: Ranking) -> RenderableType:
    """Return the verdict, one row for each pair, the leaderboard, and the notes."""
    models = ranking.entries
    return Group(
        Text(ranking.verdict, style="bold"),
        Text(),
        Text(heading(models), style="bold"),
        *_cells_table(pair_cells(ranking)),
        Text(CHANCE, style="dim"),
        Text(),
        Text(f"Each model on all its {models[0].words.items}", style="bold"),
        _leaderboard(ranking),
        *_paragraph(advice(models)),
        *(Text(f"note: {note}", style="yellow") for note in group_notes(models)),
    )
