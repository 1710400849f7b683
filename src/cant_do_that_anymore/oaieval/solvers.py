"""Solver names and YAML registries of the original, and its solver at the terminal.

An entry of a registry names a model and its options::

    my-solver: {model: openai/gpt-4o, temperature: 0.5}

Entries with the original's ``class`` and ``args`` work for solvers that only call one model, and
for chain of thought.
"""

import re
import signal
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from reprlib import repr as shortened
from typing import Any, TypeVar

import yaml

from ..errors import InvalidInput, Stopped, unknown_value
from ..files import DATA, file_errors
from ..providers.base import Answer, Model, Question, Settings, local_info
from ..providers.catalog import BUILT_IN_MODELS, TEXT_PREFIX
from ..providers.chain_of_thought import THINKING_TOKENS
from ..task.spec import OPTIONS, validate_option

Fields = dict[str, Any]
T = TypeVar("T")


class HumanCli(Model):
    """A person at the terminal: prints the messages and takes the typed line as the reply."""

    info = local_info("human_cli", connections=1)

    async def answer(self, question: Question, settings: Settings) -> Answer:
        """Wait for a line; nothing else has to run meanwhile.

        Raises:
            Stopped: on Ctrl-D or Ctrl-C.
        """
        signal.signal(signal.SIGINT, signal.default_int_handler)  # asyncio's would not end input()
        try:
            turns = [f"{message.role}: {message.content}" for message in question.messages]
            return Answer(input("\n".join([*turns, "assistant (you): "])), version=self.info.name)
        except (EOFError, KeyboardInterrupt):
            raise Stopped from None


# Options that the command has arguments, flags or variables for, and that the original lacks.
_NOT_COMPLETION_ARGS = {
    *("model", "eval", "n", "seed", "max_connections", "fresh"),
    *("tag", "header", "rules", "pool", "dataset", "diagnose"),
    "interventions",
}
# Options of `cdta run`.
COMPLETION_ARGS = tuple(name for name in OPTIONS if name not in _NOT_COMPLETION_ARGS)
_PROVIDERS = {
    "OpenAISolver": "openai",
    "TogetherSolver": "together",
    "AnthropicSolver": "anthropic",
    "GeminiSolver": "google",
}
_COT_PARTS = ("cot_solver", "extract_solver")
# The original's solvers that have a counterpart here, and the arguments they may have.
_COT_SOLVER, _HUMAN_SOLVER = "CoTSolver", "HumanCliSolver"
_CLASSES = (*_PROVIDERS, _COT_SOLVER, _HUMAN_SOLVER)
_ARGUMENTS = {
    *("completion_fn_options", "model", "model_name", "api_base", "max_tokens", "extra_options"),
    *_COT_PARTS,
    # These have no effect here: replies are always stripped, and parsed by one parser.
    *("registry", "postprocessors", "merge_adjacent_msgs", "input_prompt"),
    *("persistent_memory", "private_interaction_length"),
}


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


def solver_fields(name: str, entry: object, base_url: str | None = None) -> Fields:
    """Return the fields of `Spec` that a registry entry means, on a server if one is given.

    Raises:
        InvalidInput: if the entry has neither our format nor the original's.
    """
    fields = dict(_mapping(name, entry))
    if "class" in fields:
        fields = _translate(name, fields, base_url)
    valid = ("model", *COMPLETION_ARGS)
    for key in fields.keys() - {*valid}:
        raise unknown_value(f"key of the solver {name!r}", key, valid)
    if not fields.get("model"):
        raise InvalidInput(f"the solver {name!r} has no model")
    return fields | {"model": validate_option("model", fields["model"])}


def _read_file(path: Path) -> dict[str, object]:
    caught = OSError, ValueError, yaml.YAMLError
    with file_errors("read the registry", path, error=InvalidInput, caught=caught):
        entries = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    if not isinstance(entries, dict):
        raise InvalidInput(f"the registry {str(path)!r} does not map names to solvers")
    return {str(name): entry for name, entry in entries.items()}


