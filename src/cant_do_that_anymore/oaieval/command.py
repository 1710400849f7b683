"""The command ``oaieval``: its flags, and the run that they describe."""

import base64
import logging
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

import click
from annotated_types import Ge

from ..api.functions import evaluate
from ..client.pricing import CostLimit, cost_limit_for
from ..client.session import create_model
from ..datasets.pools import drawn
from ..errors import InvalidInput, also_spelled, unknown_value
from ..files import file_errors, safe_name
from ..formatting import log_to
from ..runs.lookup import check_writable
from ..task.plan import plan_for
from ..task.prompts import DEFAULT_WORDING
from ..task.spec import DEFAULT_SAMPLES, DEFAULT_SEED, OPTIONS, Spec
from ..task.types import Eval
from ..validation import check
from .record import append_rows, begin_record, events_of, final_report
from .solvers import COMPLETION_ARGS, HumanCli, solver_named

BASE_EVAL = "cant_do_that_anymore"
EVALS: dict[str, Eval] = {BASE_EVAL: "all", **{f"{BASE_EVAL}.{s}": s for s in DEFAULT_SAMPLES}}
DEFAULT_MODEL_DATASET = "gpt-3.5-turbo-0125"

# How options of `cdta run` that messages name are spelled here.
OWN_SPELLINGS = {
    **{name.replace("_", "-"): f"--completion_args {name}=..." for name in COMPLETION_ARGS},
    "n": "--max_samples",
    "fresh": "--no-cache",
}

EVAL_PARAMS = {
    "n_samples": int,
    "diagonal_variation": bool,
    "default_model_dataset": str,
    "remake_dataset_if_not_found": bool,
}


def eval_named(name: str, extra_params: str) -> tuple[Eval, dict[str, Any]]:
    """Return the eval of this name, and its parameters with those of the user.

    Raises:
        InvalidInput: if there is no such eval or parameter.
    """
    if name not in EVALS:
        raise unknown_value("eval", name, EVALS)
    split = EVALS[name]
    params: dict[str, Any] = {
        "default_model_dataset": DEFAULT_MODEL_DATASET,
        "n_samples": DEFAULT_SAMPLES[split],
    }
    if split == "all_diagonal":
        params["diagonal_variation"] = True
    given = parse_pairs("--extra_eval_params", extra_params, EVAL_PARAMS)
    params |= {key: check(EVAL_PARAMS[key], text, key, text=True) for key, text in given.items()}
    return split, params


def parse_pairs(flag: str, text: str, valid: Iterable[str]) -> dict[str, str]:
    """Split a text such as ``n_samples=10,diagonal_variation=True``.

    Raises:
        InvalidInput: if the text is malformed, or has an unknown key.
    """
    values = {}
    for pair in filter(None, re.split(r",(?=\w+=)", text)):  # a value may have commas, too
        key, equals, value = pair.partition("=")
        if not equals:
            raise InvalidInput(f"{flag} takes K=V,K=V, not {pair!r}")
        if key not in valid:
            raise unknown_value(f"key of {flag}", key, valid)
        values[key] = value
    return values


def threads() -> int:
    """Return the concurrency set by ``EVALS_THREADS`` and ``EVALS_SEQUENTIAL``.

    Raises:
        InvalidInput: if ``EVALS_THREADS`` is not a number above 0.
    """
    if os.environ.get("EVALS_SEQUENTIAL") in {"1", "true", "yes"}:
        return 1
    text = os.environ.get("EVALS_THREADS", "10")
    return int(check(Annotated[int, Ge(1)], text, "EVALS_THREADS", text=True))


log = logging.getLogger(__name__)

LOG_FORMAT = "[%(asctime)s] [%(filename)s:%(lineno)d] %(message)s"


