"""Solver names: those of the original, those of a registry, and any model name."""

from pathlib import Path

import pytest

from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.oaieval.solvers import solver_named

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