def _translate(name: str, entry: Fields, base_url: str | None) -> Fields:
    """Translate an entry in the original's format into ours."""
    kind = str(entry["class"]).rpartition(":")[2]
    if kind not in _CLASSES:
        raise unknown_value(f"class of the solver {name!r}", kind, _CLASSES)
    args = _mapping(name, entry.get("args") or {})
    options = _mapping(name, args.get("completion_fn_options", args))
    for argument in (args.keys() | options.keys()) - _ARGUMENTS:
        raise InvalidInput(f"the solver {name!r} has {argument!r}, which is not supported here")
    if kind == _HUMAN_SOLVER:
        return {"model": HumanCli.info.name}
    if kind == _COT_SOLVER:
        return _chain_of_thought(name, args, base_url)
    model = options.get("model", options.get("model_name", ""))
    server = {"base_url": options["api_base"]} if options.get("api_base") else {}
    own_server = base_url or server
    limits = {"max_tokens": args["max_tokens"]} if "max_tokens" in args else {}
    extra = _mapping(name, options.get("extra_options") or {})
    full_name = model if own_server or not model else f"{_PROVIDERS[kind]}/{model}"
    return {"model": full_name, **server, **limits, **extra}


def _chain_of_thought(name: str, args: Fields, base_url: str | None) -> Fields:
    thinker, replier = (solver_fields(name, args.get(part), base_url) for part in _COT_PARTS)
    if thinker["model"] != replier["model"]:
        raise InvalidInput(
            f"the solver {name!r} reasons with one model and replies with another; use one model"
        )
    tokens = thinker.get("max_tokens", THINKING_TOKENS)
    return replier | {"model": f"cot-{tokens}/{replier['model']}"}


def _mapping(name: str, value: object) -> Fields:
    if not isinstance(value, dict):
        raise InvalidInput(
            f"the solver {name!r} has {shortened(value)} instead of a table of names and values"
        )
    return value


# The kinds of solvers, and the beginning of the model name that each stands for.
_DIRECT, _COT = "generation/direct/", "generation/cot/"
_KINDS = {_DIRECT: "", _COT: "cot/", "chess/generation/direct/": TEXT_PREFIX}


def solver_named(name: str, registries: Sequence[Path] = (), base_url: str | None = None) -> Fields:
    """Return the fields of `Spec` that a solver's name means.

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
    solvers = custom | table["solvers"] | custom  # the user's come first
    kind = next((kind for kind in _KINDS if name.startswith(kind)), "")
    prefix, model = _KINDS.get(kind, ""), name.removeprefix(kind)
    if base_url and not _find(name, custom):
        return {"model": prefix + model}
    if found := _find(name, solvers):
        entry, parts = found
        fields = solver_fields(name, entry, base_url)
        return fields | {"model": _fill_stars(fields["model"], parts)}
    if (kind or "/" not in name) and (found := _find(model, table["models"])):
        return {"model": prefix + _fill_stars(*found)}
    is_misspelled = get_close_matches(name.split("/")[0], ("generation", "chess"), cutoff=0.7)
    if name in BUILT_IN_MODELS or ("/" in name and not is_misspelled):
        return {"model": name}
    last = name.rpartition("/")[2]
    named = [_DIRECT + last, _COT + last] if _find(last, table["models"]) else []
    patterns = (_DIRECT + pattern for pattern in table["models"])
    raise unknown_value("solver", name, [*solvers, *named, *patterns])


def _find(name: str, table: Mapping[str, T]) -> tuple[T, Sequence[str]] | None:
    """Return the entry of the first pattern that fits, and what the stars of the pattern match."""
    for pattern, entry in table.items():
        if match := re.fullmatch(re.escape(pattern).replace(r"\*", "(.*)"), name):
            return entry, match.groups()
    return None


def _fill_stars(model: str, parts: Sequence[str]) -> str:
    for part in parts:
        model = model.replace("*", part, 1)
    return model
