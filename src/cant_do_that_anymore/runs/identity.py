"""Check that the model behind a server of one's own is still the one whose answers are cached.

Versions are compared by the client. But a server of one's own may serve other weights under the
same name, and there it costs nothing to send some requests again.
"""

from collections.abc import Iterator
from itertools import islice

from ..client.client import Client
from ..client.pricing import price_for
from ..datasets.search import SelectionConfig
from ..datasets.storage import Dataset
from ..errors import UserError
from ..habits.base import Item, Pool
from ..providers.base import Answer
from ..providers.request_fields import NO_TEMPERATURE
from ..task.spec import Spec
from ..task.types import Plan

# Cached requests that are sent again, and how many of their answers prove another model by being
# different. A single one may be a near tie.
PROBES, DIFFERENCES_TO_REJECT = 3, 2
# Items of a pool to search for cached answers.
MAX_ITEMS_SEARCHED = 200


async def check_identity(spec: Spec, plan: Plan, source: Dataset | Pool, client: Client) -> None:
    """Send some cached requests at temperature 0 again, on a server of one's own without a price.

    If it does not answer, nothing is checked: the run itself reports that.

    Raises:
        UserError: if two answers differ.
    """
    info = client.model.info
    if not spec.base_url or price_for(spec, info) or not isinstance(source, Pool):
        return
    config = SelectionConfig(info, source, plan)
    differences: list[str] = []
    for item, cached in islice(_cached(config, client), PROBES):
        try:
            now = await client.ask(config.request(item), config.settings, fresh=True)
        except UserError:
            return
        if now.error:
            return
        if now.version == cached.version and not now.shows_reasoning:
            before, after = (_choice(config, item, answer) for answer in (cached, now))
            differences += [f"{before!r}, now {after!r}"] * (before != after)
        if len(differences) == DIFFERENCES_TO_REJECT:
            raise UserError(
                f"{client.model.info.name} has changed, or is not deterministic at temperature 0 "
                f"(its answer was {differences[0]}); use --fresh, or --tag NAME for a new cache"
            )


def _cached(config: SelectionConfig, client: Client) -> Iterator[tuple[Item, Answer]]:
    """Yield items of the pool with the cached answers about them, if these can be repeated."""
    for item in config.ordered[:MAX_ITEMS_SEARCHED]:
        answer = client.cache.answer(config.request(item), config.settings)
        if answer and NO_TEMPERATURE not in answer.adjustments and not answer.shows_reasoning:
            yield item, answer


def _choice(config: SelectionConfig, item: Item, answer: Answer) -> str:
    """Return what an answer says, or else its text."""
    return config.score(answer, item).answer or answer.text.strip()[:80]
