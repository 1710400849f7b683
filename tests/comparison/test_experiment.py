"""Experiments end to end, and plots of existing runs."""

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import chess
import pytest

from cant_do_that_anymore import Spec, shipped_pool
from cant_do_that_anymore.comparison import experiment
from cant_do_that_anymore.comparison.entries import Entry, entries_of, named_entries
from cant_do_that_anymore.comparison.experiment import specs_for
from cant_do_that_anymore.comparison.leaderboard import rankings
from cant_do_that_anymore.errors import InvalidInput, Stopped, UserError
from cant_do_that_anymore.habits.chess import rule_pool
from cant_do_that_anymore.habits.chess.position import write_positions
from cant_do_that_anymore.habits.chess.rules import CATALOG, board_after
from cant_do_that_anymore.report.plots import figure_of, outcome_chart, save_chart, uptake_chart
from cant_do_that_anymore.report.rows import build_document
from cant_do_that_anymore.report.tables import experiment_table
from cant_do_that_anymore.runs.run import Run
from cant_do_that_anymore.runs.storage import load_run, save_run
from run_builders import with_other_forbidden_moves
from testing import (
    POOL,
    Body,
    CompletedCommand,
    Loopback,
    Serve,
    adapting,
    cdta,
    checksum,
    habit,
    is_changed,
    moves_in,
    printed,
    run_with_outcomes,
    serving_in_process,
    snapshot,
    without_plots,
)

N = 20
SHARE = "predicted_move_in_variant_proportion"


def respond(request: Body) -> str:
    """By model name; "other" keeps its habit in a third of the positions when the rules change."""
    if not is_changed(request):
        return habit(request)
    if request["model"] == "chatty":
        return "What a position! Let me think about it."
    if request["model"] == "adapts":
        return adapting(request)
    return habit(request) if checksum(moves_in(request)) % 3 == 0 else "a2a3"


@pytest.fixture
def server(serve: Serve) -> Loopback:
    return serve(respond)


def run_command(*arguments: object) -> CompletedCommand:
    return cdta("experiment", "--quiet", *arguments)


def run_on_server(server: Loopback, out: Path, *arguments: object) -> CompletedCommand:
    options = ("--base-url", server.url, "-n", N, "--wording", "plain", "--out", out)
    return run_command(*options, *arguments)


def run_seeds(
    server: Loopback, out: Path, seeds: int = 1, **options: Any
) -> tuple[list[Run], dict[str, UserError]]:
    """The runs of an experiment with one model, without tables and plots."""
    fields: dict[str, Any] = {"eval": "all_diagonal", "n": N, "wording": "plain"} | options
    specs = [Spec("other", server.url, seed=seed, **fields) for seed in range(seeds)]
    return experiment.run_all({"other": specs}, out, save_run, quiet=True)


def table(out: Path) -> dict[tuple[str, str], dict[str, str]]:
    with (out / "results.csv").open() as file:
        return {(row["model"], row["eval"]): row for row in csv.DictReader(file)}


@pytest.fixture(scope="module")
def three_models(tmp_path_factory: pytest.TempPathFactory) -> tuple[CompletedCommand, Path]:
    """Three models in both evals."""
    out = tmp_path_factory.mktemp("three_models") / "out"
    models = [argument for name in MODELS for argument in ("--model", name)]
    with serving_in_process(respond) as server:
        result = run_on_server(server, out, *models)
    assert result.returncode == 0, result.stderr
    return result, out


MODELS = ("adapts", "chatty", "other")


