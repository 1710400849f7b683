"""Options that commands share, each declared once.

Options only parse numbers and paths; `Spec` validates them. A new field of `Spec` is one entry in
`OPTIONS`, and its name in the commands that take it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ..errors import InvalidInput
from ..providers.base import EFFORTS
from ..task.spec import DEFAULT_MODEL, SAMPLES, Spec
from .help import LIMITS, MODEL, OUTPUT, TASK, Option


def _of_spec(heading: str, flag: str, **attributes: Any) -> Option:
    """Create the option of a field of `Spec`, with the field's default."""
    default = getattr(Spec, flag.lstrip("-").replace("-", "_"))
    visible = default not in (None, "", ()) and not attributes.get("is_flag")
    return Option([flag], heading=heading, default=default, show_default=visible, **attributes)


def _one_model(ctx: click.Context, option: click.Parameter, models: Sequence[str]) -> str | None:
    """Reject more than one ``--model``, where click would use the last one only."""
    if len(models) > 1:
        raise InvalidInput(f"{ctx.command_path} takes one --model; `cdta experiment` takes several")
    return models[0] if models else None


_PATH = click.Path(path_type=Path)
_EVALS = f"{', '.join(list(SAMPLES)[:-1])} or {list(SAMPLES)[-1]}"
_EFFORTS = f"{', '.join(EFFORTS[:-1])} or {EFFORTS[-1]}"

OPTIONS: dict[str, Option] = {
    str(option.name): option
    for option in (
        _of_spec(
            MODEL,
            "--model",
            metavar="M",
            multiple=True,  # so that more than one can be rejected
            callback=_one_model,
            help=f"Whom to measure; NAME@URL for NAME at a server.  [default: {DEFAULT_MODEL}]",
        ),
        _of_spec(MODEL, "--base-url", metavar="URL", help="An OpenAI-compatible server, to /v1."),
        _of_spec(MODEL, "--tag", metavar="T", help="Tells it from others that had its name."),
        _of_spec(
            MODEL, "--header", metavar="K=V", multiple=True, help="Sent as well; V may be env:NAME."
        ),
        _of_spec(MODEL, "--temperature", type=float, metavar="T", help="0: the likeliest reply."),
        _of_spec(
            MODEL,
            "--max-tokens",
            type=int,
            metavar="K",
            help="Longest reply.  [default: 16; base models: 4]",
        ),
        _of_spec(MODEL, "--reasoning-effort", metavar="E", help=f"How much to think: {_EFFORTS}."),
        _of_spec(
            MODEL,
            "--reasoning-tokens",
            type=int,
            metavar="K",
            help="Room for thoughts beside the reply.  [default: 16000 where it thinks]",
        ),
        _of_spec(
            MODEL,
            "--select-effort",
            metavar="E",
            help="The effort when its habits are found.  [default: as measured]",
        ),
        _of_spec(MODEL, "--extra-body", metavar="JSON", help="More for every request."),
        _of_spec(TASK, "--eval", metavar="E", help=f"{_EVALS}."),
        _of_spec(TASK, "--rules", metavar="KEY", help="One of cdta rules."),
        _of_spec(
            TASK,
            "--pool",
            type=_PATH,
            metavar="FILE",
            help="Choose the positions from this file, from games (inside this package) or from "
            "common: habits that other models share, found with about a fifth of the questions.",
        ),
        _of_spec(
            TASK,
            "--dataset",
            metavar="D",
            help="Take these positions: a file, or a dataset by name.",
        ),
        _of_spec(
            TASK,
            "--wording",
            metavar="W",
            help="A TOML file, or openai-evals:FILE for the original's texts out of its wheel "
            "(pip download --no-deps evals).",
        ),
        _of_spec(TASK, "--reading", metavar="R", help="lenient, or the original's exact."),
        _of_spec(
            TASK,
            "--diagnose",
            is_flag=True,
            help="Ask also why the habit stays: up to nine questions a sample instead of two.",
        ),
        _of_spec(
            TASK, "-n", type=int, metavar="N", help="Samples.  [default: 1000; all_small: 100]"
        ),
        _of_spec(
            TASK,
            "--precision",
            type=float,
            metavar="W",
            help="Stop when the impact factor's interval reaches at most W either way; -n is the "
            "most.",
        ),
        _of_spec(TASK, "--seed", type=int, metavar="S", help="Which positions are drawn."),
        _of_spec(
            LIMITS, "--max-connections", type=int, metavar="C", help="Questions at once, at most."
        ),
        _of_spec(
            LIMITS,
            "--max-error-rate",
            type=float,
            metavar="SHARE",
            help="Samples, and controls, that may lack an answer.",
        ),
        _of_spec(
            LIMITS,
            "--price",
            metavar="IN,OUT",
            help="Dollars for a million tokens in and out.  [default: by the price list]",
        ),
        _of_spec(
            LIMITS,
            "--max-cost",
            type=float,
            metavar="USD",
            help="Stop before more than this is spent.",
        ),
        _of_spec(
            LIMITS,
            "--ask-above",
            type=float,
            metavar="USD",
            help="Without --max-cost: ask before more than this is spent, or stop where nobody can "
            "be asked.",
        ),
        _of_spec(
            LIMITS,
            "--batch",
            is_flag=True,
            help="Ask in batches: half the price, a day each. For openai/, together/, servers.",
        ),
        _of_spec(
            LIMITS,
            "--keep-looking",
            is_flag=True,
            help="Ask about the whole pool, although it holds too few habits to be worth it.",
        ),
        _of_spec(
            LIMITS, "--fresh", is_flag=True, help="Ask anew: take no kept answers, and keep none."
        ),
        Option(
            ["--json", "as_json"],
            heading=OUTPUT,
            is_flag=True,
            help="Print JSON, and nothing else.",
        ),
        Option(["--quiet"], heading=OUTPUT, is_flag=True, help="Show no progress."),
    )
}

