"""The command ``cdta``, as a user runs it."""

import json
import re
import subprocess
import sys
from pathlib import Path

from aiohttp import web

from cant_do_that_anymore.game.rules import CATALOG
from faults import error
from testing import Body, Loopback, cdta, habit, moves_in, serving

RANDOM = ("run", "--model", "cdta/random", "-n", 5)


def test_dataset_show_prints_positions() -> None:
    _, _, _, first, *_ = cdta("dataset", "show", "gpt-4-0314").stdout.split("\n\n")
    _, *lines = first.splitlines()
    fields = dict(re.split(r"\s{2,}", line.strip(), maxsplit=1) for line in lines)
    forms = ["1. b3 e5", "b2b3 e7e5"]
    forms += ["rnbqkbnr/pppp1ppp/8/4p3/8/1P6/P1PPPPPP/RNBQKBNR w KQkq - 0 2"]
    names = ("moves", "in UCI", "FEN", "special move")
    assert fields == dict(zip(names, [*forms, "2. Bb2 (c1b2)"], strict=True))


def test_dataset_show_prints_how_the_dataset_was_built() -> None:
    cdta("dataset", "build", "--model", "cdta/random", "-n", "1", "--quiet")
    output = cdta("dataset", "show", "cdta/random").stdout
    assert re.search(r"^  settings +temperature 0\.0$", output, re.MULTILINE)
    assert re.search(r"^  pool ended +no$", output, re.MULTILINE)
    assert re.search(r"^ {19}- A promotion ends in", output, re.MULTILINE)


def test_the_package_runs_with_python_m() -> None:
    command = [sys.executable, "-m", "cant_do_that_anymore", "rules"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == cdta("rules").stdout


def test_rules_are_listed_with_their_statements() -> None:
    rules_by_key = {entry["key"]: entry for entry in json.loads(cdta("rules", "--json").stdout)}
    assert [*rules_by_key] == [key for key, rules in CATALOG.items() if rules.forbids_something]
    assert rules_by_key["no-castling"] == {
        "key": "no-castling",
        "title": "Castling is forbidden",
        "statement": CATALOG["no-castling"].statement,
        "illegal": "12. O-O-O",
        "fen": "r3kb1r/p2nqppp/5n2/1B2p1B1/4P3/1Q6/PPP2PPP/R3K2R w KQkq - 1 12",
    }
    output = cdta("rules").stdout
    assert max(map(len, output.splitlines())) <= 80
    for entry in rules_by_key.values():
        assert f"{entry['key']} {entry['statement']} Example: {entry['illegal']}" in " ".join(
            output.split()
        )


def test_run_prints_a_table_and_writes_the_folder(tmp_path: Path) -> None:
    done = cdta(*RANDOM, "--out", tmp_path / "run", code=0)
    for words in ("Impact factor", "95% interval", "Adaptation rate", "cdta/random plays"):
        assert words in done.stdout
    assert max(map(len, done.stdout.splitlines()[:-1])) <= 80
    assert json.loads((tmp_path / "run" / "run.json").read_text())["protocol"] == "4"
    assert len((tmp_path / "run" / "samples.jsonl").read_text().splitlines()) == 5


def test_json_is_one_object(tmp_path: Path) -> None:
    done = cdta(*RANDOM, "--json", "--quiet", "--out", tmp_path / "run")
    assert done.stderr == ""
    (line,) = done.stdout.splitlines()
    result = json.loads(line)
    assert {"variant_impact_factor", "delta", "avg_num_previous_moves"} <= set(result)
    assert result["folder"] == str(tmp_path / "run")


def test_dataset_build_extends_a_dataset() -> None:
    with serving(Loopback(habit, model="new")) as server:
        options = ("--base-url", server.url, "--model", "new", "--quiet", "--max-connections", "4")
        first = cdta("dataset", "build", *options, "-n", "10")
        requests_before = len(server.requests)
        second = cdta("dataset", "build", *options, "-n", "100")
    assert first.stdout == "new: 10 positions, built now from 10 requests\n"
    assert second.stdout == "new: 100 positions, built now from 100 requests\n"
    assert requests_before <= 10 + 2 * 4  # requests in flight when enough are found
    assert len(server.requests) <= 100 + 2 * 4 + 3  # the identity check


def test_dataset_build_reports_when_nothing_is_saved() -> None:
    async def reject_some(request: Body, number: int) -> web.StreamResponse | None:
        return error(400, "content policy") if len(moves_in(request)) % 8 == 7 else None

    with serving(Loopback(habit, model="new", fault=reject_some)) as server:
        built = cdta(
            *("dataset", "build", "--base-url", server.url, "--model", "new", "-n", "10", "--quiet")
        )
    reason = r"; not saved because \d+ requests? got no answer. Run the same command again\n"
    assert re.fullmatch("new: 10 positions, built now from .*" + reason, built.stdout)
    assert "new" not in cdta("dataset", "list").stdout