def test_every_model_and_eval_is_measured(
    three_models: tuple[CompletedCommand, Path],
) -> None:
    _, out = three_models
    folders = sorted(path.parent for path in out.glob("*/run.json"))
    assert len(folders) == 3 * 2
    rows = table(out)
    assert sorted(rows) == [(model, eval_) for model in MODELS for eval_ in ("all", "all_diagonal")]
    row = rows["other", "all_diagonal"]
    assert (row["rules"], row["n"]) == ("bishops-as-knights", str(N))
    [run] = [load_run(folder) for folder in folders if folder.name.startswith("other-all_diag")]
    assert float(row[SHARE]) == pytest.approx(run[SHARE].value, abs=1e-6)
    names = ("outcomes-all", "uptake-all", "outcomes-all_diagonal", "uptake-all_diagonal")
    stems = [f"{name}-bishops-as-knights" for name in names]
    assert {path.stem for path in out.glob("*.svg")} == set(stems)
    for stem in stems:
        assert (out / f"{stem}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (out / f"{stem}.svg").read_text()


def test_off_task_replies_get_no_rank(
    three_models: tuple[CompletedCommand, Path],
) -> None:
    result, out = three_models
    verdicts = re.sub(r"\s+", " ", result.stdout.partition("\n\n")[0])
    assert "like knights: adapts follows the rule most often; its lead over other is " in verdicts
    assert (
        "chatty is not ranked: 100% of its replies under the changed rules contain no " in verdicts
    )
    row = table(out)["chatty", "all"]
    assert row["unranked"].startswith("100% of its replies")
    assert (float(row["rule_uptake"]), round(float(row["rule_uptake_high"]), 6)) == (0, 1)
    assert (float(row["variant_impact_factor"]), float(row["variant_impact_factor_low"])) == (
        -1,
        -1,
    )
    assert float(row["variant_impact_factor_high"]) >= 0
    assert float(row["outcomes_changed_unreadable"]) == N
    assert "of the replies under the changed rules contain no move" in row["notes"]


@pytest.mark.usefixtures("no_plots")
def test_plots_only_repeats_all_numbers_and_prints_one_json_object(
    three_models: tuple[CompletedCommand, Path], tmp_path: Path
) -> None:
    _, source = three_models
    runs = [path.parent for path in sorted(source.glob("*/run.json"))]
    result = run_command(*runs, "--out", tmp_path, "--json")
    assert result.returncode == 0, result.stderr
    original, copy = (json.loads((out / "results.json").read_text()) for out in (source, tmp_path))
    for row in (*original["results"], *copy["results"]):
        assert unquote(row.pop("report")).endswith("/report.html")  # relative to the folder
    for name in ("verdicts", "results", "pairs", "total"):
        assert original[name] == copy[name]
    (line,) = result.stdout.splitlines()
    output = json.loads(line)
    assert output["pairs"] == copy["pairs"]
    assert all(Path(file).exists() for file in output["files"])
    rows = table(tmp_path)
    for row in output["results"]:
        cells = rows[row["model"], row["eval"]]
        assert row["delta"]["low"] == pytest.approx(float(cells["delta_low"]), abs=1e-6)


def test_a_run_that_another_process_saved_meanwhile_is_reused(tmp_path: Path) -> None:
    specs = {"random": [Spec("cdta/random", eval="all_diagonal", n=5)]}

    def save_twice(run: Run, folder: Path) -> None:
        save_run(run, folder)
        save_run(run, folder)  # like the other process

    runs, failures = experiment.run_all(specs, tmp_path, save_twice, quiet=True)
    assert (len(runs[0].samples), failures) == (5, {})


class Renamed(Loopback):
    """Changes its version with every answer."""

    def completion(self, request: Body) -> dict[str, Any]:
        return super().completion(request) | {"model": f"replica-{len(self.requests)}"}


def test_a_new_version_in_every_answer_counts_as_the_requested_model(tmp_path: Path) -> None:
    with serving_in_process(Renamed(respond)) as server:
        for _ in range(2):
            runs, failures = run_seeds(server, tmp_path, 2, eval="all", pool="common", price=(1, 1))
            assert not failures
            assert [e.label for e in named_entries(runs)] == ["other seed 0", "other seed 1"]
            for run in runs:
                assert run.version == "other"
                (note,) = [note for note in run.notes if "model version" in note]
                assert re.fullmatch(
                    r"more than one model version answered: (replica-\d+ \(1\),? ){3}and 37 more",
                    note,
                )


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Loopback, Path]]:
    """An experiment of one run and its server."""
    out = tmp_path_factory.mktemp("finished") / "out"
    with serving_in_process(respond) as server:
        with without_plots():
            assert run_with_own_home(server, out).returncode == 0
        yield server, out


