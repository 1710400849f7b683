"""Writes the technical note: runs its evaluations, draws its figures and renders its text.

    python tools/paper.py           # measure everything again: a quarter of an hour
    python tools/paper.py --text    # render the text with the stored numbers: a second

``docs/paper/note.md.jinja`` is the template, and ``docs/paper/numbers.json`` stores the measured
numbers. ``note.md`` in the same folder is rendered from the two; never edit it by hand.
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
RULE_MEASURES = ("rule_uptake", "variant_impact_factor")
"""The measures of the table of rules."""
SIMULATED_RUNS = 2000
"""Simulated runs per model."""


def main() -> None:
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--text", action="store_true", help="render the text only")
    if not parser.parse_args().text:
        sys.path.insert(0, str(ROOT / "benchmarks"))
        numbers = {
            "date": f"{datetime.now(UTC):%Y-%m-%d}",
            "protocol": PROTOCOL,
            "samples": SAMPLES,
            "rules": measure_rules(),
            "calibration": measure_calibration(),
            "coverage": measure_coverage(),
        }
        NUMBERS.write_text(json.dumps(numbers, indent=1) + "\n")
    (PAPER / "note.md").write_text(text(json.loads(NUMBERS.read_text())))


def text(numbers: Mapping[str, Any]) -> str:
    """Return the note with these numbers."""
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
        pocket_held=sum(result["low"] <= 0 <= result["high"] for result in pocket),
        perfect_held=sum(result["value"] == -1 for result in perfect),
    )


def figure(value: float) -> str:
    """
    >>> figure(-0.0004), figure(-1.0), figure(0.25)
    ('0.000', '−1.000', '0.250')
    """
    return f"{round(value, 3) or 0.0:.3f}".replace("-", "−")


def interval(result: Mapping[str, float | None]) -> str:
    """Return a value with its interval, or a dash if there is none."""
    value, low, high = (result[name] for name in ("value", "low", "high"))
    if value is None or low is None or high is None:
        return "–"
    return f"{figure(value)} [{figure(low)}, {figure(high)}]"


def percent(share: float) -> str:
    """Return a share as a percentage."""
    return f"{100 * share:.1f}%"


def measure_rules() -> list[dict[str, Any]]:
    """Evaluate every model of the table under every rule that forbids a move."""
    with TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        command = [sys.executable, "-m", "cant_do_that_anymore", "experiment", "--rules", "all"]
        command += [argument for model in MODELS for argument in ("--model", model)]
        command += ["--runs", "1", "-n", str(SAMPLES), "--out", str(out)]
        subprocess.run(command, check=True, env=os.environ | {"CDTA_HOME": f"{folder}/home"})
        copyfile(out / "rules-all.png", PAPER / "rules.png")
        results = json.loads((out / "results.json").read_text())["results"]
    return [
        {"rules": key, "models": _results_by_model(key, results)}
        for key, rules in CATALOG.items()
        if rules.forbids_something
    ]


def _results_by_model(rules: str, results: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the results under these rules, by model."""
    return {
        row["model"]: {"samples": row["samples"]}
        | {
            name: {"value": row[name], "low": row[f"{name}_low"], "high": row[f"{name}_high"]}
            for name in RULE_MEASURES
        }
        for row in results
        if row["rules"] == rules
    }


def measure_calibration() -> dict[str, Any]:
    """Evaluate mixtures of two models with a planted share, and plot the results."""
    from calibration import PLANTED_SHARES, measure_mixture, plot

    by_share = {}
    for share in PLANTED_SHARES:
        with TemporaryDirectory() as home:
            os.environ["CDTA_HOME"] = home
            by_share[share] = measure_mixture(share, SAMPLES)
    plot(by_share, PAPER / "calibration.png")
    covered = [point.is_covered for points in by_share.values() for point in points.values()]
    return {
        "held": sum(covered),
        "of": len(covered),
        "steps": [
            {"share": share}
            | {
                name: asdict(point) | {"value": point.measured, "held": point.is_covered}
                for name, point in points.items()
            }
            for share, points in by_share.items()
        ],
    }


def measure_coverage() -> dict[str, Any]:
    """Simulate the coverage of intervals with one sample per game, as in the protocol."""
    from coverage import IMPACTS, MEASURES, SHARES, SIZES, simulate_coverage
    from simulated_models import ONE_PER_GAME, make_design
    from simulator import MIN_COVERAGE, Simulator

    simulator, rows = Simulator(os.cpu_count() or 1), []
    for n in SIZES:
        design, models = make_design(ONE_PER_GAME, n), product(SHARES, IMPACTS, (False, True))
        cells = [(design, *model, SIMULATED_RUNS) for model in models]
        results = simulator.run("coverage", simulate_coverage, cells).values()
        for measure, shares in zip(MEASURES, zip(*results, strict=True), strict=True):
            rows.append(
                {
                    "n": n,
                    "measure": measure,
                    "cells": len(shares),
                    "lowest": min(shares),
                    "mean": sum(shares) / len(shares),
                    "below": sum(share < MIN_COVERAGE for share in shares),
                }
            )
    return {"times": SIMULATED_RUNS, "rows": rows}


if __name__ == "__main__":
    main()
