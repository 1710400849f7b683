"""Several servers in one experiment, by name and address or in a file."""

import json
import re
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
import pytest

from cant_do_that_anymore import Spec
from cant_do_that_anymore.cli.commands.experiment import experiment_command, take_defaults
from cant_do_that_anymore.client.session import model_info
from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.runs.identity import PROBES
from cant_do_that_anymore.runs.lookup import folders_in
from cant_do_that_anymore.runs.storage import load_run
from cant_do_that_anymore.task.conditions import interventions
from cant_do_that_anymore.task.spec import DEFAULT_SEED
from loopback import Loopback, serving_in_process
from planted_models import habit, perfect, wavering
from processes import CompletedCommand, cdta
from testing import without_plots

EXAMPLES = Path(__file__).parents[2] / "examples"

pytestmark = pytest.mark.usefixtures("no_plots")
FEW = ("--eval", "all", "-n", "12", "--wording", "plain")


@pytest.fixture(scope="module")
def servers() -> Iterator[list[Loopback]]:
    """Three servers; the first two have the same model name."""
    with ExitStack() as stack:
        players = {"alpha": perfect, "alpha ": habit, "beta": wavering}
        yield [
            stack.enter_context(serving_in_process(player, listed=(name.strip(),)))
            for name, player in players.items()
        ]


@pytest.fixture(scope="module")
def experiment(
    servers: list[Loopback], tmp_path_factory: pytest.TempPathFactory
) -> tuple[CompletedCommand, Path]:
    """An experiment on all three servers, and its folder."""
    folder = tmp_path_factory.mktemp("servers")
    first, second, third = servers
    models = (f"alpha@{first.url}", f"alpha@{second.url}", f"@{third.url}")
    options = [argument for model in models for argument in ("--model", model)]
    command = ("experiment", *options, *FEW, "--out", folder / "out")
    with without_plots():
        done = cdta(*command, CDTA_HOME=str(folder / "home"), code=0)
    return done, folder


def test_one_command_measures_models_on_three_servers(
    servers: list[Loopback], experiment: tuple[CompletedCommand, Path]
) -> None:
    _, folder = experiment
    runs = list(map(load_run, folders_in(folder / "out")))
    measured = {(run.endpoint, run.version, run.results["delta"].value) for run in runs}
    first, second, third = (server.url for server in servers)
    assert len(runs) == 3
    assert {(url, name) for url, name, _ in measured} == {
        (first, "alpha"),
        (second, "alpha"),
        (third, "beta"),
    }
    assert {delta for url, _, delta in measured if url == first} == {-1.0}
    assert {delta for url, _, delta in measured if url == second} == {0.0}
    table = (folder / "out" / "results.csv").read_text()
    assert f"alpha {first}," in table
    assert f"alpha {second}," in table
    assert "\nbeta," in table


def test_a_run_with_base_url_uses_the_same_cached_answers(
    servers: list[Loopback], experiment: tuple[CompletedCommand, Path], tmp_path: Path
) -> None:
    _, folder = experiment
    n_requests = len(servers[0].requests)
    command = ("run", "--model", "alpha", "--base-url", servers[0].url, *FEW, "--json")
    done = cdta(*command, "--out", tmp_path / "run", CDTA_HOME=str(folder / "home"))
    assert json.loads(done.stdout)["notes"][-1].startswith("all answers came from the cache")
    assert len(servers[0].requests) == n_requests + PROBES


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
    with pytest.raises(InvalidInput, match=r"give one address: 'a@http://b' has one"):
        Spec(model="a@http://b", base_url=url)


def test_estimates_distinguish_servers_with_the_same_model_name() -> None:
    models = [f"a@http://127.0.0.1:{port}/v1" for port in (8, 9)]
    options = [argument for model in (*models, "b@http://x") for argument in ("--model", model)]
    done = cdta("estimate", *options, "-n", 2, "--json")
    assert [expected["model"] for expected in json.loads(done.stdout)] == [*models, "b"]


