"""A question to be asked, and the key that its answer is kept under."""

import json
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from typing import Literal

from ..game.rules import identity_of
from .model import Form, Known, Question, Settings

Purpose = Literal["selection", "measuring"]


@dataclass(frozen=True)
class Ask:
    """A question to be asked for a purpose under a condition.

    Attributes:
        draw: tells repeated askings apart.
        anew: whether only an answer under the same token limit will do.
    """

    question: Question
    purpose: Purpose
    condition: str
    draw: int = 0
    same_limit_only: bool = False

    @cached_property
    def id(self) -> str:
        """A name for what is asked, and for which of its answers is meant.

        The rules in force belong to it for models that cannot read; the change itself does not, so
        that a question under the standard rules has one answer, whatever change it is asked for.
        """
        rules = identity_of(self.question.rules)
        return digest([_texts(self), rules, self.purpose, self.condition, self.draw])


def key_of(model: Known, ask: Ask, settings: Settings, form: Form = ()) -> str:
    """A digest of everything that can change the answer, and of which answer is meant."""
    return key_in(way_of(model, settings, form), ask)


def way_of(model: Known, settings: Settings, form: Form) -> str:
    """A name for who is asked, with which settings and in which form."""
    return digest([dict(model.identity), sorted(form), settings.non_defaults])


def key_in(way: str, ask: Ask) -> str:
    """The key of what is asked in that way."""
    return sha256(f"{way} {ask.id}".encode()).hexdigest()


def seeded(model: Known, ask: Ask, settings: Settings) -> Settings:
    """The settings with a seed that belongs to one question alone, the same in every version.

    Where there is an address, nobody sees the seed.
    """
    if model.endpoint:
        return settings
    parts = [model.name, model.endpoint, _texts(ask), settings.temperature, settings.max_tokens]
    parts += [settings.seed, ask.purpose, ask.draw]
    return replace(settings, seed=int(digest(parts)[:12], 16))


def _texts(ask: Ask) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in ask.question.messages]


def digest(value: object) -> str:
    """A name for any plain value."""
    return sha256(json.dumps(value).encode()).hexdigest()
