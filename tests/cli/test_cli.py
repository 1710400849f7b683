"""The command ``cdta``: its help, what it imports, and what it shows and builds."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cant_do_that_anymore import rules_named
from cant_do_that_anymore.cli.help import HEADINGS
from cant_do_that_anymore.habits.catalog import changes_named
from cant_do_that_anymore.habits.chess.position import write_positions
from cant_do_that_anymore.habits.chess.rule_pool import example_of
from cant_do_that_anymore.metrics.measures import violation
from cant_do_that_anymore.task.conditions import DIAGNOSIS_CONDITIONS
from cant_do_that_anymore.task.spec import OPTIONS
from testing import cdta, habit, measure, mixed, positions, serving


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


def test_rules_are_listed_with_their_statements() -> None:
    lines = cdta("rules").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    output = " ".join(" ".join(lines).split())
    changes = changes_named("all").values()
    assert all(f"{change.key} {change.statement}" in output for change in changes)
    assert "Usual move: O-O-O" in cdta("rules", "no-castling").stdout
    assert "Usual answer: 101" in " ".join(cdta("rules", "base-9").stdout.split())


def test_dataset_build_extends_a_dataset() -> None:
    with serving(habit, model="new") as server:
        options = ("--base-url", server.url, "--model", "new", "--quiet", "--max-connections", 4)
        first = cdta("dataset", "build", *options, "-n", 10)
        requests_before = len(server.requests)
        second = cdta("dataset", "build", *options, "-n", 30)
    assert first.stdout == "new: 10 positions, built from 10 requests\n"
    assert second.stdout == "new: 30 positions, built from 30 requests\n"
    assert requests_before <= 10 + 2 * 4  # requests in flight when enough are found
    assert len(server.requests) <= 30 + 2 * 4 + 3  # the identity check


def test_failed_shows_the_answers_that_break_the_rule() -> None:
    run = measure(mixed, dataset=positions(20), wording="all")
    run.save()
    failed = [sample for sample in run.samples if violation("changed").holds(sample)]
    output = cdta("show", "--failed", "-n", "100", code=0).stdout
    words = " ".join(output.split())
    assert 0 < len(failed) < 20
    assert f"20 samples. In {len(failed)} of them, the reply gives no legal move when" in words
    assert max(map(len, output.splitlines())) <= 80
    titles = [line.partition(",")[0] for line in output.splitlines() if ": sample " in line]
    assert titles == [
        f"{number} of {len(failed)}: sample {sample.item.id}"
        for number, sample in enumerate(failed, 1)
    ]
    assert all(sample.answers["changed"].text in output for sample in failed)
    for sample in failed:
        prompts = [condition.prompt(sample.item).text for condition in run.plan.conditions]
        assert [words.count(" ".join(prompt.split())) for prompt in prompts] == [1, 1]


OWN_WORDING = """standard = "Play chess. Übung\\n\\n"
changed = "Play. {change}"
question = "Is {move} legal? {answers}"
reminder = "Mind: {change}"
"""


@pytest.mark.parametrize(
    ("rules", "wording"), [("bishops-as-knights", "plain"), ("no-castling", "own.toml")]
)
def test_prompts_equal_the_requests_byte_for_byte(
    rules: str, wording: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.toml").write_text(OWN_WORDING, encoding="utf-8")
    example = example_of(rules_named(rules))
    assert example
    write_positions(tmp_path / "example.jsonl", [example])
    spec = {"dataset": tmp_path / "example.jsonl", "rules": rules, "wording": wording}
    with serving(lambda _: "a2a3") as server:
        measure(server, n=1, diagnose=True, **spec)
    sent = [body["messages"] for body in server.requests]
    options = [option for name in DIAGNOSIS_CONDITIONS for option in ("--condition", name)]
    options += ["--rules", rules, "--wording", wording]
    prompts = json.loads(cdta("prompt", "--json", *options, code=0).stdout)
    assert list(prompts) == list(DIAGNOSIS_CONDITIONS)
    assert all(prompt in sent for prompt in prompts.values())
    assert all(body in prompts.values() for body in sent)
    assert cdta("prompt", *options, code=0).stdout == "\n".join(
        f"== {condition} ==\n" + "".join(f"{m['role']}: {m['content']}\n" for m in messages)
        for condition, messages in prompts.items()
    )


def test_prompts_of_all_wordings_are_printed_by_default() -> None:
    assert len(json.loads(cdta("prompt", "--json", code=0).stdout)) == 2 * 8