@click.command(
    "oaieval",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.argument("solver")
@click.option(
    "--seed", default=DEFAULT_SEED, show_default=True, metavar="S", help=OPTIONS["seed"].help
)
@click.argument("eval_name", metavar="EVAL")
@click.option("--extra_eval_params", default="", metavar="K=V,...", help=", ".join(EVAL_PARAMS))
@click.option("--completion_args", default="", metavar="K=V,...", help=", ".join(COMPLETION_ARGS))
@click.option("--max_samples", type=int, help="Maximum number of samples.")
@click.option(
    "--cache/--no-cache", default=True, help="Use cached answers, or send every request again."
)
@click.option("--visible/--no-visible", default=None, help="Recorded; has no other effect.")
@click.option("--user", default="", help="Recorded as created_by.")
@click.option("--record_path", metavar="FILE", help="File for the record.")
@click.option("--log_to_file", metavar="FILE", help="Log to this file instead of standard error.")
@click.option(
    "--registry_path",
    type=click.Path(exists=True, path_type=Path),
    multiple=True,
    help="More solvers: a YAML file, or a folder of them. Can be repeated.",
)
@click.option("--debug/--no-debug", default=False, help="Log more.")
@click.option("--http-run/--no-http-run", default=False, help="Not supported.")
@click.option(
    *("--http-run-url", "--http-batch-size", "--http-fail-percent-threshold"),
    metavar="VALUE",
    expose_value=False,
    help="No effect without --http-run, as in the original.",
)
@click.option("--local-run/--no-local-run", expose_value=False, help="No effect.")
@click.option("--dry-run/--no-dry-run", default=False, help="Send requests, but write no record.")
@click.option(
    "--dry-run-logging/--no-dry-run-logging", default=True, help="With --dry-run, log every event."
)
def oaieval_command(solver: str, eval_name: str, **flags: Any) -> None:
    """Evaluate SOLVER on EVAL, as OpenAI Evals does.

    \b
    oaieval generation/direct/gpt-4 cant_do_that_anymore
    oaieval generation/cot/claude-sonnet-4-5 cant_do_that_anymore.all_small
    oaieval chess/generation/direct/gpt-3.5-turbo-instruct cant_do_that_anymore
    oaieval cdta/random cant_do_that_anymore.all_diagonal

    SOLVER is generation/direct/M or generation/cot/M with a model M of OpenAI, Anthropic, Gemini
    or Together (or PROVIDER/M), chess/generation/direct/M with a base model M, human_cli, or a
    model name of cdta run. EVAL is cant_do_that_anymore, or that with .all, .all_small or
    .all_diagonal.

    EVALS_THREADS (10) is the number of concurrent requests; EVALS_SEQUENTIAL=1 sends one at a time.
    """
    with also_spelled("oaieval", OWN_SPELLINGS):
        _run(solver, eval_name, SimpleNamespace(**flags))


def _run(solver_name: str, eval_name: str, flags: SimpleNamespace) -> None:
    if flags.http_run:
        raise InvalidInput("--http-run is not supported; the record goes to a file, --record_path")
    _start_logging(flags)
    split, params = eval_named(eval_name, flags.extra_eval_params)
    args = parse_pairs("--completion_args", flags.completion_args, COMPLETION_ARGS)
    solver = solver_named(solver_name, flags.registry_path, args.get("base_url"))
    options: dict[str, Any] = {"max_connections": threads()} | solver | args
    is_human = options["model"] == HumanCli.info.name
    if is_human:  # who answers one question at a time
        options |= {"model": None, "max_connections": 1}
    spec = _spec(options, split, params, flags)
    model = HumanCli() if is_human else create_model(spec)
    # No limit unless one is set: scripts for the original run unattended.
    limit = CostLimit(inf) if spec.max_cost is None else cost_limit_for(spec, model.info)
    plan_for(spec, model.info)  # raises for an invalid spec, before anything is written
    record = _record(solver_name, split, params, flags)
    path = None if flags.dry_run else _record_path(flags, record["run_id"], solver_name, eval_name)
    if path:
        check_writable(None)
        begin_record(path, record)

    log.info("Run started: %s", record["run_id"])
    run = evaluate(spec, model, quiet=is_human, limit=limit)
    events = [*events_of(run, record, [*drawn(run.dataset, spec)])]
    report = final_report(run)
    if path:
        log.info("Run folder: %s", run.save())
        for note in run.notes:
            log.warning("Note: %s", note)
        append_rows(path, [*events, {"final_report": report, "run_id": record["run_id"]}])
        log.info("Logged %d rows of events to %s", len(events), path)
    elif flags.dry_run_logging:
        for event in events:
            log.info("Not recording event: %s", event)
    where = f"Logged to {path}" if path else "Not writing anywhere."
    log.info("Final report: %s. %s", report, where)
    log.info("Final report:")
    for name, value in report.items():
        log.info("%s: %s", name, value)


def _start_logging(flags: SimpleNamespace) -> None:
    """Log our own messages, and warnings of libraries."""
    file = flags.log_to_file
    with file_errors("log to", file, error=InvalidInput):
        log_to(logging.FileHandler(file) if file else logging.StreamHandler(), LOG_FORMAT)
    level = logging.DEBUG if flags.debug else logging.INFO
    logging.getLogger("cant_do_that_anymore").setLevel(level)


def _spec(
    options: Mapping[str, Any], split: Eval, params: Mapping[str, Any], flags: SimpleNamespace
) -> Spec:
    if params.get("diagonal_variation", False) != (split == "all_diagonal"):
        split = "all" if split == "all_diagonal" else "all_diagonal"
    rebuild = params.get("remake_dataset_if_not_found", True)
    return Spec(
        eval=split,
        n=params["n_samples"],
        max_samples=flags.max_samples,
        fallback_dataset=None if rebuild else params["default_model_dataset"],
        seed=flags.seed,
        fresh=not flags.cache,
        **{"reading": "exact", "wording": DEFAULT_WORDING, **options},
    )


def _record(
    solver: str, split: Eval, params: dict[str, Any], flags: SimpleNamespace
) -> dict[str, Any]:
    """Return the content of the first row of the record, with a new run id."""
    now = datetime.now(UTC).replace(tzinfo=None)
    full_name = f"{BASE_EVAL}.{split}"
    visible = flags.max_samples is None if flags.visible is None else flags.visible
    return {
        "completion_fns": [solver],
        "eval_name": full_name,
        "base_eval": BASE_EVAL,
        "split": split,
        "run_config": {
            "completion_fns": [solver],
            "eval_spec": {
                "cls": "cant_do_that_anymore.runs.evaluate:evaluate",
                "registry_path": "cant_do_that_anymore/data",
                "args": params,
                "key": full_name,
                "group": BASE_EVAL,
            },
            "seed": flags.seed,
            "max_samples": flags.max_samples,
            "command": shlex.join(sys.argv),
            "initial_settings": {"visible": visible},
        },
        "created_by": flags.user,
        "run_id": f"{now:%y%m%d%H%M%S}{base64.b32encode(os.urandom(5)).decode()}",
        "created_at": str(now),
    }


def _record_path(flags: SimpleNamespace, run_id: str, solver: str, eval_name: str) -> Path:
    """Return the path of the record.

    As in the original, slashes in the solver's name make folders.
    """
    if flags.record_path:
        return Path(flags.record_path)
    name = "/".join(map(safe_name, solver.split("/")))  # so that ".." leads nowhere
    return Path(tempfile.gettempdir()) / "evallogs" / f"{run_id}_{name}_{eval_name}.jsonl"
