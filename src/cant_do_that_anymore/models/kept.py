"""What is kept of one model: its answers, and the form in which it wants its questions."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache

from .asks import Ask, digest, key_of
from .concessions import limit_of
from .model import Answer, Form, Known, Settings
from .store import Store


class Kept:
    """The answers of one model in a store, and the form in which it wants its questions.

    What is learnt of a model holds for one effort, since it may take a temperature only when it
    does not think.
    """

    def __init__(self, model: Known, store: Store) -> None:
        self._model = model
        self._store = store
        self._forms: dict[str, Form] = {}
        self._mode = cache(self._mode_of)
        self._has_some = False

    def form(self, settings: Settings) -> Form:
        """The form in which the model wants its questions, as far as known."""
        mode = self._mode(settings)
        if mode not in self._forms:
            self._forms[mode] = self._store.form(mode)
        return self._forms[mode]

    def learnt(self, settings: Settings, form: Form) -> None:
        """Use that form from now on."""
        if set(form) != set(self.form(settings)):
            self._forms[self._mode(settings)] = form
            self._store.learn(self._mode(settings), form)

    def answer(self, ask: Ask, settings: Settings) -> Answer | None:
        """The answer under this limit, or else one that a smaller limit did not cut off."""
        if self._has_none():
            return None
        limit = limit_of(self.form(settings), settings)
        for other, form in self._ways(settings):
            smaller = limit_of(form, other) < limit
            if ask.anew and smaller:
                return None
            if saved := self._store.get(key_of(self._model, ask, other, form)):
                return None if smaller and saved.stop_reason == "length" else saved
        return None

    def _has_none(self) -> bool:
        """Whether the store has no answer at all, of any model: then no key is worth computing."""
        if not self._has_some:
            self._has_some = bool(self._store.run("SELECT 1 FROM saved_answers LIMIT 1"))
        return not self._has_some

    def was_cut_off(self, asks: Iterable[Ask], settings: Settings) -> bool:
        """Whether the next smaller limit has cut off the answer to any of the questions."""
        limit = limit_of(self.form(settings), settings)
        smaller = [way for way in self._ways(settings) if limit_of(way[1], way[0]) < limit]
        for ask in asks if smaller else ():
            keys = (key_of(self._model, ask, *way) for way in smaller)
            saved = next(filter(None, map(self._store.get, keys)), None)
            if saved and saved.stop_reason == "length":
                return True
        return False

    async def save(self, ask: Ask, settings: Settings, answer: Answer) -> Answer:
        """Keep the answer, by the form in which it was asked.

        Returns the answer that is kept: another process may have been first.
        """
        self.note(settings, answer.conceded)
        key = key_of(self._model, ask, settings, answer.conceded)
        is_first = await self._store.put(key, self._model.name, answer)
        return answer if is_first else self._store.get(key) or answer

    def note(self, settings: Settings, form: Form) -> None:
        """Remember that it was asked in that form."""
        way = [settings.max_tokens, settings.reasoning_tokens, *sorted(form)]
        self._store.note_way(self._mode(settings), json.dumps(way))

    def forms(self, settings: Settings) -> list[Form]:
        """The forms in which it was asked with these settings, the one that is known first."""
        return [form for other, form in self._ways(settings) if other == settings]

    def _ways(self, settings: Settings) -> Iterator[tuple[Settings, Form]]:
        """How the model was asked until now, as it is now first, then from the largest limit down.

        A larger limit counts only if the user did not ask for a smaller one: room to think is ours
        to give.
        """
        form = self.form(settings)
        yield settings, form
        others = []
        for way in self._store.ways(self._mode(settings)):
            max_tokens, reasoning_tokens, *conceded = json.loads(way)
            other = replace(settings, max_tokens=max_tokens, reasoning_tokens=reasoning_tokens)
            if (other, set(conceded)) != (settings, set(form)):
                others.append((other, tuple(conceded)))
        limit = limit_of(form, settings)
        others.sort(key=lambda way: -limit_of(way[1], way[0]))
        yield from (
            way for way in others if way[0] == settings or limit_of(way[1], way[0]) <= limit
        )

    def _mode_of(self, settings: Settings) -> str:
        asked = settings.reasoning_effort, settings.extra_body
        return digest([dict(self._model.identity), *asked])
