"""The command ``oaieval`` end to end, over a real server on the loopback interface."""

import json
import math
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import chess
import pytest
from aiohttp import web

from cant_do_that_anymore.datasets.pools import drawn
from cant_do_that_anymore.datasets.storage import Dataset
from cant_do_that_anymore.game.position import shipped_pool
from cant_do_that_anymore.oaieval.solvers import solver_named
from cant_do_that_anymore.providers.catalogue import info_by_name
from cant_do_that_anymore.task.spec import Spec
from loopback import Body, Loopback, serving
from players import habit, mixed
from processes import Done, cdta, oaieval

CHAT, BASE = "generation/direct/gpt-3.5-turbo", "chess/generation/direct/gpt-3.5-turbo-instruct"
EVAL = "cant_do_that_anymore"
PARAMS = ("--extra_eval_params",)


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Records go there unless a test says otherwise."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


@contextmanager
def openai(respond: Callable[[Body], str], model: str, **options: Any) -> Iterator[Loopback]:
    """A loopback server in the place of OpenAI's."""
    with (
        serving(Loopback(respond, model=model, **options)) as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("OPENAI_BASE_URL", server.url)
        patch.setenv("OPENAI_API_KEY", "sk-test")
        yield server


def logged(done: Done) -> list[str]:
    """The log's messages, without time and place."""
    return [line.split("] ", 2)[-1] for line in done.stderr.splitlines()]


def report_in(done: Done) -> dict[str, float | None]:
    """The final report as the log ends with it."""
    lines = logged(done)
    pairs = (line.split(": ") for line in lines[lines.index("Final report:") + 1 :])
    return {name: None if value == "None" else float(value) for name, value in pairs}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Done, Path, list[Body]]:
    """All samples of a shipped dataset, measured once: the process, its folder, the requests."""
    folder = tmp_path_factory.mktemp("whole")
    with openai(mixed, "gpt-3.5-turbo-0125") as server:
        done = oaieval(CHAT, EVAL, "--user", "me", TMPDIR=str(folder), CDTA_HOME=str(folder))
    return done, folder, server.requests


def test_the_shipped_dataset_is_found_by_the_version_the_server_answers_as(
    whole: tuple[Done, Path, list[Body]],
) -> None:
    done, folder, requests = whole
    assert done.returncode == 0, done.stderr
    assert report_in(done)["n_samples"] == 1000
    assert len(requests) == 2001  # one more to learn the exact version
    assert {request["temperature"] for request in requests[1:]} == {1}
    assert {request["max_tokens"] for request in requests} == {16}
    assert len(list((folder / "runs").glob("*/run.json"))) == 1


def test_the_default_record_path_has_the_shape_of_the_original(
    whole: tuple[Done, Path, list[Body]],
) -> None:
    _, folder, _ = whole
    (path,) = (folder / "evallogs").glob("**/*.jsonl")
    run_id = json.loads(path.read_text().splitlines()[0])["spec"]["run_id"]
    assert path == folder / "evallogs" / f"{run_id}_{CHAT}_{EVAL}.jsonl"


def test_every_number_of_the_report_follows_from_the_events_of_the_record(
    whole: tuple[Done, Path, list[Body]],
) -> None:
    """The reader looks for nothing but the keys that the format names."""
    done, folder, _ = whole
    (path,) = (folder / "evallogs").glob("**/*.jsonl")
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    spec = next(line["spec"] for line in lines if "spec" in line)
    report = next(line["final_report"] for line in lines if "final_report" in line)
    events = [line for line in lines if "type" in line]

    assert spec["completion_fns"] == [CHAT]
    assert (spec["eval_name"], spec["base_eval"], spec["split"]) == (f"{EVAL}.all", EVAL, "all")
    assert spec["run_config"]["eval_spec"]["args"]["n_samples"] == 1000
    assert spec["created_by"] == "me"
    assert [event["event_id"] for event in events] == list(range(3000))
    assert {event["run_id"] for event in events} == {spec["run_id"]}
    assert {event["sample_id"] for event in events} == {f"{EVAL}.all.{i}" for i in range(1000)}

    samples = [event["data"] for event in events if event["type"] == "metrics"]
    sampled = [event["data"] for event in events if event["type"] == "sampling"]
    assert recomputed(samples, sampled) == pytest.approx(report)
    assert report_in(done) == pytest.approx(report)