REASONING = ("reasoning_effort", "reasoning_tokens", "select_effort", "extra_body")


def shared(*names: str) -> list[click.Parameter]:
    """Return shared options by name."""
    return [OPTIONS[name] for name in names]


def several_models() -> Option:
    """Create ``--model`` for commands that take several."""
    help_text = f"Whom to measure, NAME@URL at a server; repeatable.  [default: {DEFAULT_MODEL}]"
    # An experiment file may give a table for a model, not only its name.
    attributes: dict[str, Any] = {"multiple": True, "type": click.UNPROCESSED, "metavar": "M"}
    return Option(["--model", "models"], heading=MODEL, help=help_text, **attributes)


def several(name: str, plural: str, *default: str, default_text: str = "") -> Option:
    """Create a shared option that takes several values, repeated or separated by commas.

    Without values and without a default, it is ``(None,)``, which ``default_text`` explains.
    """
    single = OPTIONS[name]
    default_text = default_text or ",".join(default)
    return Option(
        [single.opts[0], plural],
        heading=single.heading,
        multiple=True,
        default=default,
        metavar=f"{single.metavar},...",
        callback=lambda ctx, option, values: tuple(
            dict.fromkeys(",".join(values).split(",") if values else [None])
        ),
        help=f"{single.help}  [default: {default_text}]" if default_text else single.help,
    )


_OUTPUT_PATH = click.Path(path_type=Path)


def out_option(default: str) -> Option:
    """Create ``--out`` for a folder of results, with a description of its default."""
    help_text = f"Where the results go.  [default: {default}]"
    return Option(["--out"], heading=OUTPUT, type=_OUTPUT_PATH, metavar="DIR", help=help_text)


def output_option(metavar: str, help_text: str) -> Option:
    """Create ``-o`` for the file that a command writes."""
    return Option(
        ["-o", "--output"], heading=OUTPUT, type=_OUTPUT_PATH, metavar=metavar, help=help_text
    )


def markdown_option() -> Option:
    """Create ``--markdown`` for commands that print a table."""
    help_text = "Print the table as Markdown, for GitHub."
    return Option(["--markdown", "as_markdown"], heading=OUTPUT, is_flag=True, help=help_text)
