"""The commands' options and help: by purpose, complete, and quick to show."""

import json
import os
import subprocess
import sys
from pathlib import Path
from threading import Thread

import click
import pytest

from cant_do_that_anymore.cli.help import HEADINGS, Option
from cant_do_that_anymore.cli.main import COMMANDS, DATASET_COMMANDS
from cant_do_that_anymore.cli.main import cdta as group
from cant_do_that_anymore.runs.storage import save_run
from testing import POOL, cdta, needs_posix, oaieval, played

CONTEXT = click.Context(group)
MEASURING = [("run",), ("dataset", "build"), ("experiment",), ("estimate",)]
LINES = {
    (*above, name): line
    for above, table in (((), COMMANDS), (("dataset",), DATASET_COMMANDS))
    for entries in table.values()
    for name, (_, line) in entries.items()
}


def command(*names: str) -> click.Command:
    found: click.Command = group
    for name in names:
        assert isinstance(found, click.Group)
        inner = found.get_command(CONTEXT, name)
        assert inner, name
        found = inner
    return found


def shown(*names: str) -> str:
    return cdta(*names, "--help").stdout


def test_several_evals_are_given_one_by_one_or_with_commas() -> None:
    for given in (["--eval", "all_small,all"], ["--eval", "all_small", "--eval", "all"]):
        found = cdta("estimate", "--model", "cdta/random", "-n", 2, "--json", *given).stdout
        assert [one["eval"] for one in json.loads(found)] == ["all_small", "all"]


@pytest.mark.parametrize("names", MEASURING, ids=" ".join)
def test_help_shows_every_option_once_under_its_heading(names: tuple[str, ...]) -> None:
    text = shown(*names)
    places = [text.index(f"\n{heading}:\n") for heading in HEADINGS]
    assert places == sorted(places)
    ends = [*places[1:], len(text)]
    sections = dict(zip(HEADINGS, map(slice, places, ends), strict=True))
    for option in command(*names).params:
        if isinstance(option, Option):
            line = f"\n  {', '.join(option.opts)} "
            assert text.count(line) == text[sections[option.heading]].count(line) == 1


def test_help_of_the_program_names_every_command_under_a_heading() -> None:
    text = shown()
    places = [text.index(f"\n{heading}:\n") for heading in COMMANDS]
    assert places == sorted(places)
    assert all(f"\n  {name} " in text for name in group.list_commands(CONTEXT))
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("names", LINES, ids=" ".join)
def test_the_line_of_a_command_is_the_first_of_its_own_help(names: tuple[str, ...]) -> None:
    assert command(*names).get_short_help_str(limit=100) == LINES[names]
    assert command(*names).name == names[-1]
    assert max(map(len, shown(*names).splitlines())) <= 80
    if names not in (("dataset",), ("oaieval",)):
        assert "\nOutput:\n" in shown(*names)
        assert "\nOptions:\n" not in shown(*names)


WRITING = [
    *("run", "experiment", "rescore", "import", "export", "report", "compare", "mine", "selfplay"),
]
TABLES = [
    *("run", "rescore", "import", "estimate", "experiment", "compare", "runs", "rules", "prompt"),
]


@pytest.mark.parametrize(
    ("flags", "commands"),
    [
        ({"-o", "--out"}, [*WRITING, "dataset export", "dataset union"]),
        ({"--json"}, [*TABLES, "dataset list", "dataset show"]),
    ],
    ids=["out", "json"],
)
def test_an_option_means_the_same_in_every_command(flags: set[str], commands: list[str]) -> None:
    having = [
        " ".join(names)
        for names in LINES
        if any(flags & set(option.opts) for option in command(*names).params)
    ]
    assert sorted(having) == sorted(commands)
    for names in commands:
        assert any(flags == set(option.opts) for option in command(*names.split()).params)


HEAVY = ("aiohttp", "inspect_ai", "matplotlib", "numpy", "onnxruntime", "pydantic", "rich", "yaml")


@pytest.mark.parametrize(
    ("arguments", "unwanted"),
    [
        (["--help"], (*HEAVY, "chess", "cant_do_that_anymore.cli.commands")),
        (["rules"], [name for name in HEAVY if name != "rich"]),
        (["legal", "e2e4"], HEAVY),
        (["mine", "games.pgn"], (*HEAVY, "httpx", "cant_do_that_anymore.task.spec")),
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


def test_a_name_that_looks_like_markup_is_shown_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "a[/b] [red]:smile:"
    run = cdta("run", "--model", "cdta/random", "-n", 2, "--quiet", "--out", folder)
    assert str(folder) in run.stdout
    asked = ("--base-url", "http://127.0.0.1:9/v1", "--model", "x[/b]", "-n", 2)
    assert "x[/b]" in cdta("estimate", *asked).stdout


@needs_posix
def test_a_page_is_written_into_what_is_no_plain_file_and_never_replaces_it(tmp_path: Path) -> None:
    runs = [tmp_path / model for model in ("random", "pocket")]
    for folder in runs:
        save_run(played(folder.name, positions=POOL[:9]), folder)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for asked in (["compare", *runs], ["report", runs[0]]):
        pages: list[str] = []
        # Nobody waits for a reader whose pipe is never written to.
        reader = Thread(target=lambda into=pages: into.append(pipe.read_text()), daemon=True)
        reader.start()
        cdta(*asked, "-o", pipe, code=0)
        reader.join(timeout=30)
        assert pages[0].rstrip().endswith("</html>")
        assert pipe.is_fifo()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["compare", "--tolerance", "x", "a"], "tolerance must be a number, not 'x'"),
        (["compare", "--tolerance", 200, "a"], "tolerance must be at most 100, not '200'"),
        (["compare", "--tolerance", "nan", "a"], "tolerance must be a finite number, not 'nan'"),
        (["compare", "--tolerance"], "option '--tolerance' requires an argument; see `cdta comp"),
        (["compare"], "missing argument 'RUN...'; see `cdta compare --help`"),
        (["dataset", "show", "--foo"], "no such option '--foo'; see `cdta dataset show --help`"),
        (["run", "--temprature", 1], "no such option '--temprature'; did you mean '--temp"),
        (["rescore", "--reading", "x", "a"], "invalid value for '--reading': 'x' is not one of"),
        (["--foo"], "no such option '--foo'; see `cdta --help`"),
    ],
)
def test_arguments_that_do_not_fit_a_command_end_in_one_sentence(
    given: list[object], sentence: str
) -> None:
    refused = cdta(*given, code=2).stderr
    assert refused.startswith(f"cdta: {sentence}") and refused.count("\n") == 1
    assert "Usage: cdta dataset" in cdta("dataset").stderr
    several = oaieval("a", "b", "--max_samples", "x", code=2).stderr
    assert several.startswith("oaieval: invalid value for '--max_samples': 'x' is not a valid in")
