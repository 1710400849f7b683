"""Experiments end to end, and plots of what exists already."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest

from cant_do_that_anymore import Spec
from cant_do_that_anymore.errors import BadInput, Stopped
from cant_do_that_anymore.evaluation import experiment
from cant_do_that_anymore.evaluation.folder import load_run
from cant_do_that_anymore.evaluation.trials import Trial, by_earlier_moves, trials_in
from cant_do_that_anymore.game.position import shipped_pool, write_positions
from cant_do_that_anymore.report.plots import bar_chart, line_chart
from loopback import Loopback, Request, is_changed, moves_in, serving
from players import habit, number_of
from processes import Done, cdta

N = 20


def respond(request: Request) -> str:
    """Keep the habit under the changed rules in some positions, the model "stubborn" in all."""
    keeps = request["model"] == "stubborn" or number_of(moves_in(request)) % 3 == 0
    return habit(request) if keeps or not is_changed(request) else "a2a3"


@pytest.fixture
def server() -> Iterator[Loopback]:
    with serving(Loopback(respond)) as server:
        yield server


def run_command(*arguments: str) -> Done:
    return cdta("experiment", "--quiet", *arguments)


def measure(server: Loopback, out: Path, *arguments: str) -> Done:
    address = ["--base-url", server.url, "-n", str(N), "--out", str(out)]
    return run_command(*address, *arguments)


def table(out: Path) -> dict[tuple[str, str], dict[str, str]]:
    with (out / "results.csv").open() as file:
        return {(row["model"], row["eval"]): row for row in csv.DictReader(file)}


def test_every_model_eval_and_seed_is_measured_and_averaged(
    server: Loopback, tmp_path: Path
) -> None:
    result = measure(server, tmp_path, "--model", "stubborn", "--model", "other", "--runs", "3")
    assert result.returncode == 0, result.stderr
    folders = sorted(path.parent for path in tmp_path.glob("*/run.json"))
    assert len(folders) == 2 * 2 * 3
    assert len({load_run(folder).plan.settings.seed for folder in folders}) == 3
    rows = table(tmp_path)
    assert list(rows) == [
        (model, eval_) for model in ("stubborn", "other") for eval_ in ("all", "all_diagonal")
    ]
    assert float(rows["stubborn", "all"]["predicted_move_in_variant_proportion_mean"]) == 1
    assert float(rows["stubborn", "all"]["variant_impact_factor_sem"]) == 0
    shares = [
        load_run(folder).results.metrics["predicted_move_in_variant_proportion"] or 0
        for folder in folders
        if folder.name.startswith("other-all-")
    ]
    mean = float(rows["other", "all"]["predicted_move_in_variant_proportion_mean"])
    error = float(rows["other", "all"]["predicted_move_in_variant_proportion_sem"])
    assert mean == pytest.approx(fmean(shares), abs=1e-6)
    assert error == pytest.approx(stdev(shares) / 3**0.5, abs=1e-6)
    for name in ("bars-all", "bars-all_diagonal", "diagonal"):
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (tmp_path / f"{name}.svg").read_text()


def test_finished_runs_are_kept_and_not_asked_again(server: Loopback, tmp_path: Path) -> None:
    few = ("--model", "other", "--eval", "all_diagonal")
    measure(server, tmp_path, *few, "--runs", "1")
    asked = len(server.requests)
    measure(server, tmp_path, *few, "--runs", "1")
    assert len(server.requests) == asked
    measure(server, tmp_path, *few, "--runs", "2")
    assert len(server.requests) == 2 * asked


def test_a_run_of_another_size_is_not_taken_for_this_one(server: Loopback, tmp_path: Path) -> None:
    few = ("--model", "other", "--eval", "all_diagonal", "--runs", "1")
    measure(server, tmp_path, *few)
    result = measure(server, tmp_path, *few, "-n", "5")
    assert result.returncode == 1
    assert "holds a run that differs in number of samples" in result.stderr


@pytest.mark.parametrize(
    ("option", "difference"),
    [
        (("--temperature", "0.5"), "differs in temperature"),
        (("--reading", "exact"), "differs in reading"),
        (("--dataset", "gpt-4-0314"), "differs in positions"),
        (("--pool", "POOL"), "differs in positions"),
    ],
)
def test_a_run_made_with_other_options_is_not_taken_for_this_one(
    server: Loopback, tmp_path: Path, option: tuple[str, str], difference: str
) -> None:
    pool = tmp_path / "pool.jsonl"
    write_positions(pool, shipped_pool("pool")[-50:])
    out = tmp_path / "out"
    few = ("--model", "other", "--eval", "all", "--runs", "1")
    for _ in range(2):
        assert measure(server, out, *few).returncode == 0
    asked = len(server.requests)
    result = measure(server, out, *few, *(str(pool) if o == "POOL" else o for o in option))
    assert difference in result.stderr
    assert len(server.requests) == asked


def test_json_is_one_object_with_the_numbers_of_the_table(server: Loopback, tmp_path: Path) -> None:
    few = ("--model", "other", "--eval", "all_diagonal", "--runs", "2", "--json")
    result = measure(server, tmp_path, *few)
    (line,) = result.stdout.splitlines()
    printed = json.loads(line)
    (row,) = printed["results"]
    written = table(tmp_path)["other", "all_diagonal"]
    assert list(row) == list(written)
    assert row["delta_mean"] == pytest.approx(float(written["delta_mean"]), abs=1e-6)
    assert all(Path(file).exists() for file in printed["files"])


def test_a_limit_needs_the_price_of_every_model_before_anything_is_asked(
    server: Loopback, tmp_path: Path
) -> None:
    result = measure(server, tmp_path, "--model", "a", "--model", "b", "--max-cost", "1")
    assert result.returncode == 2
    assert "the price of a is unknown" in result.stderr
    assert server.requests == []


def test_an_unknown_model_leaves_the_limit_to_the_others(tmp_path: Path) -> None:
    models = ("--model", "cdta/none", "--model", "cdta/random", "--max-cost", "0")
    result = run_command(*models, "--eval", "all_diagonal", "-n", "5", "--out", str(tmp_path))
    assert "cdta/none: unknown model" in result.stderr
    assert list(table(tmp_path)) == [("cdta/random", "all_diagonal")]


def test_a_folder_that_cannot_be_is_refused_before_anything_is_asked(
    server: Loopback, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    result = measure(server, tmp_path / "file", "--model", "other")
    assert result.returncode == 2
    assert server.requests == []


def test_a_model_that_fails_does_not_stop_the_others(server: Loopback, tmp_path: Path) -> None:
    models = ("--model", "cdta/none", "--model", "cdta/random")
    result = run_command(*models, "--eval", "all_diagonal", "-n", "5", "--out", str(tmp_path))
    assert result.returncode == 1
    assert "cdta/none: unknown model" in result.stderr
    assert list(table(tmp_path)) == [("cdta/random", "all_diagonal")]


def test_stopping_stops_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[Spec] = []

    def stop(spec: Spec, **_: object) -> None:
        begun.append(spec)
        raise Stopped

    monkeypatch.setattr(experiment, "evaluate", stop)
    models = ("--model", "cdta/random", "--model", "cdta/pocket")
    result = run_command(*models, "--out", str(tmp_path))
    assert result.returncode == 1
    assert str(Stopped()) in result.stderr
    assert len(begun) == 1


def record(path: Path, model: str, samples: list[dict[str, Any]], **arguments: object) -> None:
    """Write what the original writes."""
    spec = {
        "completion_fns": [model],
        "eval_name": "cant_do_that_anymore.all_diagonal",
        "run_config": {"eval_spec": {"args": {"n_samples": 1000, **arguments}}},
    }
    sampling = {"type": "sampling", "data": {"prompt": "", "sampled": ["e2e4"]}}
    events = [{"type": "metrics", "data": sample} for sample in samples]
    lines = [{"spec": spec}, sampling, *events, {"final_report": {"delta": 0}}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def sample(moves: list[str], *, before: bool, after: bool) -> dict[str, Any]:
    return {
        "move": ["f1b5"],
        "predicted_move": before,
        "predicted_move_in_variant": after,
        "num_previous_moves": len(moves),
        "previous_moves": moves,
    }


GAME = ["e2e4", "e7e5", "f1g3", "f8g6", "g3h5"]


def test_records_of_the_original_give_results_and_plots(tmp_path: Path) -> None:
    logs, out = tmp_path / "logs", tmp_path / "out"
    logs.mkdir()
    for seed, kept in enumerate((1, 3)):
        samples = [sample(GAME[:n], before=True, after=n < kept) for n in range(4)]
        record(logs / f"{seed}.log", "generation/direct/gpt-4", samples, diagonal_variation=True)
    result = run_command("--plots-only", str(logs), "--out", str(out))
    assert result.returncode == 0, result.stderr
    row = table(out)["generation/direct/gpt-4", "all_diagonal"]
    assert (row["runs"], row["samples"]) == ("2", "8")
    assert float(row["predicted_move_in_variant_proportion_mean"]) == pytest.approx(0.5)
    assert float(row["predicted_move_in_variant_proportion_sem"]) == pytest.approx(0.25)
    assert (out / "diagonal.png").exists()


def test_plots_of_runs_that_exist_are_those_of_their_numbers(
    server: Loopback, tmp_path: Path
) -> None:
    first, again = tmp_path / "first", tmp_path / "again"
    measure(server, first, "--model", "other", "--runs", "2", "--eval", "all_diagonal")
    runs = [str(path.parent) for path in sorted(first.glob("*/run.json"))]
    assert run_command("--plots-only", *runs, "--out", str(again)).returncode == 0
    for name in ("results.csv", "diagonal.svg", "bars-all_diagonal.svg"):
        assert (again / name).read_bytes() == (first / name).read_bytes()


def test_samples_of_one_game_are_recognised_in_records(tmp_path: Path) -> None:
    """One game asked in two runs stays one game; a game that parts from it is another."""
    other_game = [*GAME[:2], "g1f3", "b8c6"]
    first = [sample(moves, before=True, after=False) for moves in (GAME[:2], GAME, other_game)]
    second = [sample(moves, before=True, after=False) for moves in (GAME[:4], other_game)]
    record(tmp_path / "1.jsonl", "m", first)
    record(tmp_path / "2.jsonl", "m", second)
    one, two = trials_in([tmp_path])
    assert one.eval == "all"
    assert one.earlier == [0, 3, 0]
    assert one.games[0] == one.games[1] == two.games[0]
    assert one.games[2] == two.games[1] != one.games[0]


def test_a_line_that_was_left_half_written_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"
    record(path, "m", [sample(GAME, before=True, after=True)])
    path.write_text(path.read_text() + '{"type": "metr')
    assert trials_in([path])[0].after == [True]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "no line has the key 'spec'"),
        ('{"spec": {}}\n', "no record file of this eval"),
        (
            '{"spec": {"completion_fns": ["m"], "run_config": {"eval_spec": {"args": {}}}}}',
            "no samples",
        ),
        ("\xff", "no line has the key 'spec'"),
    ],
)
def test_a_file_that_is_no_record_is_named_with_its_fault(
    tmp_path: Path, text: str, fault: str
) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(text)
    with pytest.raises(BadInput, match=fault) as problem:
        trials_in([path])
    assert "x.jsonl" in str(problem.value)


def test_an_empty_or_missing_folder_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(BadInput, match="holds no run and no record file"):
            trials_in([path])


def test_paths_without_plots_only_and_the_reverse_are_refused(tmp_path: Path) -> None:
    for arguments, sentence in (
        (("--plots-only",), "--plots-only"),
        ((str(tmp_path),), "--plots-only"),
        (("--eval", "all,al"), "unknown eval: 'al'"),
    ):
        refused = run_command(*arguments)
        assert refused.returncode == 2
        assert sentence in refused.stderr


def test_one_run_has_a_mean_and_no_standard_error() -> None:
    (result,) = experiment.results([Trial("m", "all", [1, 2], [0, 0], [True, False], [False] * 2)])
    assert result.means["predicted_move_proportion"] == 0.5
    assert result.means["variant_impact_factor"] == -1
    assert result.errors["predicted_move_proportion"] is None


def test_without_a_habit_there_is_no_impact_factor() -> None:
    (result,) = experiment.results([Trial("m", "all", [1], [0], [False], [True])])
    assert result.means["variant_impact_factor"] is None
    assert result.means["delta"] == 1


def test_lines_show_the_share_at_each_number_of_earlier_bishop_moves() -> None:
    trial = Trial(
        "m", "all_diagonal", [1, 2, 3, 4], [0, 0, 2, 2], [True] * 4, [True, False, False, False]
    )
    shares = by_earlier_moves(trial, many=8)
    assert {count: share.value for count, share in shares.items()} == {0: 0.5, 2: 0.0}
    assert all(share.low <= share.value <= share.high for share in shares.values())


def test_a_name_with_a_dollar_sign_is_no_formula_and_plots_repeat_exactly(tmp_path: Path) -> None:
    trials = {"$a_b^$": Trial("x", "all_diagonal", [1, 2], [0, 1], [True] * 2, [True, False])}
    for draw in (bar_chart, line_chart):
        first, again = (draw(trials, "title", tmp_path / name) for name in ("first", "again"))
        assert first[1].read_bytes() == again[1].read_bytes()
