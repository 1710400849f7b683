"""The ``oaieval`` command end to end, with a real server, and its solver names."""

import json
import math
import os
import re
import subprocess
import sys
import zipfile
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from cant_do_that_anymore import shipped_pool
from cant_do_that_anymore.datasets.pools import drawn
from cant_do_that_anymore.datasets.storage import Dataset
from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.habits.chess.rules import BISHOPS_AS_KNIGHTS
from cant_do_that_anymore.oaieval.solvers import solver_named
from cant_do_that_anymore.task.prompts import wordings_named
from testing import Body, CompletedCommand, Spec, cdta, mixed, needs_posix, oaieval, openai_server

CHAT, BASE = "generation/direct/gpt-3.5-turbo", "chess/generation/direct/gpt-3.5-turbo-instruct"
EVAL = "cant_do_that_anymore"
DIAGONAL = f"{EVAL}.all_diagonal"
PARAMS = ("--extra_eval_params",)
LEGAL = ("adapted", "legal")


@pytest.fixture(autouse=True)
def temp_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the test see the folder of temporary files, where records go by default."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def log_messages(done: CompletedCommand) -> list[str]:
    """Return the messages of the log, without time and source."""
    return [line.split("] ", 2)[-1] for line in done.stderr.splitlines()]


def report_in(done: CompletedCommand) -> dict[str, float | None]:
    """Return the final report, which ends the log."""
    lines = log_messages(done)
    pairs = (line.split(": ") for line in lines[lines.index("Final report:") + 1 :])
    return {name: None if value == "None" else float(value) for name, value in pairs}


