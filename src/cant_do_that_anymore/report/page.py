"""The page of a run: one HTML file that opens from disk and asks nothing of any network."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import UserError
from ..files import atomic_write
from ..metrics.diagnosis import KNOWLEDGE
from ..metrics.groups import by_earlier_moves, by_opening, by_usualness
from ..metrics.measures import FORBIDDEN, MEASURES, READINGS, SHARES, STATISTICS, TILES
from ..runs.results import Run
from ..runs.storage import save_run, temperatures
from ..task.types import CHANGED_CONDITION, OUTCOMES, STANDARD_CONDITION
from . import thoughts
from .charts import flow, pieces
from .diagnosis import why
from .rule_picture import rule_picture
from .sample_data import samples_json
from .templating import streamed
from .words import ASKS, MEANINGS, condition_title, headline, main_measures

PAGE_NAME = "report.html"
_PALETTE = 4
"""How many colours the style sheet has for conditions other than the first two."""


@dataclass(frozen=True)
class Asked:
    """A condition as the page shows it.

    Attributes:
        name: what its replies go by.
        title: for people.
        style: the class that gives it its colour.
        text: the task.
        added: what the user's last turn ends with.
        asks: what is asked for, in words.
        names_a_move: whether the answer is to be a move.
    """

    name: str
    title: str
    style: str
    text: str
    added: str
    asks: str
    names_a_move: bool


def write_page(run: Run, path: Path) -> None:
    """Write the page of a run; an older one is replaced only when the new one is whole.

    Raises:
        UserError: if it cannot be written.
    """
    try:
        with atomic_write(path) as file:
            file.writelines(piece.encode() for piece in _pieces(run))
    except OSError as problem:
        raise UserError(
            f"cannot write the page {str(path)!r} ({problem.strerror}); "
            "`cdta report RUN -o FILE` writes it elsewhere"
        ) from None


def save_with_page(run: Run, folder: Path) -> None:
    """Write a run's folder and its page in it.

    Raises:
        UserError: if they cannot be written.
    """
    save_run(run, folder)
    write_page(run, folder / PAGE_NAME)


def first_numbers(run: Run) -> dict[str, object]:
    """What a run comes to in short: the parts of its headline and its tiles."""
    return {
        "run": run,
        "headline": headline(run),
        "tiles": [
            MEASURES[name]
            for name in (*TILES[run.plan.eval], KNOWLEDGE)
            if name in run.results.metrics
        ],
        "readings": READINGS,
        "shares": SHARES,
        "forbidden": FORBIDDEN,
    }


def page(run: Run) -> str:
    """The page as one HTML text."""
    return "".join(_pieces(run))


def _pieces(run: Run) -> Iterator[str]:
    samples, longest_reply = samples_json(run)
    counted, earlier = by_earlier_moves(run)
    counts = run.results.outcomes.values()
    return streamed(
        "run.html",
        **first_numbers(run),
        conditions=_conditions(run),
        contrast=(STANDARD_CONDITION, CHANGED_CONDITION),
        flow=flow(run.samples, STANDARD_CONDITION, CHANGED_CONDITION),
        outcomes={
            outcome: MEANINGS[outcome]
            for outcome in OUTCOMES
            if any(count.get(outcome) for count in counts)
        },
        measures=main_measures(run),
        amounts=thoughts.amounts(run),
        scale=thoughts.scale(run),
        thought_filters=thoughts.filters(run),
        statistics=list(STATISTICS.values()),
        temperature=temperatures(run),
        groups={
            f"number of {counted}": earlier,
            "how usual the move is among people": by_usualness(run),
            "opening": by_opening(run),
        },
        why=why(run),
        picture=rule_picture(run.plan.change, run.samples[0].position if run.samples else None),
        pieces=pieces(),
        samples=samples,
        longest_reply=longest_reply,
    )


def _conditions(run: Run) -> dict[str, Asked]:
    names = [condition.name for condition in run.plan.conditions]
    others = [name for name in names if name not in (STANDARD_CONDITION, CHANGED_CONDITION)]
    styles = {name: f"other-{1 + place % _PALETTE}" for place, name in enumerate(others)}
    return {
        name: Asked(
            name,
            condition_title(name),
            styles.get(name, name),
            condition.text,
            condition.added,
            ASKS.get(name, ""),
            not condition.about,
        )
        for name, condition in zip(names, run.plan.conditions, strict=True)
    }
