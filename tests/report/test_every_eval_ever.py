"""Exports have every field that the EEE schema requires, agree with the run and leak no paths."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from cant_do_that_anymore import Experiment, Run, load
from cant_do_that_anymore.api.results import save_with_page
from cant_do_that_anymore.runs.identity import PROBES
from cant_do_that_anymore.runs.run import command_of
from testing import (
    Body,
    Loopback,
    Serve,
    adapting,
    cdta,
    checksum,
    habit,
    is_changed,
    measure,
    moves_in,
    positions,
)

# Paths of the fields that schema 0.3.0 requires.
AGGREGATE = (
    *("schema_version", "evaluation_id", "retrieved_timestamp", "evaluation_results"),
    *(f"source_metadata.{name}" for name in ("source_type", "source_organization_name")),
    *("source_metadata.evaluator_relationship", "eval_library.name", "eval_library.version"),
    *("model_info.name", "model_info.id", "model_info.additional_details.deployment_type"),
    "model_info.additional_details.model_availability",
    *(f"detailed_evaluation_results.{name}" for name in ("format", "file_path")),
)
RESULT = (
    *("evaluation_name", "source_data.dataset_name", "source_data.source_type"),
    *("source_data.url", "score_details.score"),
    *(f"metric_config.{name}" for name in ("lower_is_better", "min_score", "max_score")),
    *(f"score_details.uncertainty.confidence_interval.{end}" for end in ("lower", "upper")),
)
INSTANCE = (
    *("schema_version", "evaluation_id", "model_id", "evaluation_name", "sample_id"),
    *("interaction_type", "input.raw", "input.reference", "output.raw", "answer_attribution"),
    *("evaluation.score", "evaluation.is_correct"),
    *(f"token_usage.{kind}_tokens" for kind in ("input", "output", "total")),
)
PATH = r"data/[^/]+/[^/]+/[^/]+/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"


def respond(request: Body) -> str:
    """Adapt in two of three positions. Every fifth reply under the changed rules has no move."""
    number = checksum(moves_in(request))
    if is_changed(request) and number % 5 == 0:
        return "What a game!"
    return adapting(request) if is_changed(request) and number % 3 else habit(request)


@pytest.fixture
def server(serve: Serve) -> Loopback:
    return serve(respond)


def missing_fields(document: Any, paths: tuple[str, ...]) -> Iterator[str]:
    for path in paths:
        value = document
        for key in path.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        if value in (None, "", [], {}):
            yield path


def export(run: Run, folder: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    aggregate, samples = run.export(folder, "me")
    assert re.fullmatch(PATH, aggregate.relative_to(folder).with_suffix("").as_posix())
    lines = [json.loads(line) for line in samples.read_text(encoding="utf-8").splitlines()]
    return json.loads(aggregate.read_text(encoding="utf-8")), lines


def test_required_fields_exist_and_scores_match_the_run(server: Loopback, tmp_path: Path) -> None:
    run = measure(server, dataset=positions(30), diagnose=True)
    document, lines = export(run, tmp_path)
    assert list(missing_fields(document, AGGREGATE)) == []
    results = {result["evaluation_result_id"]: result for result in document["evaluation_results"]}
    assert len(results) == len(document["evaluation_results"]) == 5
    for result in results.values():
        assert list(missing_fields(result, RESULT)) == []
        estimate = run[result["metric_config"]["metric_id"].partition(".")[2]]
        exported = result["score_details"]["uncertainty"]["confidence_interval"]
        assert result["score_details"]["score"] == estimate.value
        assert (exported["lower"], exported["upper"]) == (estimate.low, estimate.high)
    assert len(lines) == 30 * len(run.plan.conditions)
    assert [path for line in lines for path in missing_fields(line, INSTANCE)] == []
    assert {line["evaluation_id"] for line in lines} == {document["evaluation_id"]}
    ids = {line.get("evaluation_result_id") for line in lines} - {None}
    assert len(ids) == 2
    for key in ids:
        scores = [
            line["evaluation"]["score"] for line in lines if line.get("evaluation_result_id") == key
        ]
        assert fmean(scores) == pytest.approx(results[key]["score_details"]["score"])


def test_headline_measures_have_a_direction_and_bounds(server: Loopback, tmp_path: Path) -> None:
    document, _ = export(measure(server, dataset=positions(12)), tmp_path)
    configs = [result["metric_config"] for result in document["evaluation_results"]]
    exported = {
        config["metric_id"].partition(".")[2]: (
            config["lower_is_better"],
            config["min_score"],
            config["max_score"],
        )
        for config in configs
    }
    headline = {
        "rule_uptake": (False, "-Infinity", 1),
        "variant_impact_factor": (True, -1, "Infinity"),
        "delta": (True, -1, 1),
        "predicted_move_proportion": (False, 0, 1),
        "predicted_move_in_variant_proportion": (True, 0, 1),
    }
    assert exported == headline


def test_exports_contain_no_paths_and_no_url_of_a_single_server(
    server: Loopback, tmp_path: Path
) -> None:
    wording = tmp_path / "own.toml"
    wording.write_text('standard = "Move."\nchanged = "Move. {change}"\n')
    run = measure(server, dataset=positions(12), wording=str(wording))
    aggregate, samples = (file.read_text() for file in Experiment([run]).export(tmp_path / "out"))
    text = aggregate + samples
    assert str(tmp_path) not in text and str(positions(12).parent) not in text
    assert server.url not in text
    document = json.loads(aggregate)
    args = document["evaluation_results"][0]["generation_config"]["generation_args"]
    assert args["execution_command"].startswith(
        "cdta run --model m --base-url URL --dataset FILE --wording own.toml"
    )


@pytest.mark.parametrize(
    "options",
    [
        ["-n", 6, "--pool", str(positions(40)), "--seed", 3, "--reading", "exact"],
        ["-n", 5, "--pool", "common", "--temperature", 0.5, "--max-tokens", 20],
        ["-n", 4, "--dataset", str(positions(12)), "--tag", "week 1", "--diagnose"],
        ["-n", 4, "--dataset", "gpt-4-0314", "--extra-body", '{"top_k": 2}'],
        ["-n", 4, "--pool", "common", "--reasoning-effort", "low"],
    ],
)
def test_the_exported_command_reproduces_the_run(server: Loopback, options: list[object]) -> None:
    common = ["--base-url", server.url, "--model", "m", "--quiet", "--json", "--wording", "plain"]
    first = cdta("run", *common, *options, "--max-connections", 4, code=0)
    requests_before = len(server.requests)
    run = load("latest")
    words = shlex.split(command_of(run, run.model, "URL"))
    files = [option for option in options if str(option).endswith(".jsonl")]
    assert ("FILE" in words) == bool(files)
    values = {"URL": server.url, "FILE": files[0] if files else ""}
    again = cdta(*(values.get(word, word) for word in words[1:]), "--quiet", "--json", code=0)
    assert len(server.requests) - requests_before <= PROBES
    before, after = (json.loads(done.stdout) for done in (first, again))
    assert before["rule_uptake"] == after["rule_uptake"]
    assert load("latest").plan == run.plan and load("latest").identity == run.identity


def test_the_command_writes_the_files(
    server: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    save_with_page(measure(server, dataset=positions(12)), tmp_path / "run")
    paths = cdta("export", "run", "-o", "shared", code=0).stdout.splitlines()
    assert [Path(path).is_file() for path in paths] == [True, True]
