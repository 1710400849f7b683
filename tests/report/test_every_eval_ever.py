"""Exports have every field that the EEE schema requires, agree with the run and leak no paths."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from cant_do_that_anymore import load
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


HEADLINE = {
    "rule_uptake": (False, "-Infinity", 1),
    "variant_impact_factor": (True, -1, "Infinity"),
    "delta": (True, -1, 1),
    "predicted_move_proportion": (False, 0, 1),
    "predicted_move_in_variant_proportion": (True, 0, 1),
}
"""Whether less is better, and the range of each exported number."""


def test_an_export_has_all_required_fields_and_the_scores_of_the_run(
    server: Loopback, tmp_path: Path
) -> None:
    run = measure(server, dataset=positions(30), diagnose=True)
    aggregate, samples = run.export(tmp_path, "me")
    assert re.fullmatch(PATH, aggregate.relative_to(tmp_path).with_suffix("").as_posix())
    document = json.loads(aggregate.read_text(encoding="utf-8"))
    lines = [json.loads(line) for line in samples.read_text(encoding="utf-8").splitlines()]
    assert list(missing_fields(document, AGGREGATE)) == []
    results = {result["evaluation_result_id"]: result for result in document["evaluation_results"]}
    assert len(results) == len(document["evaluation_results"])
    ranges = {}
    for result in results.values():
        assert list(missing_fields(result, RESULT)) == []
        config = result["metric_config"]
        name = config["metric_id"].partition(".")[2]
        ranges[name] = config["lower_is_better"], config["min_score"], config["max_score"]
        assert result["score_details"]["score"] == run[name].value
    assert ranges == HEADLINE
    assert len(lines) == 30 * len(run.plan.conditions)
    assert [path for line in lines for path in missing_fields(line, INSTANCE)] == []
    assert {line["evaluation_id"] for line in lines} == {document["evaluation_id"]}
    ids = {line.get("evaluation_result_id") for line in lines} - {None}
    assert len(ids) == 2
    for key in ids:
        of_result = [line for line in lines if line.get("evaluation_result_id") == key]
        mean = fmean(line["evaluation"]["score"] for line in of_result)
        assert mean == pytest.approx(results[key]["score_details"]["score"])


def test_exports_contain_no_paths_and_no_url_of_a_single_server(
    server: Loopback, tmp_path: Path
) -> None:
    wording = tmp_path / "own.toml"
    wording.write_text('standard = "Move."\nchanged = "Move. {change}"\n')
    run = measure(server, dataset=positions(12), wording=str(wording))
    save_with_page(run, tmp_path / "run")
    paths = cdta("export", tmp_path / "run", "-o", tmp_path / "out", code=0).stdout.splitlines()
    aggregate, samples = (Path(path).read_text() for path in paths)
    for secret in (str(tmp_path), str(positions(12).parent), server.url):
        assert secret not in aggregate + samples
    settings = json.loads(aggregate)["evaluation_results"][0]["generation_config"]
    assert settings["generation_args"]["execution_command"].startswith(
        "cdta run --model m --base-url URL --dataset FILE --wording own.toml"
    )


@pytest.mark.parametrize(
    "options",
    [
        ["-n", 6, "--pool", str(positions(40)), "--seed", 3, "--reading", "exact"],
        ["-n", 5, "--pool", "common", "--temperature", 0.5, "--max-tokens", 20],
        ["-n", 4, "--dataset", str(positions(12)), "--tag", "week 1", "--diagnose"],
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
