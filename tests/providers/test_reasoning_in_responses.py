"""Where thoughts stand in what a server sends, and how many tokens they took."""

import json
import time

import pytest

from cant_do_that_anymore.providers.base import Usage
from cant_do_that_anymore.providers.responses import parse_completion, reasoning_in, split_reasoning


@pytest.mark.parametrize(
    ("text", "thoughts", "reply"),
    [
        ("f1b5", "", "f1b5"),
        ("<think>e4e5? d2d4?</think>f1b5", "e4e5? d2d4?", "f1b5"),
        ("<think>\n\n</think>\n\nf1b5", "", "\n\nf1b5"),
        ("e4e5? d2d4?</think>f1b5", "e4e5? d2d4?", "f1b5"),
        ("<think>\nf1b5\n", "f1b5", ""),
        ("\n<Thinking>a</Thinking> f1b5", "a", " f1b5"),
        ("<think>a</think>b<think>c</think>f1b5", "a</think>b<think>c", "f1b5"),
        ("<think >a</think >f1b5", "a", "f1b5"),
        ('<analysis type="brief">a</analysis>f1b5', "a", "f1b5"),
        ("◁think▷a◁/think▷f1b5", "a", "f1b5"),
        ("[THINK]a[/THINK]f1b5", "a", "f1b5"),
        ("<seed:think>a</seed:think>f1b5", "a", "f1b5"),
        (
            "<|channel|>analysis<|message|>a<|end|><|start|>assistant"
            "<|channel|>final<|message|>f1b5<|return|>",
            "a",
            "f1b5",
        ),
        ("<|channel|>analysis<|message|>a f1b5", "a f1b5", ""),
        ("I think f1b5 is <best>", "", "I think f1b5 is <best>"),
        ("f1b5\n<think>a e2e4</think>", "a e2e4", "f1b5\n"),
        ("d2d4? I close my <think> block.</think>f1b5", "d2d4? I close my <think> block.", "f1b5"),
        ("d2d4\n<think>a</think>f1b5", "d2d4\n<think>a", "f1b5"),
        ("d2d4\n<think>a</think>b<think>c</think>f1b5", "d2d4\n<think>a</think>b<think>c", "f1b5"),
        ("<think>a</think>f1b5<think>c</think>", "a\nc", "f1b5"),
        ("a</think>f1b5<think>c</think>\n", "a\nc", "f1b5"),
        ("a</think>f1b5\n<think>c</think>", "a\nc", "f1b5\n"),
        ("<think>a <think> b</think> c</think>", "a \n b\n c", ""),
        ("f1b5\n<think>because e2", "because e2", "f1b5\n"),
        ("<think>a</think>f1b5\n<think>because e2", "a\nbecause e2", "f1b5\n"),
        ("f1b5, without a <think> tag", "", "f1b5, without a <think> tag"),
    ],
)
def test_thoughts_between_tags_are_not_the_reply(text: str, thoughts: str, reply: str) -> None:
    assert split_reasoning(text) == (thoughts, reply)


def test_a_megabyte_of_tags_or_lines_is_parted_at_once() -> None:
    lines = 1_000_000 * "\n"
    began = time.process_time()
    assert split_reasoning(100_000 * "</think>") == ("", "")
    assert split_reasoning(100_000 * "<think>") == (99_999 * "<think>", "")
    assert split_reasoning(lines) == ("", lines)
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    "message",
    [
        {"reasoning_content": "so"},
        {"reasoning": "so"},
        {"reasoning": "so", "reasoning_details": [{"type": "reasoning.text", "text": "no"}]},
        {"reasoning": None, "reasoning_details": [{"type": "reasoning.summary", "summary": "so"}]},
        {"reasoning_content": "", "reasoning": "so"},
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "so"}]}]},
        {"content": [{"type": "thinking", "thinking": "so"}, {"type": "text", "text": "f1b5"}]},
        {"reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}, {"text": "so"}, 3]},
    ],
)
def test_every_field_for_thoughts_is_read(message: dict[str, object]) -> None:
    assert reasoning_in(message) == "so"


@pytest.mark.parametrize(
    ("usage", "paid"),
    [
        ({"completion_tokens": 50}, Usage(10, 50, 48)),
        (
            {"completion_tokens": 50, "completion_tokens_details": {"reasoning_tokens": 40}},
            Usage(10, 50, 40),
        ),
        (
            {
                "completion_tokens": 2,
                "total_tokens": 52,
                "completion_tokens_details": {"reasoning_tokens": 40},
            },
            Usage(10, 42, 40),
        ),
        ({"completion_tokens": 50, "reasoning_tokens": 30}, Usage(10, 50, 30)),
        ({"completion_tokens": 2, "total_tokens": 112}, Usage(10, 102, 100)),
        ({"completion_tokens": 50, "total_tokens": 61}, Usage(10, 51, 49)),
        ({"completion_tokens": 50, "output_tokens_details": None}, Usage(10, 50, 48)),
        ({}, Usage(10, 0, 24)),
    ],
)
def test_what_is_paid_is_counted(usage: dict[str, object], paid: Usage) -> None:

    message = {"content": "f1b5", "reasoning": "x" * 96}
    choice = {"finish_reason": "stop", "message": message}
    body = json.dumps({"choices": [choice], "usage": {"prompt_tokens": 10, **usage}})
    answer = parse_completion(body.encode(), "chat", "m", ())
    assert (answer.text, answer.reasoning, answer.usage) == ("f1b5", "x" * 96, paid)
