"""Evaluates readers that were trained with different doses of rule texts.

    python benchmarks/dose_response.py DIR 0.0 0.01 0.02 0.05 0.1 0.2 0.5

DIR/DOSE contains the network of a dose (pocket.onnx and pocket.json, which `training/export.py`
writes). Each reader is evaluated with a diagnosis, with all wordings, and under two rules that no
training text states.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from markdown_tables import print_heading, print_row

from cant_do_that_anymore import Run, Spec, evaluate
from cant_do_that_anymore.providers import pocket

SAMPLES = 300
HELD_OUT_RULES = ("bishops-as-rooks", "pawns-one-step")
MEASURES = {
    "rule uptake": "rule_uptake",
    "J": "rule_knowledge",
    "gap": "knowing_doing_gap",
    "placebo": "placebo_impact_factor",
    "controls": "collateral_change",
}
HEADINGS = ("dose", "habit", *MEASURES, "all wordings", "spread", *HELD_OUT_RULES)


def evaluate_reader(folder: Path, **options: Any) -> Run:
    """Evaluate the reader in a folder."""
    pocket.load_network.cache_clear()
    with patch.object(pocket, "DATA", folder):
        return evaluate(Spec(model="cdta/reader", n=SAMPLES, **options), quiet=True)


def format_measure(run: Run, name: str) -> str:
    """Return the value of a measure with its interval."""
    value, interval = run.results.metrics.get(name), run.results.intervals.get(name)
    if value is None:
        return "–"
    return f"{value:.2f} [{interval.low:.2f}, {interval.high:.2f}]" if interval else f"{value:.2f}"


def evaluate_dose(dose: str, folder: Path) -> list[str]:
    """Evaluate the reader of a dose, and return its row of the table."""
    run = evaluate_reader(folder, diagnose=True)
    wordings = evaluate_reader(folder, wording="all").results.wordings
    assert wordings
    return [
        f"{float(dose):.0%}",
        f"{run.results.metrics['predicted_move_proportion']:.0%}",
        *(format_measure(run, name) for name in MEASURES.values()),
        f"{wordings.low:.2f} to {wordings.high:.2f}",
        f"{wordings.spread:.2f} [{wordings.spread_low:.2f}, {wordings.spread_high:.2f}]",
        *(
            format_measure(evaluate_reader(folder, rules=rules), "rule_uptake")
            for rules in HELD_OUT_RULES
        ),
    ]


def main() -> None:
    """Print a row for each dose."""
    folder, *doses = sys.argv[1:]
    print_heading(*HEADINGS)
    for dose in doses:
        with TemporaryDirectory() as home, patch.dict("os.environ", CDTA_HOME=home):
            print_row(*evaluate_dose(dose, Path(folder) / dose))


if __name__ == "__main__":
    main()
