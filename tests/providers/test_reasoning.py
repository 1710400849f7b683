"""Models that think first: any server of them is measured with no option, and its thoughts kept."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from aiohttp import web

from cant_do_that_anymore import Spec, evaluate
from cant_do_that_anymore.client.client import WINDOW
from cant_do_that_anymore.datasets.search import ORDER_SEED
from cant_do_that_anymore.errors import InvalidInput, UserError
from cant_do_that_anymore.game.position import shipped_pool, write_positions
from cant_do_that_anymore.providers.base import Settings
from cant_do_that_anymore.providers.request_variants import (
    NO_SYSTEM,
    NO_TEMPERATURE,
    fallbacks,
    with_reasoning_budget,
)
from cant_do_that_anymore.runs.evaluate import select
from cant_do_that_anymore.runs.storage import save_run
from cant_do_that_anymore.task.types import answers_of
from loopback import Body, is_changed, moves_in, serving
from players import SPECIAL, habit, number_of, perfect
from processes import cdta
from thinkers import (
    Kimi,
    OpenAI,
    Outside,
    Tagged,
    Template,
    Thinker,
    Unfinished,
    Untaking,
)

HARMONY = (
    "<|channel|>analysis<|message|>",
    "<|end|><|start|>assistant<|channel|>final<|message|>",
)
FAMILIES: dict[str, Callable[[], Thinker]] = {
    "OpenAI, empty reply": lambda: OpenAI(perfect),
    "OpenAI, HTTP 400": lambda: Unfinished(perfect),
    "Kimi": lambda: Kimi(perfect),
    "Anthropic's newest": lambda: Untaking(perfect),
    "vLLM": lambda: Thinker(perfect),
    "SGLang": lambda: Thinker(perfect, place="reasoning_content", empty=""),
    "xAI": lambda: Outside(perfect, place="reasoning_content"),
    "Qwen on vLLM": lambda: Template(perfect),
    "tags": lambda: Tagged(perfect),
    "tag opened by the template": lambda: Tagged(perfect, tags=("", "</think>")),
    "Kimi's tags": lambda: Tagged(perfect, tags=("◁think▷", "◁/think▷")),
    "channels": lambda: Tagged(perfect, tags=HARMONY),
    "small": lambda: Thinker(perfect, most=9_000),
}
SHOWS_NOTHING = {"OpenAI, empty reply", "OpenAI, HTTP 400"}
TAKES_NO_TEMPERATURE = {*SHOWS_NOTHING, "Kimi", "Anthropic's newest"}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_model_that_thinks_needs_no_option(family: str) -> None:
    with serving(FAMILIES[family]()) as server:
        run = evaluate(Spec(base_url=server.url, n=12), quiet=True)
    metrics = run.results.metrics
    assert metrics["variant_impact_factor"] == -1
    assert metrics["rule_uptake"] == 1
    for answer in answers_of(run.samples):
        assert bool(answer.reasoning) == (family not in SHOWS_NOTHING)
        assert answer.usage.output_tokens >= answer.usage.thinking_tokens >= 500
    told = " ".join(run.notes)
    assert "the model thinks before it replies" in told
    assert ("takes no temperature" in told) == (family in TAKES_NO_TEMPERATURE)
    assert run.dataset.own_temperature == (family in TAKES_NO_TEMPERATURE)


def test_what_was_learnt_is_known_next_time() -> None:
    with serving(OpenAI(perfect)) as server:
        evaluate(Spec(base_url=server.url, n=4), quiet=True)
        asked = len(server.requests)
        run = evaluate(Spec(base_url=server.url, n=4, seed=1), quiet=True)
    assert {server.limit(request) for request in server.requests[asked:]} == {16_016}
    assert len(server.requests) == asked + 1 + 8  # is it the same model?
    assert any("16,000 tokens" in note for note in run.notes)


def test_thinking_is_turned_off_in_the_way_that_works() -> None:
    spec = {"n": 6, "reasoning_effort": "none"}
    with serving(Template(perfect)) as server:
        run = evaluate(Spec(base_url=server.url, **spec), quiet=True)  # type: ignore[arg-type]
    assert run.results.metrics["variant_impact_factor"] == -1
    assert set(server.limits) == {16}
    assert not any(answer.is_thoughtful for answer in answers_of(run.samples))
    assert "the effort was told by chat_template_kwargs" in run.notes


def test_a_model_that_cannot_but_think_is_not_measured_as_if_it_did_not() -> None:
    with (
        serving(Thinker(perfect)) as server,
        pytest.raises(InvalidInput, match="thinks although --reasoning-effort none"),
    ):
        evaluate(Spec(base_url=server.url, n=6, reasoning_effort="none"), quiet=True)
    assert len(server.requests) == 5


def test_none_suits_a_model_that_knows_no_effort() -> None:
    class Plain(Thinker):
        def refuses(self, request: Body) -> str:
            known = {"model", "messages", "temperature", "max_tokens", "path"}
            more = sorted(request.keys() - known)
            return f"Unrecognized request argument supplied: {more[0]}" if more else ""

    with serving(Plain(perfect, thinks=lambda _: 0)) as server:
        run = evaluate(Spec(base_url=server.url, n=6, reasoning_effort="none"), quiet=True)
        assert run.results.metrics["variant_impact_factor"] == -1
        with pytest.raises(UserError, match="Unrecognized request argument"):
            evaluate(Spec(base_url=server.url, n=6, reasoning_effort="low"), quiet=True)


@pytest.mark.parametrize("effort", ["minimal", "low", "high", "max"])
def test_an_effort_is_sent_with_room_for_it(effort: str) -> None:
    with serving(Thinker(perfect)) as server:
        spec = Spec(base_url=server.url, n=3, reasoning_effort=effort, extra_body={"top_k": 5})  # type: ignore[arg-type]
        evaluate(spec, quiet=True)
    for request in server.requests:
        assert (request["reasoning_effort"], request["top_k"]) == (effort, 5)
        assert request["max_tokens"] == 16_016


def test_room_that_is_too_small_is_made_larger() -> None:
    with serving(Thinker(perfect, thinks=lambda _: 20_000)) as server:
        run = evaluate(Spec(base_url=server.url, n=4), quiet=True)
    assert run.results.metrics["variant_impact_factor"] == -1
    assert server.limits[:3] == [16, 16_016, 64_016]
    assert set(server.limits[3:]) == {64_016}


def test_who_thinks_without_end_is_given_more_room_a_few_times_only() -> None:
    """One position in ten; the others think little."""

    def endless(request: Body) -> int:
        return 10**6 if number_of(moves_in(request)) % 10 == 3 else 600

    with serving(Thinker(perfect, thinks=endless)) as server:
        run = evaluate(Spec(base_url=server.url, n=40), quiet=True)
    assert server.limits.count(64_016) <= 3 + 32  # what is in flight may try at once
    truncated = run.results.outcomes["standard"]["truncated"]
    assert truncated == 0  # no such position was ever selected
    assert "16,000 and then" not in " ".join(run.notes)


@pytest.mark.parametrize("most", [10_000, 16_384, 2_048])
def test_room_that_cannot_be_made_larger_is_not_asked_for_without_end(most: int) -> None:
    """One question in ten thinks longer than the server has room for."""

    def long(request: Body) -> int:
        return 10**6 if number_of(moves_in(request)) % 10 == 3 else 600

    with serving(Thinker(perfect, thinks=long, most=most)) as server:
        run = evaluate(Spec(base_url=server.url, n=20, max_connections=8), quiet=True)
    assert run.results.metrics["variant_impact_factor"] == -1
    assert len(server.requests) < 300


def test_a_slow_thought_does_not_make_the_search_run_ahead() -> None:
    class Slow(Thinker):
        async def _answer(self, request: Body, number: int) -> web.StreamResponse:
            await asyncio.sleep(2 if number == 4 else 0)
            return await super()._answer(request, number)

    with serving(Slow(perfect)) as server:
        evaluate(Spec(base_url=server.url, n=10, max_connections=8), quiet=True)
    assert len(server.requests) <= 10 + 8 * WINDOW + 20 + 8  # who is in flight learns to ask so


def test_thoughts_that_nothing_marks_are_found_out_before_others_are_cut_off(
    tmp_path: Path,
) -> None:
    write_positions(tmp_path / "some.jsonl", shipped_pool("pool")[:40])
    server = Tagged(perfect, tags=("", "</think>"), delay=0.02)
    with serving(server):
        spec = Spec(base_url=server.url, dataset=tmp_path / "some.jsonl", n=40)
        run = evaluate(spec, quiet=True)
        asked = len(server.requests)
        again = evaluate(spec, quiet=True)
    assert run.results.outcomes["changed"]["truncated"] == 0
    assert len(server.requests) == asked + 1  # is it the same model?
    assert again.samples == run.samples


def test_a_probe_that_is_refused_leaves_the_answer_as_it_was() -> None:
    class Talker(Thinker):
        def thoughtful(self, request: Body) -> dict[str, object]:
            completion = self.completion(request)
            completion["choices"][0]["message"]["content"] = f"{habit(request)}\nis the move"
            completion["choices"][0]["finish_reason"] = "length"
            return completion

    with serving(Talker(habit, most=512)) as server:
        run = evaluate(Spec(base_url=server.url, n=5), quiet=True)
    assert run.results.metrics["predicted_move_proportion"] == 1


def test_who_is_always_cut_off_is_not_asked_again_by_the_same_command(tmp_path: Path) -> None:
    write_positions(tmp_path / "some.jsonl", shipped_pool("pool")[:40])

    def endless(request: Body) -> int:
        return 10**6 if is_changed(request) and number_of(moves_in(request)) % 7 == 3 else 0

    with serving(Thinker(habit, thinks=endless, place="")) as server:
        spec = Spec(base_url=server.url, dataset=tmp_path / "some.jsonl", n=40)
        run = evaluate(spec, quiet=True)
        asked = len(server.requests)
        again = evaluate(spec, quiet=True)
    assert run.results.outcomes["changed"]["truncated"] > 1
    assert run.results.bounds["variant_impact_factor"].high == 0
    assert len(server.requests) == asked + 1  # is it the same model?
    assert again.samples == run.samples


def test_room_that_the_user_gave_is_not_made_larger(tmp_path: Path) -> None:
    write_positions(tmp_path / "some.jsonl", shipped_pool("pool")[:24])
    spec = {"dataset": tmp_path / "some.jsonl", "n": 24, "reasoning_tokens": 300}
    with (
        serving(Thinker(perfect)) as server,
        pytest.raises(UserError, match=r"raise --reasoning-tokens \(now 300\)"),
    ):
        evaluate(Spec(base_url=server.url, **spec), quiet=True)  # type: ignore[arg-type]
    assert set(server.limits) == {316}


def test_who_talks_much_is_no_thinker() -> None:
    """Asked once with more room to see whether it thinks; what is cut off stays cut off."""

    class Talker(Thinker):
        def thoughtful(self, request: Body) -> dict[str, object]:
            completion = self.completion(request)
            (choice,) = completion["choices"]
            choice["message"]["content"] = f"{habit(request)} is the move, since " + "so " * 100
            if self.limit(request) < 100:
                choice["message"]["content"] = f"{habit(request)}\nis the"
                choice["finish_reason"] = "length"
            return completion

    with serving(Talker(habit)) as server:
        run = evaluate(Spec(base_url=server.url, n=5), quiet=True)
    assert server.limits.count(16_016) == 1
    assert run.results.metrics["predicted_move_proportion"] == 1
    assert not any("thinks" in note for note in run.notes)


@pytest.mark.parametrize("key", ["x", "EMPTY", "a-real-key-of-some-length"])
def test_a_short_key_hides_nothing_of_what_a_server_says(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDTA_API_KEY", key)
    with serving(OpenAI(perfect)) as server:
        run = evaluate(Spec(base_url=server.url, n=3), quiet=True)
    assert run.results.metrics["variant_impact_factor"] == -1


SMALLER = with_reasoning_budget((), 8_000)
REFUSALS = [
    ("temperature: Extra inputs are not permitted", (NO_TEMPERATURE,)),
    ("`temperature` may only be set to 1 when thinking is enabled.", (NO_TEMPERATURE,)),
    ("invalid temperature: only 1 is allowed for this model", (NO_TEMPERATURE,)),
    ("`temperature` is deprecated for this model.", (NO_TEMPERATURE,)),
    (
        "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) "
        "value is supported.",
        (NO_TEMPERATURE,),
    ),
    (
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
        "'max_completion_tokens' instead.",
        ("max_completion_tokens",),
    ),
    (
        "max_tokens is too large: 16016. This model supports at most 8192 completion tokens",
        SMALLER,
    ),
    (
        "This model's maximum context length is 8192 tokens. However, you requested 16200 tokens",
        SMALLER,
    ),
    (
        "`max_tokens` must be greater than `thinking.budget_tokens`.",
        with_reasoning_budget((), 64_000),
    ),
    ("Unsupported value: 'messages[0].role' does not support 'system' with this", (NO_SYSTEM,)),
    ("Unsupported value: 'minimal' is not supported with the 'gpt-5.1' model", None),
    ("Reasoning is mandatory for this endpoint and cannot be disabled.", None),
]


@pytest.mark.parametrize(("words", "remedy"), REFUSALS)
def test_every_known_refusal_has_its_remedy(words: str, remedy: tuple[str, ...] | None) -> None:
    settings = Settings(reasoning_effort="minimal")
    found = list(fallbacks(words, (), settings))
    assert remedy in found if remedy else any("effort" in each for form in found for each in form)


def test_chain_of_thought_gives_way_to_thinking() -> None:
    with serving(Thinker(perfect)) as server:
        run = evaluate(Spec(model="cot/served", base_url=server.url, n=3), quiet=True)
    told = [request["messages"][-1]["content"] for request in server.requests]
    assert sum("think aloud" in text for text in told) == 1
    assert run.results.metrics["variant_impact_factor"] == -1
    assert any("--reasoning-effort says how much" in note for note in run.notes)


def test_two_of_three_draws_select() -> None:
    """A model that draws: position and draw decide, so that the dataset can be told beforehand."""
    seen: dict[tuple[str, ...], int] = {}

    def hits(moves: tuple[str, ...], draw: int) -> bool:
        return (number_of(moves) * (draw + 3)) % 7 < 4

    def drawing(request: Body) -> str:
        moves = moves_in(request)
        draw = seen.get(moves, 0)
        seen[moves] = draw + 1
        return SPECIAL[moves] if hits(moves, draw) else "a2a3"

    pool = shipped_pool("pool")
    ordered = Random(ORDER_SEED).sample(pool, len(pool))
    expected, questions = [], 0
    for position in ordered:
        draws = [hits(position.moves, draw) for draw in range(3)]
        questions += 1 if not draws[0] else 2 if draws[1] else 3
        if draws[0] and sum(draws) >= 2:
            expected.append(position)
        if len(expected) == 20:
            break
    kimi = Kimi(drawing, thinks=lambda _: 0)
    with serving(kimi) as server:
        dataset = select(Spec(base_url=server.url, n=20), quiet=True).dataset
    assert dataset.positions == expected
    assert dataset.asked == questions
    assert dataset.selection == "by 2 of 3 draws at the provider's own temperature"


def test_runs_selected_in_two_ways_are_not_ranked(tmp_path: Path) -> None:
    for name, kind in (("drawn", Kimi), ("not", Thinker)):
        with serving(kind(perfect)) as server:
            run = evaluate(Spec(base_url=server.url, n=3), quiet=True)
        save_run(run, tmp_path / name)
    found = cdta("compare", tmp_path / "drawn", tmp_path / "not")
    assert found.returncode == 2
    assert "cannot be ranked together" in found.stderr


def test_habits_can_be_found_at_another_effort() -> None:
    with serving(Thinker(perfect)) as server:
        efforts = {"reasoning_effort": "high", "select_effort": "low"}
        run = evaluate(Spec(base_url=server.url, n=4, **efforts), quiet=True)  # type: ignore[arg-type]
    asked = [request["reasoning_effort"] for request in server.requests]
    assert asked == ["low"] * (len(asked) - 8) + ["high"] * 8
    assert run.plan.select_effort == "low"


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ({"extra_body": "{"}, "must be a JSON object"),
        ({"extra_body": '{"max_tokens": 5}'}, "may not hold 'max_tokens'"),
        ({"reasoning_effort": "hihg"}, "did you mean 'high'"),
        ({"reasoning_tokens": -1}, "at least 0"),
        ({"model": "cdta/pocket", "reasoning_effort": "high"}, "does not think"),
    ],
)
def test_what_cannot_work_is_said(option: dict[str, str], told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        evaluate(Spec(**option), quiet=True)  # type: ignore[arg-type]
