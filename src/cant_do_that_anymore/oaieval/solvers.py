"""Solver names and YAML registries of the original.

An entry of a registry names a model and its options::

    my-solver: {model: openai/gpt-4o, temperature: 0.5}

Entries with the original's ``class`` and ``args`` work for solvers that only call one model, and
for chain of thought.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from reprlib import repr as shortened
from typing import Any

import yaml

from ..errors import InvalidInput, unknown_value
from ..files import file_errors
from ..game.position import DATA
from ..providers.base import Model
from ..providers.catalog import BUILT_IN_MODELS, TEXT_PREFIX, parse_name
from ..providers.chain_of_thought import THINKING_TOKENS
from ..task.spec import OPTIONS, validate_option
from ..validation import check

Fields = dict[str, Any]

# Options that the command has arguments, flags or variables for, and that the original lacks.
_NOT_COMPLETION_ARGS = {
    *("model", "eval", "n", "seed", "max_connections", "fresh", "ask_above"),
    *("tag", "header", "rules", "pool", "dataset", "diagnose", "precision", "max_error_rate"),
    *("price", "batch", "draws", "plies", "form", "interventions"),
}
_FIRST = ("wording", "reading", "temperature", "max_tokens", "base_url", "max_cost", "keep_looking")
# Options of `cdta run`, those that users of the original need first.
COMPLETION_ARGS = (
    *_FIRST,
    *(name for name in OPTIONS if name not in _NOT_COMPLETION_ARGS | {*_FIRST}),
)
_PROVIDERS = {
    "OpenAISolver": "openai",
    "TogetherSolver": "together",
    "AnthropicSolver": "anthropic",
    "GeminiSolver": "google",
}
_COT_PARTS = ("cot_solver", "extract_solver")
# The original's solvers that have a counterpart here, with the arguments they may have.
_ARGUMENTS = {
    "OpenAISolver": {"completion_fn_options"},
    "TogetherSolver": {"completion_fn_options", "merge_adjacent_msgs"},
    "AnthropicSolver": {"model_name", "max_tokens", "extra_options"},
    "GeminiSolver": {"model_name"},
    "CoTSolver": {*_COT_PARTS, "persistent_memory", "private_interaction_length"},
    "HumanCliSolver": {"input_prompt"},
}
# Arguments that have no effect here: replies are always stripped, and parsed by one parser.
_IGNORED = {"registry", "postprocessors"}


def read_registry(path: Path) -> dict[str, object]:
    """Read the entries of a YAML file, or of all files in a folder or its folder ``solvers``.

    Raises:
        InvalidInput: if a file cannot be read.
    """
    if not path.is_dir():
        return _read_file(path)
    inner = path / "solvers"
    files = sorted((inner if inner.is_dir() else path).glob("*.yaml"))
    if not files:
        raise InvalidInput(f"the registry {str(path)!r} contains no solvers (*.yaml)")
    return {name: entry for file in files for name, entry in _read_file(file).items()}


def solver_fields(name: str, entry: object) -> Fields:
    """Return the model and the options of a registry entry.

    Raises:
        InvalidInput: if the entry has neither our format nor the original's.
    """
    fields = dict(_mapping(name, entry))
    if "class" in fields:
        fields = _translate(name, fields)
    valid = ("model", "thinking_tokens", *COMPLETION_ARGS)
    for key, value in fields.items():
        if key not in valid:
            raise InvalidInput(
                f"the solver {name!r} has {key!r}; valid keys are {', '.join(valid)}"
            )
        try:
            fields[key] = (
                check(int, value, key) if key == "thinking_tokens" else validate_option(key, value)
            )
        except InvalidInput as problem:
            raise InvalidInput(f"in the solver {name!r}, {problem}") from None
    if not fields.get("model"):
        raise InvalidInput(f"the solver {name!r} has no model")
    return fields


def _read_file(path: Path) -> dict[str, object]:
    caught = OSError, ValueError, yaml.YAMLError
    with file_errors("read the registry", path, error=InvalidInput, caught=caught):
        entries = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    if not isinstance(entries, dict):
        raise InvalidInput(f"the registry {str(path)!r} does not map names to solvers")
    return {str(name): entry for name, entry in entries.items()}


def _translate(name: str, entry: Fields) -> Fields:
    """Translate an entry in the original's format into ours."""
    kind = str(entry["class"]).rpartition(":")[2]
    if kind not in _ARGUMENTS:
        usable = ", ".join(sorted(_ARGUMENTS))
        raise InvalidInput(f"the solver {name!r} is a {kind}; usable here: {usable}")
    args = _mapping(name, entry.get("args") or {})
    for argument in args.keys() - _ARGUMENTS[kind] - _IGNORED:
        raise InvalidInput(f"the solver {name!r} has {argument!r}, which is not supported here")
    if kind == "HumanCliSolver":
        return {"model": "human"}
    if kind == "CoTSolver":
        return _chain_of_thought(name, args)
    options = _mapping(name, args.get("completion_fn_options", args))
    model = options.get("model", options.get("model_name", ""))
    limits = {"max_tokens": args["max_tokens"]} if "max_tokens" in args else {}
    extra = _mapping(name, options.get("extra_options") or {})
    return {"model": f"{_PROVIDERS[kind]}/{model}" if model else model, **limits, **extra}


