"""The command ``cdta``, as a user runs it."""

from pathlib import Path

from cant_do_that_anymore import read_positions, rules_named
from cant_do_that_anymore.habits.catalog import changes_named
from testing import Loopback, cdta, habit, serving


def test_rules_are_listed_with_their_statements() -> None:
    lines = cdta("rules").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    output = " ".join(" ".join(lines).split())
    changes = changes_named("all").values()
    assert all(f"{change.key} {change.statement}" in output for change in changes)
    assert "Usual move: O-O-O" in cdta("rules", "no-castling").stdout
    assert "Usual answer: 101" in " ".join(cdta("rules", "base-9").stdout.split())


def test_dataset_build_extends_a_dataset() -> None:
    with serving(Loopback(habit, model="new")) as server:
        options = ("--base-url", server.url, "--model", "new", "--quiet", "--max-connections", "4")
        first = cdta("dataset", "build", *options, "-n", "10")
        requests_before = len(server.requests)
        second = cdta("dataset", "build", *options, "-n", "100")
    assert first.stdout == "new: 10 positions, built from 10 requests\n"
    assert second.stdout == "new: 100 positions, built from 100 requests\n"
    assert requests_before <= 10 + 2 * 4  # requests in flight when enough are found
    assert len(server.requests) <= 100 + 2 * 4 + 3  # the identity check


def test_datasets_are_exported_by_name(tmp_path: Path) -> None:
    file = tmp_path / "gpt-4.jsonl"
    done = cdta("dataset", "export", "gpt-4-0314", "-o", file, code=0)
    assert done.stderr == f"3,114 items in {file}\n"
    assert len(read_positions(file, rules_named("bishops-as-knights"))) == 3_114
