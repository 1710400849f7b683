"""Exports have every field that the EEE schema requires, agree with the run and leak no paths."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cant_do_that_anymore import load
from cant_do_that_anymore.api.results import save_with_page
from cant_do_that_anymore.runs.identity import PROBES
from cant_do_that_anymore.runs.run import command_of
from planted_models import wavering
from testing import Loopback, Serve, cdta, measure, positions

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
    *("score_details.score", "metric_config.lower_is_better"),
    *(f"score_details.uncertainty.confidence_interval.{end}" for end in ("lower", "upper")),
)
INSTANCE = (
    *("schema_version", "evaluation_id", "model_id", "evaluation_name", "sample_id"),
    *("interaction_type", "input.raw", "input.reference", "output.raw", "answer_attribution"),
    *("evaluation.score", "evaluation.is_correct"),
)
PATH = r"data/[^/]+/[^/]+/[^/]+/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"


@pytest.fixture
def server(serve: Serve) -> Loopback:
    return serve(wavering)


def missing_fields(document: Any, paths: tuple[str, ...]) -> Iterator[str]:
    for path in paths:
        value = document
        for key in path.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        if value in (None, "", [], {}):
            yield path


def test_an_export_has_all_required_fields_and_the_scores_of_the_run(
    server: Loopback, tmp_path: Path
) -> None:
    """Nor does it have paths of this machine, or the address of a server."""
    wording = tmp_path / "own.toml"
    wording.write_text('standard = "Move."\nchanged = "Move. {change}"\n')
    run = measure(server, dataset=positions(30), wording=str(wording))
    save_with_page(run, tmp_path / "run")
    done = cdta("export", tmp_path / "run", "-o", tmp_path / "out", code=0)
    aggregate, samples = map(Path, done.stdout.splitlines())
    assert re.fullmatch(PATH, aggregate.relative_to(tmp_path / "out").with_suffix("").as_posix())
    texts = [file.read_text(encoding="utf-8") for file in (aggregate, samples)]
    for secret in (str(tmp_path), str(positions(30).parent), server.url):
        assert secret not in "".join(texts)
    document, lines = json.loads(texts[0]), list(map(json.loads, texts[1].splitlines()))
    assert list(missing_fields(document, AGGREGATE)) == []
    results = {each["metric_config"]["metric_id"]: each for each in document["evaluation_results"]}
    less_is_better = {}
    for key, result in results.items():
        assert list(missing_fields(result, RESULT)) == []
        name = key.removeprefix("cant_do_that_anymore.")
        less_is_better[name] = result["metric_config"]["lower_is_better"]
        assert result["score_details"]["score"] == run[name].value
        assert result["generation_config"]["generation_args"]["execution_command"] == (
            "cdta run --model m --base-url URL --dataset FILE --wording own.toml "
            "--max-connections 4"
        )
    assert less_is_better == {
        "rule_uptake": False,
        "variant_impact_factor": True,
        "delta": True,
        "predicted_move_proportion": False,
        "predicted_move_in_variant_proportion": True,
    }
    assert len(lines) == 30 * 2
    assert [path for line in lines for path in missing_fields(line, INSTANCE)] == []
    assert {line["evaluation_id"] for line in lines} == {document["evaluation_id"]}
    for line in lines:
        legal = ("adapted", "legal", "usual" if "standard" in line["evaluation_name"] else "")
        assert line["evaluation"]["is_correct"] == (line["metadata"]["outcome"] in legal)


def test_the_exported_command_reproduces_the_run(server: Loopback) -> None:
    options = ["-n", 6, "--pool", positions(40), "--seed", 3, "--reading", "exact", "--tag", "a b"]
    common = ["--base-url", server.url, "--model", "m", "--quiet", "--json", "--wording", "plain"]
    first = cdta("run", *common, *options, "--max-connections", 4, code=0)
    requests_before = len(server.requests)
    run = load("latest")
    values = {"URL": server.url, "FILE": str(options[3])}
    words = shlex.split(command_of(run, run.model, "URL"))
    again = cdta(*(values.get(word, word) for word in words[1:]), "--quiet", "--json", code=0)
    assert len(server.requests) - requests_before <= PROBES
    before, after = (json.loads(done.stdout) for done in (first, again))
    assert before["rule_uptake"] == after["rule_uptake"]
    assert load("latest").plan == run.plan and load("latest").identity == run.identity