def run_with_own_home(server: Loopback, out: Path, *options: object) -> CompletedCommand:
    """Run the experiment of `finished`, always with the same CDTA_HOME."""
    defaults = (("--base-url", server.url), ("-n", N), ("--eval", "all"), ("--wording", "plain"))
    more = (part for option in defaults if option[0] not in options for part in option)
    fixed = ("experiment", "--quiet", "--out", out, "--model", "other")
    return cdta(*fixed, *more, *options, CDTA_HOME=str(out.with_name("home")))


@pytest.mark.parametrize(
    ("option", "difference"),
    [
        (("-n", 5), "n;"),
        (("--temperature", 0.5), "temperature"),
        (("--reading", "exact"), "reading"),
        (("--dataset", "gpt-4-0314"), "dataset"),
        (("--pool", "POOL"), "pool"),
        (("--base-url", "http://127.0.0.1:64999/v1"), "base url, the model"),
    ],
)
def test_a_run_with_different_options_is_refused(
    finished: tuple[Loopback, Path], tmp_path: Path, option: tuple[str, object], difference: str
) -> None:
    server, out = finished
    write_positions(tmp_path / "pool.jsonl", POOL[-50:])
    n_requests = len(server.requests)
    arguments = (tmp_path / "pool.jsonl" if part == "POOL" else part for part in option)
    result = run_with_own_home(server, out, *arguments)
    assert result.returncode == 1
    assert f"contains a run that differs in {difference}" in result.stderr
    assert len(server.requests) == n_requests


@pytest.mark.usefixtures("no_plots")
def test_a_run_with_the_same_options_is_reused(finished: tuple[Loopback, Path]) -> None:
    server, out = finished
    n_requests = len(server.requests)
    result = run_with_own_home(server, out, "--markdown")
    assert result.returncode == 0
    assert len(server.requests) == n_requests
    verdict, rows = result.stdout.strip().split("\n\n")
    assert verdict.startswith("**Bishops move like knights.** other ")
    assert [line.count("|") for line in rows.splitlines()] == [7, 7, 7]


def test_an_unknown_model_ends_an_experiment_before_any_run(tmp_path: Path) -> None:
    result = run_command("--model", "cdta/random", "--model", "cdta/none", "--out", tmp_path / "o")
    assert result.returncode == 2
    assert "unknown model: 'cdta/none'" in result.stderr
    assert not (tmp_path / "o").exists()


def test_stopping_a_run_stops_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Spec] = []

    def stop(spec: Spec, **_: object) -> None:
        started.append(spec)
        raise Stopped

    monkeypatch.setattr(experiment, "evaluate", stop)
    models = ("--model", "cdta/random", "--model", "cdta/pocket")
    result = run_command(*models, "--out", tmp_path)
    assert result.returncode == 1
    assert str(Stopped()) in result.stderr
    assert len(started) == 1


def test_planned_evals_depend_on_the_rules() -> None:
    def planned(**options: Any) -> list[tuple[str, Any]]:
        return [(spec.eval, spec.rules) for spec in specs_for(**options)]

    default = "bishops-as-knights"
    assert planned() == planned(rules=default) == [("all", default), ("all_diagonal", default)]
    assert planned(pool="common") == [("all", default)]
    assert planned(rules=["no-castling", default]) == [("all", "no-castling"), ("all", default)]
    all_rules = [rules for _, rules in planned(evals="all_small", rules="all")]
    assert set(CATALOG) - set(all_rules) == {"standard", "bishops-as-queens", "rooks-as-queens"}
    assert [rules for _, rules in planned(rules=["all", default])] == all_rules
    with pytest.raises(InvalidInput, match="unknown rules: 'mistyped'"):
        planned(rules=["all", "mistyped"])


