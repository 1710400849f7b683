"""`cdta show` and `cdta prompt`: samples of a run, and what a model is sent."""

import json

import pytest

from cant_do_that_anymore import load
from testing import cdta, measure, perfect, positions, serving


def test_failed_shows_the_answers_that_break_the_rule() -> None:
    cdta("run", "-n", "20", "--quiet", code=0)
    run = load("latest")
    failed = [sample for sample in run.samples if sample.breaks("changed")]
    shown = cdta("show", "--failed", "-n", "100", code=0).stdout
    assert f"20 samples; in {len(failed)} the answer is" in " ".join(shown.split())
    assert [line for line in shown.splitlines() if ": sample " in line] == [
        f"{place} of {len(failed)}: sample {sample.position.id}"
        for place, sample in enumerate(failed, 1)
    ]
    for sample in failed:
        assert sample.answers["changed"].text in shown
    assert cdta("show", "-n", "2", code=0).stdout.count(": sample ") == 2


def test_a_diagnosis_shows_its_questions_and_a_perfect_model_has_no_failures() -> None:
    measure(perfect, n=5, diagnose=True).save()
    shown = cdta("show", "-n", "1", code=0).stdout
    assert "Do not move yet: first a question." in shown and "knows_allowed: " in shown
    assert ": sample " not in cdta("show", "latest", "--failed", code=0).stdout


def test_prompts_are_the_messages_that_a_server_gets() -> None:
    with serving(perfect) as server:
        measure(server, n=1, diagnose=True)
    sent = json.loads(cdta("prompt", "--json", "--condition", "reminded", code=0).stdout)
    systems = {body["messages"][0]["content"] for body in server.requests}
    assert {messages[0]["content"] for messages in sent.values()} <= systems
    assert list(json.loads(cdta("prompt", "--json", code=0).stdout)) == ["standard", "changed"]


@pytest.mark.parametrize("model", ["completions/openai/davinci-002", "openai/davinci-002"])
def test_base_models_get_one_text(model: str) -> None:
    shown = cdta("prompt", "--model", model, code=0).stdout
    assert shown.count("System: ") == 2 and shown.rstrip().endswith("Assistant:")


def test_models_get_the_turns_that_their_api_is_sent() -> None:
    shown = json.loads(cdta("prompt", "--json", "--model", "cot/m@http://localhost/v1").stdout)
    with serving(lambda _: "e2e4") as server:
        measure(server, model="cot/m", dataset=positions(1))
    asked = {body["messages"][-1]["content"].partition("\n")[2] for body in server.requests}
    assert {messages[-1]["content"].partition("\n")[2] for messages in shown.values()} <= asked
    hosted = json.loads(cdta("prompt", "--json", "--model", "anthropic/claude-x").stdout)
    assert [message["role"] for message in hosted["changed"][:3]] == ["system", "user", "assistant"]


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        (["--condition", "x"], "unknown condition: 'x'"),
        (["--rules", "bishops-as-queens"], "forbids no move"),
    ],
)
def test_what_cannot_be_asked_ends_in_a_sentence(option: list[str], sentence: str) -> None:
    assert sentence in cdta("prompt", *option, code=2).stderr
