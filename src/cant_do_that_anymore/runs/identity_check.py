"""Check that a model is still the one whose answers are cached.

The user only gives a name and an address, and the provider decides which model is behind them. A
certain change stops the run, because cached answers of one model mixed with new answers of another
measure neither. A possible change becomes a note.
"""

import logging
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice

from ..client.budget import Budget
from ..client.client import Client
from ..client.session import create_model, model_info, open_client
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
from ..providers.request_variants import NO_TEMPERATURE
from ..task.samples import trials_of
from ..task.spec import Spec
from ..task.types import STANDARD_CONDITION, Plan
from .results import Run

log = logging.getLogger(__name__)

# Requests with their cached answers.
Answered = Sequence[tuple[Request, Answer]]
# Positions of a pool to search for one with a cached answer.
MAX_POSITIONS_SEARCHED = 200
# Maximum number of cached requests to send again.
MAX_PROBES = 5
# Differing answers that prove another model; a single one may be a near tie.
DIFFERENCES_TO_REJECT = 2
HOW_TO_GO_ON = (
    "--fresh measures what is there now and keeps nothing, --tag NAME keeps its answers apart"
)


class ModelChanged(UserError):
    """The name now stands for another model than the one whose answers are cached."""


async def verify_identity(
    spec: Spec, plan: Plan, source: Dataset | Pool, client: Client, *, quiet: bool
) -> list[str]:
    """Send the first cached request again, if there is one, and return notes on possible changes.

    Bundled models and people are not checked. If the model cannot be reached and no other request
    is needed, the cached answers remain valid.

    Raises:
        ModelChanged: if the model has certainly changed.
        UserError: if the model cannot be reached and more requests are needed.
    """
    if client.cache.is_empty or client.model.info.is_local:
        return []
    requests, settings = _first_requests(spec, plan, source, client.model)
    cached = _cached(requests, settings, client)
    return await _verify(cached, settings, spec, plan, client, quiet=quiet)


async def verify_identity_in(
    dataset: Dataset, spec: Spec, plan: Plan, client: Client, *, quiet: bool
) -> list[str]:
    """Verify the identity before measuring a dataset that some version of the model selected.

    Cached answers of the dataset's version need no check. Others may date from when the name stood
    for another model.
    """
    is_given = spec.dataset or spec.fallback_dataset or not dataset.version
    if is_given or client.model.info.is_local:
        return []
    requests = _measuring_requests(dataset.positions, plan)
    cached = _cached(requests, plan.settings, client, except_version=dataset.version)
    return await _verify(cached, plan.settings, spec, plan, client, quiet=quiet)


def check_identity(run: Run, spec: Spec, budget: Budget, *, quiet: bool) -> None:
    """Verify the identity before a saved run is reused for a spec.

    It compares the cached temperature-0 answers that selected the positions, or else the run's own
    answers. An unreachable model is not an error, because nothing else has to be sent. Possible
    changes are logged.

    Raises:
        ModelChanged: if the model has certainly changed.
    """
    if model_info(spec).is_local:
        return

    async def probed() -> list[str]:
        async with open_client(spec, create_model(spec), budget) as client:
            requests, settings = _first_requests(spec, run.plan, positions_for(spec), client.model)
            cached = _cached(requests, settings, client)
            versions = versions_of(run.samples)
            if any(answer.version not in versions for _, answer in cached) or not cached:
                positions = [sample.position for sample in run.samples]
                requests, settings = _measuring_requests(positions, run.plan), run.plan.settings
                replies = (sample.answers[STANDARD_CONDITION] for sample in run.samples)
                cached = [
                    pair for pair in zip(requests, replies, strict=False) if not pair[1].error
                ]
            if not cached:
                return []
            with progress_display(f"the first answer of {run.model}", quiet=quiet):
                return await _probe(cached[:MAX_PROBES], settings, client, versions)

    try:
        notes = run_interruptible(probed(), cached=not spec.fresh)
    except ModelChanged as changed:
        raise ModelChanged(f"{changed}, both with a new folder for --out") from None
    except Stopped:
        raise
    except (UserError, TransientError) as error:
        notes = [_unreachable_note(error)]
    for note in notes:
        log.warning("%s: %s", run.model, note)


async def _verify(
    cached: Answered, settings: Settings, spec: Spec, plan: Plan, client: Client, *, quiet: bool
) -> list[str]:
    if not cached:
        return []
    try:
        with progress_display(f"the first answer of {client.model.info.name}", quiet=quiet):
            versions = {answer.version for _, answer in cached}
            notes = await _probe(cached, settings, client, versions)
            return [*notes, *await _fingerprint_notes(client)]
    except ModelChanged:
        raise
    except (UserError, TransientError) as error:
        if not forecast_with_cache(spec, plan, client.model.info, client.cache).to_ask:
            return [_unreachable_note(error)]
        if isinstance(error, UserError):
            raise
        return []  # the run itself retries and reports


