"""The technical note says what was measured, and nothing else."""

import json
from pathlib import Path
from runpy import run_path

ROOT = Path(__file__).parents[1]
PAPER = ROOT / "docs" / "paper"


def test_every_number_of_the_note_is_a_measured_one() -> None:
    written = run_path(str(ROOT / "tools" / "paper.py"))["text"]
    numbers = json.loads((PAPER / "numbers.json").read_text())
    assert written(numbers) == (PAPER / "note.md").read_text()
    numbers["calibration"]["held"] += 1
    assert written(numbers) != (PAPER / "note.md").read_text()
