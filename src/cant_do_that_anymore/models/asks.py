"""A question to be asked, and the key that its answer is kept under."""

from dataclasses import replace
from hashlib import sha256

from ..providers.base import ModelInfo, Request, RequestVariant, Settings, _texts, digest


def key_of(model: ModelInfo, ask: Request, settings: Settings, form: RequestVariant = ()) -> str:
    """A digest of everything that can change the answer, and of which answer is meant."""
    return key_in(way_of(model, settings, form), ask)


def way_of(model: ModelInfo, settings: Settings, form: RequestVariant) -> str:
    """A name for who is asked, with which settings and in which form."""
    return digest([dict(model.identity), sorted(form), settings.non_defaults])


def key_in(way: str, ask: Request) -> str:
    """The key of what is asked in that way."""
    return sha256(f"{way} {ask.id}".encode()).hexdigest()


def seeded(model: ModelInfo, ask: Request, settings: Settings) -> Settings:
    """The settings with a seed that belongs to one question alone, the same in every version.

    Where there is an address, nobody sees the seed.
    """
    if model.endpoint:
        return settings
    parts = [model.name, model.endpoint, _texts(ask), settings.temperature, settings.max_tokens]
    parts += [settings.seed, ask.purpose, ask.draw]
    return replace(settings, seed=int(digest(parts)[:12], 16))
