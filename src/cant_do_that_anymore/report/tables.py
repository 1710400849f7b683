"""Tables for the terminal: runs, experiments, comparisons."""

from collections.abc import Iterator, Sequence
from functools import partial

from rich.console import Group, RenderableType
from rich.table import Column, Table
from rich.text import Text

from ..comparison.entries import Entry
from ..comparison.leaderboard import Ranking
from ..comparison.pairwise import PairComparison, of_measure
from ..comparison.verdict import advice, heading, verdict, verdicts
from ..formatting import (
    dollars,
    duration,
    format_setting,
    in_points,
    number,
    p_number,
    percentage,
    range_in_points,
)
from ..metrics.diagnosis import CONTRASTS, DIAGNOSIS, Contrast, confounded
from ..metrics.measures import FORBIDDEN_SHARE, IMPACT, UPTAKE, USUAL_SHARE
from ..metrics.types import Measure, Results
from ..runs.results import Run
from ..task.types import CHANGED_CONDITION
from .columns import (
    DIAGNOSIS_HEADING,
    VERDICTS,
    all_notes,
    as_rows,
    columns_in,
    group_notes,
    legend,
    marked,
    words_of,
)
from .document import Document, matrix_cells
from .html import interval
from .run_page import knowledge_rows, main_measures, outcomes_in
from .sentences import (
    control_shares,
    diagnosis_answers,
    headline,
    helps_sentence,
    reasoning_sentence,
    size_sentence,
    wording_sentence,
)

# Not in the table of metrics: shown beside other numbers, or derived from the outcomes.
_SHOWN_ELSEWHERE = {*FORBIDDEN_SHARE.values(), "variant_legal_proportion"}
_OF_DIAGNOSIS = {*(measure.name for measure in DIAGNOSIS), *CONTRASTS}
# Tables without lines, and their columns.
_table = partial(Table, box=None, pad_edge=False, header_style="bold")
_left, _right = partial(Column, no_wrap=True), partial(Column, no_wrap=True, justify="right")
MOST_WITH_SHARES = 3  # conditions that fit in a line with their shares; with more, only counts


def summary(run: Run, *, verbose: bool = False) -> RenderableType:
    """Return the summary of a run: headline, measures, outcomes, tokens and notes.

    A diagnosis is four sentences; ``verbose`` adds its measures and the habits by knowledge.
    """
    answers = diagnosis_answers(run)
    return Group(
        Text(headline(run), style="bold"),
        *_paragraph(f"{size_sentence(run.results)} {wording_sentence(run)}".strip()),
        *_by_wording(run.results),
        *_paragraph(reasoning_sentence(run.results)),
        Text(),
        *(Text.assemble((question, "bold"), f" {answer}") for question, answer in answers.items()),
        *([Text()] if answers else []),
        _measures(run, verbose=verbose),
        Text(),
        *(_knowledge(run) if answers and verbose else ()),
        *_what_helps(run),
        _outcomes(run),
        Text(),
        Text(_footer(run), style="dim"),
        *(Text(f"note: {note}", style="yellow") for note in run.notes),
    )


def _paragraph(sentence: str) -> list[Text]:
    return [Text(), Text(sentence)] if sentence else []


def _by_wording(results: Results) -> Iterator[RenderableType]:
    """Yield the table of the main measure by wording, highest first, if there are several."""
    if not results.wordings:
        return
    headings = _left("wording"), _right("samples"), _right("rule uptake"), _left("95% interval")
    table = _table(*headings)
    for name, entry in results.wordings.sorted:
        ends = f"[{number(entry.low)}, {number(entry.high)}]" if entry.low is not None else ""
        table.add_row(name, number(entry.n), number(entry.value), ends)
    yield Text()
    yield table


def _measures(run: Run, *, verbose: bool) -> Table:
    table = _table(_left("measure"), _right("value"), _left("95% interval"), "")
    hidden = _SHOWN_ELSEWHERE if verbose else _SHOWN_ELSEWHERE | _OF_DIAGNOSIS
    for measure in main_measures(run.results):
        if measure.name not in hidden:
            value = run.results.metrics[measure.name]
            interval_text = interval(run.results.intervals.get(measure.name))
            remark = Text(run.words.fill(_remark(measure, run.results)), style="dim")
            table.add_row(run.words.fill(measure.title), number(value), interval_text, remark)
            if bounds := run.results.bounds.get(measure.name):
                range_text = f"[{number(bounds.low)}, {number(bounds.high)}]"
                complete = Text(f"complete: {number(bounds.complete)}", style="dim")
                table.add_row("  bounds, without sampling error", "", range_text, complete)
    return table


