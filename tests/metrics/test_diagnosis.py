"""Why a habit stays, in planted models with known numbers."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import chess
import pytest
from aiohttp import web

from cant_do_that_anymore.errors import Incomplete, InvalidInput
from cant_do_that_anymore.habits.chess.position import write_positions
from cant_do_that_anymore.habits.chess.rules import (
    BISHOPS_AS_KNIGHTS,
    STANDARD,
    board_after,
    placebo_of,
)
from cant_do_that_anymore.metrics.diagnosis import confounded, knowledge_group_of
from cant_do_that_anymore.report.tables import summary
from cant_do_that_anymore.runs.cost import estimate
from cant_do_that_anymore.runs.identity import PROBES
from cant_do_that_anymore.runs.results import Run
from cant_do_that_anymore.runs.storage import load_run, run_json, save_run
from cant_do_that_anymore.task.conditions import CONTROL_CONDITIONS, DIAGNOSIS_CONDITIONS
from cant_do_that_anymore.task.types import answers_of
from planted_models import (
    CANNOT_STOP,
    HALF_UNREADABLE,
    IGNORES_RULE,
    NEEDS_REMINDER,
    PERFECT,
    SAYS_NO,
    SAYS_YES,
    UPSET_BY_ANY_CHANGE,
    illegal_when_reminded,
    noise,
    primed,
)
from reasoning_servers import OpenAI, ReasoningServer, Tagged
from testing import (
    POOL,
    USUAL,
    Body,
    Spec,
    checksum,
    evaluate,
    legal_under_both,
    measure,
    moves_in,
    positions,
    positions_of,
    printed,
    serving_in_process,
)

N = 40
NAMES = (
    *("variant_impact_factor", "placebo_impact_factor", "corrected_impact_factor"),
    *("placebo_collateral_change", "collateral_change", "specific_impact_factor"),
    *("reminder_effect", "rule_knowledge", "knowing_doing_gap", "kept_without_knowing"),
    "knowing_effect",
)

# The metrics of CANNOT_STOP.
KNOWS_BUT_KEEPS = (
    dict.fromkeys(NAMES, 0)
    | {"rule_knowledge": 1, "knowing_doing_gap": 1}
    | {"kept_without_knowing": None, "knowing_effect": None}
)


def diagnose(respond: Callable[[Body], str], n: int = N, **options: Any) -> Run:
    return measure(respond, **{"diagnose": True, "temperature": 0.0, "n": n} | options)


def metrics_of(run: Run) -> dict[str, float | int | None]:
    return {name: run.results.metrics[name] for name in NAMES}


def mixed_pool(file: Path, forbidden: int, still_legal: int) -> Path:
    """A pool where planted models have this many forbidden and still legal habits."""
    odd, even = ([p for p in POOL if checksum(p.moves) % 2 == remainder] for remainder in (1, 0))
    write_positions(file, [*odd[:forbidden], *even[:still_legal]])
    return file


@pytest.fixture(scope="module")
def perfect_run() -> Run:
    return diagnose(PERFECT)


@pytest.fixture(scope="module")
def upset_run() -> Run:
    return diagnose(UPSET_BY_ANY_CHANGE)


@pytest.mark.parametrize(
    ("respond", "expected", "groups"),
    [
        (
            IGNORES_RULE,
            dict.fromkeys(NAMES, 0)
            | {"knowing_doing_gap": None, "knowing_effect": None}
            | {"rule_knowledge": -1, "kept_without_knowing": 1},
            {"does not know and keeps"},
        ),
        (
            PERFECT,
            dict.fromkeys(NAMES, 0)
            | dict.fromkeys(("reminder_effect", "kept_without_knowing", "knowing_effect"), None)
            | {f"{name}_impact_factor": -1 for name in ("variant", "corrected", "specific")}
            | {"rule_knowledge": 1},
            {"knows and drops"},
        ),
        (CANNOT_STOP, KNOWS_BUT_KEEPS, {"knows and keeps"}),
        (
            NEEDS_REMINDER,
            {"variant_impact_factor": 0, "reminder_effect": -1}
            | {"rule_knowledge": 1, "knowing_doing_gap": 1},
            {"knows and keeps"},
        ),
        # The same answer to every question is not knowledge.
        *(
            (
                respond,
                {"rule_knowledge": 0, "kept_without_knowing": 0}
                | {"corrected_impact_factor": -1, "specific_impact_factor": -1},
                {"does not know and drops"},
            )
            for respond in (SAYS_YES, SAYS_NO)
        ),
        # Illegal replies to a reminder do not count as its effect.
        (illegal_when_reminded, {"reminder_effect": 0}, {"knows and keeps"}),
    ],
    ids=["ignores", "perfect", "cannot stop", "forgetful", "says yes", "says no", "illegal"],
)
def test_metrics_match_the_planted_behavior(
    respond: Callable[[Body], str], expected: dict[str, float | None], groups: set[str]
) -> None:
    run = diagnose(respond, n=24)
    assert metrics_of(run).items() >= expected.items()
    assert {knowledge_group_of(sample) for sample in run.samples} == groups
    interval = run.results.intervals["rule_knowledge"]
    assert (interval.low < 0 < interval.high) == (expected.get("rule_knowledge") == 0)


def test_a_model_upset_by_any_change_does_not_seem_to_follow_the_rule(upset_run: Run) -> None:
    """The prompt change alone makes it drop habits, forbidden or not."""
    metrics = metrics_of(upset_run)
    sample_share, control_share = (
        sum(bool(checksum(p.moves) // 2 % 4) for p in positions_of(group)) / len(group)
        for group in (upset_run.samples, upset_run.controls)
    )
    assert 0.5 < sample_share < 1 and 0.5 < control_share < 1
    expected = {
        **{"variant_impact_factor": -sample_share, "placebo_impact_factor": -sample_share},
        **{"placebo_collateral_change": -control_share, "kept_without_knowing": 1 - sample_share},
        **{"corrected_impact_factor": 0, "collateral_change": 0},
        **{"specific_impact_factor": 0, "rule_knowledge": -1},
    }
    assert {name: metrics[name] for name in expected} == pytest.approx(expected)
    (note,) = [note for note in upset_run.notes if "placebo" in note]
    assert note.startswith("the placebo alone changed the habit")


def test_the_documented_diagnosis_is_the_real_output() -> None:
    run = diagnose(UPSET_BY_ANY_CHANGE, n=200)
    output = printed(summary(replace(run, version="planted"), verbose=True))
    text = (Path(__file__).parents[2] / "docs" / "diagnosis.md").read_text(encoding="utf-8")
    example = text.partition("```text\n")[2].partition("\n```")[0]
    lines = [line.strip() for line in output.splitlines()]
    assert [line for line in example.splitlines() if line not in lines] == []


def test_unreadable_yes_no_answers_are_a_third_group() -> None:
    run = diagnose(HALF_UNREADABLE)
    groups = Counter(knowledge_group_of(sample) for sample in run.samples)
    assert set(groups) == {"knows and keeps", "unreadable and keeps"}
    knowing, metrics = groups["knows and keeps"] / N, metrics_of(run)
    assert (metrics["knowing_doing_gap"], metrics["kept_without_knowing"]) == (1, None)
    assert metrics["rule_knowledge"] == knowing
    bounds = run.results.bounds["rule_knowledge"]
    assert (bounds.complete, bounds.high) == (1, 1) and bounds.low == pytest.approx(2 * knowing - 1)
    effect = run.results.bounds["knowing_effect"]
    assert (effect.low, effect.high, effect.complete) == (0, 0, None)


def test_no_claim_about_the_rule_if_the_placebo_changes_the_habit(perfect_run: Run) -> None:
    """The rule has no effect. It only seems to have one compared with the placebo."""
    run = diagnose(primed, n=100, temperature=1.0)
    placebo, corrected = (
        run.results.intervals[f"{name}_impact_factor"] for name in ("placebo", "corrected")
    )
    assert placebo.low > 0 and corrected.high < 0
    (note,) = [note for note in run.notes if "placebo" in note]
    assert note == (
        "the placebo alone changed the habit (95% interval of its impact factor: "
        f"{placebo.low:.3f} to {placebo.high:.3f}), so the corrected impact factor and "
        "the specific impact factor do not show the effect of the rule"
    )
    assert confounded(run.results) == ("corrected_impact_factor", "specific_impact_factor")
    assert not [note for note in perfect_run.notes if "placebo" in note]
    assert confounded(perfect_run.results) == ()


@pytest.mark.parametrize("family", [ReasoningServer, Tagged, OpenAI])
def test_reasoning_models_are_diagnosed_the_same(family: type[ReasoningServer]) -> None:
    """A yes or no is also read from the reply, not from the reasoning."""
    with serving_in_process(family(CANNOT_STOP)) as server:
        run = measure(server, n=6, diagnose=True)
    assert metrics_of(run) == KNOWS_BUT_KEEPS
    assert run.controls
    for answer in answers_of((*run.samples, *run.controls)):
        assert answer.usage.thinking_tokens and answer.stop_reason == "stop"


def test_every_interval_of_a_random_model_contains_the_truth() -> None:
    """The requests fix the random seed, so the result does not depend on luck.

    The model plays other legal moves as often before the change as after it, so uptake is 0.
    """
    run = diagnose(noise, n=60, temperature=1.0)
    assert run.results.metrics["adaptation_rate"]
    truths = dict.fromkeys((*NAMES, "rule_uptake"), 0.0)
    truths |= {"knowing_doing_gap": 0.5, "kept_without_knowing": 0.5}
    for name, truth in truths.items():
        interval = run.results.intervals[name]
        assert interval.low < truth < interval.high, name


def test_controls_are_habits_that_stay_legal(perfect_run: Run) -> None:
    assert len(perfect_run.controls) == len(perfect_run.samples) == N
    sampled = {sample.item.subject for sample in perfect_run.samples}
    controls = positions_of(perfect_run.controls)
    for control, position in zip(perfect_run.controls, controls, strict=True):
        (habit,) = position.usual
        board, move = position.board(), chess.Move.from_uci(habit)
        for rules in (STANDARD, BISHOPS_AS_KNIGHTS, placebo_of(BISHOPS_AS_KNIGHTS)):
            assert rules.is_legal(board, move)
        assert tuple(control.replies) == CONTROL_CONDITIONS
        assert position.moves not in sampled
    assert len({position.moves for position in controls}) == N
    metrics = perfect_run.results.metrics
    assert metrics["n_controls"] == metrics["n_samples"] == N


def test_a_control_move_is_legal_under_all_rule_sets() -> None:
    """Habits: usual, forbidden by the change or the placebo, newly legal, always legal."""

    def respond(request: Body) -> str:
        moves = moves_in(request)
        board, always = board_after(moves), legal_under_both(moves)
        before = {move.uci() for move in board.legal_moves}
        after = {move.uci() for move in BISHOPS_AS_KNIGHTS.legal_moves(board)}
        standard = before - {*always, USUAL[moves]}
        habits = [{USUAL[moves]}, standard - after, standard & after, after - before]
        return ([*map(sorted, habits), always][checksum(moves) % 5] or always)[0]

    run = diagnose(respond, n=10)
    assert run.controls
    for position in positions_of(run.controls):
        assert position.usual[0] in legal_under_both(position.moves)


def test_a_diagnosis_sends_only_missing_requests(upset_run: Run, home: Path) -> None:
    with serving_in_process(UPSET_BY_ANY_CHANGE) as server:
        plain_spec = Spec(model="m", base_url=server.url, n=N, temperature=0.0)
        spec = replace(plain_spec, diagnose=True)
        plain = evaluate(plain_spec, quiet=True).results
        # Compared with a plain run, a diagnosis changes no metric except usage.
        usage = {name: n for name, n in plain.metrics.items() if "usage" in name}
        diagnosed = upset_run.results.metrics | usage
        assert diagnosed | plain.metrics == diagnosed
        assert plain.intervals.items() <= upset_run.results.intervals.items()
        before = len(server.requests)
        assert estimate(spec).requests == 7 * N
        evaluate(spec, quiet=True)
        assert len(server.requests) - before == PROBES + 7 * N
        assert estimate(spec).requests == 0
        for file in home.glob("answers.sqlite*"):
            file.unlink()
        run = evaluate(spec, quiet=True)
    assert [c.item for c in run.controls] == [c.item for c in upset_run.controls]


def test_no_controls_for_a_dataset_of_another_model() -> None:
    with serving_in_process(UPSET_BY_ANY_CHANGE) as server:
        run = measure(server, n=4, fallback_dataset="gpt-4-0314", diagnose=True)
    assert run.controls == []
    assert len(server.requests) == 1 + 6 * 4


def test_a_diagnosis_can_be_loaded(upset_run: Run, tmp_path: Path) -> None:
    save_run(upset_run, tmp_path / "run")
    loaded = load_run(tmp_path / "run")
    assert (loaded.samples, loaded.controls) == (upset_run.samples, upset_run.controls)
    assert json.dumps(run_json(loaded)) == json.dumps(run_json(upset_run))
    assert loaded.plan == upset_run.plan
    assert [condition.name for condition in loaded.plan.conditions] == list(DIAGNOSIS_CONDITIONS)


def test_lost_controls_are_refused(upset_run: Run, tmp_path: Path) -> None:
    save_run(upset_run, tmp_path / "run")
    file = tmp_path / "run" / "controls.jsonl"
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(InvalidInput, match=rf"controls.jsonl is damaged: it has {N - 1} of {N}"):
        load_run(tmp_path / "run")


def test_no_or_few_controls_are_noted(tmp_path: Path) -> None:
    run = diagnose(PERFECT, n=12, dataset=positions(12))
    assert run.controls == []
    assert run.results.metrics["collateral_change"] is None
    assert run.results.metrics["specific_impact_factor"] is None
    assert run.results.metrics["corrected_impact_factor"] is not None
    assert any("no control positions, so the collateral change and" in note for note in run.notes)
    few = diagnose(PERFECT, n=30, pool=mixed_pool(tmp_path / "pool.jsonl", 30, 5))
    assert 0 < len(few.controls) <= 5
    (note,) = [note for note in few.notes if "control" in note]
    assert note.startswith(f"only {len(few.controls)} control positions (30 samples wanted)")


@pytest.mark.parametrize("kind", ["samples", "controls"])
def test_too_many_failed_samples_or_controls_end_the_run(kind: str, tmp_path: Path) -> None:
    async def fault(request: Body, _: int) -> web.Response | None:
        fails = request["temperature"] and moves_in(request) == failing_moves
        return web.Response(status=418) if fails else None

    failing_moves = None
    with serving_in_process(PERFECT, fault=fault) as server:
        pool = mixed_pool(tmp_path / "pool.jsonl", 6, 6)
        spec = Spec("m", server.url, pool=pool, n=6, diagnose=True)
        failing_moves = getattr(evaluate(spec, quiet=True), kind)[0].item.subject
        with pytest.raises(Incomplete, match=rf"^1 of \d+ {kind} have no answer"):
            evaluate(replace(spec, seed=1), quiet=True)
        with patch("cant_do_that_anymore.runs.evaluate.MAX_ERROR_RATE", 0.2):
            run = evaluate(replace(spec, seed=1), quiet=True)
    assert sum(not sample.answered for sample in [*run.samples, *run.controls]) == 1
    notes = [note for note in run.notes if "control" in note or "without an answer" in note]
    assert f"left out 1 {kind[:-1]} without an answer" in notes
    few = f"only {len(run.controls)} control positions (6 samples wanted)"
    assert [note for note in notes if "left out" not in note] == [
        f"{few}: building the dataset produced no more"
    ]


def test_bundled_models_answer_knowledge_questions() -> None:
    knows, cannot_read, guesses = (
        measure(model, dataset=positions(10), diagnose=True).results
        for model in ("cdta/pocket-rules", "cdta/pocket", "cdta/random")
    )
    assert knows.metrics["rule_knowledge"] == 1
    assert knows.metrics["knowing_doing_gap"] == 0
    counts = cannot_read.outcomes["knows_allowed"]
    assert (counts["unreadable"], sum(counts.values())) == (10, 10)
    bounds = cannot_read.bounds["rule_knowledge"]
    assert (bounds.low, bounds.high, bounds.complete) == (-1, 1, None)
    assert "variant_impact_factor" not in cannot_read.bounds
    counts = guesses.outcomes["knows_forbidden"]
    assert counts["right"] and counts["wrong"] and not counts["unreadable"]


@pytest.mark.parametrize("prefix", ["", "completions/"])
def test_chat_and_base_models_get_the_same_diagnosis(prefix: str) -> None:
    """Four tokens are enough for yes and no."""
    with serving_in_process(PERFECT, finish_reason="length" if prefix else "stop") as server:
        run = measure(server, model=f"{prefix}m", diagnose=True, n=10)
    assert {request["max_tokens"] for request in server.requests[1:]} == {4 if prefix else 512}
    assert run.results.metrics["rule_knowledge"] == 1
    assert run.results.metrics["specific_impact_factor"] == -1


def test_chain_of_thought_asks_for_the_answer_format_of_the_question() -> None:
    """The task starts with the format of a move. A knowledge question needs another format."""
    last_turns = []

    def respond(request: Body) -> str:
        *earlier, last = request["messages"]
        if "think aloud" in last["content"]:
            return "Let me see."
        last_turns.append(last["content"])
        return PERFECT({"messages": earlier[:-1]})  # the question, without the reasoning

    run = measure(respond, model="cot/m", diagnose=True, n=5)
    assert run.results.metrics["rule_knowledge"] == 1
    assert all("the form that was asked for." in turn for turn in last_turns)


def test_a_wording_for_a_single_change_cannot_state_a_placebo(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("standard = 'Play.'\nchanged = 'Bishops move as knights.'\n")
    states = "states only bishops-as-knights, not rooks-as-knights, the placebo of a diagnosis"
    with pytest.raises(InvalidInput, match=f"{states}; write"):
        measure("cdta/random", wording=str(file), diagnose=True)
    file.write_text(
        "standard = 'Play.'\nchanged = 'Play. {change}'\n"
        "question = '{move}? {answers}!'\nreminder = 'Note: {change}'\n"
    )
    run = measure("cdta/random", wording=str(file), diagnose=True, n=5)
    conditions = {condition.name: condition for condition in run.plan.conditions}
    assert (
        conditions["placebo"].prompts[0].text == f"Play. {placebo_of(BISHOPS_AS_KNIGHTS).statement}"
    )
    assert conditions["reminded"].prompts[0].added == f"Note: {BISHOPS_AS_KNIGHTS.statement}"
    question = conditions["knows_forbidden"].question(run.samples[0].item)
    assert question.messages[-1].content.split("\n\n")[-1].startswith(f"{question.about}? ")
