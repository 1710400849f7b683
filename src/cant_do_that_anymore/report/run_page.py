"""The HTML report of a run, and what notebooks show."""

from collections.abc import Iterator, Sequence
from typing import Any

from markupsafe import Markup

from ..comparison.leaderboard import Ranking, settings_of, verdicts
from ..formatting import last_part, pluralize, visible
from ..metrics.measures import (
    LENGTHS,
    ORIGINAL,
    REASONING_DIFFERENCE,
    SHARE_AFTER,
    SHARE_BEFORE,
    UPTAKE,
)
from ..runs.run import Run
from ..task.conditions import PLACEBO
from ..task.types import CHANGED_CONDITION, STANDARD_CONDITION, Condition, Outcome
from .html import asset, render
from .rows import (
    finding_table,
    intervention_table,
    leaderboard_table,
    pair_table,
    share_text,
    wording_table,
)
from .sample_browser import LONGEST_TEXT, samples_json
from .sentences import explanation, headline, helps_sentence, remarks_on, shares_text
from .svg import flow
from .tables import outcomes_in

_OTHER_COLORS = 4  # in the style sheet, for conditions other than the first two


def headline_and_tiles(run: Run) -> dict[str, object]:
    """Return the template variables of the headline and the tiles."""
    return {
        "run": run,
        "title": last_part(run.version),
        "headline": headline(run),
        "explanation": explanation(run),
        "findings": finding_table(run),
        "remarks": remarks_on(run),
        "tiles": list(_tiles(run)),
        "words": run.words,
    }


def _tiles(run: Run) -> Iterator[dict[str, object]]:
    """Yield the numbers that are shown first, with the names that they have in files."""
    answers = f"Usual {run.words.answer}s"
    scale = shares_text(run.after_change) or "0%: ignores the rule, 100%: follows it"
    for name, title, remark in (
        (UPTAKE.name, "Rule uptake", scale),
        (SHARE_BEFORE, f"{answers} before the change", ""),
        (SHARE_AFTER, f"{answers} after the change", ""),
    ):
        estimate = run.results.get(name)
        yield {"name": name, "title": title, "estimate": estimate, "remark": remark}


def page(run: Run) -> str:
    """Render the report as one HTML string."""
    words, results, counts = run.words, run.results, run.results.outcomes
    statements = {condition.name: condition.rules.statement for condition in run.plan.conditions}
    return render(
        "run.html",
        **headline_and_tiles(run),
        conditions=_conditions(run.plan.conditions),
        flow=flow(run.samples, STANDARD_CONDITION, CHANGED_CONDITION, words.label),
        counts=counts,
        meanings={each: words.fill(_MEANINGS[each]) for each in outcomes_in(counts.values())},
        has_reasoning=REASONING_DIFFERENCE in results.estimates,
        helps=helps_sentence(run),
        interventions=intervention_table(run),
        wordings=wording_table(run),
        original=[*(measure.name for measure in ORIGINAL), *LENGTHS],
        settings=settings_of(run),
        placebo=statements.get(PLACEBO),
        example=example_of(run),
        habit=run.plan.change.its_habit,
        samples=samples_json(run),
        longest_reply=LONGEST_TEXT,
    )


def example_of(run: Run) -> dict[str, Any]:
    """Return what shows a change at work: a picture of the habit's own, or an item as text."""
    change, habit = run.plan.change, run.plan.change.its_habit
    item = next((sample.item for sample in run.samples), None)
    picture, shown = habit.picture(change), ""
    if item and not picture:
        usual = run.words.fill("Usual {answer}, now {disallowed}: ") + " or ".join(item.usual)
        shown = f"{habit.show(item)}\n{usual}."
    return {"picture": picture, "shown": shown}


def _conditions(conditions: Sequence[Condition]) -> dict[str, dict[str, object]]:
    """Return what the template shows of each condition, by name."""
    others = [c.name for c in conditions if c.name not in (STANDARD_CONDITION, CHANGED_CONDITION)]
    styles = {name: f"other-{1 + index % _OTHER_COLORS}" for index, name in enumerate(others)}
    return {
        condition.name: vars(condition)
        | {"title": _title(condition.name), "style": styles.get(condition.name, condition.name)}
        for condition in conditions
    }


_MEANINGS: dict[Outcome, str] = {
    "usual": "the usual {answer}: the habit",
    "forbidden": "another {answer} that the change made {disallowed}",
    "adapted": "a {answer} that only the changed rules allow",
    "legal": "any other {allowed} {answer}",
    "illegal": "any other {answer}",
    "right": "right about whether the {answer} is {allowed}",
    "wrong": "wrong about whether the {answer} is {allowed}",
    "unreadable": "no {answer}, or more than one, could be read",
    "truncated": "cut off before a {answer}",
    "refused": "the model declined to answer",
    "error": "no answer; left out of all values",
}


def _title(name: str) -> str:
    """Format the name of a condition as a heading."""
    title = name.replace("_", " ").capitalize()
    return f"{title} rules" if name in (STANDARD_CONDITION, CHANGED_CONDITION) else title


# In notebooks, runs and rankings show themselves.


def run_line(run: Run) -> str:
    """Summarize a run in one line: model, eval, rules, rule uptake, and its folder."""
    return visible(
        f"<Run of {run.version}: {run.plan.eval}, {run.plan.change.key}, "
        f"{pluralize(run.results.n, 'sample')}, rule uptake {share_text(run.results.uptake)}, "
        f"{_folder_text(run)}>"
    )


def run_html(run: Run) -> str:
    """Render the headline, the tiles and the outcomes of a run."""
    counts = {name: run.results.outcomes[name] for name in (STANDARD_CONDITION, CHANGED_CONDITION)}
    return render(
        "notebook_run.html",
        **headline_and_tiles(run),
        palette=_palette(),
        counts=counts,
        outcomes=outcomes_in(counts.values()),
        saved=_folder_text(run),
    )


def rankings_html(ranked: Sequence[Ranking], remarks: Sequence[str] = ()) -> str:
    """Render the verdict, the leaderboard and the pairs of each ranking."""
    tables = {
        verdict: [leaderboard_table(ranking.entries), pair_table(ranking)]
        for verdict, ranking in zip(verdicts(ranked), ranked, strict=True)
    }
    return render("notebook_tables.html", palette=_palette(), tables=tables, remarks=remarks)


def _folder_text(run: Run) -> str:
    return f"saved in {run.folder}" if run.folder else "not saved: run.save()"


def _palette() -> Markup:
    """Return the CSS variables with the colors of the reports."""
    return Markup(asset("page.css").partition("{")[2].partition("}")[0])
