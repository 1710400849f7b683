"""Progress in plain lines; the bar is for the eye."""

import pytest

from cant_do_that_anymore.progress import progress, shown


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which a test moves on."""
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


def test_steps_are_told_now_and_then_and_at_the_end(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with progress("measuring m", 4, quiet=False) as advance:
        for seconds in (1, 16, 1, 2):
            clock[0] += seconds
            advance(remark="2 errors" if seconds == 16 else "")
    assert capsys.readouterr().err.splitlines() == [
        "measuring m: 2/4, 0/s, 2 errors, 17 s left",
        "measuring m: 4/4, 0/s, 0 s left",
    ]


def test_a_share_that_is_not_known_tells_no_time(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with shown("mining", quiet=False) as show:
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
    with shown("mining [bold]", quiet=False, plain=plain) as show:
        show(0.5, "half of it")
        show(1.0, "all of it")
    told = capsys.readouterr().err
    assert "all of it" in told
    assert (told == "mining [bold]: all of it, 0 s left\n") is plain
