"""Progress in plain lines; the bar is for the eye."""

import pytest

from cant_do_that_anymore import Spec, evaluate
from cant_do_that_anymore import progress as module
from cant_do_that_anymore.progress import (
    overall_progress,
    progress,
    progress_display,
    status_callback,
)
from loopback import Loopback, serving
from players import habit


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which a test moves on."""
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


@pytest.mark.parametrize(
    ("total", "steps", "told"),
    [
        (
            4,
            [(1, 1, ""), (16, 1, "2 errors"), (1, 1, ""), (2, 1, "")],
            ["2/4, 8 s each, 2 errors, 17 s left", "4/4, 5 s each, 0 s left"],
        ),
        (41, [(270, 1, "")], ["1/41, 4 min each, 3 h left"]),
        # The pace is that of the last steps and not of what was kept from before.
        (1000, [(1, 900, ""), *[(60, 1, "")] * 30], ["930/1000, 60 s each, 70 min left"]),
        # What goes on between steps is told, too.
        (
            5,
            [(20, 0, "9 asked"), (20, 1, "12 asked")],
            ["0/5, 9 asked", "1/5, 40 s each, 12 asked, 3 min left"],
        ),
    ],
    ids=["now and then", "long", "pace", "between"],
)
def test_steps_are_told_now_and_then_and_at_the_end(
    total: int,
    steps: list[tuple[float, int, str]],
    told: list[str],
    clock: list[float],
    capsys: pytest.CaptureFixture[str],
) -> None:
    with progress("measuring m", total, quiet=False) as advance:
        for seconds, done, remark in steps:
            clock[0] += seconds
            for one in [1] * done or [0]:
                advance(one, remark=remark.strip)
    lines = capsys.readouterr().err.splitlines()
    assert lines[-len(told) :] == [f"measuring m: {line}" for line in told]
    assert len(lines) == len(told) or total == 1000


def test_a_model_that_thinks_long_does_not_look_dead(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "PLAIN_LINE_SECONDS", 0.1)
    with serving(Loopback(habit, delay=0.25)) as server:
        evaluate(Spec(model="m", base_url=server.url, n=1))
    told = capsys.readouterr().err.splitlines()
    assert told[0] == "contacting m: nothing yet"
    assert told[-2] == "measuring m: nothing yet"
    assert told[-1].startswith("measuring m: 1/1, ")


def test_a_share_that_is_not_known_tells_no_time(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with progress_display("mining", quiet=False) as show:
        clock[0] += 20
        show(None, "3 positions")
        clock[0] += 20
        show(0.8, "80% read, 5 positions")
    assert capsys.readouterr().err.splitlines() == [
        "mining: 3 positions",
        "mining: 80% read, 5 positions, 10 s left",
    ]


def test_quiet_is_quiet(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with progress("measuring m", 1, quiet=True) as advance:
        clock[0] += 100
        advance()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("plain", [False, True])
def test_a_terminal_gets_a_bar_unless_lines_are_written_to_it(
    plain: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "100")
    with progress_display("mining [bold]", quiet=False, plain=plain) as show:
        show(0.5, "half of it")
        show(1.0, "all of it")
    told = capsys.readouterr().err
    assert "all of it" in told
    assert (told == "mining [bold]: all of it, 0 s left\n") is plain


def test_while_others_decide_how_long_it_takes_no_pace_is_told(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with progress("measuring m", 4, quiet=False) as advance:
        advance()
        clock[0] += 3600
        status_callback(advance)("batch in progress: 3 of 7 answered")
    assert capsys.readouterr().err == "measuring m: 1/4, batch in progress: 3 of 7 answered\n"


def test_parts_of_a_whole_are_told_with_the_time_that_all_of_it_takes(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    took: list[float] = []
    for number in (1, 2):
        with (
            overall_progress(f"run {number} of 3: m", 3 - number, took),
            progress("measuring m", 4, quiet=False) as advance,
        ):
            for _ in range(2):
                clock[0] += 20 * number
                advance()
    assert capsys.readouterr().err.splitlines() == [
        # as if the others took as long as the first, 80 s
        "run 1 of 3: m: measuring m: 1/4, 20 s each, 60 s left, 4 min left of all",
        "run 1 of 3: m: measuring m: 2/4, 20 s each, 40 s left, 3 min left of all",
        # as long as the first took, 40 s
        "run 2 of 3: m: measuring m: 1/4, 40 s each, 2 min left, 3 min left of all",
        "run 2 of 3: m: measuring m: 2/4, 40 s each, 80 s left, 2 min left of all",
    ]
    assert took == [40, 80]


def test_a_terminal_shows_the_part_above_its_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "100")
    with (
        overall_progress("run 4 of 18: beta [bold], seed 2", 1, [60.0]),
        progress_display("m", quiet=False) as show,
    ):
        show(1.0, "all of it")
    assert "run 4 of 18: beta [bold], seed 2, 60 s left of all\n" in capsys.readouterr().err
