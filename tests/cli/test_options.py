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
from testing import cdta, oaieval

CONTEXT = click.Context(group)
MODEL_COMMANDS = [("run",), ("dataset", "build"), ("experiment",), ("estimate",)]
SHORT_HELP = {
    (*prefix, name): line
    for prefix, table in (((), COMMANDS), (("dataset",), DATASET_COMMANDS))
    for entries in table.values()
    for name, (_, line) in entries.items()
}


def command(*names: str) -> click.Command:
    current: click.Command = group
    for name in names:
        assert isinstance(current, click.Group)
        subcommand = current.get_command(CONTEXT, name)
        assert subcommand, name
        current = subcommand
    return current


def help_of(*names: str) -> str:
    option = "--help-all" if names in MODEL_COMMANDS else "--help"
    return cdta(*names, option).stdout


def test_several_evals_can_be_repeated_or_separated_by_commas() -> None:
    for options in (["--eval", "all_small,all"], ["--eval", "all_small", "--eval", "all"]):
        output = cdta("estimate", "--model", "cdta/random", "-n", 2, "--json", *options).stdout
        assert [estimate["eval"] for estimate in json.loads(output)] == ["all_small", "all"]


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


def test_program_help_lists_every_command() -> None:
    text = help_of()
    starts = [text.index(f"\n{heading}:\n") for heading in COMMANDS]
    assert starts == sorted(starts)
    assert all(f"\n  {name} " in text for name in group.list_commands(CONTEXT))
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("names", SHORT_HELP, ids=" ".join)
def test_program_help_repeats_the_first_line_of_a_commands_help(names: tuple[str, ...]) -> None:
    assert command(*names).get_short_help_str(limit=100) == SHORT_HELP[names]
    assert command(*names).name == names[-1]
    assert max(map(len, help_of(*names).splitlines())) <= 80
    if names not in (("dataset",), ("oaieval",)):
        assert "\nOutput:\n" in help_of(*names)
        assert "\nOptions:\n" not in help_of(*names)


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


def test_names_that_look_like_markup_are_printed_unchanged(tmp_path: Path) -> None:
    folder = tmp_path / "a[/b] [red]:smile:"
    run = cdta("run", "--model", "cdta/random", "-n", 2, "--quiet", "--out", folder)
    assert str(folder) in run.stdout
    options = ("--base-url", "http://127.0.0.1:9/v1", "--model", "x[/b]", "-n", 2)
    assert "x[/b]" in cdta("estimate", *options).stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["compare", "--tolerance", "x", "a"], "tolerance must be a valid number, not 'x'"),
        (
            ["compare", "--tolerance", 200, "a"],
            "tolerance must be less than or equal to 100",
        ),
        (["compare", "--tolerance", "nan", "a"], "tolerance must be a finite number, not 'nan'"),
        (["compare", "--tolerance"], "option '--tolerance' requires an argument"),
        (["compare"], "missing argument 'RUN...'; see `cdta compare --help`"),
        (["dataset", "list", "--foo"], "no such option '--foo'; see `cdta dataset list --help`"),
        (["run", "--temprature", 1], "no such option '--temprature'; did you mean '--temp"),
        (["--foo"], "no such option '--foo'; see `cdta --help`"),
    ],
)
def test_invalid_arguments_give_a_one_sentence_error(
    arguments: list[object], sentence: str
) -> None:
    error = cdta(*arguments, code=2).stderr
    assert error.startswith(f"cdta: {sentence}") and error.count("\n") == 1


def test_a_missing_command_gives_the_usage_and_oaieval_one_sentence() -> None:
    assert "Usage: cdta dataset" in cdta("dataset").stderr
    stderr = oaieval("a", "b", "--max_samples", "x", code=2).stderr
    assert stderr.startswith("oaieval: invalid value for '--max_samples': 'x' is not a valid in")


def test_help_fits_one_screen_and_help_all_lists_every_option(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    brief, everything = (cdta("run", f"--{name}").stdout for name in ("help", "help-all"))
    assert len(brief.splitlines()) <= 45
    assert "--help-all" in brief and "--reading" not in brief
    for name in OPTIONS:
        assert re.search(rf"^  --?{name.replace('_', '-')}\b", everything, re.MULTILINE), name