def recomputed(
    samples: list[dict[str, Any]], sampled: list[dict[str, Any]]
) -> dict[str, float | None]:
    n = len(samples)
    p = sum(sample["predicted_move"] for sample in samples) / n
    v = sum(sample["predicted_move_in_variant"] for sample in samples) / n
    lengths = [sample["num_previous_moves"] for sample in samples]
    assert lengths == [len(sample["previous_moves"]) for sample in samples]
    mean = sum(lengths) / n
    legal = [sample["variant_outcome"] in ("adapted", "legal") for sample in samples]
    with_habit = [
        is_legal for is_legal, s in zip(legal, samples, strict=True) if s["predicted_move"]
    ]
    pairs = [(s["predicted_move"], s["predicted_move_in_variant"]) for s in samples]
    dropped, gained = pairs.count((True, False)), pairs.count((False, True))
    tail = sum(math.comb(dropped + gained, k) for k in range(min(dropped, gained) + 1))
    violations = [name for name in samples[0] if "_violation" in name]
    usage = {
        f"usage_{kind}": sum(event["usage"][kind] for event in sampled)
        for kind in ("prompt_tokens", "completion_tokens", "total_tokens")
    }
    return {
        "predicted_move_proportion": p,
        "predicted_move_in_variant_proportion": v,
        "delta": v - p,
        "variant_impact_factor": (v - p) / p,
        "avg_num_previous_moves": mean,
        "std_num_previous_moves": math.sqrt(sum((k - mean) ** 2 for k in lengths) / n),
        **{f"{name}_rate": sum(sample[name] for sample in samples) / n for name in violations},
        **usage,
        "adaptation_rate": sum(with_habit) / len(with_habit),
        "variant_legal_proportion": sum(legal) / n,
        "mcnemar_p": min(1.0, 2 * tail / 2 ** (dropped + gained)),
        "n_samples": n,
        "n_games": len({sample["game_idx"] for sample in samples}),
        "n_failed": 0,
        "rule_uptake": 1
        - (n - sum(legal)) / (n - counted(samples, "standard_under_change", LEGAL)),
        "standard_forbidden_proportion": counted(samples, "standard_under_change", FORBIDDEN) / n,
        "changed_forbidden_proportion": counted(samples, "variant_under_change", FORBIDDEN) / n,
        "standard_unusable_proportion": counted(samples, "standard_outcome", UNUSABLE) / n,
        "changed_unusable_proportion": counted(samples, "variant_outcome", UNUSABLE) / n,
        "random_special_proportion": sum(map(random_level, samples)) / n,
    }


LEGAL, FORBIDDEN = ("adapted", "legal"), ("special", "forbidden")
UNUSABLE = ("unreadable", "truncated", "refused")


def counted(samples: list[dict[str, Any]], key: str, values: tuple[str, ...]) -> int:
    return sum(sample[key] in values for sample in samples)


def random_level(sample: dict[str, Any]) -> float:
    board = chess.Board()
    for move in sample["previous_moves"]:
        board.push_uci(move)
    return len(sample["move"]) / board.legal_moves.count()


