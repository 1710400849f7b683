"""Options and help of the commands: grouped, complete and fast to show."""

import json
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from cant_do_that_anymore.cli.help import HEADINGS, Option
from cant_do_that_anymore.cli.main import COMMANDS, DATASET_COMMANDS
from cant_do_that_anymore.cli.main import cdta as group
from cant_do_that_anymore.task.spec import OPTIONS
from testing import cdta

MODEL_COMMANDS = [("run",), ("dataset", "build"), ("experiment",), ("estimate",)]
SHORT_HELP = {
    (*prefix, name): line
    for prefix, table in (((), COMMANDS), (("dataset",), DATASET_COMMANDS))
    for entries in table.values()
    for name, (_, line) in entries.items()
}


def command(*names: str) -> click.Command:
    context = click.Context(group)
    current: click.Command = group
    for name in names:
        assert isinstance(current, click.Group)
        subcommand = current.get_command(context, name)
        assert subcommand, name
        current = subcommand
    return current


def help_of(*names: str) -> str:
    option = "--help-all" if names in MODEL_COMMANDS else "--help"
    return cdta(*names, option).stdout


@pytest.mark.parametrize("names", MODEL_COMMANDS, ids=" ".join)
def test_help_shows_every_option_once_under_its_heading(names: tuple[str, ...]) -> None:
    text = help_of(*names)
    starts = [text.index(f"\n{heading}:\n") for heading in HEADINGS]
    assert starts == sorted(starts)
    ends = [*starts[1:], len(text)]
    sections = dict(zip(HEADINGS, map(slice, starts, ends), strict=True))
    for option in command(*names).params:
        if isinstance(option, Option):
            line = f"\n  {', '.join(option.opts)} "
            assert text.count(line) == text[sections[option.heading]].count(line) == 1


def test_help_lists_every_command_with_the_first_line_of_its_help() -> None:
    assert all(f"\n  {name} " in help_of() for name in group.list_commands(click.Context(group)))
    for names, line in {(): "", **SHORT_HELP}.items():
        assert max(map(len, help_of(*names).splitlines())) <= 80
        assert not names or command(*names).get_short_help_str(limit=100) == line


def test_help_fits_one_screen_and_help_all_lists_every_option() -> None:
    brief, everything = (cdta("run", f"--{name}").stdout for name in ("help", "help-all"))
    assert len(brief.splitlines()) <= 45
    assert "--help-all" in brief and "--reading" not in brief
    for name in OPTIONS:
        assert re.search(rf"^  --?{name.replace('_', '-')}\b", everything, re.MULTILINE), name


def test_several_evals_can_be_repeated_or_separated_by_commas() -> None:
    for options in (["--eval", "all_small,all"], ["--eval", "all_small", "--eval", "all"]):
        output = cdta("estimate", "--model", "cdta/random", "-n", 2, "--json", *options).stdout
        assert [estimate["eval"] for estimate in json.loads(output)] == ["all_small", "all"]


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
