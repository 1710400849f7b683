"""Registries: YAML files that name solvers, in our shape or in the original's.

Ours::

    my-solver: {model: openai/gpt-4o, temperature: 0.5}

The original's ``class`` and ``args`` are understood for solvers that are one model and nothing
else, and for chain of thought.
"""

from pathlib import Path
from reprlib import repr as shortened
from typing import Any

import yaml

from ..errors import InvalidInput, error_reason
from ..providers.chain_of_thought import THINKING_TOKENS

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
