"""Check that a model is still the one whose answers are cached.

A name and an address are all that a user gives, and others decide what is behind them. What is
sure is refused: kept answers of one model with new ones of another are a measurement of none. What
may be a change is a note.
"""

import logging
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice

from ..client.budget import Budget
from ..client.client import Client
from ..client.session import create_model, is_remote, model_info, open_client
from ..costs.forecast import forecast_with_cache
from ..datasets.pools import Pool, positions_drawn, positions_for
from ..datasets.search import Query, SelectionConfig
from ..datasets.storage import Dataset
from ..errors import Stopped, UserError
from ..game.move_parser import move_in
from ..game.position import Position
from ..game.rules import board_after
from ..interrupts import run_interruptible
from ..metrics.notes import versions_of
from ..progress import progress_display
from ..providers.base import Answer, Model, Request, Settings, TransientError
from ..providers.chain_of_thought import ThinkingModel
from ..providers.openai_api import ServerModel
from ..providers.request_variants import NO_TEMPERATURE
from ..task.samples import trials_of
from ..task.spec import Spec
from ..task.types import STANDARD_CONDITION, Plan
from .results import Run

log = logging.getLogger(__name__)

Answered = Sequence[tuple[Request, Answer]]
"""Questions with the answers that are kept."""
FAR = 200
"""So many positions of a pool are looked through for one whose answer is kept."""
LOOKS = 5
"""So many kept questions are asked again if the first is answered otherwise."""
SURE = 2
"""So many other answers make another model: one may be a tie that fell the other way."""
HOW_TO_GO_ON = (
    "--fresh measures what is there now and keeps nothing, --tag NAME keeps its answers apart"
)


class ModelChanged(UserError):
    """Behind the name is another model than the one whose answers are kept."""


async def verify_identity(
    spec: Spec, plan: Plan, at_hand: Dataset | Pool, asking: Client, *, quiet: bool
) -> list[str]:
    """Ask the first kept question again, if there is one, and say what may have changed.

    Models inside this package and people are not asked. Where nobody answers and nothing else is
    to be asked, the kept answers are as good as ever.

    Raises:
        ModelChanged: if it is sure that it is another model.
        UserError: if nobody answers, and more is to be asked.
    """
    if asking.cache.is_empty or not is_remote(asking.model):
        return []
    asks, settings = _asks(spec, plan, at_hand, asking.model)
    kept = _kept(asks, settings, asking)
    return await _verify(kept, settings, spec, plan, asking, quiet=quiet)


async def verify_identity_in(
    dataset: Dataset, spec: Spec, plan: Plan, asking: Client, *, quiet: bool
) -> list[str]:
    """The same before positions are measured that were found by asking some version of the model.

    Kept answers of that version need no look; others may be there from when the name stood for
    another model.
    """
    is_given = spec.dataset or spec.fallback_dataset or not dataset.version
    if is_given or not is_remote(asking.model):
        return []
    asks = _measuring(dataset.positions, plan)
    kept = _kept(asks, plan.settings, asking, but=dataset.version)
    return await _verify(kept, plan.settings, spec, plan, asking, quiet=quiet)


def check_identity(run: Run, spec: Spec, purse: Budget, *, quiet: bool) -> None:
    """The same before a run that was saved is taken for the one that the spec asks for.

    What was said at temperature 0 to find its positions is looked at, if it is kept, or else its
    own answers. Nothing else is to be asked, so it is no harm if nobody answers. The log says what
    may have changed.

    Raises:
        ModelChanged: if it is sure that it is another model.
    """
    if not is_remote(model_info(spec)):
        return

    async def looked() -> list[str]:
        async with open_client(spec, create_model(spec), purse) as asking:
            asks, settings = _asks(spec, run.plan, positions_for(spec), asking.model)
            kept = _kept(asks, settings, asking)
            versions = versions_of(run.samples)
            if any(answer.version not in versions for _, answer in kept) or not kept:
                positions = [sample.position for sample in run.samples]
                asks, settings = _measuring(positions, run.plan), run.plan.settings
                replies = (sample.answers[STANDARD_CONDITION] for sample in run.samples)
                kept = [pair for pair in zip(asks, replies, strict=False) if not pair[1].error]
            if not kept:
                return []
            with progress_display(f"the first answer of {run.model}", quiet=quiet):
                return await _probe(kept[:LOOKS], settings, asking, versions)

    try:
        notes = run_interruptible(looked(), kept=not spec.fresh)
    except ModelChanged as other:
        raise ModelChanged(f"{other}, both with a new folder for --out") from None
    except Stopped:
        raise
    except (UserError, TransientError) as fault:
        notes = [_unknown(fault)]
    for note in notes:
        log.warning("%s: %s", run.model, note)


