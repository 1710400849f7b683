"""Options and help of the commands: grouped, complete and fast to show."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cant_do_that_anymore.cli.help import HEADINGS
from cant_do_that_anymore.task.spec import OPTIONS
from testing import cdta


def test_help_fits_one_screen_and_help_all_lists_every_option_under_a_heading() -> None:
    brief, everything = (cdta("run", f"--{name}").stdout for name in ("help", "help-all"))
    assert len(brief.splitlines()) <= 45
    assert "--help-all" in brief and "--reading" not in brief
    starts = [everything.index(f"\n{heading}:\n") for heading in HEADINGS]
    assert starts == sorted(starts)
    for name in OPTIONS:
        assert len(re.findall(rf"^  --?{name.replace('_', '-')}\b", everything, re.M)) == 1, name


SLOW = ("aiohttp", "inspect_ai", "matplotlib", "numpy", "onnxruntime", "pydantic", "rich", "yaml")


@pytest.mark.parametrize(
    ("arguments", "unwanted"),
    [
        (["--help"], (*SLOW, "chess", "cant_do_that_anymore.cli.commands")),
        (["rules"], [name for name in SLOW if name not in ("pydantic", "rich")]),
        (["mine", "games.pgn"], (*SLOW, "httpx", "cant_do_that_anymore.task.spec")),
        (
            ["run", "--model", "cdta/random", "-n", "1", "--quiet"],
            ("inspect_ai", "matplotlib", "onnxruntime"),
        ),
    ],
)
def test_a_command_imports_only_what_it_needs(
    arguments: list[str], unwanted: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "games.pgn").write_text("1. e4 e5 2. Bc4 Nc6 1-0")
    program = (
        "import json, sys; from cant_do_that_anymore.cli.main import cdta\n"
        f"try: cdta({arguments}, standalone_mode=False)\n"
        "finally: print(json.dumps(list(sys.modules)), file=sys.stderr)"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not set(unwanted) & set(json.loads(done.stderr.splitlines()[-1]))
