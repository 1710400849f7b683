"""The files of an experiment: where the models stand, as a table, as pictures and as a page."""

import csv
from collections.abc import Iterator, Sequence
from io import StringIO
from itertools import chain
from pathlib import Path

from ..errors import Problem
from ..evaluation.measures import IMPACT, UNUSABLE
from ..evaluation.standings import METRICS, OF_DIAGNOSIS, Standing
from ..evaluation.vocabulary import AFTER, BEFORE, Number
from ..files import replacing_text
from ..home import safe_name
from .curve import curve_chart, has_curve
from .experiment_page import INDEX, experiment_page
from .headlines import headline_chart, rules_chart
from .plots import bar_chart, line_chart
from .standing_words import by_place

TABLE = "results.csv"

Value = str | Number | list[str]


def as_rows(found: Sequence[Standing]) -> list[dict[str, Value]]:
    """Plain values by name, every metric with its 95 % interval and its error over seeds."""
    diagnosed = any(standing.is_diagnosed for standing in found)
    names = (*METRICS, *(OF_DIAGNOSIS if diagnosed else ()))
    return [_row(standing, names) for standing in found]


def _row(standing: Standing, names: Sequence[str]) -> dict[str, Value]:
    results = standing.results
    row: dict[str, Value] = {
        "model": standing.model,
        "eval": standing.eval,
        "rules": standing.change.key,
        "reasoning_effort": standing.effort,
        "selection": standing.selection,
        "pool": standing.pool,
        "runs": len(standing.runs),
        "samples": results.metrics["n_samples"],
    }
    for name in names:
        interval = results.intervals.get(name)
        row[name] = results.metrics.get(name)
        row[f"{name}_low"] = interval.low if interval else None
        row[f"{name}_high"] = interval.high if interval else None
        row[f"{name}_standard_error_over_seeds"] = standing.error_over_seeds(name)
    row |= {name: results.metrics.get(name) for name in UNUSABLE.values()}
    before, after = (standing.thinking_tokens(condition) for condition in (BEFORE, AFTER))
    row["standard_thinking_tokens"], row["changed_thinking_tokens"] = before, after
    longer = None if before is None or after is None else after - before
    row["thinking_tokens_difference"] = longer
    bounds = results.bounds.get(IMPACT)
    row[f"{IMPACT}_bounds_low"] = bounds.low if bounds else None
    row[f"{IMPACT}_bounds_high"] = bounds.high if bounds else None
    return row | {"notes": list(standing.notes)}


def as_csv(found: Sequence[Standing]) -> str:
    """The same as a file for other programs."""
    text = StringIO()
    rows = as_rows(found)
    table = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    table.writeheader()
    table.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


def _cell(value: Value) -> str:
    if isinstance(value, list):
        return " | ".join(value)
    return f"{value:.6f}" if isinstance(value, float) else "" if value is None else str(value)


def write(found: Sequence[Standing], out: Path) -> list[Path]:
    """Write everything into a folder, and name the files: the table first, the page last.

    Raises:
        Problem: if they cannot be written.
    """
    of_rules = list(_drawn_by_rules(found, out))
    pictures = [list(_drawn(group, out)) for group in by_place(found)]
    texts = {TABLE: as_csv(found), INDEX: experiment_page(found, pictures, out, of_rules)}
    try:
        for name, text in texts.items():
            replacing_text(out / name, text)
    except OSError as problem:
        raise Problem(f"cannot write to {str(out)!r} ({problem.strerror})") from None
    return [out / TABLE, *of_rules, *chain(*pictures), out / INDEX]


def _drawn_by_rules(found: Sequence[Standing], out: Path) -> Iterator[Path]:
    """A picture for each eval that was measured under several rules."""
    groups: dict[tuple[str, str], list[Standing]] = {}
    for standing in found:
        groups.setdefault((standing.eval, standing.selection), []).append(standing)
    for (eval_, _), group in groups.items():
        if len({standing.change.key for standing in group}) > 1:
            yield from rules_chart(group, out / f"rules-{eval_}{_how_selected(group[0])}")


def _drawn(group: Sequence[Standing], out: Path) -> Iterator[Path]:
    """The pictures of one place.

    The thinking curve where a model has several efforts, bars and the headline measures; for
    positions from games under the changed rules, also lines.
    """
    rules = group[0].change.key + _how_selected(group[0])
    if group[0].pool:
        rules += f"-{safe_name(group[0].pool)}"
    place = f"{group[0].eval}-{rules}"
    if has_curve(group):
        yield from curve_chart(group, out / f"curve-{place}")
    yield from bar_chart(group, out / f"bars-{place}")
    yield from headline_chart(group, out / f"headline-{place}")
    if group[0].eval == "all_diagonal":
        yield from line_chart(group, out / f"diagonal-{rules}")


def _how_selected(standing: Standing) -> str:
    return "-drawn" if standing.selection else ""
