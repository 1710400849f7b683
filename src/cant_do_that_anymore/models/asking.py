"""Many questions to one model: many at once, patiently, and each answer on disk before it counts.

Answers come back in the order of the questions, so nothing depends on which arrived first.
"""

import asyncio
import json
import logging
import random
import time
from collections import deque
from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Literal

from ..errors import Problem, Unfinished
from .model import Answer, Model, Passing, Question, Settings
from .pressure import Pressure
from .store import Store

log = logging.getLogger(__name__)

TRIES = 7
FIRST_WAIT = 0.5
LONGEST_WAIT = 30.0
OVERLOAD_PATIENCE = 1800.0
"""How many seconds a question waits for a server that says it is overloaded."""
FAILURES_IN_A_ROW = 10
"""So many questions without an answer, and none answered between them: the model is gone."""

Purpose = Literal["selection", "measuring"]


@dataclass(frozen=True)
class Ask:
    """A question to be asked for a purpose; ``draw`` tells repeated askings apart."""

    question: Question
    purpose: Purpose
    draw: int = 0


def key_of(model: Model, ask: Ask, settings: Settings) -> str:
    """A digest of everything that can change the answer."""
    messages = [(message.role, message.content) for message in ask.question.messages]
    parts = [model.name, model.endpoint, messages, settings.temperature, settings.max_tokens]
    parts += [settings.seed, ask.purpose, ask.draw]
    return sha256(json.dumps(parts).encode()).hexdigest()


class Asking:
    """Asks one model, through one store, with a limited number of questions in flight."""

    def __init__(self, model: Model, store: Store, connections: int | None = None) -> None:
        self.model = model
        most = connections or model.connections
        self._store = store
        self._open_questions = asyncio.Semaphore(most)
        self._pressure = Pressure(most)
        self._stopping = asyncio.Event()
        self._failures_in_a_row = 0
        self._saved = 0
        self._problem: Problem | None = None

    async def answers(self, asks: Iterable[Ask], settings: Settings) -> AsyncGenerator[Answer]:
        """Ask, and yield the answers in the order of the questions.

        When the consumer stops early, or is cancelled, no new question is begun; those in flight
        are finished and saved.

        Raises:
            Unfinished: if the model stops answering; all answers so far are saved.
            Problem: if the model cannot answer at all, or answers cannot be saved.
        """
        self._stopping.clear()
        begun: deque[asyncio.Future[Answer]] = deque()
        try:
            for ask in asks:
                begun.append(await self._begin(ask, settings))
                while begun and begun[0].done():
                    yield begun.popleft().result()
                if self._problem:
                    raise self._problem
            while begun:
                yield await asyncio.shield(begun[0])
                begun.popleft()
        except asyncio.CancelledError:
            log.warning("finishing the questions in flight; press Ctrl-C again to stop at once")
            raise
        finally:
            self._stopping.set()
            await asyncio.gather(*begun, return_exceptions=True)

    async def _begin(self, ask: Ask, settings: Settings) -> "asyncio.Future[Answer]":
        key = key_of(self.model, ask, settings)
        saved = self._store.get(key)
        if saved:
            known = asyncio.get_running_loop().create_future()
            known.set_result(saved)
            return known
        await self._open_questions.acquire()
        task = asyncio.create_task(self._answered(key, ask.question, settings))
        task.add_done_callback(lambda _: self._open_questions.release())
        return task

    async def _answered(self, key: str, question: Question, settings: Settings) -> Answer:
        own_seed = replace(settings, seed=int(key[:12], 16))
        try:
            answer = await self._patiently_asked(question, own_seed)
            if answer.stop_reason == "error":
                self._count_failure(answer.error)
            else:
                self._failures_in_a_row = 0
                await self._store.put(key, self.model.name, answer)
                self._saved += 1
        except Problem as problem:
            self._problem = problem
            self._stopping.set()
            raise
        return answer

    async def _patiently_asked(self, question: Question, settings: Settings) -> Answer:
        """One answer, after as many tries as it takes or as make sense."""
        started, tries = time.monotonic(), 0
        while True:
            try:
                async with self._pressure:
                    answer = await self.model.answer(question, settings)
                self._pressure.rise()
                return answer
            except Passing as fault:
                if fault.overloaded:
                    self._pressure.fall(fault.retry_after)
                    out_of_patience = time.monotonic() - started > OVERLOAD_PATIENCE
                else:
                    out_of_patience = tries + 1 >= TRIES
                if out_of_patience or await self._stopped_within(_wait(tries, fault.retry_after)):
                    return Answer("", stop_reason="error", error=str(fault))
                tries += 1

    async def _stopped_within(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._stopping.wait(), seconds)
        except TimeoutError:
            return False
        return True

    def _count_failure(self, error: str) -> None:
        self._failures_in_a_row += 1
        if self._failures_in_a_row >= FAILURES_IN_A_ROW and not self._stopping.is_set():
            raise Unfinished(
                f"{self.model.name} stopped answering ({error}); the {self._saved} answers of this "
                "session are saved, run the same command again to go on"
            )


def _wait(tries: int, retry_after: float | None) -> float:
    """Exponential back-off with jitter, but never less than the other side asked for."""
    backoff = min(LONGEST_WAIT, FIRST_WAIT * 2.0**tries) * random.uniform(0.5, 1)
    return max(backoff, retry_after or 0)
