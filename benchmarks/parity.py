"""Compares requests, recorded events and metrics with those of the original.

    python benchmarks/parity.py --original ENV/bin/python [EVAL...]      (see run_original.py)

Both programs use the same server, which replies by a fixed rule: the usual move, another move, or
no move. Ours uses the original's texts, and in all_diagonal also its positions, which differ from
those shipped here.
"""

import argparse
import json
import logging
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from markdown_tables import print_heading, print_row
from resource_usage import CDTA

from cant_do_that_anymore.oaieval.record import final_report
from cant_do_that_anymore.runs.storage import load_run

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from loopback import Body, Loopback, is_changed, moves_in, serving

EVALS = ("all_small", "all", "all_diagonal")
MODEL, VERSION, SEED = "gpt-3.5-turbo", "gpt-3.5-turbo-0125", "20220722"
OAIEVAL = Path(sys.executable).with_name("oaieval")
REPLIES = ("a2a3", "h7h6", "I resign.", "a1a1", "e2e4", "Bb5", "e7e8", "", "zz", "e2e9")


def find_package(python: str) -> Path:
    """Return the folder that contains the original's package."""
    script = "import importlib.util as u; print(u.find_spec('evals').origin)"
    done = subprocess.run([python, "-c", script], check=True, capture_output=True, text=True)
    return Path(done.stdout.strip()).parents[1]


def read_positions(file: Path) -> Iterator[dict[str, Any]]:
    for line in file.read_text().splitlines():
        yield json.loads(line)


def make_server(files: Sequence[Path]) -> Loopback:
    """Return a server that keeps the habit in some positions and drops it in others."""
    usual = {
        tuple(position["previous_moves"]): position["next_filtered_moves"][0]
        for file in files
        for position in read_positions(file)
    }

    def respond(request: Body) -> str:
        moves = moves_in(request)
        digit = sum(map(ord, "".join(moves))) % 10
        keeps_habit = digit < (4 if is_changed(request) else 8)
        return usual.get(moves, "e2e4") if keeps_habit else REPLIES[digit]

    return Loopback(respond, model=VERSION)


def run_and_count(
    server: Loopback, command: Sequence[object], environment: dict[str, str]
) -> Counter[str]:
    """Run a command, and return the messages of its requests with their counts."""
    before = len(server.requests)
    arguments = [str(part) for part in command]
    done = subprocess.run(arguments, env=os.environ | environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{arguments} failed:\n{done.stderr[-2000:]}")
    return Counter(json.dumps(request["messages"]) for request in server.requests[before:])


def read_record(file: Path) -> tuple[dict[str, float], list[dict[str, Any]]]:
    """Return the final report of a record file, and its events."""
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    (report,) = (line["final_report"] for line in lines if "final_report" in line)
    return report, [line for line in lines if "type" in line]


def count_events(events: Sequence[dict[str, Any]], metrics: set[str]) -> Counter[str]:
    """Count events by sample, type and prompt, and by the values of these metrics."""
    keys = (
        (
            event["sample_id"],
            event["type"],
            event["data"].get("prompt"),
            {name: event["data"].get(name) for name in metrics}
            if event["type"] == "metrics"
            else None,
        )
        for event in events
    )
    return Counter(json.dumps(key, sort_keys=True) for key in keys)


def compare_eval(python: str, eval_: str) -> None:
    """Run both programs, and print how much is equal."""
    package = find_package(python)
    data = package / "evals" / "registry" / "data" / "cant_do_that_anymore"
    diagonal = data / "diagonal_moves_dataset.jsonl"
    wording = f"openai-evals:{package}"
    names = (f"generation/direct/{MODEL}", f"cant_do_that_anymore.{eval_}")
    with (
        serving(make_server([data / f"{VERSION}_dataset.jsonl", diagonal])) as server,
        tempfile.TemporaryDirectory() as folder,
    ):
        environment = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "none", "CDTA_HOME": folder}
        records = [Path(folder) / f"{program}.jsonl" for program in ("original", "ours")]
        launcher = Path(__file__).with_name("run_original.py")
        command = [python, launcher, *names, "--record_path", records[0]]
        original = run_and_count(server, command, environment)
        report, events = read_record(records[0])
        metrics: Mapping[str, float | None]
        if eval_ == "all_diagonal":
            options = ["--dataset", diagonal, "--wording", wording, "--reading", "exact"]
            command = [*CDTA, "run", "--model", f"openai/{MODEL}", "--eval", eval_, "--seed", SEED]
            command += [*options, "--quiet", "--out", f"{folder}/run"]
            ours = run_and_count(server, command, environment)
            metrics = final_report(load_run(Path(folder) / "run"))
            equal_events = "–"
        else:
            options = ["--completion_args", f"wording={wording}", "--record_path", records[1]]
            ours = run_and_count(server, [OAIEVAL, *names, *options], environment)
            metrics, our_events = read_record(records[1])
            recorded = next(set(event["data"]) for event in events if event["type"] == "metrics")
            equal = count_events(events, recorded) & count_events(our_events, recorded)
            equal_events = f"{equal.total():,} of {len(events):,}"
    shared = [name for name in report if name in metrics]
    equal_metrics = [
        name for name in shared if abs((report[name] or 0) - (metrics[name] or 0)) < 1e-12
    ]
    print_row(
        eval_,
        f"{len(equal_metrics)} of {len(shared)}",
        f"{(original & ours).total():,} of {original.total():,}",
        equal_events,
        ", ".join(sorted(set(report) - set(equal_metrics))),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--original",
        metavar="PYTHON",
        required=True,
        help="Python of the environment with the original",
    )
    parser.add_argument("evals", nargs="*", metavar="EVAL", default=EVALS)
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    print_heading(
        "eval", "equal metrics", "equal requests", "equal events", "different or missing metrics"
    )
    for eval_ in options.evals:
        compare_eval(options.original, eval_)


if __name__ == "__main__":
    main()
