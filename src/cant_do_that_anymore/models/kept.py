"""The answers of one model that are kept from before."""

from collections.abc import Iterable
from dataclasses import replace

from .asks import Ask, digest, key_of
from .model import Answer, Known, Settings
from .store import Store


class Kept:
    """The answers of one model in a store, and the form in which it wants its questions."""

    def __init__(self, model: Known, store: Store) -> None:
        self._model = model
        self._store = store
        self._identity = digest(dict(model.identity))
        model.conceded = store.conceded_to(self._identity)

    def answer(self, ask: Ask, settings: Settings) -> Answer | None:
        """The answer under this limit, or else one that a smaller limit did not cut off."""
        saved = self._in_any_form(ask, settings)
        if saved or ask.anew:
            return saved
        shorter = self._shorter(ask, settings)
        return shorter if shorter and shorter.stop_reason != "length" else None

    def was_cut_off(self, asks: Iterable[Ask], settings: Settings) -> bool:
        """Whether the next smaller limit has cut off the answer to any of the questions."""
        shorter = (self._shorter(ask, settings) for ask in asks)
        return any(answer.stop_reason == "length" for answer in shorter if answer)

    async def save(self, ask: Ask, settings: Settings, answer: Answer) -> Answer:
        """Keep the answer under the form in which it was asked, and the form for next time.

        Returns the answer that is kept: another process may have been first.
        """
        if answer.conceded:
            self._store.concede(self._identity, answer.conceded)
        self._store.note_limit(self._identity, settings.max_tokens)
        key = key_of(self._model, ask, settings, answer.conceded)
        is_first = await self._store.put(key, self._model.name, answer)
        return answer if is_first else self._store.get(key) or answer

    def _shorter(self, ask: Ask, settings: Settings) -> Answer | None:
        """The answer under the next smaller limit, which no still smaller one may change."""
        smaller = (n for n in self._store.limits(self._identity) if n < settings.max_tokens)
        for limit in sorted(smaller, reverse=True):
            if answer := self._in_any_form(ask, replace(settings, max_tokens=limit)):
                return answer
        return None

    def _in_any_form(self, ask: Ask, settings: Settings) -> Answer | None:
        """The answer in the form that the model wants, or in one before that was learnt."""
        form = self._model.conceded
        for known in range(len(form), -1, -1):
            if answer := self._store.get(key_of(self._model, ask, settings, form[:known])):
                return answer
        return None
