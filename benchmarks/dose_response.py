"""Evaluates readers that were trained with different doses of rule texts.

    python benchmarks/dose_response.py DIR 0.0 0.01 0.02 0.05 0.1 0.2 0.5

DIR/DOSE contains the network of a dose (pocket.onnx and pocket.json, which `training/export.py`
writes). Each reader is evaluated with a diagnosis and all wordings, and under two rules that no
training text states.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from markdown_tables import print_heading, print_row

from cant_do_that_anymore import Run, Spec, evaluate
from cant_do_that_anymore.formatting import rounded
from cant_do_that_anymore.providers import bundled

SAMPLES = 300
HELD_OUT_RULES = ("bishops-as-rooks", "pawns-one-step")
FINDINGS = ("knowledge", "rule_effect", "reminder_effect", "other_play")
HEADINGS = ("dose", "habit", "rule uptake", *FINDINGS, "by wording", "spread", *HELD_OUT_RULES)


def evaluate_reader(folder: Path, **options: Any) -> Run:
    """Evaluate the reader in a folder."""
    bundled.load_network.cache_clear()
    with patch.object(bundled, "DATA", folder):
        return evaluate(Spec(model="cdta/reader", n=SAMPLES, **options), quiet=True)


def uptake_of(run: Run) -> str:
    """Return the rule uptake with its interval."""
    return run["rule_uptake"].as_share if run.results.uptake else "–"


def evaluate_dose(dose: str, folder: Path) -> list[str]:
    """Evaluate the reader of a dose, and return its row of the table."""
    run = evaluate_reader(folder, diagnose=True)
    wordings, findings = run.results.wordings, run.results.diagnosis
    assert wordings
    values = [estimate.value for estimate in wordings.by_wording.values()]
    estimates = (findings[name].estimate for name in FINDINGS)
    return [
        f"{float(dose):.0%}",
        rounded(run["predicted_move_proportion"].value),
        uptake_of(run),
        *(estimate.as_points if estimate else "–" for estimate in estimates),
        f"{rounded(min(values))} to {rounded(max(values))}",
        wordings.spread.as_points,
        *(uptake_of(evaluate_reader(folder, rules=rules)) for rules in HELD_OUT_RULES),
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
