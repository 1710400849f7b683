"""`cdta show` and `cdta prompt`: the samples of a run, and the prompts that a model gets."""

import json
from pathlib import Path

import pytest

from cant_do_that_anymore import rules_named
from cant_do_that_anymore.habits.chess.position import write_positions
from cant_do_that_anymore.habits.chess.rule_pool import example_of
from cant_do_that_anymore.metrics.measures import violation
from cant_do_that_anymore.task.conditions import DIAGNOSIS_CONDITIONS
from testing import cdta, measure, mixed, positions, serving


def test_failed_shows_the_answers_that_break_the_rule() -> None:
    run = measure(mixed, dataset=positions(20), wording="all")
    run.save()
    failed = [sample for sample in run.samples if violation("changed").holds(sample)]
    output = cdta("show", "--failed", "-n", "100", code=0).stdout
    words = " ".join(output.split())
    assert 0 < len(failed) < 20
    assert f"20 samples. The reply gives no legal move in {len(failed)} of them when" in words
    assert max(map(len, output.splitlines())) <= 80
    titles = [line.partition(",")[0] for line in output.splitlines() if ": sample " in line]
    assert titles == [
        f"{number} of {len(failed)}: sample {sample.item.id}"
        for number, sample in enumerate(failed, 1)
    ]
    assert all(sample.answers["changed"].text in output for sample in failed)
    assert "Prompt (changed, wording " in output and ", what differs):" in output


OWN_WORDING = """standard = "Play chess. Übung\\n\\n"
changed = "Play. {change}"
question = "Is {move} legal? {answers}"
reminder = "Mind: {change}"
"""


@pytest.mark.parametrize(
    ("rules", "wording"), [("bishops-as-knights", "plain"), ("no-castling", "own.toml")]
)
def test_prompts_equal_the_requests_byte_for_byte(
    rules: str, wording: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.toml").write_text(OWN_WORDING, encoding="utf-8")
    example = example_of(rules_named(rules))
    assert example
    write_positions(tmp_path / "example.jsonl", [example])
    spec = {"dataset": tmp_path / "example.jsonl", "rules": rules, "wording": wording}
    with serving(lambda _: "a2a3") as server:
        measure(server, n=1, diagnose=True, **spec)
    sent = [body["messages"] for body in server.requests]
    options = [option for name in DIAGNOSIS_CONDITIONS for option in ("--condition", name)]
    options += ["--rules", rules, "--wording", wording]
    printed = json.loads(cdta("prompt", "--json", *options, code=0).stdout)
    assert list(printed) == list(DIAGNOSIS_CONDITIONS)
    assert all(prompt in sent for prompt in printed.values())
    assert all(body in printed.values() for body in sent)


def test_prompts_are_printed_as_they_are_sent() -> None:
    sent = json.loads(cdta("prompt", "--wording", "plain", "--json", code=0).stdout)
    output = cdta("prompt", "--wording", "plain", code=0).stdout
    assert output == "\n".join(
        f"== {condition} ==\n" + "".join(f"{m['role']}: {m['content']}\n" for m in messages)
        for condition, messages in sent.items()
    )
    assert list(sent) == ["standard", "changed"]
    assert len(json.loads(cdta("prompt", "--json", code=0).stdout)) == 2 * 8
