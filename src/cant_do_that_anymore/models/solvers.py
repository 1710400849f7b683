"""Solver names, as the original's users write them: ``generation/direct/gpt-4`` and the like."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml

from ..errors import InvalidInput, unknown_value
from ..game.position import DATA
from ..providers.base import Model
from ..providers.catalogue import OUR_MODELS, parsed
from ..providers.chain_of_thought import THINKING_TOKENS
from ..providers.openai_api import TEXT_PREFIX
from .registry import read_registry, solver_fields

DIRECT, THINKING, BASE = "generation/direct/", "generation/cot/", "chess/generation/direct/"


@dataclass(frozen=True)
class Solver:
    """A model and how to ask it.

    Attributes:
        name: the solver's name, as it was given.
        model: its model, as ``cdta run --model`` names it.
        settings: how to ask it, by field of the spec of a run.
        thinking_tokens: how much it may think before it replies; None for as its name says.
        base_url: the address of the server that has the model, where one was given.
    """

    name: str
    model: str
    thinking_tokens: int | None = None
    base_url: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def load(self) -> Model:
        """The model, ready to be asked.

        Raises:
            InvalidInput: if there is no such model, or a key is missing.
        """
        name = parsed(self.model, self.base_url)
        return replace(name, thinking_tokens=self.thinking_tokens or name.thinking_tokens).load()


def solver_named(name: str, registries: Sequence[Path] = (), base_url: str | None = None) -> Solver:
    """The solver that goes by ``name``.

    Args:
        name: a name of a registry or of the table ``data/solvers.yaml``, ``generation/direct/M``
            or ``generation/cot/M``, or any model name of ``cdta run --model``.
        registries: YAML files, or folders of them, with more solvers.
        base_url: the server that has the model, which then goes by the name the server knows.

    Raises:
        InvalidInput: if there is no such solver, or a registry cannot be read.
    """
    table = yaml.safe_load((DATA / "solvers.yaml").read_text(encoding="utf-8"))
    own = {key: entry for path in registries for key, entry in read_registry(path).items()}
    if base_url and not _fitting(name, own):
        return _served(name, base_url)
    solvers = own | {key: entry for key, entry in table["solvers"].items() if key not in own}
    if name.endswith("/"):
        raise _unknown(name, solvers, table["models"])
    if pattern := _fitting(name, solvers):
        fields = solver_fields(name, solvers[pattern])
        own_url = fields.pop("base_url", None)
        return Solver(
            name,
            model=_filled(fields.pop("model"), pattern, name),
            thinking_tokens=fields.pop("thinking_tokens", None),
            base_url=base_url or own_url,
            settings=fields,
        )
    model, thinking_tokens = _split(name)
    if model != name or "/" not in name:
        if pattern := _fitting(model, table["models"]):
            model = _filled(table["models"][pattern], pattern, model)
            return Solver(name, model, thinking_tokens=thinking_tokens)
        if name not in OUR_MODELS:
            raise _unknown(name, solvers, table["models"])
    if get_close_matches(name.split("/")[0], ("generation", "chess"), cutoff=0.7):
        raise _unknown(name, solvers, table["models"])
    return Solver(name, name)


def _served(name: str, base_url: str) -> Solver:
    if name.startswith(BASE):
        return Solver(name, TEXT_PREFIX + name.removeprefix(BASE), base_url=base_url)
    model, thinking_tokens = _split(name)
    return Solver(name, model, thinking_tokens=thinking_tokens, base_url=base_url)


def _split(name: str) -> tuple[str, int | None]:
    """The model in a solver's name, and how much it may think."""
    if name.startswith(THINKING):
        return name.removeprefix(THINKING), THINKING_TOKENS
    return name.removeprefix(DIRECT), None


def _fitting(name: str, patterns: Iterable[str]) -> str | None:
    return next((pattern for pattern in patterns if _compiled(pattern).fullmatch(name)), None)


def _filled(model: str, pattern: str, name: str) -> str:
    """The model's name with what the pattern's stars stand for in place of its own."""
    match = _compiled(pattern).fullmatch(name)
    for part in match.groups() if match else ():
        model = model.replace("*", part, 1)
    return model


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(re.escape(pattern).replace(r"\*", "(.*)"))


def _unknown(name: str, solvers: Iterable[str], models: Iterable[str]) -> InvalidInput:
    model = name.split("/")[-1]
    modes = (DIRECT, THINKING)
    meant = [mode + model for mode in modes] if _fitting(model, models) else []
    return unknown_value(
        "solver", name, [*solvers, *meant, *(DIRECT + pattern for pattern in models)]
    )
