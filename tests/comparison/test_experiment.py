"""Experiments end to end, also of several servers and from a file; tables and plots."""

import csv
import json
import re
import tomllib
from contextlib import ExitStack
from html import unescape
from itertools import product
from pathlib import Path
from typing import Any

import chess
import pytest

from cant_do_that_anymore import shipped_pool
from cant_do_that_anymore.comparison import experiment
from cant_do_that_anymore.comparison.entries import named_entries
from cant_do_that_anymore.comparison.experiment import specs_for
from cant_do_that_anymore.comparison.leaderboard import rankings
from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.habits.chess import rule_pool
from cant_do_that_anymore.habits.chess.position import write_positions
from cant_do_that_anymore.habits.chess.rules import CATALOG, board_after
from cant_do_that_anymore.report.plots import outcome_chart, save_figure, uptake_chart
from cant_do_that_anymore.report.rows import build_document
from cant_do_that_anymore.report.tables import experiment_table
from cant_do_that_anymore.runs.lookup import folders_in
from cant_do_that_anymore.runs.storage import load_run, save_run
from cant_do_that_anymore.task.spec import DEFAULT_SEED
from testing import (
    POOL,
    Body,
    CompletedCommand,
    Loopback,
    Outcomes,
    adapting,
    cdta,
    checksum,
    habit,
    is_changed,
    moves_in,
    perfect,
    printed,
    run_with_outcomes,
    serving_in_process,
    wavering,
)

EXAMPLES = Path(__file__).parents[2] / "examples"
N = 20
MODELS = ("adapts", "chatty", "other")
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


def run_experiment(server: Loopback, out: Path, *arguments: object) -> CompletedCommand:
    """Run an experiment with a home beside its folder, so that it can go on there."""
    options = ("--base-url", server.url, "-n", N, "--wording", "plain", "--out", out)
    home = str(out.with_name("home"))
    return cdta("experiment", "--quiet", *options, *arguments, CDTA_HOME=home)


def table(out: Path) -> dict[tuple[str, str], dict[str, str]]:
    with (out / "results.csv").open() as file:
        return {(row["model"], row["eval"]): row for row in csv.DictReader(file)}


