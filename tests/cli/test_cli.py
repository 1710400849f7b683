"""The command ``cdta``, as a user runs it."""

import json
import re
from pathlib import Path

from aiohttp import web

from cant_do_that_anymore.habits.catalog import changes_named
from cant_do_that_anymore.habits.chess.rules import CATALOG
from cant_do_that_anymore.habits.questions import shipped_keys
from faults import error
from testing import Body, Loopback, cdta, habit, moves_in, serving

RANDOM = ("run", "--model", "cdta/random", "-n", 5)


def test_rules_are_listed_with_their_statements() -> None:
    rules_by_key = {entry["key"]: entry for entry in json.loads(cdta("rules", "--json").stdout)}
    of_chess = [key for key, rules in CATALOG.items() if rules.forbids_something]
    assert [*rules_by_key] == [*changes_named("all")]
    assert {*rules_by_key} == {*of_chess, *shipped_keys()}
    (entry,) = json.loads(cdta("rules", "no-castling", "--json").stdout)
    assert entry == rules_by_key["no-castling"]
    assert entry.pop("moves").startswith("1. e4 e5 2. Nf3 d6") and entry.pop("last_move") == "b8d7"
    assert entry == {
        "key": "no-castling",
        "habit": "chess",
        "title": "Castling is forbidden",
        "statement": CATALOG["no-castling"].statement,
        "illegal": "O-O-O",
        "game": 0,
        "fen": "r3kb1r/p2nqppp/5n2/1B2p1B1/4P3/1Q6/PPP2PPP/R3K2R w KQkq - 1 12",
    }
    output, one = (" ".join(cdta("rules", *name).stdout.split()) for name in ((), ("base-9",)))
    assert max(map(len, cdta("rules").stdout.splitlines())) <= 80
    assert all(f"{e['key']} {e['statement']}" in output for e in rules_by_key.values())
    assert "48 + 53 Right after the change: 112. Usual answer: 101" in one
    assert "no-castling" not in cdta("rules", "arithmetic").stdout


def test_run_prints_a_table_and_writes_the_folder(tmp_path: Path) -> None:
    done = cdta("run", "-n", 5, "--out", tmp_path / "run", code=0)
    for words in ("rule uptake", "wording", "cdta/reader plays"):
        assert words in done.stdout
    assert max(map(len, done.stdout.splitlines()[:-1])) <= 80
    assert json.loads((tmp_path / "run" / "run.json").read_text())["protocol"] == "5"
    assert len((tmp_path / "run" / "samples.jsonl").read_text().splitlines()) == 5


def test_json_is_one_object(tmp_path: Path) -> None:
    done = cdta(*RANDOM, "--json", "--quiet", "--out", tmp_path / "run")
    assert done.stderr == ""
    (line,) = done.stdout.splitlines()
    result = json.loads(line)
    assert {"rule_uptake", "variant_impact_factor", "avg_num_previous_moves"} <= set(result)
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
