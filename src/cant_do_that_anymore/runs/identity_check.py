"""Check that a model is still the one whose answers are cached.

The user only gives a name and an address, and the provider decides which model is behind them. A
certain change stops the run, because cached answers of one model mixed with new answers of another
measure neither. A possible change becomes a note.
"""

import logging
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from itertools import islice

from ..client.client import Client
from ..client.pricing import CostLimit
from ..client.session import create_model, model_info, open_client
from ..datasets.pools import Pool, positions_drawn, positions_for
from ..datasets.search import SelectionConfig
from ..datasets.storage import Dataset
from ..errors import Stopped, UserError
from ..game.position import Position
from ..game.reader import move_in
from ..game.rules import board_after
from ..interrupts import run_interruptible
from ..metrics.notes import versions_of
from ..progress import progress_display
from ..providers.base import Answer, Request, Settings, TransientError
from ..providers.request_variants import NO_TEMPERATURE
from ..task.samples import trials_of
from ..task.spec import Spec
from ..task.types import STANDARD_CONDITION, Plan
from .cost import expected_cost
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
# How often a request with a differing answer is sent again, to see if the model is deterministic.
REPEATS = 2
HOW_TO_CONTINUE = "use --fresh to ignore the cache, or --tag NAME to cache its answers separately"


class ModelChanged(UserError):
    """The model behind this name has changed since its answers were cached."""


async def verify_identity(
    spec: Spec, plan: Plan, source: Pool | Dataset | Run, client: Client, *, quiet: bool
) -> list[str]:
    """Send a request with a known answer again, and return notes on possible changes.

    Bundled models and people are not checked. If the model cannot be reached and no other request
    is needed, the known answers remain valid.

    Args:
        spec: the spec of the run.
        plan: its plan.
        source: what is about to be used: the pool or dataset of the spec, a dataset that the model
            selected, or a saved run.
        client: sends the request.
        quiet: whether to show no progress.

    Raises:
        ModelChanged: if the model has certainly changed.
        UserError: if the model cannot be reached and more requests are needed.
    """
    is_run = isinstance(source, Run)
    if client.model.info.is_local or (client.cache.is_empty and not is_run):
        return []
    answered, settings, versions = _answered(spec, plan, source, client)
    if not answered:
        return []
    try:
        with progress_display(f"contacting {client.model.info.name}", quiet=quiet):
            notes = await _probe(answered, settings, client, versions)
            return notes if is_run else [*notes, *await _fingerprint_notes(client)]
    except (ModelChanged, Stopped):
        raise
    except (UserError, TransientError) as error:
        if is_run or not expected_cost(spec, plan, client.model.info, client.cache).requests:
            return [_unreachable(error)]
        if isinstance(error, UserError):
            raise
        return []  # the run itself retries and reports


def verify_saved_run(run: Run, spec: Spec, limit: CostLimit, *, quiet: bool) -> None:
    """Verify the identity before a saved run is reused for a spec, and log possible changes.

    Raises:
        ModelChanged: if the model has certainly changed.
    """

    async def verified() -> list[str]:
        async with open_client(spec, create_model(spec), limit) as client:
            return await verify_identity(spec, run.plan, run, client, quiet=quiet)

    if model_info(spec).is_local:
        return
    try:
        notes = run_interruptible(verified(), cached=not spec.fresh)
    except ModelChanged as changed:
        raise ModelChanged(f"{changed}. Either way, give --out a new folder") from None
    except Stopped:
        raise
    except UserError as error:  # nothing else has to be sent
        notes = [_unreachable(error)]
    for note in notes:
        log.warning("%s: %s", run.model, note)


def _unreachable(error: Exception) -> str:
    return f"could not check whether the model has changed ({error})"


def _answered(
    spec: Spec, plan: Plan, source: Pool | Dataset | Run, client: Client
) -> tuple[Answered, Settings, Collection[str]]:
    """Return some requests with known answers, their settings, and the versions that answered.

    For a selected dataset, they are those that another version answered, when the name may have
    stood for another model. For a run, they are its own, unless the cache has answers from the
    selection by the same versions, which were given at temperature 0.
    """
    if isinstance(source, Run):
        versions = versions_of(source.samples)
        cached, settings, cached_versions = _answered(spec, plan, positions_for(spec), client)
        if cached and set(cached_versions) <= set(versions):
            return cached, settings, versions
        requests = _measuring_requests([sample.position for sample in source.samples], plan)
        replies = (sample.answers[STANDARD_CONDITION] for sample in source.samples)
        pairs = (pair for pair in zip(requests, replies, strict=False) if not pair[1].error)
        return list(islice(pairs, MAX_PROBES)), plan.settings, versions
    settings, selected_by = plan.settings, None
    if isinstance(source, Pool):
        config = SelectionConfig(client.model.info, source, plan)
        numbers = range(min(MAX_POSITIONS_SEARCHED, len(config.ordered)))
        requests = (config.request(number) for number in numbers)
        settings = config.settings
    elif spec.dataset or not source.version:  # it was not selected by the model
        requests = _measuring_requests(positions_drawn(source, spec), plan)
    else:
        requests, selected_by = _measuring_requests(source.positions, plan), source.version
    cache = ((request, client.cache.answer(request, settings)) for request in requests)
    others = ((ask, answer) for ask, answer in cache if answer and answer.version != selected_by)
    answered = list(islice(others, MAX_PROBES))
    return answered, settings, {answer.version for _, answer in answered}


