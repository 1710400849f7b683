"""Invalid input gives a one-sentence error and exit code 2, before any request is sent."""

import re
import shlex
from pathlib import Path

import pytest

from testing import cdta, oaieval, snapshot

COMMANDS = """
cdta rnu
cdta run --model cdta/rnadom
cdta run --model gpt-4o
cdta run --model claude-sonnet-4-5
cdta run --model o3
cdta run --model mine
cdta run --model openai/gpt-4o
cdta run --rules bishops
cdta run --rules standard
cdta run --rules rooks-as-queens
cdta run --rules rule.py
cdta run --pool games.pgn
cdta run --wording x
cdta run --eval al
cdta run -n 0
cdta run --base-url localhost:8000
cdta run --dataset nowhere.jsonl
cdta run --wording no.toml
cdta dataset export gpt-4
cdta prompt --condition x
cdta prompt --rules bishops-as-queens
cdta experiment --model a --model b --max-cost 1 --base-url http://127.0.0.1:9
cdta experiment --out file
cdta experiment .
cdta experiment --eval all,al
cdta experiment --rules bishops-as-knights,x
cdta experiment --reasoning-effort none,hihg
cdta experiment --reasoning-effort low,
cdta experiment --model cdta/pocket --reasoning-effort none,low
oaieval generation/direkt/gpt-4 cant_do_that_anymore
oaieval generaton/cot/gpt-4 cant_do_that_anymore
cdta run --model human
oaieval humancli cant_do_that_anymore
oaieval generation/direct/gtp-4 cant_do_that_anymore
oaieval generation/direct/gpt-4 cant_do_that
oaieval generation/direct/gpt-4 cant_do_that_anymore
oaieval cdta/random,human_cli cant_do_that_anymore
oaieval cdta/random cant_do_that_anymore --completion_args wording=none
oaieval cdta/random cant_do_that_anymore --extra_eval_params n_samples=0
oaieval cdta/random cant_do_that_anymore --extra_eval_params diagonal_variation=maybe
oaieval cdta/random cant_do_that_anymore --extra_eval_params n_samples
oaieval cdta/random cant_do_that_anymore --http-run
oaieval cdta/random cant_do_that_anymore --record_path file/x
oaieval cdta/random cant_do_that_anymore --max_samples x
cdta compare
cdta compare --tolerance
cdta compare --tolerance x a
cdta compare --tolerance nan a
cdta compare --tolerance 200 a
cdta dataset list --foo
cdta run --temprature 1
cdta run --form fin
cdta --foo
cdta show latest
cdta dataset export comon
"""
EXPERIMENTS = """
model = [
models = ["a"]
max_costs = 1
model = []
model = [{ name = "a", adress = "x" }]
model = [{ name = "a", n = 5 }]
model = [{ name = "cdta/random", price = "x" }]
n = 0
n = true
keep_looking = "no"
price = { a = 2026-01-01 }
model = [{ name = "" }]
rules = ["bishops"]
reasoning_effort = ["lo", "hi"]
model = [{ name = "a", reasoning_effort = "none,hi" }]
"""
SOLVERS = """
{class: 'a.b:FewShotSolver', args: {}}
{class: 'a:AnthropicSolver', args: {}}
{class: 'a:OpenAISolver', args: {valid_answers: [A]}}
{class: 'a:OpenAISolver', args: {completion_fn_options: {}}}
{model: cdta/random, colour: red}
{temperature: 1}
{class: 'a:CoTSolver', args: {}}
just text
{
"""
VARYING = r"(not valid TOML:|'mine.yaml' \(|cannot write [^(]*\(|(?:valid: |keys are )[^,]+,).*"
"""The rest of these messages comes from the system or a library, or lists names that grow."""


@pytest.fixture(autouse=True)
def workdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    return tmp_path


def error_of(line: str) -> str:
    program, *arguments = shlex.split(line)
    done = (cdta if program == "cdta" else oaieval)(*arguments, code=2)
    *_, sentence = done.stderr.splitlines()
    assert sentence.startswith(f"{program}: ") and "Traceback" not in done.stderr
    assert program == "oaieval" or done.stderr == f"{sentence}\n"
    return re.sub(VARYING, r"\1 ...", sentence)


def test_invalid_commands_match_snapshot(workdir: Path) -> None:
    lines = COMMANDS.strip().splitlines()
    snapshot("refusals", "\n".join(f"$ {line}\n{error_of(line)}" for line in lines))
    cdta("rules", "--json", "--json", code=0)
    assert not list(workdir.rglob("run.json"))


def test_invalid_files_match_snapshot() -> None:
    outputs = []
    for text in EXPERIMENTS.strip().splitlines():
        Path("mine.toml").write_text(text)
        outputs.append(f"{text}\n{error_of('cdta experiment mine.toml --out out')}")
    for text in SOLVERS.strip().splitlines():
        Path("mine.yaml").write_text(f"mine: {text}\n")
        command = "oaieval mine cant_do_that_anymore --registry_path mine.yaml"
        outputs.append(f"{text}\n{error_of(command)}")
    snapshot("refusals-of-files", "\n".join(outputs))
