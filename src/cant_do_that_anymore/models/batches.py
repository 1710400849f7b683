"""Batches from the first byte to the last answer: made once, followed for hours, found again.

Whatever happens on the way, the ledger knows what was sent: a batch whose making was not heard of
is looked for before it is made again, and its results can be fetched as often as it takes.
"""

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import TypeVar

from ..errors import Incomplete, Interrupted, UserError, pluralize
from ..progress import duration
from ..providers.base import Answer, RequestRejected, RequestVariant, TransientError
from .asking import PATIENCE, Tell, pause
from .batch_api import BatchApi, NoBatches, State
from .ledger import LONGEST_BATCH, Ledger

log = logging.getLogger(__name__)

LOOKS = 7
"""So often something is looked for before it is given up for lost."""
FIRST_POLL, LONGEST_POLL, SLOWER = 0.5, 60.0, 1.5
"""In seconds, and how quickly the one becomes the other."""

T = TypeVar("T")
StoppedWithin = Callable[[float], Awaitable[bool]]
"""Waits so many seconds, or until all is stopped: says whether it was."""


@dataclass(frozen=True)
class Ended:
    """What came of a batch.

    Attributes:
        results: an answer, or what went wrong, by key; a key that is missing was not answered.
        fault: why not, in words.
        paid: whether what is missing may have been paid.
    """

    results: Mapping[str, Answer | Exception]
    fault: str
    paid: bool


class Batches:
    """The batches of one model.

    Attributes:
        under_way: the id of the batch that is being followed; "" if none is.
    """

    def __init__(self, api: BatchApi, ledger: Ledger, stopped_within: StoppedWithin) -> None:
        self.under_way = ""
        self._api = api
        self._ledger = ledger
        self._stopped_within = stopped_within

    async def make(
        self,
        lines: Mapping[str, bytes],
        forms: Mapping[str, RequestVariant],
        are_wanted: Callable[[], bool],
    ) -> str | None:
        """Make a batch of requests by key; gives its file.

        None if not all of them are wanted any more, or another process has sent one of them.

        Raises:
            Incomplete: if the server is in trouble for long.
            UserError: if it takes no batches, or not this one.
        """
        file = await self._patiently(partial(self._api.upload, lines.values()))
        async with self._ledger.exclusive():
            if not (are_wanted() and self._ledger.enter(file, forms)):
                return None
            await self._make_of(file, may_exist=False)
        return file

    async def follow(
        self, file: str, forms: Mapping[str, RequestVariant], tell: Tell
    ) -> Ended | None:
        """Wait for the end of the batch of a file, and keep its answers; None if we are stopped.

        Args:
            file: its id.
            forms: the forms of the questions that are waited for, by key.
            tell: is told how far it is.
        """
        batch = self._ledger.batch_of(file)
        if not batch:  # whoever was about to make it did not live to tell
            async with self._ledger.exclusive():
                batch = self._ledger.batch_of(file) or await self._make_of(file, may_exist=True)
        self.under_way = batch
        forms = {**self._ledger.forms_in(file), **forms}
        told = partial(self._tell, tell, len(forms))
        state = await self._last_state(batch, told)
        if state and not state.has_ended:
            return None
        results = await self._results(state, forms) if state else {}
        answers = {key: each for key, each in results.items() if isinstance(each, Answer)}
        self._ledger.ended(file, answers)
        self.under_way = ""
        if not state:
            log.warning(
                "the batch %s with %s is not known there any more; what it held is asked again",
                *(batch, pluralize(len(forms), "question")),
            )
        status = state.status if state else "lost"
        fault = (state and state.fault) or f"nothing came of it in a batch that is {status}"
        return Ended(results, fault, paid=status == "completed")

    async def _make_of(self, file: str, *, may_exist: bool) -> str:
        """Make the batch of a file, unless it exists; after any doubt that is looked up first."""

        async def found_or_made() -> str:
            nonlocal may_exist
            found = await self._found(file) if may_exist else None
            may_exist = True
            return found or await self._made(file)

        try:
            batch = await self._patiently(found_or_made)
        except Incomplete:
            if await self._is_absent(file):
                self._ledger.ended(file, {})
            raise
        self._ledger.made(file, batch)
        return batch

    async def _made(self, file: str) -> str:
        try:
            return await self._api.create(file)
        except UserError:  # it was not taken, and will not be
            self._ledger.ended(file, {})
            raise

    async def _found(self, file: str) -> str | None:
        try:
            return await self._api.find(file)
        except NoBatches as problem:
            log.warning("it cannot be looked up whether a batch was sent before (%s)", problem)
            return None

    async def _is_absent(self, file: str) -> bool:
        """Whether the server knows for sure that no batch was made of a file."""
        try:
            return await self._api.find(file) is None
        except (TransientError, UserError):
            return False

    async def _last_state(self, batch: str, tell: Callable[[State], None]) -> State | None:
        """The state when the batch has ended or we are stopped; None if there is no such batch."""
        started, wait = time.monotonic(), FIRST_POLL
        while True:
            state = await self._if_there(partial(self._api.state, batch))
            if not state or state.has_ended:
                return state
            tell(state)
            if time.monotonic() - started > LONGEST_BATCH:
                raise Incomplete(
                    f"the batch {batch} has not ended in {duration(LONGEST_BATCH)}; cancel it "
                    "where it runs, and run the same command again to take what there is of it"
                )
            if await self._stopped_within(wait):
                return state
            wait = min(LONGEST_POLL, wait * SLOWER)

    @staticmethod
    def _tell(tell: Tell, total: int, state: State) -> None:
        failed = f", {state.failed:,} failed" if state.failed else ""
        status = state.status.replace("_", " ")
        tell(f"batch {status}: {state.done:,} of {state.total or total:,} answered{failed}")

    async def _results(
        self, state: State, forms: Mapping[str, RequestVariant]
    ) -> dict[str, Answer | Exception]:
        """What is in the files of a batch by key; where it says two things, the answer counts."""
        results: dict[str, Answer | Exception] = {}
        for file in state.files:
            found = await self._if_there(partial(self._api.results, file))
            if found is None:
                log.warning("the results in %s are lost; what they held is asked again", file)
            for result in found or ():
                key = result["custom_id"]
                if key not in forms or isinstance(results.get(key), Answer):
                    continue
                try:
                    results[key] = self._api.answer_in(result, forms[key])
                except (RequestRejected, TransientError, UserError) as fault:
                    results[key] = fault
        return results

    async def _if_there(self, call: Callable[[], Awaitable[T | None]]) -> T | None:
        """What a call gives; what is not there at once may be so soon."""
        for tries in range(LOOKS):
            found = await self._patiently(call)
            if found is not None:
                return found
            if await self._stopped_within(pause(tries, None)):
                raise _out_of_reach("stopped")
        return None

    async def _patiently(self, call: Callable[[], Awaitable[T]]) -> T:
        """What a call gives, however often it fails, as long as there is hope."""
        started = time.monotonic()
        for tries in count():
            try:
                return await call()
            except TransientError as fault:
                stopped = await self._stopped_within(pause(tries, fault.retry_after))
                if stopped or time.monotonic() - started > PATIENCE:
                    raise _out_of_reach(str(fault)) from None
        raise AssertionError("there is always another try")


def _out_of_reach(why: str) -> Interrupted:
    return Interrupted(f"the batches cannot be reached ({why})", "what was sent goes on there")