def _unreachable_note(error: Exception) -> str:
    return f"it could not be asked whether it is still the same model ({error})"


async def save_fingerprint(client: Client) -> None:
    """Save the server's fingerprint of the model with its cached answers."""
    if client.n_new:
        client.cache.record_fingerprints(await client.model.fingerprints())


def _first_requests(
    spec: Spec, plan: Plan, source: Dataset | Pool, model: Model
) -> tuple[Iterator[Request], Settings]:
    """Return the first requests of a run and their settings."""
    if isinstance(source, Pool):
        criteria = SelectionConfig(model.info, source, plan)
        numbers = range(min(MAX_POSITIONS_SEARCHED, len(criteria.ordered)))
        return (criteria.request(Query(number, 0)) for number in numbers), criteria.settings
    return _measuring_requests(positions_drawn(source, spec, plan), plan), plan.settings


def _measuring_requests(positions: Sequence[Position], plan: Plan) -> Iterator[Request]:
    """Yield the requests about positions, all under the baseline condition first."""
    trials = list(trials_of(positions))
    for condition in plan.conditions:
        for trial in trials:
            yield from trial.requests([condition])


def _cached(
    requests: Iterable[Request],
    settings: Settings,
    client: Client,
    except_version: str | None = None,
) -> Answered:
    """Return the first requests with a cached answer, except answers of one version."""
    looked_up = ((request, client.cache.answer(request, settings)) for request in requests)
    answered = (
        (request, answer)
        for request, answer in looked_up
        if answer and answer.version != except_version
    )
    return list(islice(answered, MAX_PROBES))


async def _probe(
    cached: Answered, settings: Settings, client: Client, versions: Collection[str]
) -> list[str]:
    """Send cached requests again and return a note if an answer differs; stop if several do.

    If the first answer is the same, the check ends there. A single cached request is sent twice.

    Raises:
        ModelChanged: if `DIFFERENCES_TO_REJECT` answers differ.
    """
    differences: list[str] = []
    for n_probes, (request, cached_answer) in enumerate(
        cached if len(cached) > 1 else [*cached] * DIFFERENCES_TO_REJECT, 1
    ):
        new_answer = await client.ask_uncached(request, settings, cached_answer.conceded)
        difference = _difference(request, cached_answer, new_answer, settings, versions)
        if not difference and n_probes == 1:
            return []
        differences += [difference] if difference else []
        if len(differences) == DIFFERENCES_TO_REJECT:
            raise ModelChanged(
                f"{client.model.info.name} is another model than the one whose answers are kept "
                f"({differences[-1]}); {HOW_TO_GO_ON}"
            )
    return [
        f"may be another model than the one whose answers are kept ({differences[0]}, once in "
        f"{n_probes} questions); {HOW_TO_GO_ON}"
    ]


def _difference(
    request: Request, before: Answer, now: Answer, settings: Settings, versions: Collection[str]
) -> str:
    """Describe how an answer differs from the cached one; "" if the same model can explain both.

    Some servers name another version with every answer; then versions are not compared.
    """
    if len(versions) == 1 and before.version and now.version and before.version != now.version:
        return f"{before.version!r} answered then, {now.version!r} does now"
    repeats = settings.temperature == 0 and NO_TEMPERATURE not in now.conceded
    if not repeats or before.is_thoughtful or now.is_thoughtful or now.error:
        return ""
    moves = [_move_or_text(request, answer) for answer in (before, now)]
    return f"at temperature 0 it said {moves[0]!r} then, {moves[1]!r} now" * (moves[0] != moves[1])


def _move_or_text(request: Request, answer: Answer) -> str:
    """Return the move in an answer, or else its text."""
    question = request.question
    previous = question.moves[-1] if question.moves else None
    board = board_after(question.moves)
    move = move_in(answer.text, board, question.rules, previous=previous)
    return move.uci() if move else answer.text.strip()[:80]


async def _fingerprint_notes(client: Client) -> list[str]:
    """Return a note once for every changed fingerprint of the server.

    A change is only a note, because servers are updated without a new model.
    """
    current = await client.model.fingerprints()
    return [
        f"the server's {name} is {current[name]}, and was {' or '.join(earlier)} for the kept "
        f"answers: if it is another model now, {HOW_TO_GO_ON}"
        for name, earlier in client.cache.record_fingerprints(current).items()
        if earlier
    ]
