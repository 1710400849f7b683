"""The environment with the real library: its tasks, its rewards, a rollout, its validation command.

The model is an HTTP server on this machine that always gives the usual answer, as a model does that
ignores every change.
"""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cant_do_that_anymore_v1 import HabitsTaskset
from cant_do_that_anymore_v1.taskset import HabitsConfig, HabitsTask

from cant_do_that_anymore import Answer

COMMANDS = Path(sys.executable).parent
ID = "cant-do-that-anymore-v1"
FEW = ("--taskset.rules", "bishops-as-knights,base-9", "--taskset.items", "3")


def tasks(**options: object) -> list[HabitsTask]:
    return list(HabitsTaskset(HabitsConfig.model_validate({"id": ID, **options})))


def keys(found: list[HabitsTask]) -> set[str]:
    return {task.data.change for task in found}


def test_half_of_the_tasks_are_under_the_usual_rules() -> None:
    found = tasks(rules="bishops-as-knights,base-9", items=3)
    assert [task.data.condition for task in found] == ["standard", "changed"] * 6
    assert keys(found) == {"bishops-as-knights", "base-9"}
    assert len({task.key for task in found}) == 12
    for usual, changed in zip(found[::2], found[1::2], strict=True):
        assert usual.data.item == changed.data.item
        assert usual.data.prompt != changed.data.prompt


def test_held_out_rules_are_in_one_split_only() -> None:
    options = {"rules": "arithmetic,python,bishops-as-knights", "held_out": "python,base-9"}
    train = keys(tasks(items=1, **options))
    held_out = keys(tasks(items=1, split="held-out", **options))
    assert train == {"minus-means-plus", "bishops-as-knights"}
    assert held_out == {"base-9", "lists-start-at-1", "max-returns-smallest"}


def test_without_rules_in_the_split_it_says_so() -> None:
    with pytest.raises(ValueError, match="no rules are in the split 'held-out'; see held_out"):
        tasks(split="held-out")


def outcome(task: HabitsTask, text: str) -> str:
    return task.outcome_of(Answer(text))


def test_rewards_of_known_replies() -> None:
    usual, changed = tasks(rules="bishops-as-knights", items=1)
    move = usual.item.usual[0]
    assert (outcome(usual, move), outcome(changed, move)) == ("usual", "usual")
    assert outcome(changed, f"I play {move}.") == "usual"
    assert outcome(changed, "I resign.") == "unreadable"
    question, in_base_9 = tasks(rules="base-9", items=1)
    known, right = question.item.usual[0], question.item.right[0]
    assert (outcome(question, known), outcome(in_base_9, known)) == ("usual", "usual")
    assert (outcome(question, right), outcome(in_base_9, right)) == ("illegal", "adapted")


class Usual(BaseHTTPRequestHandler):
    """Gives the usual answer to the item of the request, as far as it knows the item."""

    answers: dict[str, str]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = self.answers[json.dumps([turn["content"] for turn in body["messages"]])]
        choice = {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": text},
        }
        usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
        reply = {"id": "1", "object": "chat.completion", "created": 1, "model": "usual"}
        data = json.dumps({**reply, "choices": [choice], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def server() -> Iterator[str]:
    found = tasks(rules="bishops-as-knights,base-9", items=3)
    texts = [json.dumps([turn.content for turn in task.data.prompt]) for task in found]
    Usual.answers = dict(zip(texts, [task.item.usual[0] for task in found], strict=True))
    with ThreadingHTTPServer(("127.0.0.1", 0), Usual) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{http.server_port}/v1"
        http.shutdown()


def run(*words: str, folder: Path) -> None:
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_rollouts_against_a_server(server: str, tmp_path: Path) -> None:
    where = ("--model", "usual", "--client.base-url", server, "--client.api-key-var", "NO_KEY")
    options = [f"--env.{word[2:]}" if word.startswith("--") else word for word in FEW]
    here = ("--env.agent.runtime.type", "subprocess", "--no-push", "--no-rich")
    run(str(COMMANDS / "vf-eval"), ID, *where, *options, *here, folder=tmp_path)
    (file,) = tmp_path.rglob("traces.jsonl")
    episodes = map(json.loads, file.read_text().splitlines())
    traces = [trace for episode in episodes for trace in episode["traces"]]
    rewards = {t["task"]["data"]["id"]: t["rewards"]["right"]["score"] for t in traces}
    assert len(rewards) == 12
    for name, reward in rewards.items():
        assert reward == float("/standard/" in name)
    assert all(trace["metrics"] == {"kept_habit": 1.0, "unreadable": 0.0} for trace in traces)


def test_the_validation_command(tmp_path: Path) -> None:
    here = ("--runtime.type", "subprocess", "--no-rich")
    run(str(COMMANDS / "vf-validate"), ID, *FEW, *here, folder=tmp_path)
    (file,) = tmp_path.rglob("summary.json")
    summary = json.loads(file.read_text())
    assert summary["outcomes"]["valid"] == summary["total"] == 12
    assert summary["checks"]["noop"]["valid"] == 12
