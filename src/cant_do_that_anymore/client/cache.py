"""Cache keys, and the cached answers and request variants of one model."""

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
    model: ModelInfo, request: Request, settings: Settings, variant: RequestVariant = ()
) -> str:
    """Digest of everything that can change an answer, and of which repetition it is."""
    return cache_key(variant_digest(model, settings, variant), request)


def variant_digest(model: ModelInfo, settings: Settings, variant: RequestVariant) -> str:
    """Digest of the model, the settings and the request variant."""
    return digest([dict(model.identity), sorted(variant), settings.non_defaults])


def cache_key(variant_key: str, request: Request) -> str:
    """Return the cache key of a request in a variant."""
    return sha256(f"{variant_key} {request.id}".encode()).hexdigest()


def with_request_seed(model: ModelInfo, request: Request, settings: Settings) -> Settings:
    """Return the settings with a seed derived from the request, stable across versions.

    A remote model gets the settings unchanged, since seeds are not sent to servers.
    """
    if model.endpoint:
        return settings
    parts = [model.name, model.endpoint, _texts(request), settings.temperature, settings.max_tokens]
    parts += [settings.seed, request.purpose, request.draw]
    return replace(settings, seed=int(digest(parts)[:12], 16))


class CachedVariant(NamedTuple):
    """Settings and request variant that have cached answers, with their token limit and digest."""

    settings: Settings
    variant: RequestVariant
    limit: int
    name: str


class ModelCache:
    """The cached answers of one model, and the request variant that it accepts.

    A variant holds for one reasoning effort: a model may support temperature only when it does not
    reason.
    """

    def __init__(self, model: ModelInfo, store: Store) -> None:
        self._model = model
        self._store = store
        self._variants: dict[str, RequestVariant] = {}
        self._mode_key = cache(self._digest_of_mode)
        self._cached_variants = cache(self._find_cached_variants)
        self._cached_variant = cache(self._describe_variant)
        self._recorded: set[tuple[Settings, RequestVariant]] = set()

    @property
    def is_empty(self) -> bool:
        """Whether the store was empty when opened and nothing was saved since."""
        return self._store.is_empty

    def variant(self, settings: Settings) -> RequestVariant:
        """Return the request variant that the model accepts, as far as known."""
        mode = self._mode(settings)
        if mode not in self._variants:
            self._variants[mode] = self._store.variant(mode)
        return self._variants[mode]

    def set_variant(self, settings: Settings, variant: RequestVariant) -> None:
        """Use that request variant from now on."""
        if set(variant) != set(self.variant(settings)):
            self._variants[self._mode(settings)] = variant
            self._store.set_variant(self._mode(settings), variant)

    def answer(self, request: Request, settings: Settings) -> Answer | None:
        """Return the cached answer, or one that a smaller token limit did not truncate."""
        if self.is_empty:  # saves computing keys
            return None
        cached_variants = self.cached_variants(settings)
        for cached in cached_variants:
            smaller = cached.limit < cached_variants[0].limit
            if request.same_limit_only and smaller:
                return None
            if saved := self._store.get(cache_key(cached.name, request)):
                return None if smaller and saved.stop_reason == "length" else saved
        return None

    def had_truncation(self, requests: Iterable[Request], settings: Settings) -> bool:
        """Whether the next smaller token limit truncated the answer to any of the requests."""
        cached_variants = self.cached_variants(settings)
        smaller_limits = [
            cached.name for cached in cached_variants if cached.limit < cached_variants[0].limit
        ]
        for request in requests if smaller_limits else ():
            keys = (cache_key(cached, request) for cached in smaller_limits)
            saved = next(filter(None, map(self._store.get, keys)), None)
            if saved and saved.stop_reason == "length":
                return True
        return False

    async def save(self, request: Request, settings: Settings, answer: Answer) -> Answer:
        """Save the answer under the variant in which it was requested.

        Returns the saved answer: another process may have saved one first.
        """
        self.record_variant(settings, answer.conceded)
        key = cache_key(self._cached_variant(settings, answer.conceded).name, request)
        is_first = await self._store.put(key, self._model.name, answer)
        return answer if is_first else self._store.get(key) or answer

    def record_variant(self, settings: Settings, variant: RequestVariant) -> None:
        """Record that answers exist in that request variant."""
        if (settings, variant) not in self._recorded:
            recorded = [settings.max_tokens, settings.reasoning_tokens, *sorted(variant)]
            self._store.record_variant(self._mode(settings), json.dumps(recorded))
            self._recorded.add((settings, variant))

    def fingerprints(self, name: str) -> set[str]:
        """Return the fingerprints saved under that name with earlier answers."""
        rows = self._store.run(
            "SELECT mark FROM marks WHERE model = ?", self._fingerprint_key(name)
        )
        return {fingerprint for (fingerprint,) in rows}

    def save_fingerprints(self, fingerprints: Mapping[str, str]) -> None:
        """Save the server's fingerprints by name."""
        for name, fingerprint in fingerprints.items():
            self._store.run(
                "INSERT OR IGNORE INTO marks VALUES (?, ?)",
                self._fingerprint_key(name),
                fingerprint,
            )

    def _fingerprint_key(self, name: str) -> str:
        return digest([dict(self._model.identity), name])

    def variants(self, settings: Settings) -> list[RequestVariant]:
        """Return the request variants used with these settings, the current one first."""
        return [
            cached.variant
            for cached in self.cached_variants(settings)
            if cached.settings == settings
        ]

    def cached_variants(self, settings: Settings) -> list[CachedVariant]:
        """Return the variants with cached answers: the current one, then by decreasing token limit.

        A larger limit counts only if the user did not set a smaller one: the reasoning budget is
        our choice.
        """
        return self._cached_variants(
            settings, self.variant(settings), *self._store.cached_variants(self._mode(settings))
        )

    def _find_cached_variants(
        self, settings: Settings, variant: RequestVariant, *recorded: str
    ) -> list[CachedVariant]:
        first = self._cached_variant(settings, variant)
        others = []
        for text in recorded:
            max_tokens, reasoning_tokens, *conceded = json.loads(text)
            other = replace(settings, max_tokens=max_tokens, reasoning_tokens=reasoning_tokens)
            if (other, set(conceded)) != (settings, set(variant)):
                others.append(self._cached_variant(other, tuple(conceded)))
        others.sort(key=lambda cached: -cached.limit)
        fitting = (
            cached
            for cached in others
            if cached.settings == settings or cached.limit <= first.limit
        )
        return [first, *fitting]

    def _describe_variant(self, settings: Settings, variant: RequestVariant) -> CachedVariant:
        name = variant_digest(self._model, settings, variant)
        return CachedVariant(settings, variant, limit_of(variant, settings), name)

    def _mode(self, settings: Settings) -> str:
        return self._mode_key(settings.reasoning_effort, settings.extra_body)

    def _digest_of_mode(self, effort: Effort | None, extra_body: str) -> str:
        return digest([dict(self._model.identity), effort, extra_body])
