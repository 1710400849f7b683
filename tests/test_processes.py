"""A command in the process of the tests behaves as in its own process."""

import logging
import os
import sys
import tempfile
import warnings
from pathlib import Path

import pytest

import processes
from processes import cdta, process_of, results_in, samples_in


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["legal", "e2e4", "e2e5"],
        ["run", "--model", "cdta/rnadom"],
    ],
    ids=" ".join,
)
def test_it_says_the_same_and_ends_with_the_same_code(arguments: list[str]) -> None:
    process = process_of(*arguments, COLUMNS="80")
    out, err = process.communicate(timeout=60)
    here = cdta(*arguments)
    assert (here.stdout, here.stderr, here.returncode) == (out, err, process.returncode)


def test_it_measures_the_same(tmp_path: Path) -> None:
    run = ("run", "--model", "cdta/random", "--eval", "all_diagonal", "-n", 3, "--quiet", "--out")
    process = process_of(*run, tmp_path / "there", CDTA_HOME=str(tmp_path / "elsewhere"))
    process.communicate(timeout=60)
    cdta(*run, tmp_path / "here", code=0)
    assert samples_in(tmp_path / "here") == samples_in(tmp_path / "there")
    assert results_in(tmp_path / "here") == results_in(tmp_path / "there")


def test_it_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    def state() -> list[object]:
        log = logging.getLogger()
        return [
            *(dict(os.environ), sys.argv, sys.stdin, sys.stdout, sys.stderr, tempfile.tempdir),
            *(log.level, list(log.handlers), logging.getLogger("some library").level),
            *(list(warnings.filters), warnings.showwarning),
        ]

    def busy() -> None:
        os.environ["SOME_VARIABLE"] = "x"
        tempfile.gettempdir()
        logging.basicConfig(level=logging.DEBUG)
        logging.getLogger("some library").setLevel(logging.CRITICAL)
        logging.info("a line of the log")
        warnings.warn("a warning", UserWarning, stacklevel=1)
        raise RuntimeError("a fault")

    logging.getLogger("some library").setLevel(logging.INFO)
    before = state()
    monkeypatch.setattr(processes, "cdta_main", busy)
    done = cdta()
    assert state() == before
    assert done.returncode == 1
    for words in ("a line of the log", "UserWarning: a warning", "RuntimeError: a fault"):
        assert words in done.stderr
