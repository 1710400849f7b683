"""The options of all commands: declared once, checked by the spec, shown by purpose."""

import json
import os
import subprocess
import sys
from dataclasses import MISSING, Field, fields
from pathlib import Path
from threading import Thread

import click
import pytest
from click.testing import CliRunner

from cant_do_that_anymore import Spec
from cant_do_that_anymore.cli.help import HEADINGS, Option
from cant_do_that_anymore.cli.main import COMMANDS, DATASET_COMMANDS, cdta
from cant_do_that_anymore.cli.options import OPTIONS
from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.inspect_tasks import model as tasks
from cant_do_that_anymore.oaieval.command import COMPLETION_ARGS
from machines import needs_posix

CONTEXT = click.Context(cdta)
NAMES = cdta.list_commands(CONTEXT)
FIELDS = {field.name: field for field in fields(Spec)}

NOT_OPTIONS_OF_RUN = {
    "conditions": "the two of every run; others come with options of their own",
    "fallback_dataset": "the original's way with a model without a dataset",
    "max_samples": "the original's cut of its samples; -n says the same",
}
NOT_ARGUMENTS_OF_TASKS = {
    **NOT_OPTIONS_OF_RUN,
    "model": "inspect eval --model",
    "base_url": "inspect eval --model-base-url",
    "tag": "answers are kept in Inspect's log, not in ours",
    "header": "inspect eval --extra-headers",
    "eval": "the name of the task",
    "max_connections": "inspect eval --max-connections",
    "max_error_rate": "inspect eval --fail-on-error",
    "fresh": "answers are kept in Inspect's log, not in ours",
    "batch": "inspect eval --batch",
}


def command(*names: str) -> click.Command:
    found: click.Command = cdta
    for name in names:
        assert isinstance(found, click.Group)
        inner = found.get_command(CONTEXT, name)
        assert inner, name
        found = inner
    return found


MEASURING = [("run",), ("dataset", "build"), ("experiment",), ("estimate",)]


@pytest.mark.parametrize("field", FIELDS.values(), ids=FIELDS)
def test_every_field_of_the_spec_is_an_option_of_run_with_its_default(
    field: "Field[object]",
) -> None:
    options = {option.name: option for option in command("run").params}
    assert (field.name in options) != (field.name in NOT_OPTIONS_OF_RUN)
    if field.name in options:
        assert options[field.name].default == field.default is not MISSING


@pytest.mark.parametrize("names", MEASURING, ids=" ".join)
def test_options_for_fields_of_the_spec_are_those_that_all_commands_share(
    names: tuple[str, ...],
) -> None:
    several = {
        "--model": "models",
        "--eval": "evals",
        "--rules": "changes",
        "--reasoning-effort": "efforts",
    }
    for option in command(*names).params:
        if option.name in FIELDS:
            assert option is OPTIONS[option.name]
        elif option.opts[0] in several:
            assert option.name == several[option.opts[0]]


@pytest.mark.parametrize(
    ("names", "options"),
    [
        (("experiment",), {"temperature", "reading", "pool", "dataset", "max_error_rate"}),
        (("experiment",), {"changes", "efforts", "reasoning_tokens", "select_effort"}),
        (("experiment",), {"max_cost", "batch", "as_json", "fresh"}),
        (("dataset", "build"), {"max_cost", "batch"}),
        (("estimate",), {"reading", "seed", "temperature", "batch"}),
    ],
)
def test_no_command_lacks_what_the_others_take(names: tuple[str, ...], options: set[str]) -> None:
    assert options <= {option.name for option in command(*names).params}


def test_arguments_of_the_inspect_tasks_are_fields_of_the_spec() -> None:
    named = {tasks.FIELDS.get(name, name) for name in tasks.Arguments.__annotations__}
    assert named | NOT_ARGUMENTS_OF_TASKS.keys() == FIELDS.keys()
    assert not named & NOT_ARGUMENTS_OF_TASKS.keys()


def test_completion_args_are_options_of_run() -> None:
    assert COMPLETION_ARGS.keys() <= {option.name for option in command("run").params}


def test_what_cannot_work_is_said_by_the_spec_whatever_the_command(tmp_path: Path) -> None:
    for names in MEASURING:
        for option, sentence in (
            (("-n", "0"), "n must be at least 1, not 0"),
            (("--max-connections", "0"), "max_connections must be at least 1, not 0"),
            (("--max-tokens", "-1"), "max_tokens must be at least 1, not -1"),
            (("--reading", "x"), "unknown reading: 'x'"),
        ):
            result = CliRunner().invoke(cdta, [*names, *option])
            assert isinstance(result.exception, InvalidInput), (names, option)
            assert sentence in str(result.exception)


