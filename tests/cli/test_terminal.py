"""No control characters reach the terminal, and a full device gives a one-sentence error."""

import subprocess
import sys
from pathlib import Path
from unicodedata import category

import pytest
from aiohttp import web

from processes import PROGRAM
from testing import Body, CompletedCommand, cdta, habit, needs_linux, positions, serving

DATASET = positions(5)
CONTROL_CODES = "\x1b]0;title\x07\x1b[31mred[/b]\x9b31m\u202e\x08"
"""It also has what looks like markup of the library that prints."""


def check_printable(done: CompletedCommand, expected: str = "31mred[/b]") -> None:
    output = done.stdout + done.stderr
    assert {character for character in output if category(character)[0] == "C"} <= {"\n"}
    assert expected in output


@pytest.mark.usefixtures("no_plots")
def test_names_cannot_control_the_terminal(tmp_path: Path) -> None:
    out, other = tmp_path / "out", tmp_path / "other"
    with serving(habit, model=f"v{CONTROL_CODES}") as server:
        options = ["--base-url", server.url, "--model", f"m{CONTROL_CODES}", "--dataset", DATASET]
        check_printable(cdta("run", *options, "--out", out))
        check_printable(cdta("run", *options[:3], "n", *options[4:], "--out", other))
        check_printable(cdta("estimate", *options, "--seed", 1))
        check_printable(cdta("dataset", "build", *options[:4], "--pool", DATASET))
        check_printable(cdta("dataset", "list"), "31mred")
    check_printable(cdta("compare", out, other))
    check_printable(cdta("runs", tmp_path), "]0;title")  # the table shortens the name
    plotted = cdta("experiment", out, other, "--out", tmp_path / "plotted")
    check_printable(plotted, "]0;title")


def test_errors_cannot_control_the_terminal() -> None:
    async def refuse(request: Body, number: int) -> web.Response:
        return web.json_response({"error": {"message": CONTROL_CODES}}, status=401)

    with serving(habit, fault=refuse) as server:
        check_printable(cdta("run", "--base-url", server.url, "--model", "m", "--dataset", DATASET))


@needs_linux
def test_a_full_output_device_gives_a_one_sentence_error() -> None:
    command = ["sh", "-c", 'exec "$@" >/dev/full', "sh", sys.executable, "-c", PROGRAM, "rules"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "cdta: cannot continue: No space left on device\n"
