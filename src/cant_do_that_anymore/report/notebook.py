"""Runs, comparisons, experiments and estimates in notebooks and as data frames."""

from collections.abc import Mapping, Sequence

import chess
from markupsafe import Markup

from ..comparison.leaderboard import Ranking
from ..comparison.verdict import heading, verdict, verdicts
from ..costs.forecast import Forecast
from ..formatting import dollars, duration, number, pluralize, visible
from ..game.notation import notate, notate_game
from ..metrics.measures import MEASURES, TILES, UPTAKE
from ..providers.base import Answer
from ..runs.lookup import RunSummary
from ..runs.results import Run
from ..task.types import CHANGED_CONDITION, STANDARD_CONDITION, Sample, ScoredAnswer
from .columns import RUN_COLUMNS, VERDICTS, cells_in
from .html import asset, interval, render
from .run_page import headline_and_tiles, outcomes_in

Row = dict[str, object]


def sample_rows(samples: Sequence[Sample]) -> list[Row]:
    """Return one row per sample: position, special moves, and each reply with its outcome."""
    rows = []
    for sample in samples:
        position, board, answers = sample.position, sample.position.board(), sample.answers
        row: Row = {
            "id": position.id,
            "draw": sample.draw + 1,
            "game": position.game,
            "source": position.source,
            "moves": notate_game(position.moves),
            "fen": board.fen(),
            "special": ", ".join(notate(board, uci) for uci in position.special_moves),
        }
        for name, reply in sample.replies.items():
            columns = _reply_columns(reply, answers[name], board).items()
            row |= {f"{name}_{column}": value for column, value in columns}
        rows.append(row)
    return rows


def _reply_columns(reply: ScoredAnswer, answer: Answer, board: chess.Board) -> Row:
    usage = answer.usage
    return {
        "outcome": reply.outcome,
        "move": notate(board, reply.move) if reply.move else None,
        "reply": answer.text,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "thinking_tokens": usage.thinking_tokens,
    }


def run_line(run: Run) -> str:
    """Summarize a run in one line: model, eval, rules, headline measure, and its folder."""
    first = MEASURES[TILES[run.plan.eval][0]]
    value, bounds = run.results.metrics[first.name], run.results.intervals.get(first.name)
    parts = [
        f"{run.version}: {run.plan.eval}",
        run.plan.change.key,
        pluralize(len(run.answered), "sample"),
        f"{first.title.lower()} {number(value)} {interval(bounds)}".rstrip(),
        _folder_text(run),
    ]
    return visible(f"<Run of {', '.join(parts)}>")


def run_html(run: Run) -> str:
    """Render the headline, the tiles and the outcomes of a run."""
    counts = {name: run.results.outcomes[name] for name in (STANDARD_CONDITION, CHANGED_CONDITION)}
    return render(
        "notebook_run.html",
        **headline_and_tiles(run),
        palette=_palette(),
        counts=counts,
        outcomes=outcomes_in(counts),
        saved=_folder_text(run),
    )


def comparison_html(ranking: Ranking) -> str:
    """Render the verdict, and every pair in every measure."""
    return render(
        "notebook_comparison.html",
        palette=_palette(),
        verdict=verdict(ranking),
        heading=heading(ranking.entries),
        pairs=ranking.pairs,
        verdicts=VERDICTS,
    )


def rankings_html(ranked: Sequence[Ranking], remarks: Sequence[str] = ()) -> str:
    """Render the verdict and the leaderboard of each ranking."""
    tables = (cells_in("markdown", ranking.entries) for ranking in ranked)
    return _tables_html(dict(zip(verdicts(ranked), tables, strict=True)), remarks)


_OF_RUN = ("started_at", "model", "tag", "rules", "eval", "effort", "samples")


def run_rows(runs: Sequence[RunSummary]) -> list[Row]:
    """Return one row per run, with its rule uptake, cost and time."""
    return [
        {
            **{name: getattr(run, name) for name in _OF_RUN},
            UPTAKE: run.uptake,
            **{end: getattr(run.uptake_interval, end, None) for end in ("low", "high")},
            "cost": run.cost,
            "seconds": run.seconds,
            "folder": str(run.folder),
        }
        for run in runs
    ]


def runs_html(runs: Sequence[RunSummary]) -> str:
    """Render the list of runs."""
    rows = [
        [*(column.text(run) for column in RUN_COLUMNS.values()), str(run.folder)] for run in runs
    ]
    return _tables_html({pluralize(len(runs), "run"): [[*RUN_COLUMNS, "folder"], *rows]})


STEP_HEADINGS = ("step", "requests", "tokens each", "cost", "time")


def step_cells(planned: Forecast) -> list[list[str]]:
    """Return a row of text for each step of a planned run, below `STEP_HEADINGS`."""
    return [
        [
            title,
            _range(f"{step.requests.low:,.0f}", f"{step.requests.high:,.0f}"),
            f"{step.output_tokens.expected / step.requests.expected:,.0f}",
            _range(_cost(step.dollars.low), _cost(step.dollars.high))
            if step.dollars
            else "unknown",
            _range(duration(step.seconds.low), duration(step.seconds.high)),
        ]
        for title, step in planned.steps.items()
    ]


def _cost(amount: float) -> str:
    return f"${amount:,.0f}" if amount >= 100 else dollars(amount)


def _range(low: str, high: str) -> str:
    """Format a range, with the unit or the currency once."""
    if low == high:
        return low
    number, _, unit = low.partition(" ")
    return f"{number if unit and high.endswith(unit) else low}–{high.removeprefix('$')}"


def estimate_line(planned: Forecast) -> str:
    """Summarize an estimate in one line."""
    if not planned.steps:
        reason = planned.assumptions[0]
        return f"{planned.heading}: no requests to send, because {reason}"
    _, requests, _, cost, time = step_cells(planned._replace(at_once=None))[-1]
    return f"{planned.heading}: {requests} requests, {cost}, {time}"


def estimates_html(plans: Sequence[Forecast]) -> str:
    """Render the steps of each planned run, and what the estimates are based on."""
    tables = {
        estimate_line(planned): [STEP_HEADINGS, *step_cells(planned)] if planned.steps else []
        for planned in plans
    }
    return _tables_html(tables, assumptions_of(plans))


def assumptions_of(plans: Sequence[Forecast]) -> list[str]:
    """Return what the estimates are based on, each sentence once."""
    pending = (planned for planned in plans if planned.steps)
    return list(dict.fromkeys(line for planned in pending for line in planned.assumptions))


def _tables_html(tables: Mapping[str, Sequence[Sequence[str]]], remarks: Sequence[str] = ()) -> str:
    """Render tables below their titles; the first row of each has its headings."""
    return render("notebook_tables.html", palette=_palette(), tables=tables, remarks=remarks)


def _folder_text(run: Run) -> str:
    return f"saved in {run.folder}" if run.folder else "not saved: run.save()"


def _palette() -> Markup:
    """Return the CSS variables with the colors of the reports."""
    return Markup(asset("page.css").partition("{")[2].partition("}")[0])
