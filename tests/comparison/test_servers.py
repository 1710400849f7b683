"""Several servers in one experiment: by name and address, or in a file."""

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
from cant_do_that_anymore.comparison.naming import models_by_name
from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.runs.lookup import folders_in
from cant_do_that_anymore.runs.storage import load_run
from cant_do_that_anymore.task.conditions import interventions
from cant_do_that_anymore.task.spec import DEFAULT_SEED
from loopback import Loopback, answering
from planted_models import habit, perfect, wavering
from processes import Done, cdta
from testing import without_plots

pytestmark = pytest.mark.usefixtures("no_plots")
FEW = ("--eval", "all", "-n", "12")


@pytest.fixture(scope="module")
def servers() -> Iterator[list[Loopback]]:
    """Three, of which the first two call their model by one name."""
    with ExitStack() as stack:
        players = {"alpha": perfect, "alpha ": habit, "beta": wavering}
        yield [
            stack.enter_context(answering(player, listed=(name.strip(),)))
            for name, player in players.items()
        ]


@pytest.fixture(scope="module")
def three(servers: list[Loopback], tmp_path_factory: pytest.TempPathFactory) -> tuple[Done, Path]:
    """The three measured by one command."""
    place = tmp_path_factory.mktemp("three")
    first, second, third = servers
    models = (f"alpha@{first.url}", f"alpha@{second.url}", f"@{third.url}")
    given = [argument for model in models for argument in ("--model", model)]
    asked = ("experiment", *given, *FEW, "--runs", 2, "--out", place / "out")
    with without_plots():
        done = cdta(*asked, CDTA_HOME=str(place / "home"), code=0)
    return done, place


def test_three_models_behind_three_servers_are_measured_by_one_command(
    servers: list[Loopback], three: tuple[Done, Path]
) -> None:
    _, place = three
    runs = [load_run(folder) for folder in folders_in(place / "out")]
    told = {(run.endpoint, run.version, run.results.metrics["delta"]) for run in runs}
    first, second, third = (server.url for server in servers)
    assert len(runs) == 6
    assert {(url, name) for url, name, _ in told} == {
        (first, "alpha"),
        (second, "alpha"),
        (third, "beta"),
    }
    assert {delta for url, _, delta in told if url == first} == {-1.0}
    assert {delta for url, _, delta in told if url == second} == {0.0}
    table = (place / "out" / "results.csv").read_text()
    assert f"alpha {first}," in table
    assert f"alpha {second}," in table
    assert "\nbeta," in table


def test_progress_says_which_run_of_how_many_it_is(
    servers: list[Loopback], three: tuple[Done, Path]
) -> None:
    lines = [line for line in three[0].stderr.splitlines() if "measuring" in line]
    second = f"alpha@{servers[1].url}, bishops-as-knights, seed {DEFAULT_SEED + 1}"
    assert lines[3].startswith(f"run 4 of 6: {second}: measuring alpha: 12/12, ")
    assert lines[3].endswith(" left in total")
    assert lines[-1].startswith("run 6 of 6: served, ")
    assert ", 0 s left, " in lines[-1] and lines[-1].endswith(", 0 s left in total")


def test_answers_are_shared_with_the_same_model_by_name_and_base_url(
    servers: list[Loopback], three: tuple[Done, Path], tmp_path: Path
) -> None:
    _, place = three
    asked = len(servers[0].requests)
    given = ("run", "--model", "alpha", "--base-url", servers[0].url, *FEW, "--json")
    done = cdta(*given, "--out", tmp_path / "run", CDTA_HOME=str(place / "home"))
    assert json.loads(done.stdout)["notes"][-1].startswith("all answers came from the cache")
    assert len(servers[0].requests) == asked + 1  # is it the same model?


def known(**spec: Any) -> Any:
    return model_info(Spec(**spec)).identity


def test_a_name_with_an_address_is_that_model_and_another_at_is_a_name() -> None:
    url = "http://127.0.0.1:9/v1"
    for name in ("alpha", "cot/alpha", "completions/alpha", "org/al@pha"):
        assert known(model=f"{name}@{url}") == known(model=name, base_url=url)
        assert known(model=f"{name}@{url}", base_url=f"{url}/") == known(model=name, base_url=url)
    spec = Spec(model=f"@{url}")
    assert (spec.model, spec.base_url) == (None, url)
    assert Spec(model="vertex/claude@20250101").base_url is None
    with pytest.raises(InvalidInput, match=r"give one address: 'a@http://b' has one"):
        Spec(model="a@http://b", base_url=url)
    with pytest.raises(
        InvalidInput,
        match=r"'a@localhost:1/v1' has no http address \(try a@http://localhost:1/v1\)",
    ):
        known(model="a@localhost:1/v1")


