"""Why a habit stays: planted models, whose every number is known."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import chess
import pytest
from aiohttp import web

from cant_do_that_anymore.comparison.entries import pool_runs
from cant_do_that_anymore.costs.forecast import estimate
from cant_do_that_anymore.datasets.pools import ORDER_SEED
from cant_do_that_anymore.errors import Incomplete, InvalidInput
from cant_do_that_anymore.game.position import write_positions
from cant_do_that_anymore.game.rules import BISHOPS_AS_KNIGHTS, STANDARD, board_after, placebo_of
from cant_do_that_anymore.metrics.diagnosis import confounded, knowledge_group_of
from cant_do_that_anymore.metrics.measures import MEASURES
from cant_do_that_anymore.providers.base import Settings
from cant_do_that_anymore.providers.request_variants import NO_SYSTEM
from cant_do_that_anymore.providers.request_variants import variant_notes as on_form
from cant_do_that_anymore.report.tables import summary
from cant_do_that_anymore.runs.evaluate import select
from cant_do_that_anymore.runs.results import Run
from cant_do_that_anymore.runs.storage import load_run, rescored, run_json, save_run
from cant_do_that_anymore.task.conditions import CONTROL_CONDITIONS, DIAGNOSIS_CONDITIONS
from cant_do_that_anymore.task.types import answers_of
from planted_models import (
    CANNOT_STOP,
    DEAF,
    EASILY_UPSET,
    FORGETFUL,
    INDEPENDENT,
    PERFECT,
    SAYS_NO,
    SAYS_YES,
    UNCLEAR,
    illegal_when_reminded,
    noise,
    primed,
)
from reasoning_servers import Kimi, OpenAI, Tagged, Thinker
from testing import (
    POOL,
    SPECIAL,
    Body,
    Spec,
    answering,
    evaluate,
    legal_under_both,
    measure,
    moves_in,
    number_of,
    positions,
    printed,
)

N = 40
NAMES = (
    *("variant_impact_factor", "placebo_impact_factor", "corrected_impact_factor"),
    *("placebo_collateral_change", "collateral_change", "specific_impact_factor"),
    *("reminder_effect", "rule_knowledge", "knowing_doing_gap", "kept_without_knowing"),
    "knowing_effect",
)

# The numbers of a model that cannot stop.
KNOWS_BUT_KEEPS = (
    dict.fromkeys(NAMES, 0)
    | {"rule_knowledge": 1, "knowing_doing_gap": 1}
    | {"kept_without_knowing": None, "knowing_effect": None}
)


def diagnosed(respond: Callable[[Body], str], n: int = N, **options: Any) -> Run:
    return measure(respond, **{"diagnose": True, "temperature": 0.0, "n": n} | options)


def numbers(run: Run) -> dict[str, float | int | None]:
    return {name: run.results.metrics[name] for name in NAMES}


def mixed_pool(file: Path, forbidden: int, still_legal: int) -> Path:
    """A pool in which a planted model has so many habits that the change forbids, and others."""
    odd, even = ([p for p in POOL if number_of(p.moves) % 2 == rest] for rest in (1, 0))
    write_positions(file, [*odd[:forbidden], *even[:still_legal]])
    return file


@pytest.fixture(scope="module")
def perfect() -> Run:
    return diagnosed(PERFECT)


@pytest.fixture(scope="module")
def upset() -> Run:
    return diagnosed(EASILY_UPSET)


@pytest.mark.parametrize(
    ("respond", "expected", "groups"),
    [
        (
            DEAF,
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
            FORGETFUL,
            {"variant_impact_factor": 0, "reminder_effect": -1}
            | {"rule_knowledge": 1, "knowing_doing_gap": 1},
            {"knows and keeps"},
        ),
        # The same answer to everything is not knowing.
        *(
            (
                says,
                {"rule_knowledge": 0, "kept_without_knowing": 0}
                | {"corrected_impact_factor": -1, "specific_impact_factor": -1},
                {"does not know and drops"},
            )
            for says in (SAYS_YES, SAYS_NO)
        ),
        # Illegal replies to a reminder are no effect of it.
        (illegal_when_reminded, {"reminder_effect": 0}, {"knows and keeps"}),
    ],
    ids=["deaf", "perfect", "cannot stop", "forgetful", "says yes", "says no", "illegal"],
)
def test_the_numbers_are_as_planted(
    respond: Callable[[Body], str], expected: dict[str, float | None], groups: set[str]
) -> None:
    run = diagnosed(respond, n=24)
    assert numbers(run).items() >= expected.items()
    assert {knowledge_group_of(sample) for sample in run.samples} == groups
    interval = run.results.intervals["rule_knowledge"]
    assert (interval.low < 0 < interval.high) == (expected.get("rule_knowledge") == 0)


def test_a_model_that_any_change_upsets_does_not_seem_to_follow_the_rule(upset: Run) -> None:
    """The form takes away what seems to be the rule's, from all kinds of habits."""
    found = numbers(upset)
    samples, controls = (
        sum(bool(number_of(s.position.moves) // 2 % 4) for s in group) / len(group)
        for group in (upset.samples, upset.controls)
    )
    assert 0.5 < samples < 1 and 0.5 < controls < 1
    expected = {
        **{"variant_impact_factor": -samples, "placebo_impact_factor": -samples},
        **{"placebo_collateral_change": -controls, "kept_without_knowing": 1 - samples},
        **{"corrected_impact_factor": 0, "collateral_change": 0},
        **{"specific_impact_factor": 0, "rule_knowledge": -1},
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    (note,) = [note for note in upset.notes if "placebo" in note]
    assert note.startswith("the placebo alone changed the habit")


def test_the_example_of_a_diagnosis_is_what_the_program_prints() -> None:
    run = diagnosed(EASILY_UPSET, n=200)
    shown = printed(summary(replace(run, version="planted"), verbose=True))
    text = (Path(__file__).parents[2] / "docs" / "diagnosis.md").read_text(encoding="utf-8")
    example = text.partition("```text\n")[2].partition("\n```")[0]
    lines = [line.strip() for line in shown.splitlines()]
    assert [line for line in example.splitlines() if line not in lines] == []


def test_where_knowing_does_not_matter_the_difference_it_makes_is_about_0() -> None:
    run = diagnosed(INDEPENDENT, n=120)
    found, interval = numbers(run), run.results.intervals["knowing_effect"]
    known, elsewhere = found["knowing_doing_gap"], found["kept_without_knowing"]
    assert known and elsewhere and 0.3 < known < 0.5 and 0.3 < elsewhere < 0.5
    assert found["knowing_effect"] == pytest.approx(known - elsewhere)
    assert -0.25 < interval.low < 0 < interval.high < 0.25


def test_unreadable_yes_no_answers_are_a_third_group_and_not_ignorance() -> None:
    run = diagnosed(UNCLEAR)
    groups = Counter(knowledge_group_of(sample) for sample in run.samples)
    assert set(groups) == {"knows and keeps", "unreadable and keeps"}
    known, found = groups["knows and keeps"] / N, numbers(run)
    assert (found["knowing_doing_gap"], found["kept_without_knowing"]) == (1, None)
    assert found["rule_knowledge"] == known
    bounds = run.results.bounds["rule_knowledge"]
    assert (bounds.complete, bounds.high) == (1, 1) and bounds.low == pytest.approx(2 * known - 1)
    effect = run.results.bounds["knowing_effect"]
    assert (effect.low, effect.high, effect.complete) == (0, 0, None)


def test_a_placebo_that_moves_the_habit_leaves_no_claim_about_the_rule(perfect: Run) -> None:
    """The rule has no effect; only beside the placebo it seems to have one."""
    run = diagnosed(primed, n=100, temperature=1.0)
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
    assert not [note for note in perfect.notes if "placebo" in note]
    assert confounded(perfect.results) == ()


@pytest.mark.parametrize("family", [Thinker, Tagged, OpenAI])
def test_who_thinks_first_is_diagnosed_the_same(family: type[Thinker]) -> None:
    """Also of a yes or no the answer is what comes after the thoughts."""
    with answering(family(CANNOT_STOP)) as server:
        thought = measure(server, n=6, diagnose=True)
    assert numbers(thought) == KNOWS_BUT_KEEPS
    assert thought.controls
    for answer in answers_of((*thought.samples, *thought.controls)):
        assert answer.usage.thinking_tokens and answer.stop_reason == "stop"


def test_of_noise_every_interval_holds_the_truth() -> None:
    """The seed is fixed by the questions, so this is no matter of luck.

    It plays other legal moves as often before the change as after it, which is no uptake.
    """
    run = diagnosed(noise, n=60, temperature=1.0)
    assert run.results.metrics["adaptation_rate"]
    truths = dict.fromkeys((*NAMES, "rule_uptake"), 0.0)
    truths |= {"knowing_doing_gap": 0.5, "kept_without_knowing": 0.5}
    for name, truth in truths.items():
        interval = run.results.intervals[name]
        assert interval.low < truth < interval.high, name


def test_controls_are_habits_that_stay_legal(perfect: Run) -> None:
    assert len(perfect.controls) == len(perfect.samples) == N
    members = {sample.position.moves for sample in perfect.samples}
    for control in perfect.controls:
        (habit,) = control.position.special_moves
        board, move = control.position.board(), chess.Move.from_uci(habit)
        for rules in (STANDARD, BISHOPS_AS_KNIGHTS, placebo_of(BISHOPS_AS_KNIGHTS)):
            assert rules.is_legal(board, move)
        assert tuple(control.replies) == CONTROL_CONDITIONS
        assert control.position.moves not in members
    assert len({control.position.moves for control in perfect.controls}) == N
    assert perfect.results.metrics["n_controls"] == perfect.results.metrics["n_samples"] == N
    known = {name: m.perfect for name, m in MEASURES.items() if m.perfect is not None}
    assert known.items() - perfect.results.metrics.items() == {("resistance_rate", 1)}


def test_no_control_is_a_move_that_some_of_the_rule_sets_forbid() -> None:
    """Its habit is special, forbidden by the change or by the placebo, new, or legal always."""

    def mixed(request: Body) -> str:
        moves = moves_in(request)
        board, always = board_after(moves), legal_under_both(moves)
        before = {move.uci() for move in board.legal_moves}
        after = {move.uci() for move in BISHOPS_AS_KNIGHTS.legal_moves(board)}
        standard = before - {*always, SPECIAL[moves]}
        habits = [{SPECIAL[moves]}, standard - after, standard & after, after - before]
        return ([*map(sorted, habits), always][number_of(moves) % 5] or always)[0]

    run = diagnosed(mixed, n=10)
    assert run.controls
    for control in run.controls:
        assert control.position.special_moves[0] in legal_under_both(control.position.moves)


def test_a_diagnosis_asks_only_what_is_new_or_lost(upset: Run, home: Path) -> None:
    with answering(EASILY_UPSET) as server:
        plain = Spec(model="m", base_url=server.url, n=N, temperature=0.0)
        spec = replace(plain, diagnose=True)
        whole = evaluate(plain, quiet=True).results
        # No other number counts controls.
        known = upset.results.metrics | {n: v for n, v in whole.metrics.items() if "usage" in n}
        assert known | whole.metrics == known
        assert whole.intervals.items() <= upset.results.intervals.items()
        before = len(server.requests)
        assert estimate(spec).measuring.requests.low == 7 * N
        evaluate(spec, quiet=True)
        assert len(server.requests) - before == 1 + 7 * N  # is it the same model?
        assert estimate(spec).measuring.requests.high == 0
        for file in home.glob("answers.sqlite*"):
            file.unlink()
        expected, before = estimate(spec), len(server.requests)
        run = evaluate(spec, quiet=True)
    assert [each.position for each in run.controls] == [each.position for each in upset.controls]
    assert expected.dataset.requests.low > N
    assert set(expected.total.requests) == {len(server.requests) - before}


def test_for_a_dataset_that_others_found_nothing_is_asked_about_controls() -> None:
    with answering(EASILY_UPSET) as server:
        run = measure(server, n=4, fallback_dataset="gpt-4-0314", diagnose=True)
    assert run.controls == []
    assert len(server.requests) == 1 + 6 * 4


def test_where_draws_select_a_control_is_what_the_first_draw_says() -> None:
    """One hit that no other draw bears out makes neither a member nor a control."""
    seen = set()

    def drawing(request: Body) -> str:
        moves = moves_in(request)
        hit = [True, moves not in seen, False][number_of(moves) % 3]
        seen.add(moves)
        return SPECIAL[moves] if hit else next(iter(legal_under_both(moves)), "h1h8")

    with answering(Kimi(drawing, thinks=lambda _: 0)) as server:
        chosen = select(Spec(base_url=server.url, n=12, diagnose=True), quiet=True)
    assert chosen.dataset.own_temperature
    assert {number_of(position.moves) % 3 for position in chosen.dataset.positions} == {0}
    asked = [position.moves for position in Random(ORDER_SEED).sample(POOL, len(POOL))]
    last = asked.index(chosen.dataset.positions[-1].moves)
    never_hit = [moves for moves in asked[:last] if number_of(moves) % 3 == 2]
    assert [control.moves for control in chosen.controls] == never_hit[:12]


def test_a_run_without_a_diagnosis_has_no_trace_of_one() -> None:
    facts = run_json(measure("cdta/random", n=5))
    assert not [name for name in facts if "control" in name]
    assert not [name for name in facts["metrics"] if "control" in name or "placebo" in name]
    assert [list(condition) for condition in facts["conditions"]] == [["name", "rules", "text"]] * 2
    assert all("right" not in counts for counts in facts["outcomes"].values())


def test_a_diagnosis_is_read_back_and_rescored(upset: Run, tmp_path: Path) -> None:
    save_run(upset, tmp_path / "run")
    loaded = load_run(tmp_path / "run")
    assert (loaded.samples, loaded.controls) == (upset.samples, upset.controls)
    assert json.dumps(run_json(loaded)) == json.dumps(run_json(upset))
    assert loaded.plan == upset.plan
    assert [each.name for each in loaded.plan.conditions] == list(DIAGNOSIS_CONDITIONS)
    exact = rescored(loaded, "exact")
    assert numbers(exact) == numbers(upset)
    assert exact.controls == upset.controls
    told = {each["name"]: each for each in json.loads(json.dumps(run_json(upset)))["conditions"]}
    assert told["placebo"]["text"].count(placebo_of(BISHOPS_AS_KNIGHTS).statement) == 1
    assert told["reminded"]["text"] == told["knows_allowed"]["text"] == told["changed"]["text"]
    assert BISHOPS_AS_KNIGHTS.statement in told["reminded"]["added"]
    assert "{move}" in told["knows_forbidden"]["added"]


@pytest.mark.parametrize(
    ("edited", "told"),
    [
        (lambda lines: lines[:-1], rf" is damaged: it has {N - 1} of {N}"),
        (
            lambda lines: [lines[0].replace('"special"', '"illegal"', 1), *lines[1:]],
            r", line 1: the standard reply .* is special",
        ),
    ],
    ids=["lost", "changed"],
)
def test_controls_that_were_lost_or_changed_are_refused(
    edited: Callable[[list[str]], list[str]], told: str, upset: Run, tmp_path: Path
) -> None:
    save_run(upset, tmp_path / "run")
    file = tmp_path / "run" / "controls.jsonl"
    file.write_text("".join(edited(file.read_text().splitlines(keepends=True))))
    with pytest.raises(InvalidInput, match=f"controls.jsonl{told}"):
        load_run(tmp_path / "run")


def test_seeds_of_one_model_are_taken_together_with_their_controls(upset: Run) -> None:
    other = replace(upset.plan, settings=replace(upset.plan.settings, seed=1))
    (together,) = pool_runs([upset, replace(upset, plan=other), upset])
    assert together.results.metrics["n_controls"] == 2 * N
    once, twice = (each.results.intervals["specific_impact_factor"] for each in (upset, together))
    assert twice.high - twice.low == pytest.approx(once.high - once.low, rel=0.35)


def test_no_or_few_controls_are_noted(tmp_path: Path) -> None:
    run = diagnosed(PERFECT, n=12, dataset=positions(12))
    assert run.controls == []
    assert run.results.metrics["collateral_change"] is None
    assert run.results.metrics["specific_impact_factor"] is None
    assert run.results.metrics["corrected_impact_factor"] is not None
    assert any("no control positions, so the collateral change and" in note for note in run.notes)
    few = diagnosed(PERFECT, n=30, pool=mixed_pool(tmp_path / "pool.jsonl", 30, 5))
    assert 0 < len(few.controls) <= 5
    (note,) = [note for note in few.notes if "control" in note]
    assert note.startswith(f"only {len(few.controls)} control positions (30 samples wanted)")


@pytest.mark.parametrize("kind", ["samples", "controls"])
def test_too_many_failures_of_a_kind_end_the_run(kind: str, tmp_path: Path) -> None:
    async def fault(request: Body, _: int) -> web.Response | None:
        fails = request["temperature"] and moves_in(request) == failing
        return web.Response(status=418) if fails else None

    failing = None
    with answering(PERFECT, fault=fault) as server:
        pool = mixed_pool(tmp_path / "pool.jsonl", 6, 6)
        spec = Spec("m", server.url, pool=pool, n=6, diagnose=True)
        failing = getattr(evaluate(spec, quiet=True), kind)[0].position.moves
        with pytest.raises(Incomplete, match=rf"^1 of \d+ {kind} have no answer"):
            evaluate(replace(spec, seed=1), quiet=True)
        run = evaluate(replace(spec, seed=1, max_error_rate=0.2), quiet=True)
    assert sum(not sample.answered for sample in [*run.samples, *run.controls]) == 1
    told = [note for note in run.notes if "control" in note or "without an answer" in note]
    assert f"left out 1 {kind[:-1]} without an answer" in told
    few = f"only {len(run.controls)} control positions (6 samples wanted)"
    assert [note for note in told if "left out" not in note] == [
        f"{few}: building the dataset produced no more"
    ]


def test_controls_that_another_version_answered_in_another_form_are_noted(upset: Run) -> None:
    controls = [
        replace(
            control,
            stored={
                name: replace(answer, version="another", conceded=(NO_SYSTEM,))
                for name, answer in control.answers.items()
            },
        )
        for control in upset.controls
    ]
    notes = rescored(replace(upset, controls=controls), upset.plan.reading).notes
    version, n = (
        upset.version,
        [sum(len(s.answers) for s in of) for of in (upset.samples, controls)],
    )
    told = f"more than one model version answered: {version} ({n[0]}), another ({n[1]})"
    assert notes[-2:] == [*on_form([NO_SYSTEM]), told]
    seeds = [replace(upset.plan, settings=Settings(0.0, seed=seed)) for seed in (1, 2)]
    (together,) = pool_runs([replace(upset, plan=plan, controls=controls) for plan in seeds])
    assert on_form([NO_SYSTEM])[0] in together.notes


def test_our_own_models_answer_by_the_facts_of_the_question() -> None:
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
    said = guesses.outcomes["knows_forbidden"]
    assert said["right"] and said["wrong"] and not said["unreadable"]


@pytest.mark.parametrize("prefix", ["", "completions/"])
def test_chat_and_base_models_are_asked_the_same(prefix: str) -> None:
    """Four tokens are enough for yes and no."""
    with answering(PERFECT, finish_reason="length") as server:
        run = measure(server, model=f"{prefix}m", diagnose=True, n=10)
    assert run.plan.settings.max_tokens == (4 if prefix else 16)
    assert run.results.metrics["rule_knowledge"] == 1
    assert run.results.metrics["specific_impact_factor"] == -1


def test_a_model_that_is_let_to_think_is_asked_for_the_form_of_the_question() -> None:
    """The task begins with the form of a move; a question of knowledge asks for another."""
    last_turns = []

    def respond(request: Body) -> str:
        *said, last = request["messages"]
        if "think aloud" in last["content"]:
            return "Let me see."
        last_turns.append(last["content"])
        return PERFECT({"messages": said[:-1]})  # what was asked, without the thoughts

    run = measure(respond, model="cot/m", diagnose=True, n=5)
    assert run.results.metrics["rule_knowledge"] == 1
    assert all("the form that was asked for." in turn for turn in last_turns)


def test_a_wording_that_states_one_change_only_cannot_state_a_placebo(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("standard = 'Play.'\nchanged = 'Bishops move as knights.'\n")
    told = "states only bishops-as-knights, not rooks-as-knights, the placebo of a diagnosis; write"
    with pytest.raises(InvalidInput, match=told):
        measure("cdta/random", wording=str(file), diagnose=True)
    file.write_text(
        "standard = 'Play.'\nchanged = 'Play. {change}'\n"
        "question = '{move}? {answers}!'\nreminder = 'Note: {change}'\n"
    )
    run = measure("cdta/random", wording=str(file), diagnose=True, n=5)
    conditions = {each.name: each for each in run.plan.conditions}
    assert (
        conditions["placebo"].prompts[0].text == f"Play. {placebo_of(BISHOPS_AS_KNIGHTS).statement}"
    )
    assert conditions["reminded"].prompts[0].added == f"Note: {BISHOPS_AS_KNIGHTS.statement}"
    asked = conditions["knows_forbidden"].question(run.samples[0].position)
    assert asked.messages[-1].content.split("\n\n")[-1].startswith(f"{asked.about}? ")


def test_an_estimate_says_what_a_diagnosis_costs_and_how_many_samples_it_takes() -> None:
    found = estimate(Spec(model="openai/gpt-4o", n=100, diagnose=True))
    assert found.measuring.requests.high == 900
    assert any("up to 9 per sample instead of 2" in each for each in found.assumptions)

    # By (1 + impact)² (before (1 - after) + (1 - before) after) / (before after), the variance per
    # sample of a relative change of independent answers, for the impacts -0.5 and 0.
    sizes = "needs about -n 952 to 1,514 and the specific one 1,331 to 3,028."
    assert any(sizes in each for each in found.assumptions)