async def _verify(
    kept: Answered, settings: Settings, spec: Spec, plan: Plan, asking: Client, *, quiet: bool
) -> list[str]:
    if not kept:
        return []
    try:
        with progress_display(f"the first answer of {asking.model.name}", quiet=quiet):
            versions = {answer.version for _, answer in kept}
            looked_at = await _probe(kept, settings, asking, versions)
            return [*looked_at, *await _on_marks(asking)]
    except ModelChanged:
        raise
    except (UserError, TransientError) as fault:
        if not forecast_with_cache(spec, plan, asking.model, asking.kept).to_ask:
            return [_unknown(fault)]
        if isinstance(fault, UserError):
            raise
        return []  # who asks patiently will tell


def _unknown(fault: Exception) -> str:
    return f"it could not be asked whether it is still the same model ({fault})"


async def save_fingerprint(asking: Client) -> None:
    """Keep what the server says of the model that has answered, beside its answers."""
    if asking.asked:
        asking.cache.save_fingerprints(await _marks(asking.model))


def _asks(
    spec: Spec, plan: Plan, at_hand: Dataset | Pool, model: Model
) -> tuple[Iterator[Request], Settings]:
    """The questions that a run begins with, and the settings that they are asked with."""
    if isinstance(at_hand, Pool):
        criteria = SelectionConfig(model, at_hand, plan)
        numbers = range(min(FAR, len(criteria.ordered)))
        return (criteria.request(Query(number, 0)) for number in numbers), criteria.settings
    return _measuring(positions_drawn(at_hand, spec, plan), plan), plan.settings


def _measuring(positions: Sequence[Position], plan: Plan) -> Iterator[Request]:
    """The questions about positions, first all of them under the baseline."""
    draws = list(trials_of(positions))
    for condition in plan.conditions:
        for draw in draws:
            yield from draw.requests([condition])


def _kept(
    asks: Iterable[Request], settings: Settings, asking: Client, but: str | None = None
) -> Answered:
    """The first of the questions whose answers are kept, but for those of one version."""
    found = ((ask, asking.cache.answer(ask, settings)) for ask in asks)
    answered = ((ask, answer) for ask, answer in found if answer and answer.version != but)
    return list(islice(answered, LOOKS))


async def _probe(
    kept: Answered, settings: Settings, asking: Client, versions: Collection[str]
) -> list[str]:
    """Look again at other questions when the first is answered otherwise; at it, if it is alone."""
    others: list[str] = []
    for looks, (ask, before) in enumerate(kept if len(kept) > 1 else [*kept] * SURE, 1):
        now = await asking.ask_uncached(ask, settings, before.conceded)
        other = _difference(ask, before, now, settings, versions)
        if not other and looks == 1:
            return []
        others += [other] if other else []
        if len(others) == SURE:
            raise ModelChanged(
                f"{asking.model.name} is another model than the one whose answers are kept "
                f"({others[-1]}); {HOW_TO_GO_ON}"
            )
    return [
        f"may be another model than the one whose answers are kept ({others[0]}, once in "
        f"{looks} questions); {HOW_TO_GO_ON}"
    ]


def _difference(
    ask: Request, before: Answer, now: Answer, settings: Settings, versions: Collection[str]
) -> str:
    """In what one answer differs from another that the same model would have given, if at all.

    Some servers call their model something else with every answer: then that tells nothing.
    """
    if len(versions) == 1 and before.version and now.version and before.version != now.version:
        return f"{before.version!r} answered then, {now.version!r} does now"
    repeats = settings.temperature == 0 and NO_TEMPERATURE not in now.conceded
    if not repeats or before.is_thoughtful or now.is_thoughtful or now.error:
        return ""
    said = [_said(ask, answer) for answer in (before, now)]
    return f"at temperature 0 it said {said[0]!r} then, {said[1]!r} now" * (said[0] != said[1])


def _said(ask: Request, answer: Answer) -> str:
    """The move, or else the words."""
    question = ask.question
    previous = question.moves[-1] if question.moves else None
    board = board_after(question.moves)
    move = move_in(answer.text, board, question.rules, previous=previous)
    return move.uci() if move else answer.text.strip()[:80]


async def _on_marks(asking: Client) -> list[str]:
    """Say once what the server says otherwise; services are mended without a new model."""
    notes, told = [], await _marks(asking.model)
    for name, value in told.items():
        known = asking.cache.fingerprints(name)
        if known and value not in known:
            was = " or ".join(sorted(known))
            notes.append(
                f"the server's {name} is {value}, and was {was} for the kept answers: if it is "
                f"another model now, {HOW_TO_GO_ON}"
            )
    asking.cache.save_fingerprints(told)
    return notes


async def _marks(model: Model) -> dict[str, str]:
    inner = model.inner if isinstance(model, ThinkingModel) else model
    return await inner.fingerprints() if isinstance(inner, ServerModel) else {}