def test_an_estimate_tells_servers_of_one_name_apart() -> None:
    models = [f"a@http://127.0.0.1:{port}/v1" for port in (8, 9)]
    given = [argument for model in (*models, "b@http://x") for argument in ("--model", model)]
    done = cdta("estimate", *given, "-n", 2, "--json")
    assert [one["model"] for one in json.loads(done.stdout)] == [*models, "b"]


def test_models_are_called_by_as_much_as_tells_them_apart() -> None:
    two = [{"model": "a", "temperature": heat} for heat in (0.0, 1.0)]
    assert list(models_by_name([*two, "b", "b", "b@http://x/", None], "http://x")) == [
        "a@http://x temperature=0.0",
        "a@http://x temperature=1.0",
        "b",
        "served",
    ]


def measured_by(file: Path, *arguments: object) -> Done:
    return cdta("experiment", file, "--quiet", "--out", file.with_name("out"), *arguments)


def test_an_option_without_a_value_is_true_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('model = "cdta/random"\neval = "all_diagonal"\nruns = 1\ninterventions = true')
    assert measured_by(file, "-n", 2).returncode == 0
    [run] = map(load_run, folders_in(tmp_path / "out"))
    assert list(run.plan.interventions) == sorted(interventions())


def test_efforts_of_one_model_may_be_one_text(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    for efforts in ('"none,low"', '["none", "low"]'):
        file.write_text(f'model = [{{ name = "m", reasoning_effort = {efforts} }}]')
        context = click.Context(experiment_command)
        take_defaults(context, click.Argument(["paths"]), (file,))
        assert context.default_map == {"models": [{"model": "m", "efforts": ("none", "low")}]}


def test_a_file_says_what_is_measured_and_the_command_line_goes_before_it(
    servers: list[Loopback], tmp_path: Path
) -> None:
    file = tmp_path / "mine.toml"
    text = f"""
        title = "Two servers"
        eval = "all"
        n = 99
        runs = 1
        max_error_rate = 0.5
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
    file.write_text(text, encoding="utf-8-sig")  # some editors begin it with a byte order mark
    done = measured_by(file, "-n", 8, "--json")
    assert done.returncode == 0, done.stderr
    runs = {run.model: run for run in map(load_run, folders_in(tmp_path / "out"))}
    assert {model: len(run.samples) for model, run in runs.items()} == {"alpha": 8, "beta": 8}
    assert runs["alpha"].cost.measuring is None
    assert runs["beta"].cost.measuring
    assert runs["beta"].plan.settings.non_defaults == {
        "max_tokens": 9,
        "reasoning_effort": "low",
        "extra_body": '{"top_k": 5}',
        "seed": DEFAULT_SEED,
    }
    assert servers[2].requests[-1]["top_k"] == 5
    assert json.loads(done.stdout)["title"] == "Two servers"
    assert json.loads((tmp_path / "out" / "results.json").read_text())["title"] == "Two servers"
    named = cdta(
        "experiment",
        "--plots-only",
        tmp_path / "out",
        "--title",
        "Mine",
        "--json",
        "--out",
        tmp_path / "new",
    )
    assert json.loads(named.stdout)["title"] == "Mine"
    copy = tmp_path / "out" / "experiment.toml"
    assert copy.read_text() == file.read_text()


def test_an_address_with_a_secret_is_refused_before_it_is_printed_or_saved(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('model = ["a@http://me:hidden@x/v1", "a@http://x/v1"]')
    done = measured_by(file)
    assert done.returncode == 2
    assert "the address of x may contain no user name, password or query" in done.stderr
    assert "hidden" not in done.stderr
    assert not (tmp_path / "out").exists()  # where a copy of the file would be


def test_the_example_is_written_once_and_every_line_of_it_can_be_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cdta("experiment", "--init").stdout.startswith("wrote experiment.toml; ")
    again = cdta("experiment", "--init")
    assert again.returncode == 2
    assert "'experiment.toml' already exists; give --init another name" in again.stderr
    few = ("-n", 4, "--runs", 1, "--rules", "bishops-as-knights", "--json", "--quiet")
    done = cdta("experiment", "experiment.toml", *few)
    rows = json.loads(done.stdout)["results"]
    assert {row["model"] for row in rows} == {"cdta/pocket", "cdta/random"}
    example = Path("experiment.toml").read_text()
    told = re.sub(r"^( *)# (?=[\"{]|\w+ = )", r"\1", example, flags=re.MULTILINE)
    assert len(tomllib.loads(told)["model"]) == 6
    Path("all.toml").write_text(told)
    refused = cdta("experiment", "all.toml", "--rules", "none")  # all else can be taken
    assert refused.stderr.startswith("cdta: unknown rules: 'none'")