def test_several_evals_are_given_one_by_one_or_with_commas() -> None:
    for given in (["--eval", "all_small,all"], ["--eval", "all_small", "--eval", "all"]):
        asked = ["estimate", "--model", "cdta/random", "-n", "2", "--json", *given]
        found = json.loads(CliRunner().invoke(cdta, asked).output)
        assert [one["eval"] for one in found] == ["all_small", "all"]


def shown(*names: str) -> str:
    return CliRunner().invoke(cdta, [*names, "--help"], prog_name="cdta").output


@pytest.mark.parametrize("names", MEASURING, ids=" ".join)
def test_help_shows_every_option_once_under_its_heading(names: tuple[str, ...]) -> None:
    text = shown(*names)
    places = [text.index(f"\n{heading}:\n") for heading in HEADINGS]
    assert places == sorted(places)
    ends = [*places[1:], len(text)]
    sections = dict(zip(HEADINGS, map(slice, places, ends), strict=True))
    for option in command(*names).params:
        if isinstance(option, Option):
            line = f"\n  {option.opts[0]} "
            assert text.count(line) == text[sections[option.heading]].count(line) == 1


@pytest.mark.parametrize("name", ["runs", "view", "report", "compare", "rescore", "mine"])
def test_help_of_every_command_for_runs_and_games_is_by_purpose(name: str) -> None:
    assert "\nOutput:\n" in shown(name)
    assert "\nOptions:\n" not in shown(name)


def test_help_of_the_program_names_every_command_under_a_heading() -> None:
    text = shown()
    places = [text.index(f"\n{heading}:\n") for heading in COMMANDS]
    assert places == sorted(places)
    assert all(f"\n  {name} " in text for name in NAMES)
    assert max(map(len, text.splitlines())) <= 80


LINES = {
    (*group, name): entry.line
    for group, table in (((), COMMANDS), (("dataset",), DATASET_COMMANDS))
    for entries in table.values()
    for name, entry in entries.items()
}


@pytest.mark.parametrize("names", LINES, ids=" ".join)
def test_the_line_of_a_command_is_the_first_of_its_own_help(names: tuple[str, ...]) -> None:
    assert command(*names).get_short_help_str(limit=100) == LINES[names]
    assert command(*names).name == names[-1]


HEAVY = ("aiohttp", "inspect_ai", "matplotlib", "numpy", "onnxruntime", "rich", "yaml")


@pytest.mark.parametrize(
    ("arguments", "unwanted"),
    [
        (["--help"], (*HEAVY, "chess", "cant_do_that_anymore.cli.commands")),
        (["rules"], [name for name in HEAVY if name != "rich"]),
        (["legal", "e2e4"], HEAVY),
        (["run", "--help"], ("inspect_ai", "matplotlib", "onnxruntime")),
    ],
)
def test_a_command_imports_only_what_it_needs(
    arguments: list[str], unwanted: tuple[str, ...]
) -> None:
    program = (
        "import json, sys; from cant_do_that_anymore.cli.main import cdta\n"
        f"try: cdta({arguments}, standalone_mode=False)\n"
        "finally: print(json.dumps(list(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not set(unwanted) & set(json.loads(done.stderr))


def test_an_unknown_command_is_refused() -> None:
    assert CliRunner().invoke(cdta, ["rnu"]).exit_code == 2


def test_a_name_that_looks_like_markup_is_shown_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "a[/b] [red]:smile:"
    asked = ["run", "--model", "cdta/random", "-n", "2", "--quiet", "--out", str(folder)]
    assert str(folder) in CliRunner().invoke(cdta, asked).output
    asked = ["estimate", "--base-url", "http://127.0.0.1:9/v1", "--model", "x[/b]", "-n", "2"]
    assert "x[/b]" in CliRunner().invoke(cdta, asked).output


@needs_posix
def test_a_page_is_written_into_what_is_no_plain_file_and_never_replaces_it(tmp_path: Path) -> None:
    runs = [str(tmp_path / model) for model in ("random", "pocket")]
    for folder in runs:
        asked = ["run", "--model", f"cdta/{Path(folder).name}", "-n", "9", "--quiet"]
        assert CliRunner().invoke(cdta, [*asked, "--out", folder]).exit_code == 0
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for asked in (["compare", *runs], ["report", runs[0]]):
        pages: list[str] = []
        # Nobody waits for a reader whose pipe is never written to.
        reader = Thread(target=lambda into=pages: into.append(pipe.read_text()), daemon=True)
        reader.start()
        result = CliRunner().invoke(cdta, [*asked, "-o", str(pipe)])
        assert result.exit_code == 0, result.exception
        reader.join(timeout=30)
        assert pages[0].rstrip().endswith("</html>")
        assert pipe.is_fifo()
