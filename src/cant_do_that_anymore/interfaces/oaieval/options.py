"""What ``oaieval`` is given: its flags, the parameters in them, and the environment."""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from ...errors import InvalidInput, unknown_value
from ...task.spec import SAMPLES
from ...task.types import Eval
from ..options import OPTIONS, THINKING

BASE_EVAL = "cant_do_that_anymore"
EVALS: dict[str, Eval] = {BASE_EVAL: "all", **{f"{BASE_EVAL}.{split}": split for split in SAMPLES}}
DEFAULT_MODEL_DATASET = "gpt-3.5-turbo-0125"

_YES, _NO = {"1", "true", "yes"}, {"0", "false", "no"}


@dataclass(frozen=True)
class Flags:
    """The flags of the command."""

    extra_eval_params: str
    completion_args: str
    max_samples: int | None
    cache: bool
    visible: bool | None
    seed: int
    user: str
    record_path: str | None
    log_to_file: str | None
    registry_path: tuple[Path, ...]
    debug: bool
    local_run: bool
    http_run: bool
    dry_run: bool
    dry_run_logging: bool


def _switch(text: str) -> bool:
    if text.lower() not in _YES | _NO:
        raise ValueError(text)
    return text.lower() in _YES


EVAL_PARAMS: dict[str, Callable[[str], Any]] = {
    "n_samples": int,
    "diagonal_variation": _switch,
    "default_model_dataset": str,
    "remake_dataset_if_not_found": _switch,
}
COMPLETION_ARGS: dict[str, Callable[[str], Any]] = {
    name: OPTIONS[name].type
    for name in (
        "wording",
        "reading",
        "temperature",
        "max_tokens",
        "base_url",
        "max_cost",
        "keep_looking",
        *THINKING,
    )
}
"""Read as the options of `cdta run` are."""


def eval_named(name: str, extra_params: str) -> tuple[Eval, dict[str, Any]]:
    """The eval that goes by ``name``, and its parameters with those the user gave.

    Raises:
        InvalidInput: if there is no such eval or parameter.
    """
    if name not in EVALS:
        raise unknown_value("eval", name, EVALS)
    split = EVALS[name]
    params: dict[str, Any] = {
        "default_model_dataset": DEFAULT_MODEL_DATASET,
        "n_samples": SAMPLES[split],
    }
    if split == "all_diagonal":
        params["diagonal_variation"] = True
    return split, params | pairs("--extra_eval_params", extra_params, EVAL_PARAMS)


def pairs(flag: str, text: str, kinds: Mapping[str, Callable[[str], Any]]) -> dict[str, Any]:
    """The values in a text such as ``n_samples=10,diagonal_variation=True``.

    Raises:
        InvalidInput: if the text is none, or has an unknown key or an impossible value.
    """
    values = {}
    for pair in filter(None, _split(text)):
        key, equals, value = pair.partition("=")
        if not equals:
            raise InvalidInput(f"{flag} takes K=V,K=V, not {pair!r}")
        if key not in kinds:
            raise unknown_value(f"key of {flag}", key, kinds)
        try:
            values[key] = kinds[key](value)
        except (ValueError, click.BadParameter):
            raise InvalidInput(f"{flag}: {key} cannot be {value!r}") from None
    return values


def _split(text: str) -> Iterator[str]:
    """The parts between commas, of which those inside braces are no ends."""
    part, depth = "", 0
    for character in text:
        depth += (character in "{[") - (character in "}]")
        if character == "," and depth <= 0:
            yield part
            part = ""
        else:
            part += character
    yield part


def threads() -> int:
    """How many questions to ask at once, by ``EVALS_THREADS`` and ``EVALS_SEQUENTIAL``.

    Raises:
        InvalidInput: if ``EVALS_THREADS`` is no number above 0.
    """
    if os.environ.get("EVALS_SEQUENTIAL") in _YES:
        return 1
    text = os.environ.get("EVALS_THREADS", "10")
    if not text.isdecimal() or int(text) < 1:
        raise InvalidInput(f"EVALS_THREADS must be a number above 0, not {text!r}")
    return int(text)
