"""Measure readers that saw more or fewer rule texts in training: does the instrument tell?

    python benchmarks/dose_response.py DIR 0.0 0.01 0.02 0.05 0.1 0.2 0.5

DIR/DOSE holds the network of a dose as `training/export.py` writes it (pocket.onnx, pocket.json).
Every dose is measured with a diagnosis, with all wordings, and under two rules that no training
text states.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from cant_do_that_anymore import Run, Spec, evaluate
from cant_do_that_anymore.providers import pocket

N = 300
HELD_OUT = ("bishops-as-rooks", "pawns-one-step")
MEASURES = {
    "rule uptake": "rule_uptake",
    "J": "rule_knowledge",
    "gap": "knowing_doing_gap",
    "placebo": "placebo_impact_factor",
    "controls": "collateral_change",
}
HEADS = ("dose", "habit", *MEASURES, "all wordings", "spread", *HELD_OUT)


def measure(folder: Path, **options: Any) -> Run:
    """Measure the reader in a folder."""
    pocket.load_network.cache_clear()
    with patch.object(pocket, "DATA", folder):
        return evaluate(Spec(model="cdta/reader", n=N, **options), quiet=True)


def shown(run: Run, name: str) -> str:
    """Return a measure with its interval."""
    value, interval = run.results.metrics.get(name), run.results.intervals.get(name)
    if value is None:
        return "–"
    return f"{value:.2f} [{interval.low:.2f}, {interval.high:.2f}]" if interval else f"{value:.2f}"


def row(dose: str, folder: Path) -> list[str]:
    """Measure a dose and return its row of the table."""
    run = measure(folder, diagnose=True)
    worded = measure(folder, wording="all").results.wordings
    assert worded
    return [
        f"{float(dose):.0%}",
        f"{run.results.metrics['predicted_move_proportion']:.0%}",
        *(shown(run, name) for name in MEASURES.values()),
        f"{worded.low:.2f} to {worded.high:.2f}",
        f"{worded.spread:.2f} [{worded.spread_low:.2f}, {worded.spread_high:.2f}]",
        *(shown(measure(folder, rules=rules), "rule_uptake") for rules in HELD_OUT),
    ]


def main() -> None:
    """Print a row for each dose."""
    folder, *doses = sys.argv[1:]
    print(f"| {' | '.join(HEADS)} |\n|{' ---: |' * len(HEADS)}")
    for dose in doses:
        with TemporaryDirectory() as home, patch.dict("os.environ", CDTA_HOME=home):
            print(f"| {' | '.join(row(dose, Path(folder) / dose))} |", flush=True)


if __name__ == "__main__":
    main()
