"""What reaches the terminal: nothing that steers it, and a sentence where it takes nothing."""

import subprocess
import sys
from pathlib import Path
from unicodedata import category

import pytest
from aiohttp import web

from processes import PROGRAM
from testing import Body, Done, cdta, habit, needs_linux, positions, serving

FIVE = positions(5)
STEERING = "\x1b]0;title\x07\x1b[31mred\x9b31m\u202e\x08"


def check_tame(done: Done, name: str = "31mred") -> None:
    said = done.stdout + done.stderr
    assert {letter for letter in said if category(letter)[0] == "C"} <= {"\n"}
    assert name in said


@pytest.mark.usefixtures("no_plots")
def test_no_name_steers_the_terminal(tmp_path: Path) -> None:
    out, other = tmp_path / "out", tmp_path / "other"
    with serving(habit, model=f"v{STEERING}") as server:
        whom = ["--base-url", server.url, "--model", f"m{STEERING}", "--dataset", FIVE]
        check_tame(cdta("run", *whom, "--out", out))
        check_tame(cdta("run", *whom[:3], "n", *whom[4:], "--out", other))
        check_tame(cdta("estimate", *whom, "--seed", 1))
        check_tame(cdta("dataset", "build", *whom[:4], "--pool", FIVE))
        check_tame(cdta("dataset", "show", f"v{STEERING}"))
    check_tame(cdta("compare", out, other))
    check_tame(cdta("runs", tmp_path), "]0;title")  # a cell of a table is cut
    drawn = cdta("experiment", "--plots-only", out, other, "--out", tmp_path / "drawn")
    check_tame(drawn, "]0;title")


def test_no_error_steers_the_terminal() -> None:
    async def refuse(request: Body, number: int) -> web.Response:
        return web.json_response({"error": {"message": STEERING}}, status=401)

    with serving(habit, fault=refuse) as server:
        check_tame(cdta("run", "--base-url", server.url, "--model", "m", "--dataset", FIVE))


@needs_linux
def test_a_full_disk_behind_standard_output_is_one_sentence() -> None:
    command = ["sh", "-c", 'exec "$@" >/dev/full', "sh", sys.executable, "-c", PROGRAM, "rules"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "cdta: cannot continue: No space left on device\n"