def test_a_base_model_gets_one_text_over_the_completions_api(tmp_path: Path) -> None:
    record = tmp_path / "record.jsonl"
    with openai(mixed, "gpt-3.5-turbo-instruct") as server:
        done = oaieval(BASE, EVAL, "--max_samples", "5", "--record_path", str(record))
    assert done.returncode == 0, done.stderr
    assert len(server.requests) == 11
    for request in server.requests[1:]:
        assert set(request) == {"path", "model", "prompt", "stop", "temperature", "max_tokens"}
        assert request["path"] == "/v1/completions"
        assert request["max_tokens"] == 4
        assert request["stop"] == ["System:", "User:", "Assistant:", "-----"]
        assert request["prompt"].startswith("System: ")
        assert request["prompt"].endswith("\nAssistant:")
    prompts = {request["prompt"] for request in server.requests[1:]}
    events = [json.loads(line) for line in record.read_text().splitlines()]
    assert prompts == {e["data"]["prompt"] for e in events if e.get("type") == "sampling"}


def test_the_wording_of_the_original_is_sent_as_it_is(tmp_path: Path) -> None:
    wheel = tmp_path / "evals.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        texts = 'TASK_DESCRIPTION = "Play!"\nTASK_DESCRIPTION_VARIANT = """Play a\\nvariant…"""\n'
        file.writestr("evals/elsuite/cant_do_that_anymore/defaults.py", texts)
    arguments = ("--completion_args", f"wording=openai-evals:{wheel}", "--max_samples", "3")
    with openai(mixed, "gpt-3.5-turbo-0125") as server:
        done = oaieval(CHAT, EVAL, *arguments)
    assert done.returncode == 0, done.stderr
    assert len(server.requests) == 7
    for request in server.requests:
        assert set(request) == {"path", "model", "messages", "temperature", "max_tokens"}
        assert request["model"] == "gpt-3.5-turbo"
        system, *turns = request["messages"]
        assert system["content"] in ("Play!", "Play a\nvariant…")
        to_move = len(turns) % 2
        assert [turn["role"] for turn in turns] == [
            ("assistant", "user")[(ply - to_move) % 2] for ply in range(len(turns))
        ]


def test_max_samples_measures_the_samples_that_the_original_measures() -> None:
    """The indices were read from a record that the original wrote."""
    from_the_original = [19, 76, 100, 143, 178, 255, 257, 288, 316, 410]
    from_the_original += [433, 450, 470, 524, 580, 628, 633, 641, 657, 830]
    dataset = Dataset("m", "shipped", list(shipped_pool("pool")))
    samples = drawn(dataset, Spec(n=1000, max_samples=20))
    assert sorted(number for number, _ in samples) == from_the_original


def test_chain_of_thought_asks_twice_and_the_reply_is_the_second_answer(tmp_path: Path) -> None:
    def respond(request: Body) -> str:
        turns = request["messages"]
        return "a2a3" if turns[-2]["content"] == "Let me think." else "Let me think."

    record = tmp_path / "record.jsonl"
    arguments = ("--extra_eval_params", "remake_dataset_if_not_found=False", "--max_samples", "3")
    with openai(respond, "gpt-4-0314") as server:
        done = oaieval("generation/cot/gpt-4", EVAL, *arguments, "--record_path", str(record))
    assert done.returncode == 0, done.stderr
    assert len(server.requests) == 2 * 7
    assert {request["max_tokens"] for request in server.requests} == {1024, 16}
    assert all(request["messages"][-1]["role"] == "user" for request in server.requests)
    events = [json.loads(line) for line in record.read_text().splitlines()]
    sampled = [event["data"] for event in events if event.get("type") == "sampling"]
    assert {event["sampled"][0] for event in sampled} == {"a2a3"}
    assert {event["reasoning"] for event in sampled} == {"Let me think."}
    assert {event["model"] for event in sampled} == {"cot/gpt-4-0314"}
    assert report_in(done)["usage_completion_tokens"] == 6 * (3 + 1)
    message = "cot/gpt-4-0314 has no dataset; that of gpt-3.5-turbo-0125 is taken instead"
    assert message in logged(done)


def test_a_solver_thinks_first_if_its_model_is_named_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    for solver in ("cot/openai/gpt-4", "cot-50/openai/gpt-4"):
        assert solver_named(solver).load().info.identity == info_by_name(solver).identity
    assert (
        solver_named("openai/gpt-4").load().info.identity == info_by_name("openai/gpt-4").identity
    )


def test_answers_of_an_earlier_run_are_used_unless_the_cache_is_off() -> None:
    with openai(mixed, "gpt-4-0314") as server:
        for arguments, asked in (((), 21), ((), 22), (("--no-cache",), 43)):
            done = oaieval("gpt-4", EVAL, "--max_samples", "10", *arguments)
            assert done.returncode == 0, done.stderr
            assert len(server.requests) == asked


def test_a_threads_variable_that_is_no_number_is_refused() -> None:
    done = oaieval("cdta/random", EVAL, EVALS_THREADS="many", code=2)
    assert "EVALS_THREADS must be a whole number, not 'many'" in done.stderr


@pytest.mark.parametrize(
    ("environment", "most"), [({"EVALS_THREADS": "3"}, 3), ({"EVALS_SEQUENTIAL": "1"}, 1)]
)
def test_the_environment_says_how_many_questions_are_asked_at_once(
    environment: dict[str, Any], most: int
) -> None:
    with openai(mixed, "gpt-4-0314", delay=0.05) as server:
        oaieval("gpt-4", EVAL, "--max_samples", "10", **environment)
    assert server.most_in_flight == most


def test_a_sample_without_an_answer_is_an_error_event_and_in_no_metric(temporary: Path) -> None:
    async def one_refusal(request: Body, number: int) -> web.StreamResponse | None:
        return web.json_response({"error": "no"}, status=400) if number == 9 else None

    record = temporary / "record.jsonl"
    with openai(mixed, "gpt-4-0314", fault=one_refusal):
        done = oaieval("gpt-4", EVAL, "--max_samples", "30", "--record_path", str(record))
    events = [json.loads(line) for line in record.read_text().splitlines()][1:-1]
    kinds = [event["type"] for event in events]
    assert (kinds.count("sampling"), kinds.count("error"), kinds.count("metrics")) == (59, 1, 29)
    (error,) = (event["data"] for event in events if event["type"] == "error")
    assert "HTTP 400: no" in error["message"]
    assert (report_in(done)["n_samples"], report_in(done)["n_failed"]) == (29, 1)


def test_cdta_run_and_oaieval_give_the_same_numbers() -> None:
    options = ("--eval", "all_small", "--temperature", "0", "--reading", "exact", "--json")
    with openai(mixed, "gpt-4-0314"):
        theirs = cdta("run", "--model", "openai/gpt-4", *options)
        ours = oaieval("openai/gpt-4", f"{EVAL}.all_small", "--completion_args", "temperature=0")
    metrics = json.loads(theirs.stdout)
    assert report_in(ours) == {name: metrics[name] for name in report_in(ours)}


def test_diagonal_moves_can_be_asked_for_by_name_or_by_parameter() -> None:
    by_name = oaieval("cdta/random", f"{EVAL}.all_diagonal", "--max_samples", "10")
    parameters = ("--extra_eval_params", "diagonal_variation=True", "--max_samples", "10")
    by_parameter = oaieval("cdta/random", EVAL, *parameters)
    assert report_in(by_name)["n_samples"] == 10
    assert report_in(by_name) == report_in(by_parameter)


@pytest.mark.parametrize("solver", ["../../../x", "a/../../../x", "/x", "generation/direct/../x"])
def test_no_solver_name_leads_out_of_the_folder_of_records(temporary: Path, solver: str) -> None:
    with serving(Loopback(habit, model="m")) as server:
        place = ("--completion_args", f"base_url={server.url}", "--max_samples", "2")
        done = oaieval(solver, f"{EVAL}.all_small", "--extra_eval_params", "n_samples=2", *place)
    assert done.returncode == 0, done.stderr
    (record,) = (path for path in temporary.rglob("*.jsonl") if "final_report" in path.read_text())
    assert (temporary / "evallogs").resolve() in record.resolve().parents
    assert json.loads(record.read_text().splitlines()[0])["spec"]["completion_fns"] == [solver]


def test_a_dry_run_records_nothing(temporary: Path, home: Path) -> None:
    small = (f"{EVAL}.all_diagonal", "--max_samples", "2", "--dry-run")
    done = oaieval("cdta/random", *small)
    assert done.returncode == 0, done.stderr
    assert sum(line.startswith("Not recording event: ") for line in logged(done)) == 6
    assert report_in(done)["n_samples"] == 2
    assert not (temporary / "evallogs").exists()
    assert not (home / "runs").exists()


def test_the_log_can_go_to_a_file(tmp_path: Path) -> None:
    log = tmp_path / "log"
    small = (f"{EVAL}.all_diagonal", "--max_samples", "2")
    done = oaieval("cdta/random", *small, "--log_to_file", str(log))
    assert "Final report" not in done.stderr
    assert "] n_samples: 2\n" in log.read_text()


def test_a_flag_without_meaning_says_so_once() -> None:
    small = (f"{EVAL}.all_diagonal", "--max_samples", "2")
    unused = ("--http-batch-size", "8", "--http-run-url", "http://nowhere")
    done = oaieval("cdta/random", *small, "--visible", "--no-local-run", *unused)
    said = [line for line in logged(done) if "no meaning here" in line]
    assert done.returncode == 0
    assert [line.split()[0] for line in said] == ["--no-local-run", "--visible"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("generation/direkt/gpt-4", EVAL), "did you mean 'generation/direct/gpt-4'"),
        (("generation/direct/gpt-4", "cant_do_that"), "did you mean 'cant_do_that_anymore'"),
        (("cdta/random,human_cli", EVAL), "exactly one solver"),
        (("generation/direct/gpt-4", EVAL), "set OPENAI_API_KEY"),
        (("cdta/random", EVAL, "--completion_args", "wording=none"), "unknown wording"),
        (("cdta/random", EVAL, *PARAMS, "samples=3"), "--extra_eval_params: 'samples' (did you"),
        (("cdta/random", EVAL, *PARAMS, "n_samples=x"), "n_samples must be a whole number, not"),
        (("cdta/random", EVAL, *PARAMS, "n_samples=0"), "n must be at least 1, not 0"),
        (("cdta/random", EVAL, *PARAMS, "diagonal_variation=maybe"), "must be true or false, not"),
        (("cdta/random", EVAL, *PARAMS, "n_samples"), "--extra_eval_params takes K=V,K=V, not"),
        (("cdta/random", EVAL, "--http-run"), "not supported; the record goes to a file"),
        (("cdta/random", EVAL, "--record_path", f"{__file__}/x"), "cannot write the record"),
    ],
)
def test_a_mistake_ends_in_one_sentence(arguments: tuple[str, ...], sentence: str) -> None:
    done = oaieval(*arguments)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert done.stderr.splitlines()[-1].startswith("oaieval: ")
    assert "Traceback" not in done.stderr


def test_a_retired_model_gives_the_words_of_its_provider() -> None:
    words = "The model `gpt-4-0314` has been deprecated, learn more here."

    async def gone(request: Body, number: int) -> web.StreamResponse:
        return web.json_response(
            {"error": {"message": words, "code": "model_not_found"}}, status=404
        )

    with openai(habit, "gpt-4-0314", fault=gone):
        done = oaieval("generation/direct/gpt-4-0314", EVAL)
    assert done.returncode == 1
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("module", ["oaieval.command", "cli.main"])
def test_help_needs_no_key(module: str) -> None:
    program = f"from cant_do_that_anymore.{module} import main; main()"
    arguments = ["--help"] if module == "oaieval.command" else ["oaieval", "--help"]
    call = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(call, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert "--extra_eval_params" in done.stdout
