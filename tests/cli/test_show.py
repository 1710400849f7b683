"""`cdta show` and `cdta prompt`: the samples of a run, and the prompts that a model gets."""

import json
from pathlib import Path

import pytest

from cant_do_that_anymore import rules_named
from cant_do_that_anymore.habits.chess.position import write_positions
from cant_do_that_anymore.habits.chess.rule_pool import example_of
from cant_do_that_anymore.metrics.measures import violation
from cant_do_that_anymore.task.conditions import DIAGNOSIS_CONDITIONS
from testing import cdta, measure, mixed, perfect, positions, serving


def test_failed_shows_the_answers_that_break_the_rule() -> None:
    run = measure(mixed, dataset=positions(20))
    run.save()
    failed = [sample for sample in run.samples if violation("changed").holds(sample)]
    output = cdta("show", "--failed", "-n", "100", code=0).stdout
    words = " ".join(output.split())
    assert 0 < len(failed) < 20
    assert f"20 samples. The reply gives no legal move in {len(failed)} of them when" in words
    assert run.plan.change.statement in words
    assert max(map(len, output.splitlines())) <= 80
    assert [line.rstrip(" ─") for line in output.splitlines() if ": sample " in line] == [
        f"{number} of {len(failed)}: sample {sample.item.id}"
        for number, sample in enumerate(failed, 1)
    ]
    for sample in failed:
        assert sample.answers["changed"].text in output
    assert cdta("show", "-n", "2", code=0).stdout.count(": sample ") == 2


def test_show_prints_diagnosis_questions_and_no_failures_of_a_perfect_model() -> None:
    measure(perfect, n=5, diagnose=True).save()
    output = cdta("show", "-n", "1", code=0).stdout
    assert "Do not move yet: first a question." in output and "knows_allowed: " in output
    assert ": sample " not in cdta("show", "latest", "--failed", code=0).stdout


def test_each_sample_is_shown_with_the_prompts_of_its_wording() -> None:
    run = measure(perfect, n=4, wording=["terse", "formal"])
    run.save()
    output = cdta("show", "-n", "4", code=0).stdout
    wordings = [run.plan.wording_of(sample.item) for sample in run.samples]
    assert {*wordings} == {"terse", "formal"}
    for sample, wording in zip(run.samples, wordings, strict=True):
        before, line, _ = output.partition(f"sample {sample.item.id}, wording {wording} ")
        assert line and f"Prompt (changed, wording {wording}, what differs):" in before
    assert output.count("Prompt (standard, wording") == 2


OWN_WORDING = """standard = "Play chess. Übung\\n\\n"
changed = "Play. {change}"
question = "Is {move} legal? {answers}"
reminder = "Mind: {change}"
"""


@pytest.mark.parametrize(
    ("model", "rules"),
    [
        ("m", "bishops-as-knights"),
        ("completions/m", "no-castling"),
        ("cot/m", "pawns-one-step"),
    ],
)
@pytest.mark.parametrize("wording", ["plain", OWN_WORDING], ids=["plain", "own"])
def test_prompts_equal_the_requests_byte_for_byte(
    model: str, rules: str, wording: str, tmp_path: Path
) -> None:
    if wording == OWN_WORDING:
        (tmp_path / "own.toml").write_text(OWN_WORDING, encoding="utf-8")
        wording = str(tmp_path / "own.toml")
    example = example_of(rules_named(rules))
    assert example
    write_positions(tmp_path / "example.jsonl", [example])
    spec = {"dataset": tmp_path / "example.jsonl", "rules": rules, "wording": wording}
    with serving(lambda _: "a2a3") as server:
        measure(server, model=model, n=1, diagnose=True, **spec)
    sent = [body.get("messages", body.get("prompt")) for body in server.requests]
    options = [option for name in DIAGNOSIS_CONDITIONS for option in ("--condition", name)]
    address = f"{model}@{server.url}"
    done = cdta(
        *("prompt", "--json", "--rules", rules, "--wording", wording, "--model", address, *options),
        code=0,
    )
    printed = json.loads(done.stdout)
    assert list(printed) == list(DIAGNOSIS_CONDITIONS)
    for prompt in printed.values():
        assert prompt in sent
    if not model.startswith("cot/"):  # a second request follows each, with the reasoning
        assert all(body in printed.values() for body in sent)


def test_prompts_are_printed_as_they_are_sent() -> None:
    sent = json.loads(cdta("prompt", "--wording", "plain", "--json", code=0).stdout)
    output = cdta("prompt", "--wording", "plain", code=0).stdout
    assert output == "\n".join(
        f"== {condition} ==\n" + "".join(f"{m['role']}: {m['content']}\n" for m in messages)
        for condition, messages in sent.items()
    )
    assert list(sent) == ["standard", "changed"]
    with_all = json.loads(cdta("prompt", "--json", code=0).stdout)
    assert (len(with_all), [*with_all][:2]) == (16, ["standard, terse", "standard, formal"])


@pytest.mark.parametrize("model", ["completions/openai/davinci-002", "openai/davinci-002"])
def test_base_models_get_one_text(model: str) -> None:
    output = cdta("prompt", "--wording", "plain", "--model", model, code=0).stdout
    assert output.count("System: ") == 2 and output.rstrip().endswith("Assistant:")


def test_providers_that_need_a_user_message_first_get_one() -> None:
    options = ("--wording", "plain", "--model", "anthropic/claude-x")
    sent = json.loads(cdta("prompt", "--json", *options).stdout)
    assert [message["role"] for message in sent["changed"][:3]] == ["system", "user", "assistant"]
