"""Make the technical note: its runs, its figures, and its text with their numbers.

    python tools/paper.py           # a quarter of an hour: everything is measured anew
    python tools/paper.py --text    # a second: the text alone, from the numbers of the last time

``docs/paper/note.md.jinja`` is the text without numbers, ``docs/paper/numbers.json`` what was
measured; ``note.md`` beside them is made of the two and never written by hand.
"""

import json
import os
import subprocess
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from cant_do_that_anymore.game.rules import BISHOPS_AS_KNIGHTS, CATALOG
from cant_do_that_anymore.runs.results import PROTOCOL

ROOT = Path(__file__).parents[1]
PAPER = ROOT / "docs" / "paper"
NUMBERS = PAPER / "numbers.json"

MODELS = ("cdta/pocket", "cdta/pocket-rules", "cdta/random")
SAMPLES = 1000
KEPT = ("rule_uptake", "variant_impact_factor")
"""The measures of the table of rules."""
TIMES = 2000
"""How many runs are simulated for each model."""


def main() -> None:
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--text", action="store_true", help="measure nothing")
    if not parser.parse_args().text:
        sys.path.insert(0, str(ROOT / "benchmarks"))
        measured = {
            "date": f"{datetime.now(UTC):%Y-%m-%d}",
            "protocol": PROTOCOL,
            "samples": SAMPLES,
            "rules": rules(),
            "calibration": calibration(),
            "coverage": coverage(),
        }
        NUMBERS.write_text(json.dumps(measured, indent=1) + "\n")
    (PAPER / "note.md").write_text(text(json.loads(NUMBERS.read_text())))


def text(numbers: Mapping[str, Any]) -> str:
    """The note with these numbers."""
    environment = Environment(
        loader=FileSystemLoader(PAPER),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
    )
    environment.filters |= {"figure": figure, "interval": interval, "percent": percent}
    pocket, perfect = (
        [row["models"][model]["variant_impact_factor"] for row in numbers["rules"]]
        for model in ("cdta/pocket", "cdta/pocket-rules")
    )
    return environment.get_template("note.md.jinja").render(
        numbers,
        statement=BISHOPS_AS_KNIGHTS.statement,
        pocket_held=sum(found["low"] <= 0 <= found["high"] for found in pocket),
        perfect_held=sum(found["value"] == -1 for found in perfect),
    )


def figure(value: float) -> str:
    """
    >>> figure(-0.0004), figure(-1.0), figure(0.25)
    ('0.000', '−1.000', '0.250')
    """
    return f"{round(value, 3) or 0.0:.3f}".replace("-", "−")


def interval(found: Mapping[str, float | None]) -> str:
    """A value and its interval; a dash where it does not exist."""
    value, low, high = (found[name] for name in ("value", "low", "high"))
    if value is None or low is None or high is None:
        return "–"
    return f"{figure(value)} [{figure(low)}, {figure(high)}]"


def percent(share: float) -> str:
    """A share as the docs write it."""
    return f"{100 * share:.1f}%"


def rules() -> list[dict[str, Any]]:
    """Every model of the package under every rule that takes a move away."""
    with TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        command = [sys.executable, "-m", "cant_do_that_anymore", "experiment", "--rules", "all"]
        command += [each for model in MODELS for each in ("--model", model)]
        command += ["--runs", "1", "-n", str(SAMPLES), "--out", str(out)]
        subprocess.run(command, check=True, env=os.environ | {"CDTA_HOME": f"{folder}/home"})
        copyfile(out / "rules-all.png", PAPER / "rules.png")
        found = json.loads((out / "results.json").read_text())["results"]
    return [
        {"rules": key, "models": _of(key, found)}
        for key, each in CATALOG.items()
        if each.forbids_something
    ]


def _of(rules: str, found: list[dict[str, Any]]) -> dict[str, Any]:
    """What was measured under these rules, by model."""
    return {
        row["model"]: {"samples": row["samples"]}
        | {
            name: {"value": row[name], "low": row[f"{name}_low"], "high": row[f"{name}_high"]}
            for name in KEPT
        }
        for row in found
        if row["rules"] == rules
    }


def calibration() -> dict[str, Any]:
    """Mixtures of two models with a planted share, and what was measured of them."""
    from calibration import STEPS, draw, measured

    found = {}
    for share in STEPS:
        with TemporaryDirectory() as home:
            os.environ["CDTA_HOME"] = home
            found[share] = measured(share, SAMPLES)
    draw(found, PAPER / "calibration.png")
    every = [each.held for step in found.values() for each in step.values()]
    return {
        "held": sum(every),
        "of": len(every),
        "steps": [
            {"share": share}
            | {
                name: asdict(each) | {"value": each.measured, "held": each.held}
                for name, each in step.items()
            }
            for share, step in found.items()
        ],
    }


def coverage() -> dict[str, Any]:
    """How often simulated runs with one sample a game hold the truth, as in the protocol."""
    from coverage import IMPACTS, LOWEST, SHARES, SIZES
    from coverage import coverage as coverage_of_cell
    from known_models import ALONE, design
    from simulating import Simulator

    simulator, found = Simulator(os.cpu_count() or 1), []
    for n in SIZES:
        models = product(SHARES, IMPACTS, (False, True))
        every = [(design(ALONE, n), *model, TIMES) for model in models]
        cells = simulator.each(coverage_of_cell, every).values()
        for measure, held in zip(("impact factor", "delta"), zip(*cells, strict=True), strict=True):
            found.append(
                {
                    "n": n,
                    "measure": measure,
                    "cells": len(held),
                    "lowest": min(held),
                    "mean": sum(held) / len(held),
                    "below": sum(share < LOWEST for share in held),
                }
            )
    return {"times": TIMES, "rows": found}


if __name__ == "__main__":
    main()