@pytest.mark.usefixtures("no_plots")
def test_a_habit_that_a_model_lacks_does_not_end_its_experiment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never_castles(request: Body) -> str:
        board = board_after(moves_in(request))
        knights = board.pieces(chess.KNIGHT, board.turn)
        moves = [move for move in board.legal_moves if not board.is_castling(move)]
        return min(moves, key=lambda move: (move.from_square not in knights, move.uci())).uci()

    monkeypatch.setattr(rule_pool, "POOL_SIZE", 60)
    with serving_in_process(never_castles) as server:
        rules = ("--rules", "no-castling,knights-as-bishops")
        result = run_on_server(server, tmp_path, *rules, "--form", "moves,moves+fen")
    assert result.returncode == 1
    (message,) = [line for line in result.stderr.splitlines() if "some runs failed" in line]
    assert "all, no-castling: " in message
    assert "no-castling, moves+fen: " in message
    assert "plays its usual move in none of the 60 positions " in message
    assert [row["rules"] for row in table(tmp_path).values()] == ["knights-as-bishops"]


# Tables and plots of runs built by hand


def entry_of(model: str) -> Entry:
    """A model that drops the habit in one of two positions."""
    positions = shipped_pool("diagonal")[:2]
    plan = {"eval": "all_diagonal"}
    [entry] = entries_of(
        [run_with_outcomes(model, ["usual", "unreadable"], positions=positions, plan=plan)]
    )
    return entry


def entry_with_other_forbidden_moves() -> Entry:
    """A model that plays another forbidden move instead of its habit in half of all positions."""
    name = "provider-of-models/a-model-with-a-name-2026-11-15-preview"
    positions = with_other_forbidden_moves(40)
    [entry] = entries_of(
        [run_with_outcomes(name, ["usual", "forbidden"] * 20, positions=positions)]
    )
    return entry


def table_of(group: list[Entry]) -> object:
    ranked = rankings(group)
    return experiment_table(ranked, build_document(ranked, Path()))


def test_tables_match_snapshot() -> None:
    weak = run_with_outcomes("m", "legal", lambda n: "usual" if n < 2 else "legal", POOL[:40])
    groups = {
        "another forbidden move in half of all positions": [entry_with_other_forbidden_moves()],
        "a weak habit": entries_of([weak]),
        "no answer at all": entries_of([run_with_outcomes("m", "error", "error", POOL[:1])]),
    }
    output = []
    for name, group in groups.items():
        for width in (80, 100):
            lines = printed(table_of(group), width).splitlines()
            assert max(map(len, lines)) <= width
            assert not any("…" in line for line in lines)
        output += [f"# {name}", *lines]
    snapshot("experiment", "\n".join(output))


def test_plots_show_names_literally_and_are_reproducible(
    recwarn: pytest.WarningsRecorder, tmp_path: Path
) -> None:
    """A dollar sign starts no formula, and a character missing from the font is spelled out."""
    group = [entry_of("$a_b^$"), entry_of("_hidden"), entry_of("模型")]
    for chart in (outcome_chart, uptake_chart):
        [_, first], [_, again] = (save_chart(chart, group, tmp_path / name) for name in "ab")
        plot = first.read_text(encoding="utf-8")
        assert plot == again.read_text(encoding="utf-8")
        for name in ("$a_b^$", "_hidden", "⟨U+6A21⟩⟨U+578B⟩"):
            assert f"<!-- {name} -->" in plot  # beside the outlines of each text
    title = figure_of(outcome_chart, group).get_suptitle()
    assert title == "Bishops move like knights: outcomes (all_diagonal, n = 2; 95% intervals)"
    assert not recwarn.list
