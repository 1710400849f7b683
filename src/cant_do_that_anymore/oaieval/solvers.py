"""Solver names and YAML registries of the original, and its solver at the terminal.

An entry of a registry names a model and its options::

    my-solver: {model: openai/gpt-4o, temperature: 0.5}

Entries with the original's ``class`` and ``args`` work for solvers that only call one model, and
for chain of thought.
"""

import re
import signal
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from reprlib import repr as shortened
from typing import Any

import yaml

from ..errors import InvalidInput, Stopped, unknown_value
from ..files import DATA, file_errors
from ..providers.base import Answer, Model, Question, Settings, local_info
from ..providers.catalog import TEXT_PREFIX
from ..providers.chain_of_thought import THINKING_TOKENS
from ..task.spec import validate_option

Fields = dict[str, Any]


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


# Options of `cdta run` that suit the original's evals, and that the command has no flag for.
COMPLETION_ARGS = (
    *("base_url", "temperature", "max_tokens", "reasoning_effort", "extra_body"),
    *("wording", "form", "reading", "price", "max_cost", "keep_looking"),
)
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
    inner = path / "solvers"
    folder = inner if inner.is_dir() else path
    files = sorted(folder.glob("*.yaml")) if path.is_dir() else [path]
    if not files:
        raise InvalidInput(f"the registry {str(path)!r} contains no solvers (*.yaml)")
    entries: dict[str, object] = {}
    for file in files:
        caught = OSError, ValueError, yaml.YAMLError
        with file_errors("read the registry", file, error=InvalidInput, caught=caught):
            content = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
        entries |= _mapping(f"the registry {str(file)!r}", content)
    return {str(name): entry for name, entry in entries.items()}


def solver_fields(name: str, entry: object, base_url: str | None = None) -> Fields:
    """Return the fields of `Spec` that a registry entry means, on a server if one is given.

    Raises:
        InvalidInput: if the entry has neither our format nor the original's.
    """
    solver = f"the solver {name!r}"
    fields = _mapping(solver, entry)
    if "class" in fields:
        fields = _translate(name, fields, base_url)
    valid = ("model", *COMPLETION_ARGS)
    for key in fields.keys() - {*valid}:
        raise unknown_value(f"key of {solver}", key, valid)
    if not fields.get("model"):
        raise InvalidInput(f"{solver} has no model")
    return fields | {"model": validate_option("model", fields["model"])}


def _translate(name: str, entry: Fields, base_url: str | None) -> Fields:
    """Translate an entry in the original's format into ours."""
    solver, kind = f"the solver {name!r}", str(entry["class"]).rpartition(":")[2]
    if kind not in _CLASSES:
        raise unknown_value(f"class of {solver}", kind, _CLASSES)
    args = _mapping(solver, entry.get("args") or {})
    options = _mapping(solver, args.get("completion_fn_options", args))
    for argument in (args.keys() | options.keys()) - _ARGUMENTS:
        raise InvalidInput(f"{solver} has {argument!r}, which is not supported here")
    if kind == _HUMAN_SOLVER:
        return {"model": HumanCli.info.name}
    if kind == _COT_SOLVER:
        return _chain_of_thought(name, args, base_url)
    model = options.get("model", options.get("model_name", ""))
    server = {"base_url": options["api_base"]} if options.get("api_base") else {}
    own_server = base_url or server
    limits = {"max_tokens": args["max_tokens"]} if "max_tokens" in args else {}
    extra = _mapping(solver, options.get("extra_options") or {})
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


def _mapping(where: str, value: object) -> Fields:
    if not isinstance(value, dict):
        raise InvalidInput(f"{where} has {shortened(value)} instead of a table of names and values")
    return value


# What the name of a solver begins with, and what that stands for in the name of its model.
_KINDS = {"generation/direct/": "", "generation/cot/": "cot/", "": ""}


def solver_named(name: str, registries: Sequence[Path] = (), base_url: str | None = None) -> Fields:
    """Return the fields of `Spec` that a solver's name means.

    Args:
        name: a name of a registry, ``human_cli``, ``generation/direct/M`` or ``generation/cot/M``,
            ``chess/generation/direct/M``, or any model name of ``cdta run --model``.
        registries: YAML files, or folders of them, with more solvers.
        base_url: the model's server, which then defines the name of the model.

    Raises:
        InvalidInput: if there is no such solver, or a registry cannot be read.
    """
    custom = {key: entry for path in registries for key, entry in read_registry(path).items()}
    solvers = [*custom.items(), *_shipped_solvers(base_url).items()]
    for pattern, entry in solvers:
        if match := re.fullmatch(re.escape(pattern).replace(r"\*", "(.*)"), name):
            fields = solver_fields(name, entry, base_url)
            for part in match.groups():
                fields["model"] = fields["model"].replace("*", part, 1)
            return fields
    is_misspelled = get_close_matches(name.split("/")[0], ("generation", "chess"), cutoff=0.7)
    if "/" in name and not is_misspelled:  # a model's full name
        return {"model": name}
    raise unknown_value("solver", name, [pattern for pattern, _ in solvers])


def _shipped_solvers(base_url: str | None) -> dict[str, Fields]:
    """Return the solvers that need no registry. A server may give its models any name."""
    table = (DATA / "solvers.yaml").read_text(encoding="utf-8")
    models = {"*": "*"} if base_url else yaml.safe_load(table)
    base_model = f"{TEXT_PREFIX}*" if base_url else f"{TEXT_PREFIX}openai/*"
    names = {
        f"{kind}{pattern}": f"{prefix}{model}"
        for kind, prefix in _KINDS.items()
        for pattern, model in models.items()
        if kind or "/" not in pattern  # with a slash, it is a model's full name
    }
    names = {"human_cli": HumanCli.info.name, "chess/generation/direct/*": base_model, **names}
    return {pattern: {"model": model} for pattern, model in names.items()}
