"""Cache keys, and the cached answers and request variant of one model."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from hashlib import sha256
from typing import NamedTuple

from ..providers.base import (
    Answer,
    Effort,
    ModelInfo,
    Request,
    RequestVariant,
    Settings,
    _texts,
    digest,
)
from ..providers.request_variants import limit_of
from .store import Store


def request_key(
    model: ModelInfo, ask: Request, settings: Settings, form: RequestVariant = ()
) -> str:
    """A digest of everything that can change the answer, and of which answer is meant."""
    return cache_key(variant_digest(model, settings, form), ask)


def variant_digest(model: ModelInfo, settings: Settings, form: RequestVariant) -> str:
    """A name for who is asked, with which settings and in which form."""
    return digest([dict(model.identity), sorted(form), settings.non_defaults])


def cache_key(way: str, ask: Request) -> str:
    """The key of what is asked in that way."""
    return sha256(f"{way} {ask.id}".encode()).hexdigest()


def with_request_seed(model: ModelInfo, ask: Request, settings: Settings) -> Settings:
    """The settings with a seed that belongs to one question alone, the same in every version.

    Where there is an address, nobody sees the seed.
    """
    if model.endpoint:
        return settings
    parts = [model.name, model.endpoint, _texts(ask), settings.temperature, settings.max_tokens]
    parts += [settings.seed, ask.purpose, ask.draw]
    return replace(settings, seed=int(digest(parts)[:12], 16))


class CachedVariant(NamedTuple):
    """One in which the model was asked: the settings, the form, the token limit, and a name."""

    settings: Settings
    form: RequestVariant
    limit: int
    name: str


class ModelCache:
    """The answers of one model in a store, and the form in which it wants its questions.

    What is learnt of a model holds for one effort, since it may take a temperature only when it
    does not think.
    """

    def __init__(self, model: ModelInfo, store: Store) -> None:
        self._model = model
        self._store = store
        self._forms: dict[str, RequestVariant] = {}
        self._named = cache(self._mode_of)
        self._ways = cache(self._ways_of)
        self._way = cache(self._way_of)
        self._noted: set[tuple[Settings, RequestVariant]] = set()

    @property
    def is_empty(self) -> bool:
        """Whether nothing was kept when the store was opened, and nothing has been since."""
        return self._store.is_empty

    def form(self, settings: Settings) -> RequestVariant:
        """The form in which the model wants its questions, as far as known."""
        mode = self._mode(settings)
        if mode not in self._forms:
            self._forms[mode] = self._store.form(mode)
        return self._forms[mode]

    def set_variant(self, settings: Settings, form: RequestVariant) -> None:
        """Use that form from now on."""
        if set(form) != set(self.form(settings)):
            self._forms[self._mode(settings)] = form
            self._store.learn(self._mode(settings), form)

    def answer(self, ask: Request, settings: Settings) -> Answer | None:
        """The answer under this limit, or else one that a smaller limit did not cut off."""
        if self.is_empty:  # then no key is worth computing
            return None
        ways = self.ways(settings)
        for way in ways:
            smaller = way.limit < ways[0].limit
            if ask.same_limit_only and smaller:
                return None
            if saved := self._store.get(cache_key(way.name, ask)):
                return None if smaller and saved.stop_reason == "length" else saved
        return None

    def had_truncation(self, asks: Iterable[Request], settings: Settings) -> bool:
        """Whether the next smaller limit has cut off the answer to any of the questions."""
        ways = self.ways(settings)
        smaller = [way.name for way in ways if way.limit < ways[0].limit]
        for ask in asks if smaller else ():
            keys = (cache_key(way, ask) for way in smaller)
            saved = next(filter(None, map(self._store.get, keys)), None)
            if saved and saved.stop_reason == "length":
                return True
        return False

    async def save(self, ask: Request, settings: Settings, answer: Answer) -> Answer:
        """Keep the answer, by the form in which it was asked.

        Returns the answer that is kept: another process may have been first.
        """
        self.note(settings, answer.conceded)
        key = cache_key(self._way(settings, answer.conceded).name, ask)
        is_first = await self._store.put(key, self._model.name, answer)
        return answer if is_first else self._store.get(key) or answer

    def note(self, settings: Settings, form: RequestVariant) -> None:
        """Remember that it was asked in that form."""
        if (settings, form) not in self._noted:
            way = [settings.max_tokens, settings.reasoning_tokens, *sorted(form)]
            self._store.note_way(self._mode(settings), json.dumps(way))
            self._noted.add((settings, form))

    def fingerprints(self, name: str) -> set[str]:
        """What the server said under that name when answers of the model were kept."""
        known = self._store.run("SELECT mark FROM marks WHERE model = ?", self._whose(name))
        return {mark for (mark,) in known}

    def save_fingerprints(self, told: Mapping[str, str]) -> None:
        """Keep what it says, by name."""
        for name, mark in told.items():
            self._store.run("INSERT OR IGNORE INTO marks VALUES (?, ?)", self._whose(name), mark)

    def _whose(self, mark: str) -> str:
        return digest([dict(self._model.identity), mark])

    def forms(self, settings: Settings) -> list[RequestVariant]:
        """The forms in which it was asked with these settings, the one that is known first."""
        return [way.form for way in self.ways(settings) if way.settings == settings]

    def ways(self, settings: Settings) -> list[CachedVariant]:
        """How the model was asked until now, as it is now first, then from the largest limit down.

        A larger limit counts only if the user did not ask for a smaller one: room to think is ours
        to give.
        """
        return self._ways(settings, self.form(settings), *self._store.ways(self._mode(settings)))

    def _ways_of(
        self, settings: Settings, form: RequestVariant, *noted: str
    ) -> list[CachedVariant]:
        first = self._way(settings, form)
        others = []
        for way in noted:
            max_tokens, reasoning_tokens, *conceded = json.loads(way)
            other = replace(settings, max_tokens=max_tokens, reasoning_tokens=reasoning_tokens)
            if (other, set(conceded)) != (settings, set(form)):
                others.append(self._way(other, tuple(conceded)))
        others.sort(key=lambda way: -way.limit)
        fitting = (way for way in others if way.settings == settings or way.limit <= first.limit)
        return [first, *fitting]

    def _way_of(self, settings: Settings, form: RequestVariant) -> CachedVariant:
        name = variant_digest(self._model, settings, form)
        return CachedVariant(settings, form, limit_of(form, settings), name)

    def _mode(self, settings: Settings) -> str:
        return self._named(settings.reasoning_effort, settings.extra_body)

    def _mode_of(self, effort: Effort | None, extra_body: str) -> str:
        return digest([dict(self._model.identity), effort, extra_body])
