"""A command in the test process behaves as in its own process."""

import logging
import os
import sys
import tempfile
import warnings
from pathlib import Path

import pytest

import processes
from processes import cdta, results_in, samples_in, start_cdta


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["rules", "e2e4"],
        ["run", "--model", "cdta/rnadom"],
    ],
    ids=" ".join,
)
def test_output_and_exit_code_are_the_same(arguments: list[str]) -> None:
    process = start_cdta(*arguments, COLUMNS="80")
    stdout, stderr = process.communicate(timeout=60)
    result = cdta(*arguments)
    assert (result.stdout, result.stderr, result.returncode) == (stdout, stderr, process.returncode)


def test_measurements_are_the_same(tmp_path: Path) -> None:
    run = ("run", "--model", "cdta/random", "--eval", "all_diagonal", "-n", 3, "--quiet", "--out")
    process = start_cdta(*run, tmp_path / "other process", CDTA_HOME=str(tmp_path / "other home"))
    process.communicate(timeout=60)
    cdta(*run, tmp_path / "this process", code=0)
    assert samples_in(tmp_path / "this process") == samples_in(tmp_path / "other process")
    assert results_in(tmp_path / "this process") == results_in(tmp_path / "other process")


def test_a_command_leaves_no_state_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    def state() -> list[object]:
        log = logging.getLogger()
        return [
            *(dict(os.environ), sys.argv, sys.stdin, sys.stdout, sys.stderr, tempfile.tempdir),
            *(log.level, list(log.handlers), logging.getLogger("some library").level),
            *(list(warnings.filters), warnings.showwarning),
        ]

    def main_with_side_effects() -> None:
        os.environ["SOME_VARIABLE"] = "x"
        tempfile.gettempdir()
        logging.basicConfig(level=logging.DEBUG)
        logging.getLogger("some library").setLevel(logging.CRITICAL)
        logging.info("a line of the log")
        warnings.warn("a warning", UserWarning, stacklevel=1)
        raise RuntimeError("a fault")

    logging.getLogger("some library").setLevel(logging.INFO)
    before = state()
    monkeypatch.setattr(processes, "cdta_main", main_with_side_effects)
    result = cdta()
    assert state() == before
    assert result.returncode == 1
    for words in ("a line of the log", "UserWarning: a warning", "RuntimeError: a fault"):
        assert words in result.stderr
