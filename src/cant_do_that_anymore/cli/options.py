"""Options that commands share, each declared once, and help by heading.

Here a text becomes a number or a path, and nothing more: what can work, `Spec` says. A new field of
`Spec` is one entry in `OPTIONS` and its name in the commands that take it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ..errors import InvalidInput
from ..providers.base import EFFORTS
from ..task.spec import DEFAULT_MODEL, SAMPLES, Spec

MODEL, ASKED, LIMITS, OUTPUT = "Model", "What is asked", "Limits and cost", "Output"
HEADINGS = (MODEL, ASKED, LIMITS, OUTPUT)
WIDEST_NAME = 28


class Option(click.Option):
    """An option that knows under which heading it belongs."""

    def __init__(self, *args: Any, heading: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.heading = heading


class Command(click.Command):
    """A command whose help shows the options by purpose."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a list of options for each heading, all of them in the same columns."""
        rows: dict[str, list[tuple[str, str]]] = {heading: [] for heading in HEADINGS}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record and isinstance(parameter, click.Option):
                rows[getattr(parameter, "heading", OUTPUT)].append(record)
        names = [name for group in rows.values() for name, _ in group]
        width = min(WIDEST_NAME, max(map(len, names)))
        for heading, group in rows.items():
            if group:
                with formatter.section(heading):
                    formatter.write_dl([(name.ljust(width), text) for name, text in group])


def _of_spec(heading: str, flag: str, **about: Any) -> Option:
    """The option for a field of the spec, with the field's default."""
    default = getattr(Spec, flag.lstrip("-").replace("-", "_"))
    shown = default not in (None, "", ()) and not about.get("is_flag")
    return Option([flag], heading=heading, default=default, show_default=shown, **about)


def _one_model(ctx: click.Context, option: click.Parameter, given: Sequence[str]) -> str | None:
    """Refuse more than one, of which all but the last would be forgotten."""
    if len(given) > 1:
        raise InvalidInput(f"{ctx.command_path} takes one --model; `cdta experiment` takes several")
    return given[0] if given else None


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
            multiple=True,  # to be told of more than one
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
        _of_spec(ASKED, "--eval", metavar="E", help=f"{_EVALS}."),
        _of_spec(ASKED, "--rules", metavar="KEY", help="One of cdta rules."),
        _of_spec(
            ASKED,
            "--pool",
            type=_PATH,
            metavar="FILE",
            help="Choose the positions from this file, from games (inside this package) or from "
            "common: habits that other models share, found with about a fifth of the questions.",
        ),
        _of_spec(
            ASKED,
            "--dataset",
            metavar="D",
            help="Take these positions: a file, or a dataset by name.",
        ),
        _of_spec(
            ASKED,
            "--wording",
            metavar="W",
            help="A TOML file, or openai-evals:FILE for the original's texts out of its wheel "
            "(pip download --no-deps evals).",
        ),
        _of_spec(ASKED, "--reading", metavar="R", help="lenient, or the original's exact."),
        _of_spec(
            ASKED,
            "--diagnose",
            is_flag=True,
            help="Ask also why the habit stays: up to nine questions a sample instead of two.",
        ),
        _of_spec(
            ASKED, "-n", type=int, metavar="N", help="Samples.  [default: 1000; all_small: 100]"
        ),
        _of_spec(
            ASKED,
            "--precision",
            type=float,
            metavar="W",
            help="Stop when the impact factor's interval reaches at most W either way; -n is the "
            "most.",
        ),
        _of_spec(ASKED, "--seed", type=int, metavar="S", help="Which positions are drawn."),
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

THINKING = ("reasoning_effort", "reasoning_tokens", "select_effort", "extra_body")
"""The options for models that think first."""


def shared(*names: str) -> list[click.Parameter]:
    """The options of those names."""
    return [OPTIONS[name] for name in names]


def several_models() -> Option:
    """``--model`` where several may be given."""
    told = f"Whom to measure, NAME@URL at a server; repeatable.  [default: {DEFAULT_MODEL}]"
    # A file may tell more of a model than its name.
    form: dict[str, Any] = {"multiple": True, "type": click.UNPROCESSED, "metavar": "M"}
    return Option(["--model", "models"], heading=MODEL, help=told, **form)


def several(name: str, plural: str, *default: str, told: str = "") -> Option:
    """A shared option that takes several values, one by one or with commas between them.

    Without any, and without a default, it gives None, once; what that means may be told.
    """
    one = OPTIONS[name]
    told = told or ",".join(default)
    return Option(
        [one.opts[0], plural],
        heading=one.heading,
        multiple=True,
        default=default,
        metavar=f"{one.metavar},...",
        callback=lambda ctx, option, given: tuple(
            dict.fromkeys(",".join(given).split(",") if given else [None])
        ),
        help=f"{one.help}  [default: {told}]" if told else one.help,
    )


_OUTPUT_PATH = click.Path(path_type=Path)


def out_option(default: str) -> Option:
    """``--out`` for a folder of results, and where to without the option."""
    told = f"Where the results go.  [default: {default}]"
    return Option(["--out"], heading=OUTPUT, type=_OUTPUT_PATH, metavar="DIR", help=told)


def output_option(metavar: str, told: str) -> Option:
    """``-o`` for what a command writes, and what is told of it."""
    return Option(["-o", "--output"], heading=OUTPUT, type=_OUTPUT_PATH, metavar=metavar, help=told)


def markdown_option() -> Option:
    """``--markdown`` where the results are a table."""
    told = "Print the table as Markdown, for GitHub."
    return Option(["--markdown", "as_markdown"], heading=OUTPUT, is_flag=True, help=told)
