"""Progress: plain lines in logs, a bar in terminals."""

import re
import sys
from io import StringIO

import pytest

from cant_do_that_anymore.progress import announce, progress


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The current time, which tests advance."""
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


PERIODIC = [(1, 1, ""), (16, 1, "2 errors"), (1, 1, ""), (2, 1, "")]
FACTS_BETWEEN_STEPS = [(20, 0, "9 sent"), (20, 1, "12 sent")]
SLOW_AFTER_CACHED = [(1, 900, ""), *[(60, 1, "")] * 30]


@pytest.mark.parametrize(
    ("total", "steps", "n_lines", "expected"),
    [
        (4, PERIODIC, 2, ["2/4, 17 s left, 2 errors", "4/4, 0 s left"]),
        (41, [(270, 1, "")], 1, ["1/41, 3 h left"]),
        (1000, SLOW_AFTER_CACHED, 30, ["930/1000, 70 min left"]),
        (5, FACTS_BETWEEN_STEPS, 2, ["0/5, 9 sent", "1/5, 3 min left, 12 sent"]),
    ],
)
def test_progress_lines_appear_periodically_and_at_the_end(
    total: int,
    steps: list[tuple[float, int, str]],
    n_lines: int,
    expected: list[str],
    clock: list[float],
    capsys: pytest.CaptureFixture[str],
) -> None:
    for quiet in (True, False):
        with progress("measuring m", total, quiet=quiet) as advance:
            for seconds, n_steps, fact in steps:
                clock[0] += seconds
                for step in [1] * n_steps or [0]:
                    advance(step, [fact])
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) == (0 if quiet else n_lines)
    assert lines[-len(expected) :] == [f"measuring m: {line}" for line in expected]


def test_notebooks_show_progress_on_standard_output(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook_stream = type("OutStream", (StringIO,), {"__module__": "ipykernel.iostream"})
    monkeypatch.setattr(sys, "stderr", notebook_stream())  # which notebooks show in red
    announce("run 1 of 3: m")
    with progress("measuring m", 1, quiet=False) as advance:
        advance()
    assert capsys.readouterr().out.startswith("run 1 of 3: m\nmeasuring m: 1/1")


def test_a_long_name_is_cut_to_fit_one_line_of_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for is_terminal, name in ((False, "m{90}:"), (True, "m{10,}…")):
        monkeypatch.setattr("sys.stderr.isatty", lambda shown=is_terminal: shown)
        with progress("measuring [bold] " + 90 * "m", 1, quiet=False) as advance:
            advance(facts=["$0.01"])
        text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", capsys.readouterr().err)
        line = next(line for line in re.split(r"[\r\n]+", text) if " 1/1" in line)
        assert re.search(rf"measuring \[bold\] {name} 1/1, 0 s left, \$0\.01$", line.rstrip())
        assert not is_terminal or 70 < len(line) <= 80