def _remark(measure: Measure | Contrast, results: Results) -> str:
    if measure.name in confounded(results):
        return "see the note"
    for condition, name in USUAL_SHARE.items():
        if name == measure.name:
            return f"forbidden: {number(results.metrics[FORBIDDEN_SHARE[condition]])}"
    return measure.remark or ("" if measure.perfect is None else f"perfect is {measure.perfect:g}")


def _knowledge(run: Run) -> Iterator[RenderableType]:
    """Yield the table of habits by knowledge of the rule, and the line on controls."""
    rows = knowledge_rows(run)
    total = f"of {number(sum(row.number for row in rows))} with the habit"
    table = _table(_left(total), *map(_right, ("drop it", "", "keep it", "")))
    for row in rows:
        cells = (text for p in row.parts for text in (number(p.number), percentage(p.share)))
        table.add_row(f"{row.title}: {number(row.number)}", *cells)
    yield table
    if controls := control_shares(run):
        shares = ", ".join(f"{percentage(share)} {name}" for name, share in controls.items())
        yield Text(f"habits at controls: {shares}", style="dim")
    yield Text()


def _what_helps(run: Run) -> Iterator[RenderableType]:
    """Yield the sentence and the table on interventions, if the run has any."""
    if not run.results.interventions:
        return
    headings = "rule uptake", "points", "95% interval", "p (Holm)", "closes", "tokens"
    table = _table(_left("what helps"), *map(_right, headings))
    table.add_row("(no intervention)", number(run.results.metrics[UPTAKE]))
    for effect in run.results.interventions:
        low, high = effect.difference_low, effect.difference_high
        table.add_row(
            effect.name,
            number(effect.rule_uptake),
            in_points(effect.difference),
            "" if low is None or high is None else range_in_points(low, high),
            p_number(effect.p_holm),
            percentage(effect.closes, 0),
            "–" if effect.extra_tokens is None else f"{effect.extra_tokens:+,.0f}",
        )
    yield from (Text(helps_sentence(run)), Text(), table, Text())


def _outcomes(run: Run) -> Table:
    if run.plan.interventions:  # too many conditions for columns
        return _outcomes_by_row(run)
    table = _table("outcome")
    roomy = len(run.plan.conditions) <= MOST_WITH_SHARES
    for condition in run.plan.conditions:
        heading = condition.name.replace("_", "\n")
        if condition.name == CHANGED_CONDITION and roomy:
            heading = condition.rules.key
        table.add_column(heading, justify="right")
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
    return ("", "") if count is None else (number(count), percentage(count / n))


def _footer(run: Run) -> str:
    metrics, dataset = run.results.metrics, f"dataset: {run.dataset.provenance}"
    tokens_in, tokens_out = metrics["usage_prompt_tokens"], metrics["usage_completion_tokens"]
    cached = metrics.get("usage_cached_tokens")
    share = f" ({percentage(cached / tokens_in)} cached)" if cached and tokens_in else ""
    tokens = f"{tokens_in:,} tokens in{share}, {tokens_out:,} out"
    parts = [dataset, _sampling(run), tokens, _cost(run), _time(run)]
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
    text = f"{dollars(run.cost.total)} in total"
    if run.cost.spent is not None:
        text += f", {dollars(run.cost.spent)} now"
    return text


def _time(run: Run) -> str:
    return duration(run.seconds)


def experiment_table(ranked: Sequence[Ranking], document: Document) -> RenderableType:
    """Return the verdicts, a leaderboard for each ranking, the legend and the totals."""
    return Group(
        *(Text(line, style="bold") for line in verdicts(ranked)),
        Text(),
        *(part for ranking in ranked for part in (*_of_ranking(ranking), Text())),
        *_matrix(document),
        *(
            Text(line, style="dim")
            for line in legend(
                document["results"], words_of([ranking.entries[0] for ranking in ranked])
            )
        ),
        _totals(document),
    )