def test_every_model_and_eval_is_measured_and_plotted(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with serving_in_process(respond) as server:
        result = run_experiment(server, out, *(f"--model={name}" for name in MODELS))
    verdicts = " ".join(result.stdout.partition("\n\n")[0].split())
    assert "like knights: adapts follows the rule most often; its lead over other is " in verdicts
    reason = "100% of its replies under the changed rules contain no move"
    assert f"chatty is not ranked: {reason}" in verdicts
    rows, evals = table(out), ("all", "all_diagonal")
    assert sorted(rows) == [(model, eval_) for model in MODELS for eval_ in evals]
    assert rows["chatty", "all"]["unranked"] == reason
    row = rows["other", "all_diagonal"]
    assert (row["rules"], row["n"]) == ("bishops-as-knights", str(N))
    run = load_run(out / "other-all_diagonal")
    assert float(row[SHARE]) == pytest.approx(run[SHARE].value, abs=1e-6)
    for chart, eval_ in product(("outcomes", "uptake"), evals):
        plot = out / f"{chart}-{eval_}-bishops-as-knights.svg"
        assert "<svg" in plot.read_text()
        assert plot.with_suffix(".png").read_bytes().startswith(b"\x89PNG")


def test_every_run_has_a_folder_of_its_own_with_a_readable_name(tmp_path: Path) -> None:
    specs = {name: specs_for(model="cdta/random", n=2) for name in ("a/m", "/data/A_m/", "new")}
    runs, _ = experiment.run_all(specs, tmp_path, save_run, quiet=True)
    names = [run.folder.name for run in runs if run.folder]
    assert names[2:] == ["A_m", "A_m-all_diagonal", "new", "new-all_diagonal"]
    assert names[0].startswith("a_m-") and names[1].startswith("a_m-all_diagonal-")


@pytest.mark.usefixtures("no_plots")
def test_a_run_is_reused_with_the_same_options_and_refused_with_others(tmp_path: Path) -> None:
    write_positions(tmp_path / "pool.jsonl", POOL[-50:])
    with serving_in_process(respond) as server:
        command = (server, tmp_path / "out", "--model", "other", "--eval", "all", "--markdown")
        first = run_experiment(*command)
        n_requests = len(server.requests)
        again = run_experiment(*command)
        assert (again.returncode, again.stdout) == (0, first.stdout)
        for option, value, difference in (
            ("-n", 5, "n;"),
            ("--temperature", 0.5, "temperature"),
            ("--pool", tmp_path / "pool.jsonl", "pool"),
            ("--base-url", "http://127.0.0.1:64999/v1", "base url, the model"),
        ):
            result = run_experiment(*command, option, value)
            assert result.returncode == 1
            assert f"contains a run that differs in {difference}" in result.stderr
    assert len(server.requests) == n_requests


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
        result = run_experiment(server, tmp_path / "out", *rules, "--form", "moves,moves+fen")
    assert result.returncode == 1
    (message,) = [line for line in result.stderr.splitlines() if "some runs failed" in line]
    assert "all, no-castling: " in message
    assert "no-castling, moves+fen: " in message
    assert "plays its usual move in none of the 60 positions " in message
    assert [row["rules"] for row in table(tmp_path / "out").values()] == ["knights-as-bishops"]


def test_a_task_that_a_model_cannot_do_does_not_end_its_experiment(tmp_path: Path) -> None:
    with serving_in_process(lambda request: sum_of(request) or "A nice question.") as server:
        rules = ("--rules", "max-returns-smallest,base-9", "--json")
        result = run_experiment(server, tmp_path / "out", *rules)
    document = json.loads(result.stdout)
    assert [row["rules"] for row in document["results"]] == ["base-9"]
    ((name, why),) = document["failures"].items()
    assert name.endswith("all, max-returns-smallest")
    assert why.startswith("40 of the first 40 replies under the standard rules contain no answer")
    assert why in unescape((tmp_path / "out" / "index.html").read_text())


def sum_of(request: Body) -> str:
    """The sum that is asked for, if one is."""
    terms = re.findall(r"\d+(?= \+)|(?<=\+ )\d+", request["messages"][-1]["content"])
    return str(sum(map(int, terms))) if terms else ""


def test_a_table_fits_the_terminal() -> None:
    name = "provider-of-models/a-model-with-a-name-2026-11-15-preview"
    run = run_with_outcomes(name, ["usual", "legal"] * 20, positions=POOL[:40])
    ranked = rankings([run])
    for width in (80, 100):
        text = printed(experiment_table(ranked, build_document(ranked, Path())), width)
        assert max(map(len, text.splitlines())) <= width
        assert "…" not in text


def test_plots_show_names_literally_and_are_reproducible(
    recwarn: pytest.WarningsRecorder, tmp_path: Path
) -> None:
    """A dollar sign starts no formula, and a character missing from the font is spelled out."""
    positions, plan = shipped_pool("diagonal")[:2], {"eval": "all_diagonal"}
    outcomes: Outcomes = ["usual", "unreadable"]
    names = ("$a_b^$", "_hidden", "模型")
    runs = [run_with_outcomes(name, outcomes, positions=positions, plan=plan) for name in names]
    group = named_entries(runs)
    for chart in (outcome_chart, uptake_chart):
        [_, first], [_, again] = (save_figure(chart(group), tmp_path / name) for name in "ab")
        plot = first.read_text(encoding="utf-8")
        assert plot == again.read_text(encoding="utf-8")
        for name in (*names[:2], "⟨U+6A21⟩⟨U+578B⟩"):
            assert f"<!-- {name} -->" in plot  # beside the outlines of each text
    title = outcome_chart(group).get_suptitle()
    assert title == "Bishops move like knights (all_diagonal): outcomes (n = 2)"
    assert not recwarn.list


@pytest.mark.usefixtures("no_plots")
def test_one_file_measures_models_on_three_servers(tmp_path: Path) -> None:
    """The first two have the same model name. The command line overrides the file."""
    file, out = tmp_path / "mine.toml", tmp_path / "out"
    with ExitStack() as stack:
        players = perfect, habit, wavering
        servers = [stack.enter_context(serving_in_process(player)) for player in players]
        first, second, third = (server.url for server in servers)
        text = f"""
            title = "Three servers"
            eval = "all"
            n = 99
            [[model]]
            name = "alpha@{first}"
            [[model]]
            name = "alpha@{second}"
            [[model]]
            name = "beta"
            url = "{third}"
            price = [1, 2.5]
            max_tokens = 9
            reasoning_effort = "low"
            extra_body = {{ top_k = 5 }}
        """
        file.write_text(text, encoding="utf-8-sig")  # some editors add a byte order mark
        done = cdta("experiment", file, "--out", out, "-n", 8, "--json", "--quiet", code=0)
        assert servers[2].requests[-1]["top_k"] == 5
    runs = {run.endpoint: run for run in map(load_run, folders_in(out))}
    assert {url: (run.version, len(run.samples)) for url, run in runs.items()} == {
        first: ("alpha", 8),
        second: ("alpha", 8),
        third: ("beta", 8),
    }
    assert (runs[first].results["delta"].value, runs[second].results["delta"].value) == (-1, 0)
    assert runs[first].cost.total is None and runs[third].cost.total
    assert runs[third].plan.settings.non_defaults == {
        "max_tokens": 9,
        "reasoning_effort": "low",
        "extra_body": '{"top_k": 5}',
        "seed": DEFAULT_SEED,
    }
    table = (out / "results.csv").read_text()
    assert all(f"\nalpha {url}" in table for url in (first, second)) and "\nbeta" in table
    assert json.loads(done.stdout)["title"] == "Three servers"


@pytest.mark.usefixtures("no_plots")
def test_the_example_file_is_valid_with_all_its_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = EXAMPLES / "experiment.toml"
    few = ("-n", 4, "--rules", "bishops-as-knights", "--json", "--quiet")
    rows = json.loads(cdta("experiment", file, *few).stdout)["results"]
    assert {row["model"] for row in rows} == {"cdta/pocket", "cdta/random"}
    example = file.read_text()
    uncommented = re.sub(r"^( *)# (?=[\"{]|\w+ = )", r"\1", example, flags=re.MULTILINE)
    assert len(tomllib.loads(uncommented)["model"]) == 6
    Path("all.toml").write_text(uncommented)
    result = cdta("experiment", "all.toml", "--rules", "none")  # the rest is valid
    assert result.stderr.startswith("cdta: unknown rules: 'none'")
