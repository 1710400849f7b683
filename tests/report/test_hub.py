"""Exports for the Hugging Face Hub have the fields that it documents, and the run's number."""

from datetime import datetime
from pathlib import Path

import yaml

from cant_do_that_anymore import load
from testing import cdta, positions, serving, wavering

# Required and optional fields, github.com/huggingface/hub-docs, eval_results.yaml of August 2026.
FIELDS = {"dataset", "value"}, {"verifyToken", "date", "source", "notes"}
DATASET_FIELDS = {"id", "task_id"}, {"revision"}
SOURCE_FIELDS = {"url"}, {"name", "user", "org"}


def has_fields(found: dict[str, object], fields: tuple[set[str], set[str]]) -> bool:
    required, optional = fields
    return required <= found.keys() <= required | optional


def test_a_run_becomes_a_file_of_its_models_repository(tmp_path: Path) -> None:
    with serving(wavering) as server:
        options = ("--base-url", server.url, "--model", "org/m", "--dataset", positions(40))
        cdta("run", *options, "-n", 40, "--out", tmp_path / "run", "--quiet", code=0)
    words = ("--format", "hub", "--organization", "us", "-o", tmp_path / "shared")
    (name,) = cdta("export", tmp_path / "run", *words, code=0).stdout.splitlines()
    assert Path(name).parent.name == ".eval_results"
    (result,) = yaml.safe_load(Path(name).read_text(encoding="utf-8"))
    assert has_fields(result, FIELDS)
    assert has_fields(result["dataset"], DATASET_FIELDS)
    assert has_fields(result["source"], SOURCE_FIELDS) and result["source"]["org"] == "us"
    assert result["dataset"]["task_id"] == "all.bishops-as-knights"
    uptake = load(tmp_path / "run")["rule_uptake"]
    assert result["value"] == round(100 * uptake.value, 1)
    assert uptake.as_share in result["notes"] and str(tmp_path) not in str(result)
    assert datetime.fromisoformat(result["date"])


def test_a_run_without_a_habit_has_nothing_to_share(tmp_path: Path) -> None:
    with serving(lambda _: "a2a3") as server:
        options = ("--base-url", server.url, "--model", "m", "--dataset", positions(4), "-n", 4)
        cdta("run", *options, "--out", tmp_path / "run", "--quiet", code=0)
    done = cdta("export", tmp_path / "run", "--format", "hub", "-o", tmp_path / "new", code=2)
    assert "no rule uptake to share" in done.stderr
