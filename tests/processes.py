"""The command ``cdta`` as real processes."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

CDTA = [sys.executable, "-c", "from cant_do_that_anymore.interfaces.cli import main; main()"]


def started(*arguments: object, **environment: str) -> "subprocess.Popen[str]":
    """Start ``cdta`` with these arguments."""
    return subprocess.Popen(
        [*CDTA, *map(str, arguments)],
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def cdta(*arguments: object, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run ``cdta`` to its end."""
    process = started(*arguments, **environment)
    out, err = process.communicate(timeout=120)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def samples_in(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()]


def results_in(folder: Path) -> dict[str, Any]:
    """The numbers of a run, without what depends on the moment."""
    facts = json.loads((folder / "run.json").read_text())
    return {key: facts[key] for key in ("metrics", "intervals", "outcomes", "notes")}