def run_file(file: Path, *arguments: object) -> CompletedCommand:
    return cdta("experiment", file, "--quiet", "--out", file.with_name("out"), *arguments)


def test_a_flag_is_true_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('model = "cdta/random"\neval = "all_diagonal"\ninterventions = true')
    assert run_file(file, "-n", 2).returncode == 0
    [run] = map(load_run, folders_in(tmp_path / "out"))
    assert list(run.plan.interventions) == sorted(interventions())


def test_efforts_may_be_one_string_or_a_list(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    for efforts in ('"none,low"', '["none", "low"]'):
        file.write_text(f'model = [{{ name = "m", reasoning_effort = {efforts} }}]')
        context = click.Context(experiment_command)
        take_defaults(context, click.Argument(["paths"]), (file,))
        assert context.default_map == {"models": [{"model": "m", "efforts": ("none", "low")}]}


def test_the_command_line_overrides_an_experiment_file(
    servers: list[Loopback], tmp_path: Path
) -> None:
    file = tmp_path / "mine.toml"
    text = f"""
        title = "Two servers"
        eval = "all"
        n = 99
        [[model]]
        name = "alpha@{servers[0].url}"
        [[model]]
        name = "beta"
        url = "{servers[2].url}"
        price = [1, 2.5]
        max_tokens = 9
        reasoning_effort = ["low"]
        extra_body = {{ top_k = 5 }}
    """
    file.write_text(text, encoding="utf-8-sig")  # some editors add a byte order mark
    done = run_file(file, "-n", 8, "--json")
    assert done.returncode == 0, done.stderr
    runs = {run.model: run for run in map(load_run, folders_in(tmp_path / "out"))}
    assert {model: len(run.samples) for model, run in runs.items()} == {"alpha": 8, "beta": 8}
    assert runs["alpha"].cost.total is None
    assert runs["beta"].cost.total
    assert runs["beta"].plan.settings.non_defaults == {
        "max_tokens": 9,
        "reasoning_effort": "low",
        "extra_body": '{"top_k": 5}',
        "seed": DEFAULT_SEED,
    }
    assert servers[2].requests[-1]["top_k"] == 5
    assert json.loads(done.stdout)["title"] == "Two servers"
    assert json.loads((tmp_path / "out" / "results.json").read_text())["title"] == "Two servers"
    options = (tmp_path / "out", "--title", "Mine", "--json")
    titled = cdta("experiment", *options, "--out", tmp_path / "new")
    assert json.loads(titled.stdout)["title"] == "Mine"
    copy = tmp_path / "out" / "experiment.toml"
    assert copy.read_text() == file.read_text()


def test_an_address_with_a_secret_is_refused_before_it_is_printed_or_saved(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('model = ["a@http://me:hidden@x/v1", "a@http://x/v1"]')
    done = run_file(file)
    assert done.returncode == 2
    assert "the address of x may contain no user name, password or query" in done.stderr
    assert "hidden" not in done.stderr
    assert not (tmp_path / "out").exists()  # which would contain a copy of the file


def test_the_example_file_is_valid_with_all_its_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = EXAMPLES / "experiment.toml"
    few = ("-n", 4, "--rules", "bishops-as-knights", "--json", "--quiet")
    done = cdta("experiment", file, *few)
    rows = json.loads(done.stdout)["results"]
    assert {row["model"] for row in rows} == {"cdta/pocket", "cdta/random"}
    example = file.read_text()
    uncommented = re.sub(r"^( *)# (?=[\"{]|\w+ = )", r"\1", example, flags=re.MULTILINE)
    assert len(tomllib.loads(uncommented)["model"]) == 6
    Path("all.toml").write_text(uncommented)
    result = cdta("experiment", "all.toml", "--rules", "none")  # the rest is valid
    assert result.stderr.startswith("cdta: unknown rules: 'none'")
