"""Several servers in one experiment, by name and address or in a file."""

import json
import re
import tomllib
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from cant_do_that_anymore import Spec
from cant_do_that_anymore.client.session import model_info
from cant_do_that_anymore.runs.lookup import folders_in
from cant_do_that_anymore.runs.storage import load_run
from cant_do_that_anymore.task.spec import DEFAULT_SEED
from loopback import serving_in_process
from planted_models import habit, perfect, wavering
from testing import cdta

EXAMPLES = Path(__file__).parents[2] / "examples"

pytestmark = pytest.mark.usefixtures("no_plots")


def identity_of(**spec: Any) -> Any:
    return model_info(Spec(**spec)).identity


def test_a_model_name_may_include_an_address() -> None:
    url = "http://127.0.0.1:9/v1"
    for name in ("alpha", "cot/alpha", "completions/alpha", "org/al@pha"):
        expected = identity_of(model=name, base_url=url)
        assert identity_of(model=f"{name}@{url}") == expected
        assert identity_of(model=f"{name}@{url}", base_url=f"{url}/") == expected
    spec = Spec(model=f"@{url}")
    assert (spec.model, spec.base_url) == (None, url)
    assert Spec(model="vertex/claude@20250101").base_url is None


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
            wording = "plain"
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


def test_an_address_with_a_secret_is_refused_before_it_is_printed_or_saved(tmp_path: Path) -> None:
    file, out = tmp_path / "mine.toml", tmp_path / "out"
    file.write_text('model = ["a@http://me:hidden@x/v1", "a@http://x/v1"]')
    done = cdta("experiment", file, "--out", out, code=2)
    assert "without user name, password or query" in done.stderr
    assert "hidden" not in done.stderr
    assert not out.exists()


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
