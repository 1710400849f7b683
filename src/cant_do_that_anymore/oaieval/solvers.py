"""Solver names and registries of the original.

Ours::

    my-solver: {model: openai/gpt-4o, temperature: 0.5}

The original's ``class`` and ``args`` are understood for solvers that are one model and nothing
else, and for chain of thought.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from reprlib import repr as shortened
from typing import Any

import yaml

from ..errors import InvalidInput, error_reason, unknown_value
from ..game.position import DATA
from ..providers.base import Model
from ..providers.catalogue import OUR_MODELS, parse_name
from ..providers.chain_of_thought import THINKING_TOKENS
from ..providers.openai_api import TEXT_PREFIX

Fields = dict[str, Any]

_TYPES: dict[str, tuple[type, ...]] = {
    "model": (str,),
    "temperature": (int, float),
    "max_tokens": (int,),
    "thinking_tokens": (int,),
    "base_url": (str,),
    "reasoning_effort": (str,),
    "reasoning_tokens": (int,),
    "select_effort": (str,),
    "extra_body": (str, dict),
}
_PROVIDERS = {
    "OpenAISolver": "openai",
    "TogetherSolver": "together",
    "AnthropicSolver": "anthropic",
    "GeminiSolver": "google",
}
_THINKING_PARTS = ("cot_solver", "extract_solver")
_ARGUMENTS = {
    "OpenAISolver": {"completion_fn_options"},
    "TogetherSolver": {"completion_fn_options", "merge_adjacent_msgs"},
    "AnthropicSolver": {"model_name", "max_tokens", "extra_options"},
    "GeminiSolver": {"model_name"},
    "CoTSolver": {*_THINKING_PARTS, "persistent_memory", "private_interaction_length"},
    "HumanCliSolver": {"input_prompt"},
}
"""The original's solvers that have a counterpart here, and what they may be given."""
_HARMLESS = {"registry", "postprocessors"}
"""Arguments that change nothing here: replies are stripped, and read by one reader."""


def read_registry(path: Path) -> dict[str, object]:
    """The entries of a YAML file, or of those in a folder or in its folder ``solvers``.

    Raises:
        InvalidInput: naming the file, if one cannot be read.
    """
    if not path.is_dir():
        return _read_file(path)
    inner = path / "solvers"
    files = sorted((inner if inner.is_dir() else path).glob("*.yaml"))
    if not files:
        raise InvalidInput(f"the registry {str(path)!r} holds no solvers (*.yaml)")
    return {name: entry for file in files for name, entry in _read_file(file).items()}


def solver_fields(name: str, entry: object) -> Fields:
    """What an entry says of a solver: its model, and options for asking it.

    Raises:
        InvalidInput: if the entry is in neither shape.
    """
    fields = dict(_mapping(name, entry))
    if "class" in fields:
        fields = _translated(name, fields)
    for key, value in fields.items():
        if key not in _TYPES:
            raise InvalidInput(f"the solver {name!r} has {key!r}; it may have {', '.join(_TYPES)}")
        if not isinstance(value, _TYPES[key]) or isinstance(value, bool):
            raise InvalidInput(
                f"the solver {name!r} has a {key} that cannot be: {shortened(value)}"
            )
    if not fields.get("model"):
        raise InvalidInput(f"the solver {name!r} has no model")
    return fields


def _read_file(path: Path) -> dict[str, object]:
    try:
        entries = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (OSError, ValueError, yaml.YAMLError) as problem:
        raise InvalidInput(
            f"cannot read the registry {str(path)!r}: {error_reason(problem)}"
        ) from None
    if not isinstance(entries, dict):
        raise InvalidInput(f"the registry {str(path)!r} maps no names to solvers")
    return {str(name): entry for name, entry in entries.items()}


def _translated(name: str, entry: Fields) -> Fields:
    """Our fields for an entry in the original's shape."""
    kind = str(entry["class"]).rpartition(":")[2]
    if kind not in _ARGUMENTS:
        usable = ", ".join(sorted(_ARGUMENTS))
        raise InvalidInput(f"the solver {name!r} is a {kind}; usable here: {usable}")
    args = _mapping(name, entry.get("args") or {})
    for argument in args.keys() - _ARGUMENTS[kind] - _HARMLESS:
        raise InvalidInput(f"the solver {name!r} has {argument!r}, which has no meaning here")
    if kind == "HumanCliSolver":
        return {"model": "human"}
    if kind == "CoTSolver":
        return _thinking(name, args)
    options = _mapping(name, args.get("completion_fn_options", args))
    model = options.get("model", options.get("model_name", ""))
    limits = {"max_tokens": args["max_tokens"]} if "max_tokens" in args else {}
    extra = _mapping(name, options.get("extra_options") or {})
    return {"model": f"{_PROVIDERS[kind]}/{model}" if model else model, **limits, **extra}


def _thinking(name: str, args: Fields) -> Fields:
    thinker, replier = (solver_fields(name, args.get(part)) for part in _THINKING_PARTS)
    if thinker["model"] != replier["model"]:
        raise InvalidInput(f"the solver {name!r} thinks with one model and replies with another")
    tokens = {"thinking_tokens": thinker.get("max_tokens", THINKING_TOKENS)}
    return replier | tokens


def _mapping(name: str, value: object) -> Fields:
    if not isinstance(value, dict):
        raise InvalidInput(
            f"the solver {name!r} has {shortened(value)} where names and values belong"
        )
    return value


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
        name = parse_name(self.model, self.base_url)
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
