"""Exports in the EEE schema match a snapshot, agree with the run and leak no paths."""

import json
import re
import shlex
from pathlib import Path

import pytest

from cant_do_that_anymore import load
from cant_do_that_anymore.api.results import save_with_page
from cant_do_that_anymore.runs.identity import PROBES
from cant_do_that_anymore.runs.run import command_of
from planted_models import wavering
from testing import Loopback, Serve, cdta, measure, positions, snapshot

PATH = r"data/[^/]+/[^/]+/[^/]+/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
VARYING = "|".join(
    (
        PATH,
        r'(?<=["/])\d{10}(?=")',
        r'(?<="version": ")\d[^"]*',
        r"20[\d-]+T[\d:]+Z",
        r"(?<=\.\d{9})\d+",
    )
)
"""Names, times, our version, and digits that may differ between machines."""


@pytest.fixture
def server(serve: Serve) -> Loopback:
    return serve(wavering)


def test_an_export_matches_its_snapshot_and_has_the_outcomes_of_the_run(
    server: Loopback, tmp_path: Path
) -> None:
    """It has every field that schema 0.3.0 requires; test_one_number.py compares the scores."""
    wording = tmp_path / "own.toml"
    wording.write_text('standard = "Move."\nchanged = "Move. {change}"\n')
    run = measure(server, dataset=positions(30), wording=str(wording))
    save_with_page(run, tmp_path / "run")
    done = cdta("export", tmp_path / "run", "-o", tmp_path / "out", code=0)
    aggregate, samples = map(Path, done.stdout.splitlines())
    assert re.fullmatch(PATH, aggregate.relative_to(tmp_path / "out").with_suffix("").as_posix())
    document, lines = (file.read_text(encoding="utf-8") for file in (aggregate, samples))
    for secret in (str(tmp_path), str(positions(30).parent), server.url):
        assert secret not in document + lines
    instances = list(map(json.loads, lines.splitlines()))
    assert len(instances) == 30 * 2
    assert {each["evaluation_id"] for each in instances} == {json.loads(document)["evaluation_id"]}
    for each in instances:
        legal = ("adapted", "legal", "usual" if "standard" in each["evaluation_name"] else "")
        assert each["evaluation"]["is_correct"] == (each["metadata"]["outcome"] in legal)
    snapshot("export", re.sub(VARYING, "...", document + lines.splitlines()[0]))


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