def events_in(record: Path, event_type: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
    return [line["data"] for line in lines if line.get("type") == event_type]


def test_the_report_can_be_recomputed_from_the_record(temp_dir: Path, home: Path) -> None:
    """The test reads only keys that the record format documents."""
    with openai_server(mixed, model="gpt-3.5-turbo-0125") as server:
        done = oaieval(CHAT, EVAL, "--user", "me", "--max_samples", 40, code=0)
    assert len(server.requests) == 81  # one more finds the version, which has a dataset
    assert {request["temperature"] for request in server.requests[1:]} == {1}
    assert [request["max_tokens"] for request in server.requests][:2] == [32_768, 512]
    tasks = {request["messages"][0]["content"] for request in server.requests}
    plain = wordings_named("plain", BISHOPS_AS_KNIGHTS)[0]
    assert tasks == {
        plain.standard_prompt(BISHOPS_AS_KNIGHTS),
        plain.changed_prompt(BISHOPS_AS_KNIGHTS),
    }
    assert len(list((home / "runs").glob("*/run.json"))) == 1

    (path,) = (temp_dir / "evallogs").glob("**/*.jsonl")
    first, *events, last = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    spec, report = first["spec"], last["final_report"]
    assert path == temp_dir / "evallogs" / f"{spec['run_id']}_{CHAT}_{EVAL}.jsonl"
    assert (spec["eval_name"], spec["base_eval"], spec["split"]) == (f"{EVAL}.all", EVAL, "all")
    assert (spec["completion_fns"], spec["created_by"]) == ([CHAT], "me")
    assert spec["run_config"]["eval_spec"]["args"]["n_samples"] == 1000
    assert [event["event_id"] for event in events] == list(range(120))
    assert {event["run_id"] for event in events} == {spec["run_id"]}
    ids = {event["sample_id"] for event in events}
    assert len(ids) == 40 and ids <= {f"{EVAL}.all.{i}" for i in range(1000)}
    expected = recomputed_report(events_in(path, "metrics"), events_in(path, "sampling"))
    assert expected == pytest.approx(report)
    assert report_in(done) == pytest.approx(report)
    assert list(report)[:3] == ["variant_impact_factor", "delta", "predicted_move_proportion"]
    assert f"Final report: {report}. Logged to {path}" in log_messages(done)


def recomputed_report(
    samples: list[dict[str, Any]], sampling_events: list[dict[str, Any]]
) -> dict[str, float | None]:
    n = len(samples)

    def share(key: str, values: tuple[object, ...] = (True,)) -> float:
        return sum(sample[key] in values for sample in samples) / n

    standard, changed = share("predicted_move"), share("predicted_move_in_variant")
    lengths = [sample["num_previous_moves"] for sample in samples]
    assert lengths == [len(sample["previous_moves"]) for sample in samples]
    mean = sum(lengths) / n
    return {
        "predicted_move_proportion": standard,
        "predicted_move_in_variant_proportion": changed,
        "delta": changed - standard,
        "variant_impact_factor": (changed - standard) / standard,
        "avg_num_previous_moves": mean,
        "std_num_previous_moves": math.sqrt(sum((k - mean) ** 2 for k in lengths) / n),
        **{f"{name}_rate": share(name) for name in samples[0] if "_violation" in name},
        **{
            f"usage_{kind}": sum(event["usage"][kind] for event in sampling_events)
            for kind in ("prompt_tokens", "completion_tokens", "total_tokens")
        },
        "n_samples": n,
        "n_failed": 0,
        "rule_uptake": 1
        - (1 - share("variant_under_change", LEGAL)) / (1 - share("standard_under_change", LEGAL)),
    }


def test_base_models_get_one_text_over_the_completions_api(tmp_path: Path) -> None:
    record = tmp_path / "record.jsonl"
    with openai_server(mixed, model="gpt-3.5-turbo-instruct") as server:
        oaieval(BASE, EVAL, "--max_samples", 5, "--record_path", record, code=0)
    _, *sent = server.requests
    assert len(sent) == 10
    for request in sent:
        assert set(request) == {"path", "model", "prompt", "stop", "temperature", "max_tokens"}
        assert (request["path"], request["max_tokens"]) == ("/v1/completions", 4)
        assert request["stop"] == ["System:", "User:", "Assistant:", "-----"]
        assert re.fullmatch(r"System: .*\nAssistant:", request["prompt"], re.DOTALL)
    prompts = {event["prompt"] for event in events_in(record, "sampling")}
    assert prompts == {request["prompt"] for request in sent}


def test_the_original_wording_is_sent_unchanged(tmp_path: Path) -> None:
    wheel = tmp_path / "evals.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        texts = 'TASK_DESCRIPTION = "Play!"\nTASK_DESCRIPTION_VARIANT = """Play a\n"variant"…"""\n'
        file.writestr("evals/elsuite/cant_do_that_anymore/defaults.py", texts)
    wording = f"openai-evals:{wheel}"
    other = cdta("run", "--wording", wording, "--rules", "rooks-as-bishops", code=2)
    assert "states only bishops-as-knights, not rooks-as-bishops" in other.stderr
    arguments = ("--completion_args", f"wording={wording}", "--max_samples", 3)
    with openai_server(mixed, model="gpt-3.5-turbo-0125") as server:
        oaieval(CHAT, EVAL, *arguments, code=0)
    assert len(server.requests) == 7
    for request in server.requests:
        assert set(request) == {"path", "model", "messages", "temperature", "max_tokens"}
        assert request["model"] == "gpt-3.5-turbo"
        system, *turns = request["messages"]
        assert system["content"] in ("Play!", 'Play a\n"variant"…')
        roles = [turn["role"] for turn in reversed(turns)]  # the last move is the opponent's
        assert roles == [("user", "assistant")[ply % 2] for ply in range(len(turns))]


def test_max_samples_picks_the_same_samples_as_the_original() -> None:
    """The expected indices are from a record that the original wrote."""
    expected = [19, 76, 100, 143, 178, 255, 257, 288, 316, 410]
    expected += [433, 450, 470, 524, 580, 628, 633, 641, 657, 830]
    dataset = Dataset("m", "shipped", list(shipped_pool("pool")))
    samples = drawn(dataset, Spec(n=1000, max_samples=20))
    assert sorted(samples) == expected


def test_chain_of_thought_takes_two_requests_and_the_second_answer(tmp_path: Path) -> None:
    def respond(request: Body) -> str:
        turns = request["messages"]
        return "a2a3" if turns[-2]["content"] == "Let me think." else "Let me think."

    record = tmp_path / "record.jsonl"
    arguments = (*PARAMS, "remake_dataset_if_not_found=False", "--max_samples", 3)
    with openai_server(respond, model="gpt-4-0314") as server:
        command = ("generation/cot/gpt-4", EVAL, *arguments, "--record_path", record)
        done = oaieval(*command, code=0)
    assert len(server.requests) == 2 * 7
    assert all(request["messages"][-1]["role"] == "user" for request in server.requests)
    for event in events_in(record, "sampling"):
        assert (event["sampled"], event["reasoning"]) == (["a2a3"], "Let me think.")
    assert report_in(done)["usage_completion_tokens"] == 6 * (3 + 1)


def test_cached_answers_are_used_unless_the_cache_is_off() -> None:
    """Environment variables set the concurrency."""
    with openai_server(mixed, model="gpt-4-0314", delay=0.02) as server:
        for options, n_requests in (((), 11), ((), 11), (("--no-cache",), 22)):
            oaieval("gpt-4", EVAL, "--max_samples", 5, *options, EVALS_THREADS="3", code=0)
            assert (len(server.requests), server.max_in_flight) == (n_requests, 3)
        server.max_in_flight = 0
        oaieval("gpt-4", EVAL, "--max_samples", 9, EVALS_SEQUENTIAL="1", code=0)
        assert server.max_in_flight == 1
    stderr = oaieval("gpt-4", EVAL, EVALS_THREADS="many", EVALS_SEQUENTIAL="", code=2).stderr
    assert "EVALS_THREADS must be a valid integer, not 'many'" in stderr


def test_a_failed_sample_is_an_error_event_and_in_no_metric(temp_dir: Path) -> None:
    refused: list[Body] = []

    async def refuse_one(request: Body, number: int) -> web.StreamResponse | None:
        if number == 9:
            refused.append(request)
        return web.json_response({"error": "no"}, status=400) if request in refused else None

    record = temp_dir / "record.jsonl"
    with openai_server(mixed, model="gpt-4-0314", fault=refuse_one):
        done = oaieval("gpt-4", EVAL, "--max_samples", 30, "--record_path", record, code=0)
    counts = [len(events_in(record, kind)) for kind in ("sampling", "error", "metrics")]
    assert counts == [59, 1, 29]
    assert "HTTP 400: no" in events_in(record, "error")[0]["message"]
    assert (report_in(done)["n_samples"], report_in(done)["n_failed"]) == (29, 1)


def test_cdta_run_and_oaieval_give_the_same_numbers() -> None:
    options = ("-n", 12, "--temperature", 0, "--reading", "exact", "--wording", "plain")
    arguments = (*PARAMS, "n_samples=12", "--completion_args", "temperature=0")
    with openai_server(mixed, model="gpt-4-0314"):
        printed = json.loads(cdta("run", "--model", "openai/gpt-4", *options, "--json").stdout)
        assert (Path(printed["folder"]) / "samples.jsonl").exists()
        done = oaieval("openai/gpt-4", EVAL, *arguments, code=0)
    report = report_in(done)
    names = [name for name, n in printed.items() if isinstance(n, dict) and "value" in n]
    assert len(names) == 7
    assert {name: report[name] for name in names} == {n: printed[n]["value"] for n in names}


def test_a_dry_run_records_nothing_and_the_log_can_be_a_file(temp_dir: Path, home: Path) -> None:
    """The diagonal eval is selected by its name or by a parameter."""
    options = ("--max_samples", 2, "--completion_args", "form=fen")
    done = oaieval("cdta/random", DIAGONAL, *options, "--dry-run", code=0)
    events = [line for line in log_messages(done) if line.startswith("Not recording event: ")]
    assert (len(events), sum("FEN" in event for event in events)) == (6, 4)
    assert not (temp_dir / "evallogs").exists() and not (home / "runs").exists()
    without_effect = ("--visible", "--no-local-run", "--http-run-url", "x")
    parameters = (*PARAMS, "diagonal_variation=True", "--log_to_file", temp_dir / "log")
    in_file = oaieval("cdta/random", EVAL, *options, *parameters, *without_effect, code=0)
    assert "Final report" not in in_file.stderr
    messages, log = log_messages(done), (temp_dir / "log").read_text()
    assert all(f"] {line}\n" in log for line in messages[messages.index("Final report:") :])


def test_a_person_answers_at_the_terminal() -> None:
    """The person always plays f1c4; what is answered when the input ends is cached."""
    shipped = (*PARAMS, "remake_dataset_if_not_found=False")
    command = ("oaieval", "human_cli", f"{EVAL}.all_small", *shipped, "--max_samples", 2)
    done = cdta(*command, stdin=b"f1c4\n" * 3, code=1)
    assert "system: You are playing a game of chess." in done.stdout
    assert "all answers so far are saved" in done.stderr
    done = cdta(*command, stdin=b"f1c4\n" * 2, code=0)
    assert done.stdout.count("assistant (you): ") == 2
    assert report_in(done)["n_samples"] == 2
    assert cdta(*command, stdin=b"", code=0).stdout == ""


CHATS = ("gpt-3.5-turbo", "gpt-4-turbo-preview", "gpt-4-0314")
SOLVERS = (*(f"generation/direct/{name}" for name in CHATS), BASE)


@needs_posix
def test_the_experiment_of_the_original_is_one_script(tmp_path: Path) -> None:
    """Most records exist, as if it had been interrupted; the script makes one of a base model."""
    script = Path(__file__).parents[2] / "examples" / "run_experiments.sh"
    commands = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = {"PATH": commands, "SEEDS": "1", "MAX_SAMPLES": "3"}
    environment["CDTA_HOME"] = str(tmp_path / "home")
    out = tmp_path / "out"
    out.mkdir()
    for solver, name in [*product(SOLVERS, (EVAL, DIAGONAL))][:-1]:
        finished = out / f"{solver.replace('/', '-')}_{name}_1.jsonl"
        finished.write_text('{"final_report": {}}\n')
    with openai_server(mixed) as server:
        command = ["bash", str(script), "out"]
        subprocess.run(command, cwd=tmp_path, env=os.environ | environment, check=True)
        assert {request["path"] for request in server.requests} == {"/v1/completions"}
        assert len(server.requests) >= 6
    records = list(out.glob("*.jsonl"))
    assert len(records) == 8 and all("final_report" in record.read_text() for record in records)
    assert (out / "index.html").exists() and [*out.glob("*.png")]


# Solver names: those of the original, those of a registry, and any model name


CHAIN_OF_THOUGHT = """
thinker:
  class: evals.solvers.nested.cot_solver:CoTSolver
  args:
    cot_solver: &solver
      class: evals.solvers.providers.openai.openai_solver:OpenAISolver
      args:
        completion_fn_options:
          model: gpt-4
          extra_options: {temperature: 0.5, max_tokens: 300}
    extract_solver:
      class: evals.solvers.providers.openai.openai_solver:OpenAISolver
      args:
        completion_fn_options: {model: gpt-4, extra_options: {temperature: 0.5, max_tokens: 10}}
"""


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("generation/direct/gpt-4-turbo-preview", "openai/gpt-4-turbo-preview"),
        ("generation/direct/claude-3-opus-20240229", "anthropic/claude-3-opus-20240229"),
        ("generation/direct/gemini-pro", "google/gemini-pro"),
        ("generation/direct/mistralai/Mixtral-8x7B", "together/mistralai/Mixtral-8x7B"),
        ("generation/direct/llama-2-13b-chat", "together/meta-llama/Llama-2-13b-chat-hf"),
        ("generation/direct/openai/ft:my-model", "openai/ft:my-model"),
        ("chess/generation/direct/gpt-4-base", "completions/openai/gpt-4-base"),
        ("generation/cot/anthropic/claude-x", "cot/anthropic/claude-x"),
        ("generation/cot/meta-llama/L", "cot/together/meta-llama/L"),
        ("human_cli", "human_cli"),
        ("gpt-4", "openai/gpt-4"),
        ("cot-50/openai/gpt-4", "cot-50/openai/gpt-4"),
    ],
)
def test_a_solver_name_maps_to_a_model(name: str, model: str) -> None:
    assert solver_named(name) == {"model": model}


def test_with_a_base_url_the_model_name_is_sent_unchanged() -> None:
    url = "http://localhost:8000/v1"
    assert solver_named("generation/direct/org/m", base_url=url) == {"model": "org/m"}
    assert solver_named("generation/cot/m", base_url=url) == {"model": "cot/m"}
    assert solver_named("chess/generation/direct/m", base_url=url) == {"model": "completions/m"}


def test_a_registry_adds_solvers_and_has_priority(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(
        "mine: {model: cdta/random, temperature: 0}\n"
        "human_cli: {model: cdta/random}\n"
        "team/*: {model: openai/*, max_tokens: 9}\n"
    )
    assert solver_named("mine", [file]) == {"model": "cdta/random", "temperature": 0}
    assert solver_named("human_cli", [file]) == {"model": "cdta/random"}
    assert solver_named("team/a", [file]) == {"model": "openai/a", "max_tokens": 9}
    assert solver_named("mine", [file], "http://x/v1")["model"] == "cdta/random"


def test_registries_of_the_original_are_supported(tmp_path: Path) -> None:
    (tmp_path / "solvers").mkdir()
    (tmp_path / "solvers" / "cot.yaml").write_text(CHAIN_OF_THOUGHT)
    (tmp_path / "solvers" / "more.yaml").write_text(
        "claude: {class: 'a:AnthropicSolver', args: {model_name: claude-x, max_tokens: 9}}\n"
        "me: {class: 'evals.solvers.human_cli_solver:HumanCliSolver'}\n"
    )
    settings = {"temperature": 0.5, "max_tokens": 10}
    thinker = {"model": "cot-300/openai/gpt-4", **settings}
    assert solver_named("thinker", [tmp_path]) == thinker
    claude = {"model": "anthropic/claude-x", "max_tokens": 9}
    assert solver_named("claude", [tmp_path]) == claude
    assert solver_named("me", [tmp_path]) == {"model": "human_cli"}


def test_a_server_in_an_entry_of_the_original_gets_the_requests(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    options = "completion_fn_options: {model: gpt-4, %s}"
    entry = f"mine: {{class: 'a:OpenAISolver', args: {{{options}}}}}\n"
    file.write_text(entry % "api_base: 'http://127.0.0.1:9/v1'")
    assert solver_named("mine", [file]) == {"model": "gpt-4", "base_url": "http://127.0.0.1:9/v1"}
    file.write_text(entry % "extra_options: {temperature: 1}")
    expected = {"model": "gpt-4", "temperature": 1.0}  # as the server knows it
    assert solver_named("mine", [file], "http://127.0.0.1:9/v1") == expected
    file.write_text(entry % "n_ctx: 5")
    with pytest.raises(InvalidInput, match="'n_ctx', which is not supported here"):
        solver_named("mine", [file])
