"""The original and ours side by side: what is asked, what is recorded, what it comes to.

    python benchmarks/parity.py --original ENV/bin/python [EVAL...]      (see original.py)

Both ask one server, which answers by a fixed rule: the special move, other moves, no moves. Ours
has the original's texts; in all_diagonal also its positions, which are not those shipped here.
"""

import argparse
import json
import logging
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from measuring import CDTA, print_heading, print_row

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from loopback import Body, Loopback, is_changed, moves_in, serving

EVALS = ("all_small", "all", "all_diagonal")
MODEL, VERSION, SEED = "gpt-3.5-turbo", "gpt-3.5-turbo-0125", "20220722"
OAIEVAL = Path(sys.executable).with_name("oaieval")
REPLIES = ("a2a3", "h7h6", "I resign.", "a1a1", "e2e4", "Bb5", "e7e8", "", "zz", "e2e9")


def installed(python: str) -> Path:
    """The folder that holds the original's package."""
    where = "import importlib.util as u; print(u.find_spec('evals').origin)"
    found = subprocess.run([python, "-c", where], check=True, capture_output=True, text=True)
    return Path(found.stdout.strip()).parents[1]


def positions(file: Path) -> Iterator[dict[str, Any]]:
    for line in file.read_text().splitlines():
        yield json.loads(line)


def answering(files: Sequence[Path]) -> Loopback:
    """A habit that yields in some positions, to replies of all kinds."""
    special = {
        tuple(p["previous_moves"]): p["next_filtered_moves"][0] for f in files for p in positions(f)
    }

    def respond(request: Body) -> str:
        moves = moves_in(request)
        fate = sum(map(ord, "".join(moves))) % 10
        kept = fate < (4 if is_changed(request) else 8)
        return special.get(moves, "e2e4") if kept else REPLIES[fate]

    return Loopback(respond, model=VERSION)


def asked(server: Loopback, command: Sequence[object], environment: dict[str, str]) -> Counter[str]:
    """The messages that the command asks."""
    before = len(server.requests)
    line = [str(part) for part in command]
    done = subprocess.run(line, env=os.environ | environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{line} failed:\n{done.stderr[-2000:]}")
    return Counter(json.dumps(request["messages"]) for request in server.requests[before:])


def recorded(file: Path) -> tuple[dict[str, float], list[dict[str, Any]]]:
    """The final report of a record, and its events."""
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    (report,) = (line["final_report"] for line in lines if "final_report" in line)
    return report, [line for line in lines if "type" in line]


def events(lines: Sequence[dict[str, Any]], names: set[str]) -> Counter[str]:
    """Sample, kind, question and, by these names, what was made of the answer."""
    told = (
        (
            line["sample_id"],
            line["type"],
            line["data"].get("prompt"),
            {name: line["data"].get(name) for name in names} if line["type"] == "metrics" else None,
        )
        for line in lines
    )
    return Counter(json.dumps(each, sort_keys=True) for each in told)


def side_by_side(python: str, eval_: str) -> None:
    """Run both, and print what is equal."""
    package = installed(python)
    data = package / "evals" / "registry" / "data" / "cant_do_that_anymore"
    diagonal = data / "diagonal_moves_dataset.jsonl"
    wording = f"openai-evals:{package}"
    names = (f"generation/direct/{MODEL}", f"cant_do_that_anymore.{eval_}")
    with (
        serving(answering([data / f"{VERSION}_dataset.jsonl", diagonal])) as server,
        tempfile.TemporaryDirectory() as folder,
    ):
        at = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "none", "CDTA_HOME": folder}
        records = [Path(folder) / f"{who}.jsonl" for who in ("theirs", "ours")]
        launcher = Path(__file__).with_name("original.py")
        theirs = asked(server, [python, launcher, *names, "--record_path", records[0]], at)
        report, lines = recorded(records[0])
        if eval_ == "all_diagonal":
            options = ["--dataset", diagonal, "--wording", wording, "--reading", "exact"]
            run = [*CDTA, "run", "--model", f"openai/{MODEL}", "--eval", eval_, "--seed", SEED]
            ours = asked(server, [*run, *options, "--quiet", "--out", f"{folder}/run"], at)
            metrics = json.loads((Path(folder) / "run" / "run.json").read_text())["metrics"]
            same_events = "–"
        else:
            options = ["--completion_args", f"wording={wording}", "--record_path", records[1]]
            ours = asked(server, [OAIEVAL, *names, *options], at)
            metrics, our_lines = recorded(records[1])
            told = next(set(line["data"]) for line in lines if line["type"] == "metrics")
            same = events(lines, told) & events(our_lines, told)
            same_events = f"{same.total():,} of {len(lines):,}"
    shared = [name for name in report if name in metrics]
    equal = [name for name in shared if abs((report[name] or 0) - (metrics[name] or 0)) < 1e-12]
    print_row(
        eval_,
        f"{len(equal)} of {len(shared)}",
        f"{(theirs & ours).total():,} of {theirs.total():,}",
        same_events,
        ", ".join(sorted(set(report) - set(equal))),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--original", metavar="PYTHON", required=True, help="of its environment")
    parser.add_argument("evals", nargs="*", metavar="EVAL", default=EVALS)
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    print_heading(
        "eval", "metrics equal", "questions equal", "events equal", "not equal or not ours"
    )
    for eval_ in options.evals:
        side_by_side(options.original, eval_)


if __name__ == "__main__":
    main()