def _matrix(document: Document) -> Iterator[RenderableType]:
    """Yield the table of rule uptake by wording and by what else varies, if any does."""
    if matrix := document["matrix"]:
        (first, *columns), *rows = matrix_cells(matrix)
        folded = (Column(column, justify="right", overflow="fold") for column in columns)
        table = _table(_left(first), *folded)
        for row in rows:
            table.add_row(*row)
        yield table
        yield Text()


def _of_ranking(ranking: Ranking) -> Iterator[RenderableType]:
    yield Text(ranking.title, style="bold")
    yield _leaderboard("model", ranking.entries)
    if diagnosed := [entry for entry in ranking.entries if entry.is_diagnosed]:
        yield Text()
        yield _leaderboard(DIAGNOSIS_HEADING, diagnosed, diagnosis=True)
    for note in group_notes(ranking.entries):
        yield Text(f"note: {note}", style="yellow")


def _totals(document: Document) -> Text:
    """Return the line with total tokens, time and cost."""
    total = document["total"]
    took, spent = duration(total["seconds"]), total["spent_dollars"]
    cost = f", {dollars(spent)} spent" if spent else ""
    text = f"All answers: {total['tokens']:,} tokens; all runs: {took}{cost}."
    return Text(text, style="dim")


def _leaderboard(name: str, entries: Sequence[Entry], *, diagnosis: bool = False) -> Table:
    """Return a table with two lines per model, which fits 80 columns."""
    rows = as_rows(entries)
    columns = columns_in("terminal", rows, diagnosis=diagnosis)
    # One space between columns, since model names are long.
    fill = entries[0].words.fill
    headings = ((_left if column.interval else _right)(fill(column.title)) for column in columns)
    table = _table(Column(name, overflow="fold"), *headings, padding=(0, 1, 0, 0))
    for entry, row in zip(entries, rows, strict=True):
        cells = (_cell(*column.lines(row, "terminal")) for column in columns)
        table.add_row(Text(marked(entry)), *cells, style="yellow" if entry.is_suspect else "")
    return table


def _cell(value: str, below: str = "") -> Text:
    return Text.assemble(value, ("\n" + below, "dim")) if below else Text(value)


def comparison_table(ranking: Ranking) -> RenderableType:
    """Return the verdict, one row for each pair, the leaderboard, and the notes."""
    models = ranking.entries
    hint = advice(models)
    return Group(
        Text(verdict(ranking), style="bold"),
        Text(),
        Text(heading(models), style="bold"),
        _pairs(ranking),
        Text(
            "Differences are in points, with [95% intervals]. p is corrected for all pairs and "
            "measures. significant: p < 0.05 and the interval excludes 0. equivalent: the "
            "interval is within ±5 points. An impact factor below 0 means that the first model "
            "drops more of its habit (* significant).",
            style="dim",
        ),
        Text(),
        Text(f"Each model on all its {models[0].words.items}", style="bold"),
        _leaderboard("model", ranking.entries),
        *(Text(line, style="dim") for line in legend(as_rows(models), models[0].words)),
        *([Text(hint)] if hint else []),
        *(Text(f"note: {note}", style="yellow") for note in all_notes(models)),
    )


def _pairs(ranking: Ranking) -> Table:
    table = _table(
        Column("lead of ... over", overflow="fold", min_width=12),
        Column("shared", justify="right"),
        *(_left("rule uptake"), _right("p"), _left(""), _left("impact\nfactor")),
        padding=(0, 1, 0, 0),
    )
    for pair in ranking.pairs:
        [uptake], [impact] = (of_measure(pair, name) for name in (UPTAKE, IMPACT))
        table.add_row(
            Text(f"{uptake.second.label} over {uptake.first.label}"),
            number(uptake.n_samples),
            _difference(uptake),
            p_number(uptake.corrected_p),
            Text(VERDICTS[uptake.verdict], style="bold" if uptake.is_significant else ""),
            Text(in_points(impact.difference) + ("*" if impact.is_significant else "")),
        )
    return table


def _difference(comparison: PairComparison) -> Text:
    interval = comparison.interval
    text = f" [{range_in_points(interval.low, interval.high, ', ')}]" if interval else ""
    return Text.assemble(in_points(comparison.difference), (text, "dim"))
