"""Cache keys, and the cached answers and request variants of one model."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from hashlib import sha256
from typing import Any, NamedTuple

from ..providers.base import (
    Answer,
    ModelInfo,
    Request,
    RequestVariant,
    Settings,
    digest,
    prompt_texts,
)
from ..providers.request_variants import limit_of
from .store import Store, open_store

# The seed of a bundled model's answer depends on this number or on the request's own token limit,
# if that is larger. It does not depend on the limit of the run.
SEED_TOKENS = 16
# A longer text or reasoning is cut: scoring tens of megabytes again takes minutes.
MAX_CHARACTERS = 1_000_000


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

    A remote model gets the settings unchanged, unless the user wants seeds sent to it.
    """
    if model.endpoint and not settings.server_seed:
        return settings
    parts = [model.name, model.endpoint, prompt_texts(request), settings.temperature]
    parts += [max(SEED_TOKENS, request.tokens), settings.seed, request.purpose, request.draw]
    digits = 12 if model.is_local else 7  # servers take 31 bits
    return replace(settings, seed=int(digest(parts)[:digits], 16))


class CachedVariant(NamedTuple):
    """Settings and request variant that have cached answers, with their token limit and digest."""

    settings: Settings
    variant: RequestVariant
    limit: int
    digest: str


class ModelCache:
    """The cached answers of one model, the request variant that it accepts, its fingerprints.

    A variant holds for one reasoning effort: a model may support temperature only when it does not
    reason.
    """

    def __init__(self, model: ModelInfo, store: Store) -> None:
        self._model = model
        self._store = store
        self._variants: dict[str, RequestVariant] = {}
        self._effort_key_of = cache(self._effort_key)
        self._used = cache(self._find_used)
        self._cached_variants = cache(self._find_cached_variants)
        self._cached_variant = cache(self._describe_variant)

    @property
    def is_empty(self) -> bool:
        """Whether the store was empty when opened and nothing was saved since."""
        return self._store.is_empty

    def variant(self, settings: Settings) -> RequestVariant:
        """Return the request variant that the model accepts, as far as known."""
        mode = self._effort_key_of(settings)
        if mode not in self._variants:
            self._variants[mode] = tuple(self._store.get("variant", mode) or ())
        return self._variants[mode]

    def set_variant(self, settings: Settings, variant: RequestVariant) -> None:
        """Use that request variant from now on."""
        if set(variant) != set(self.variant(settings)):
            self._variants[self._effort_key_of(settings)] = variant
            self._store.write("variant", {self._effort_key_of(settings): variant})

    def answer(self, request: Request, settings: Settings) -> Answer | None:
        """Return the cached answer, or one that a smaller token limit did not truncate."""
        if self.is_empty:  # saves computing keys
            return None
        cached_variants = self.cached_variants(request.settings(settings))
        for cached in cached_variants:
            smaller = cached.limit < cached_variants[0].limit
            if request.same_limit_only and smaller:
                return None
            if saved := self._get(cache_key(cached.digest, request)):
                return None if smaller and saved.stop_reason == "length" else saved
        return None

    def same_limit_if_cut(self, related: Iterable[Request], settings: Settings) -> list[Request]:
        """Return the requests; answers of other limits no longer count if one was truncated.

        That is, if the next smaller token limit truncated the answer to any of the requests.
        """
        requests = list(related)
        for request in requests:
            first, *others = self.cached_variants(request.settings(settings))
            smaller_limits = (cached.digest for cached in others if cached.limit < first.limit)
            keys = (cache_key(digest, request) for digest in smaller_limits)
            saved = next(filter(None, map(self._get, keys)), None)
            if saved and saved.stop_reason == "length":
                return [replace(request, same_limit_only=True) for request in requests]
        return requests

    async def save(self, request: Request, settings: Settings, answer: Answer) -> Answer:
        """Save the answer under the variant in which it was requested, cut if it is very long.

        Returns the saved answer: another process may have saved one first.
        """
        answer = _cut(answer)
        self.record_variant(settings, answer.conceded)
        key = cache_key(self._cached_variant(settings, answer.conceded).digest, request)
        is_first = await self._store.put(key, answer.to_json() | {"seconds": answer.seconds})
        return answer if is_first else self._get(key) or answer

    def record_variant(self, settings: Settings, variant: RequestVariant) -> None:
        """Record that answers exist in that request variant."""
        mode = self._effort_key_of(settings)
        used = settings.max_tokens, settings.reasoning_tokens, *sorted(variant)
        if used not in self._used(mode):
            self._store.write("used variant", {f"{mode} {json.dumps(used)}": used})
            self._used(mode).append(used)

    def record_fingerprints(self, fingerprints: Mapping[str, str]) -> dict[str, list[str]]:
        """Save a server's fingerprints by name. Returns the earlier ones of each that is new."""
        earlier_ones = {}
        for name, value in fingerprints.items():
            group = digest([dict(self._model.identity), name])
            earlier = self._store.group("fingerprint", group)
            if value not in earlier:
                earlier_ones[name] = sorted(earlier)
                self._store.write("fingerprint", {f"{group} {digest(value)}": value})
        return earlier_ones

    def variants(self, settings: Settings) -> list[RequestVariant]:
        """Return the request variants used with these settings, the current one first."""
        cached_variants = self.cached_variants(settings)
        return [cached.variant for cached in cached_variants if cached.settings == settings]

    def cached_variants(self, settings: Settings) -> list[CachedVariant]:
        """Return the variants with cached answers: the current one, then by decreasing token limit.

        A larger limit counts only if the user did not set a smaller one: the reasoning budget is
        our choice.
        """
        used = self._used(self._effort_key_of(settings))
        return self._cached_variants(settings, self.variant(settings), *used)

    def _find_cached_variants(
        self, settings: Settings, variant: RequestVariant, *used: tuple[Any, ...]
    ) -> list[CachedVariant]:
        first, others = self._cached_variant(settings, variant), []
        for max_tokens, reasoning_tokens, *conceded in used:
            other = replace(settings, max_tokens=max_tokens, reasoning_tokens=reasoning_tokens)
            cached = self._cached_variant(other, tuple(conceded))
            fits = other == settings or cached.limit <= first.limit
            if fits and cached.digest != first.digest:
                others.append(cached)
        return [first, *sorted(others, key=lambda cached: -cached.limit)]

    def _describe_variant(self, settings: Settings, variant: RequestVariant) -> CachedVariant:
        name = variant_digest(self._model, settings, variant)
        return CachedVariant(settings, variant, limit_of(variant, settings), name)

    def _get(self, key: str) -> Answer | None:
        saved = self._store.get("answer", key)
        return Answer.from_json(saved) if saved else None

    def _find_used(self, mode: str) -> list[tuple[Any, ...]]:
        return [*map(tuple, self._store.group("used variant", mode))]

    def _effort_key(self, settings: Settings) -> str:
        identity = dict(self._model.identity)
        return digest([identity, settings.reasoning_effort, settings.extra_body])


def _cut(answer: Answer) -> Answer:
    if max(len(answer.text), len(answer.reasoning)) <= MAX_CHARACTERS:
        return answer
    text, reasoning = answer.text[:MAX_CHARACTERS], answer.reasoning[:MAX_CHARACTERS]
    stop_reason = answer.stop_reason if text == answer.text else "length"
    return replace(answer, text=text, reasoning=reasoning, stop_reason=stop_reason)


@contextmanager
def open_cache(model: ModelInfo, *, fresh: bool = False) -> Iterator[ModelCache]:
    """Open the cached answers of a model to read them, or an empty cache for a fresh run."""
    with open_store(fresh=fresh, to_read=True) as store:
        yield ModelCache(model, store)