def _chain_of_thought(name: str, args: Fields) -> Fields:
    thinker, replier = (solver_fields(name, args.get(part)) for part in _COT_PARTS)
    if thinker["model"] != replier["model"]:
        raise InvalidInput(
            f"the solver {name!r} reasons with one model and replies with another; use one model"
        )
    tokens = {"thinking_tokens": thinker.get("max_tokens", THINKING_TOKENS)}
    return replier | tokens


def _mapping(name: str, value: object) -> Fields:
    if not isinstance(value, dict):
        raise InvalidInput(
            f"the solver {name!r} has {shortened(value)} instead of a table of names and values"
        )
    return value


DIRECT, COT, BASE = "generation/direct/", "generation/cot/", "chess/generation/direct/"


@dataclass(frozen=True)
class Solver:
    """A model with its settings.

    Attributes:
        name: the name of the solver.
        model: the name of its model, as in ``cdta run --model``.
        settings: fields of the spec of a run.
        thinking_tokens: the token limit of its chain of thought; None for that of the model name.
        base_url: the address of the model's server, if any.
    """

    name: str
    model: str
    thinking_tokens: int | None = None
    base_url: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def load(self) -> Model:
        """Create the model.

        Raises:
            InvalidInput: if there is no such model or its key is missing.
        """
        name = parse_name(self.model, self.base_url)
        return replace(name, thinking_tokens=self.thinking_tokens or name.thinking_tokens).load()


def solver_named(name: str, registries: Sequence[Path] = (), base_url: str | None = None) -> Solver:
    """Return the solver of this name.

    Args:
        name: a name of a registry or of the table ``data/solvers.yaml``, ``generation/direct/M``
            or ``generation/cot/M``, or any model name of ``cdta run --model``.
        registries: YAML files, or folders of them, with more solvers.
        base_url: the model's server, which then defines the name of the model.

    Raises:
        InvalidInput: if there is no such solver, or a registry cannot be read.
    """
    table = yaml.safe_load((DATA / "solvers.yaml").read_text(encoding="utf-8"))
    custom = {key: entry for path in registries for key, entry in read_registry(path).items()}
    if base_url and not _matching_pattern(name, custom):
        return _server_solver(name, base_url)
    solvers = custom | {key: entry for key, entry in table["solvers"].items() if key not in custom}
    if name.endswith("/"):
        raise _unknown(name, solvers, table["models"])
    if pattern := _matching_pattern(name, solvers):
        fields = solver_fields(name, solvers[pattern])
        own_url = fields.pop("base_url", None)
        return Solver(
            name,
            model=_fill_stars(fields.pop("model"), pattern, name),
            thinking_tokens=fields.pop("thinking_tokens", None),
            base_url=base_url or own_url,
            settings=fields,
        )
    model, thinking_tokens = _split(name)
    if model != name or "/" not in name:
        if pattern := _matching_pattern(model, table["models"]):
            model = _fill_stars(table["models"][pattern], pattern, model)
            return Solver(name, model, thinking_tokens=thinking_tokens)
        if name not in BUILT_IN_MODELS:
            raise _unknown(name, solvers, table["models"])
    if get_close_matches(name.split("/")[0], ("generation", "chess"), cutoff=0.7):
        raise _unknown(name, solvers, table["models"])
    return Solver(name, name)


def _server_solver(name: str, base_url: str) -> Solver:
    if name.startswith(BASE):
        return Solver(name, TEXT_PREFIX + name.removeprefix(BASE), base_url=base_url)
    model, thinking_tokens = _split(name)
    return Solver(name, model, thinking_tokens=thinking_tokens, base_url=base_url)


def _split(name: str) -> tuple[str, int | None]:
    """Return the model in a solver's name, and the token limit of its chain of thought."""
    if name.startswith(COT):
        return name.removeprefix(COT), THINKING_TOKENS
    return name.removeprefix(DIRECT), None


def _matching_pattern(name: str, patterns: Iterable[str]) -> str | None:
    return next((pattern for pattern in patterns if _regex(pattern).fullmatch(name)), None)


def _fill_stars(model: str, pattern: str, name: str) -> str:
    """Replace the stars of a model name by what the stars of the pattern match."""
    match = _regex(pattern).fullmatch(name)
    for part in match.groups() if match else ():
        model = model.replace("*", part, 1)
    return model


def _regex(pattern: str) -> re.Pattern[str]:
    return re.compile(re.escape(pattern).replace(r"\*", "(.*)"))


def _unknown(name: str, solvers: Iterable[str], models: Iterable[str]) -> InvalidInput:
    model = name.split("/")[-1]
    modes = (DIRECT, COT)
    suggestions = [mode + model for mode in modes] if _matching_pattern(model, models) else []
    return unknown_value(
        "solver", name, [*solvers, *suggestions, *(DIRECT + pattern for pattern in models)]
    )
