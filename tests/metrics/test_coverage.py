"""The benchmark of coverage, in small: printed intervals contain the truth."""

import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "coverage.py"


def test_printed_intervals_contain_the_truth() -> None:
    """The seeds are fixed, so the result does not depend on luck."""
    command = [sys.executable, str(BENCHMARK), "--cells", "6", "--repeats", "20"]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for table in ("Coverage for one model", "Equal models not called different"):
        assert f"{table}, " in output
    lowest = output.splitlines()[-1]
    assert lowest.startswith("Lowest coverage: ") and lowest.endswith(" (target: 93%).")
    assert float(lowest.split()[2].rstrip("%")) >= 93, output