def _measuring_requests(positions: Sequence[Position], plan: Plan) -> Iterator[Request]:
    """Yield the requests about positions, all under the baseline condition first."""
    trials = list(trials_of(positions))
    for condition in plan.conditions:
        for trial in trials:
            yield from trial.requests([condition])


async def _probe(
    cached: Answered, settings: Settings, client: Client, versions: Collection[str]
) -> list[str]:
    """Send cached requests again and return a note if an answer differs; stop if several do.

    If the first answer is the same, the check ends there. A single cached request is sent twice. A
    model that contradicts itself is not deterministic, so its answers cannot show a change.

    Raises:
        ModelChanged: if `DIFFERENCES_TO_REJECT` answers differ and the model repeats them.
    """
    differing: list[tuple[Request, Answer]] = []
    first_difference = ""
    probes = cached if len(cached) > 1 else [*cached] * DIFFERENCES_TO_REJECT
    for request, cached_answer in probes:
        new = await client.ask_uncached(request, settings, cached_answer.conceded)
        renamed = _other_version(cached_answer, new, versions)
        difference = renamed or _other_move(request, cached_answer, new, settings)
        if not difference and not differing:
            return []
        if not difference:
            continue
        first_difference = first_difference or difference
        differing.append((request, new))
        if len(differing) == DIFFERENCES_TO_REJECT:
            if not renamed and (moves := await _contradiction(differing, settings, client)):
                return [
                    f"is not deterministic at temperature 0: it answered {' and '.join(moves)} to "
                    "the same request, so it cannot be checked for changes since its answers were "
                    "cached"
                ]
            raise ModelChanged(
                f"{client.model.info.name} seems to have changed since its answers were cached "
                f"({difference}); {HOW_TO_CONTINUE}"
            )
    return [
        f"may have changed since its answers were cached ({first_difference}, once in "
        f"{len(probes)} requests); {HOW_TO_CONTINUE}"
    ]


async def _contradiction(differing: Answered, settings: Settings, client: Client) -> list[str]:
    """Send requests again until the answers to one differ, and return these; or else nothing."""
    moves: defaultdict[str, set[str]] = defaultdict(set)
    for request, answer in differing:
        moves[request.id].add(_move_or_text(request, answer))
    # One request is repeated in a row, because some servers alternate.
    for request, answer in (pair for pair in differing[::-1] for _ in range(REPEATS)):
        same = moves[request.id]
        if len(same) == 1:
            again = await client.ask_uncached(request, settings, answer.conceded)
            same |= set() if again.error else {_move_or_text(request, again)}
        if len(same) > 1:
            return sorted(map(repr, same))
    return []


def _other_version(before: Answer, now: Answer, versions: Collection[str]) -> str:
    """Describe a change of the version; "" if there is none.

    Some servers name another version with every answer; then versions are not compared.
    """
    if len(versions) == 1 and before.version and now.version and before.version != now.version:
        return f"the version was {before.version!r}, now {now.version!r}"
    return ""


def _other_move(request: Request, before: Answer, now: Answer, settings: Settings) -> str:
    """Describe another move at temperature 0; "" if the same model can explain both answers."""
    repeats = settings.temperature == 0 and NO_TEMPERATURE not in now.conceded
    has_no_reply = now.error or (now.stop_reason == "length" and not now.text.strip())
    if not repeats or before.has_reasoning or now.has_reasoning or has_no_reply:
        return ""
    moves = [_move_or_text(request, answer) for answer in (before, now)]
    return f"its temperature-0 answer was {moves[0]!r}, now {moves[1]!r}" * (moves[0] != moves[1])


def _move_or_text(request: Request, answer: Answer) -> str:
    """Return the move in an answer, or else its text."""
    question = request.question
    move = move_in(answer.text, board_after(question.moves), question.rules)
    return move.uci() if move else answer.text.strip()[:80]


async def _fingerprint_notes(client: Client) -> list[str]:
    """Return a note once for every changed fingerprint of the server.

    A change is only a note, because servers are updated without a new model.
    """
    current = await client.model.fingerprints()
    return [
        f"the server's {name} is {current[name]}, but was {' or '.join(earlier)} for the cached "
        f"answers; if the model has changed, {HOW_TO_CONTINUE}"
        for name, earlier in client.cache.record_fingerprints(current).items()
        if earlier
    ]
