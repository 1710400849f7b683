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

from cant_do_that_anymore import Spec, evaluate
from cant_do_that_anymore.comparison.entries import pool_runs
from cant_do_that_anymore.costs.forecast import estimate
from cant_do_that_anymore.datasets.search import ORDER_SEED
from cant_do_that_anymore.errors import Incomplete, InvalidInput
from cant_do_that_anymore.game.position import shipped_pool, write_positions
from cant_do_that_anymore.game.rules import BISHOPS_AS_KNIGHTS, STANDARD, board_after, placebo_of
from cant_do_that_anymore.metrics.diagnosis import knowing_of, unclaimed
from cant_do_that_anymore.metrics.measures import MEASURES
from cant_do_that_anymore.metrics.stopping import enough_for_corrected, enough_for_specific
from cant_do_that_anymore.providers.base import Settings
from cant_do_that_anymore.providers.request_variants import NO_SYSTEM
from cant_do_that_anymore.providers.request_variants import variant_notes as on_form
from cant_do_that_anymore.runs.evaluate import select
from cant_do_that_anymore.runs.results import Run
from cant_do_that_anymore.runs.storage import facts_of, load_run, rescored, save_run
from cant_do_that_anymore.task.conditions import OF_CONTROLS, OF_DIAGNOSIS
from cant_do_that_anymore.task.types import Sample, answers_of
from loopback import Body, Loopback, moves_in, serving
from players import (
    CANNOT_STOP,
    DEAF,
    EASILY_UPSET,
    FORGETFUL,
    INDEPENDENT,
    PERFECT,
    SAYS_NO,
    SAYS_YES,
    SPECIAL,
    UNCLEAR,
    Planted,
    illegal_when_reminded,
    legal_under_both,
    noise,
    number_of,
    primed,
)
from thinkers import Kimi, OpenAI, Tagged, Thinker

N = 40
POOL = shipped_pool("pool")
CHANGES = ("placebo", "corrected", "specific")


def diagnosed(respond: Callable[[Body], str], n: int = N, **options: Any) -> Run:
    with serving(Loopback(respond, model="planted")) as server:
        usual: dict[str, Any] = {
            "model": "m",
            "base_url": server.url,
            "diagnose": True,
            "temperature": 0.0,
            "n": n,
        }
        return evaluate(Spec(**usual | options), quiet=True)


def numbers(run: Run) -> dict[str, float | int | None]:
    names = [
        *("variant_impact_factor", "placebo_impact_factor", "corrected_impact_factor"),
        *("placebo_collateral_change", "collateral_change", "specific_impact_factor"),
        *("reminder_effect", "rule_knowledge", "knowing_doing_gap", "kept_without_knowing"),
        "knowing_effect",
    ]
    return {name: run.results.metrics[name] for name in names}


def test_a_model_that_ignores_the_rule_answers_by_the_old_one_and_drops_nothing() -> None:
    found = numbers(diagnosed(DEAF))
    assert found.pop("knowing_doing_gap") is None
    assert found.pop("knowing_effect") is None
    assert (found.pop("rule_knowledge"), found.pop("kept_without_knowing")) == (-1, 1)
    assert set(found.values()) == {0}


@pytest.fixture(scope="module")
def perfect() -> Run:
    return diagnosed(PERFECT)


@pytest.fixture(scope="module")
def upset() -> Run:
    return diagnosed(EASILY_UPSET)


def test_a_perfect_model_knows_and_drops_what_is_forbidden_and_nothing_else(perfect: Run) -> None:
    assert numbers(perfect) == {
        "variant_impact_factor": -1,
        "placebo_impact_factor": 0,
        "corrected_impact_factor": -1,
        "placebo_collateral_change": 0,
        "collateral_change": 0,
        "specific_impact_factor": -1,
        "reminder_effect": None,
        "rule_knowledge": 1,
        "knowing_doing_gap": 0,
        "kept_without_knowing": None,
        "knowing_effect": None,
    }
    assert {knowing_of(sample) for sample in perfect.samples} == {"knows and drops"}
    known = {name: m.perfect for name, m in MEASURES.items() if m.perfect is not None}
    assert known.items() - perfect.results.metrics.items() == {("resistance_rate", 1)}


def test_a_model_that_knows_but_cannot_stop_has_the_whole_gap() -> None:
    run = diagnosed(CANNOT_STOP)
    found = numbers(run)
    assert (found["rule_knowledge"], found["knowing_doing_gap"]) == (1, 1)
    assert found["kept_without_knowing"] is None
    assert {found[f"{name}_impact_factor"] for name in CHANGES} == {0}
    assert {knowing_of(sample) for sample in run.samples} == {"knows and keeps"}


def test_a_model_that_any_change_of_the_text_upsets_is_told_from_one_that_heeds_the_rule(
    upset: Run,
) -> None:
    """The form takes away what seems to be the rule's, from all kinds of habits."""
    found = numbers(upset)
    samples, controls = (
        sum(bool(number_of(s.position.moves) // 2 % 4) for s in group) / len(group)
        for group in (upset.samples, upset.controls)
    )
    assert 0.5 < samples < 1 and 0.5 < controls < 1
    assert found["variant_impact_factor"] == pytest.approx(-samples)
    assert found["placebo_impact_factor"] == pytest.approx(-samples)
    assert found["placebo_collateral_change"] == pytest.approx(-controls)
    assert (found["corrected_impact_factor"], found["collateral_change"]) == (0, 0)
    assert (found["specific_impact_factor"], found["rule_knowledge"]) == (0, -1)
    assert found["kept_without_knowing"] == pytest.approx(1 - samples)
    (note,) = [note for note in upset.notes if "placebo" in note]
    assert note.startswith("the placebo alone moved the habit")


@pytest.mark.parametrize("says_one_thing", [SAYS_YES, SAYS_NO], ids=["yes", "no"])
def test_the_same_answer_to_everything_is_not_knowing(says_one_thing: Planted) -> None:
    run = diagnosed(says_one_thing)
    found = numbers(run)
    assert (found["rule_knowledge"], found["kept_without_knowing"]) == (0, 0)
    assert found["corrected_impact_factor"] == found["specific_impact_factor"] == -1
    interval = run.results.intervals["rule_knowledge"]
    assert interval.low < 0 < interval.high


def test_where_knowing_does_not_matter_the_difference_it_makes_is_about_0() -> None:
    run = diagnosed(INDEPENDENT, n=200)
    found, interval = numbers(run), run.results.intervals["knowing_effect"]
    known, elsewhere = found["knowing_doing_gap"], found["kept_without_knowing"]
    assert known and elsewhere and 0.3 < known < 0.5 and 0.3 < elsewhere < 0.5
    assert found["knowing_effect"] == pytest.approx(known - elsewhere)
    assert -0.2 < interval.low < 0 < interval.high < 0.2


def test_unreadable_yes_no_answers_are_a_third_group_and_not_ignorance() -> None:
    run = diagnosed(UNCLEAR)
    groups = Counter(knowing_of(sample) for sample in run.samples)
    assert set(groups) == {"knows and keeps", "unreadable and keeps"}
    found = numbers(run)
    assert (found["knowing_doing_gap"], found["kept_without_knowing"]) == (1, None)
    assert found["rule_knowledge"] == groups["knows and keeps"] / N
    bounds = run.results.bounds["rule_knowledge"]
    assert bounds.complete == 1
    assert bounds.high == 1 and bounds.low == pytest.approx(2 * groups["knows and keeps"] / N - 1)
    effect = run.results.bounds["knowing_effect"]
    assert (effect.low, effect.high, effect.complete) == (0, 0, None)


def test_a_placebo_that_moves_the_habit_leaves_no_claim_about_the_rule() -> None:
    """The rule has no effect; only beside the placebo it seems to have one."""
    run = diagnosed(primed, n=200, temperature=1.0)
    placebo, corrected = (
        run.results.intervals[f"{name}_impact_factor"] for name in ("placebo", "corrected")
    )
    assert placebo.low > 0 and corrected.high < 0
    (note,) = [note for note in run.notes if "placebo" in note]
    assert note == (
        "the placebo alone moved the habit: the 95% interval of placebo_impact_factor is "
        f"{placebo.low:.3f} to {placebo.high:.3f}; so corrected_impact_factor and "
        "specific_impact_factor do not show the effect of the rule"
    )
    assert unclaimed(run.results) == ("corrected_impact_factor", "specific_impact_factor")


def test_of_a_placebo_that_moves_nothing_there_is_no_note(perfect: Run) -> None:
    assert not [note for note in perfect.notes if "placebo" in note]
    assert unclaimed(perfect.results) == ()


def test_illegal_replies_to_a_reminder_are_no_effect_of_it() -> None:
    run = diagnosed(illegal_when_reminded, n=200)
    assert run.results.outcomes["reminded"]["illegal"] == 200
    assert run.results.metrics["reminder_effect"] == 0


@pytest.mark.parametrize("family", [Thinker, Tagged, OpenAI])
def test_who_thinks_first_is_diagnosed_as_one_who_does_not(family: type[Thinker]) -> None:
    """Also of a yes or no the answer is what comes after the thoughts."""
    at_once = diagnosed(CANNOT_STOP, n=12)
    with serving(family(CANNOT_STOP)) as server:
        thought = evaluate(Spec(base_url=server.url, n=12, diagnose=True), quiet=True)
    assert numbers(thought) == numbers(at_once)
    assert len(thought.controls) == 12
    for answer in answers_of((*thought.samples, *thought.controls)):
        assert answer.usage.thinking_tokens and answer.stop_reason == "stop"


def test_what_a_reminder_mends_was_forgotten_on_the_way() -> None:
    found = numbers(diagnosed(FORGETFUL))
    assert found["reminder_effect"] == -1
    assert (found["rule_knowledge"], found["knowing_doing_gap"]) == (1, 1)
    assert found["variant_impact_factor"] == 0


def test_of_noise_every_interval_holds_the_truth() -> None:
    """The seed is fixed by the questions, so this is no matter of luck."""
    run = diagnosed(noise, n=60, temperature=1.0)
    truths = dict.fromkeys(numbers(run), 0.0)
    truths |= {"knowing_doing_gap": 0.5, "kept_without_knowing": 0.5}
    for name, truth in truths.items():
        interval = run.results.intervals[name]
        assert interval.low < truth < interval.high, name


def test_controls_are_habits_that_stay_legal(perfect: Run) -> None:
    run = perfect
    assert len(run.controls) == len(run.samples) == N
    members = {sample.position.moves for sample in run.samples}
    for control in run.controls:
        (habit,) = control.position.special_moves
        board, move = control.position.board(), chess.Move.from_uci(habit)
        for rules in (STANDARD, BISHOPS_AS_KNIGHTS, placebo_of(BISHOPS_AS_KNIGHTS)):
            assert rules.is_legal(board, move)
        assert tuple(control.replies) == OF_CONTROLS
        assert control.position.moves not in members
    assert len({control.position.moves for control in run.controls}) == N
    assert run.results.metrics["n_controls"] == run.results.metrics["n_samples"] == N


def test_no_control_is_a_move_that_some_of_the_rule_sets_forbid() -> None:
    """Its habit is special, forbidden by the change or by the placebo, new, or legal always."""

    move = chess.Move.from_uci

    def mixed(request: Body) -> str:
        moves = moves_in(request)
        board, always = board_after(moves), legal_under_both(moves)
        standard = {m.uci() for m in board.legal_moves} - {*always, SPECIAL[moves]}
        after = {m.uci() for m in BISHOPS_AS_KNIGHTS.legal_moves(board)}
        only_after = {uci for uci in after if not STANDARD.is_legal(board, move(uci))}
        by_placebo = {uci for uci in standard if BISHOPS_AS_KNIGHTS.is_legal(board, move(uci))}
        by_change = standard - by_placebo
        habits = [[SPECIAL[moves]], sorted(by_change), sorted(by_placebo), sorted(only_after)]
        return ([*habits, always][number_of(moves) % 5] or always)[0]

    run = diagnosed(mixed, n=10)
    assert run.controls
    for control in run.controls:
        assert control.position.special_moves[0] in legal_under_both(control.position.moves)


def test_what_was_said_at_controls_and_is_lost_is_asked_again(upset: Run, home: Path) -> None:
    with serving(Loopback(EASILY_UPSET)) as server:
        spec = Spec(model="m", base_url=server.url, n=N, temperature=0.0, diagnose=True)
        evaluate(replace(spec, diagnose=False), quiet=True)
        for file in home.glob("answers.sqlite*"):
            file.unlink()
        expected, before = estimate(spec), len(server.requests)
        run = evaluate(spec, quiet=True)
    assert [each.position for each in run.controls] == [each.position for each in upset.controls]
    assert expected.dataset.requests > N
    assert expected.total.requests == len(server.requests) - before


def test_for_a_dataset_that_others_found_nothing_is_asked_about_controls() -> None:
    with serving(Loopback(EASILY_UPSET, model="planted")) as server:
        spec = Spec(model="m", base_url=server.url, n=4, fallback_dataset="gpt-4-0314")
        run = evaluate(replace(spec, diagnose=True), quiet=True)
        assert len(server.requests) == 1 + 6 * 4
    assert run.controls == []


def test_where_draws_select_a_control_is_what_the_first_draw_says() -> None:
    """One hit that no other draw bears out makes neither a member nor a control."""
    seen = set()

    def drawing(request: Body) -> str:
        moves = moves_in(request)
        hit = [True, moves not in seen, False][number_of(moves) % 3]
        seen.add(moves)
        return SPECIAL[moves] if hit else next(iter(legal_under_both(moves)), "h1h8")

    with serving(Kimi(drawing, thinks=lambda _: 0)) as server:
        chosen = select(Spec(base_url=server.url, n=12, diagnose=True), quiet=True)
    assert chosen.dataset.own_temperature
    assert {number_of(position.moves) % 3 for position in chosen.dataset.positions} == {0}
    asked = [position.moves for position in Random(ORDER_SEED).sample(POOL, len(POOL))]
    last = asked.index(chosen.dataset.positions[-1].moves)
    never_hit = [moves for moves in asked[:last] if number_of(moves) % 3 == 2]
    assert [control.moves for control in chosen.controls] == never_hit[:12]


def test_no_other_number_counts_controls(upset: Run) -> None:
    with serving(Loopback(EASILY_UPSET, model="planted")) as server:
        plain = evaluate(Spec(model="m", base_url=server.url, n=N, temperature=0.0), quiet=True)
    for name, value in plain.results.metrics.items():
        if not name.startswith("usage"):
            assert upset.results.metrics[name] == value, name
    assert plain.results.intervals.items() <= upset.results.intervals.items()


def test_a_run_without_a_diagnosis_has_no_trace_of_one() -> None:
    facts = facts_of(evaluate(Spec(model="cdta/random", n=5, pool=None), quiet=True))
    assert not [name for name in facts if "control" in name]
    assert not [name for name in facts["metrics"] if "control" in name or "placebo" in name]
    assert [list(condition) for condition in facts["conditions"]] == [["name", "rules", "text"]] * 2
    assert all("right" not in counts for counts in facts["outcomes"].values())


def test_a_diagnosis_after_a_run_asks_only_what_is_new_and_controls_cost_no_selection() -> None:
    asked: list[Body] = []

    def respond(request: Body) -> str:
        asked.append(request)
        return PERFECT(request)

    with serving(Loopback(respond, model="planted")) as server:
        spec = Spec(model="m", base_url=server.url, n=N)
        evaluate(spec, quiet=True)
        before = len(asked)
        with_diagnosis = replace(spec, diagnose=True)
        assert estimate(with_diagnosis).measuring.requests == 7 * N
        evaluate(with_diagnosis, quiet=True)
        assert len(asked) - before == 1 + 7 * N  # is it the same model?
        assert estimate(with_diagnosis).measuring.requests == 0


def test_a_diagnosis_comes_back_from_its_files_and_can_be_read_anew(
    upset: Run, tmp_path: Path
) -> None:
    save_run(upset, tmp_path / "run")
    loaded = load_run(tmp_path / "run")
    assert (loaded.samples, loaded.controls) == (upset.samples, upset.controls)
    assert json.dumps(facts_of(loaded)) == json.dumps(facts_of(upset))
    assert loaded.plan == upset.plan
    assert [each.name for each in loaded.plan.conditions] == list(OF_DIAGNOSIS)
    exact = rescored(loaded, "exact")
    assert numbers(exact) == numbers(upset)
    assert exact.controls == upset.controls


def test_controls_that_were_lost_are_missed(upset: Run, tmp_path: Path) -> None:
    save_run(upset, tmp_path / "run")
    file = tmp_path / "run" / "controls.jsonl"
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(InvalidInput, match=rf"controls.jsonl is damaged: it has {N - 1} of {N}"):
        load_run(tmp_path / "run")


def test_controls_that_were_changed_are_refused(upset: Run, tmp_path: Path) -> None:
    save_run(upset, tmp_path / "run")
    file = tmp_path / "run" / "controls.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([lines[0].replace('"special"', '"illegal"', 1), *lines[1:]]))
    with pytest.raises(
        InvalidInput, match=r"controls.jsonl, line 1: the standard reply .* is special"
    ):
        load_run(tmp_path / "run")


def test_seeds_of_one_model_are_taken_together_with_their_controls(upset: Run) -> None:
    other = replace(upset.plan, settings=replace(upset.plan.settings, seed=1))
    (together,) = pool_runs([upset, replace(upset, plan=other), upset])
    assert together.results.metrics["n_controls"] == 2 * N
    once, twice = (each.results.intervals["specific_impact_factor"] for each in (upset, together))
    assert twice.high - twice.low == pytest.approx(once.high - once.low, rel=0.35)


def test_a_dataset_that_was_given_has_no_controls_and_the_notes_say_so(tmp_path: Path) -> None:
    write_positions(tmp_path / "few.jsonl", POOL[:12])
    spec = Spec(model="cdta/pocket-rules", dataset=tmp_path / "few.jsonl", n=12, diagnose=True)
    run = evaluate(spec, quiet=True)
    assert run.controls == []
    assert run.results.metrics["collateral_change"] is None
    assert run.results.metrics["specific_impact_factor"] is None
    assert run.results.metrics["corrected_impact_factor"] is not None
    assert any("no control positions, so collateral_change and" in note for note in run.notes)


def test_fewer_controls_than_samples_are_noted(tmp_path: Path) -> None:
    forbidden, still_legal = ([p for p in POOL if number_of(p.moves) % 2 == odd] for odd in (1, 0))
    write_positions(tmp_path / "pool.jsonl", [*forbidden[:30], *still_legal[:5]])
    run = diagnosed(PERFECT, n=30, pool=tmp_path / "pool.jsonl")
    assert 0 < len(run.controls) <= 5
    (note,) = [note for note in run.notes if "control" in note]
    assert note.startswith(f"{len(run.controls)} control positions for 30 samples")


@pytest.fixture(scope="module")
def few_of_each(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pool in which a model has the habit in 12 positions, and another in as many."""
    file = tmp_path_factory.mktemp("few") / "pool.jsonl"
    forbidden, still_legal = ([p for p in POOL if number_of(p.moves) % 2 == odd] for odd in (1, 0))
    write_positions(file, [*forbidden[:12], *still_legal[:12]])
    return file


@pytest.mark.parametrize("kind", ["samples", "controls"])
def test_too_many_failures_among_samples_or_controls_end_the_run_however_many_others_there_are(
    kind: str, few_of_each: Path
) -> None:
    def of(run: Run) -> list[Sample]:
        return run.samples if kind == "samples" else run.controls

    with serving(Loopback(PERFECT)) as server:
        spec = Spec("m", server.url, pool=few_of_each, n=12, diagnose=True)
        failing = of(evaluate(spec, quiet=True))[0].position.moves

        async def fault(request: Body, _: int) -> web.Response | None:
            fails = request["temperature"] and moves_in(request) == failing
            return web.Response(status=418) if fails else None

        server.fault = fault
        with pytest.raises(Incomplete, match=rf"^1 of \d+ {kind} have no answer"):
            evaluate(replace(spec, seed=1), quiet=True)
        run = evaluate(replace(spec, seed=1, max_error_rate=0.2), quiet=True)
    assert sum(not sample.answered for sample in [*run.samples, *run.controls]) == 1
    told = [note for note in run.notes if "control" in note or "without an answer" in note]
    assert f"1 {kind[:-1]} without an answer: left out" in told
    few = f"{len(run.controls)} control positions for 12 samples: the model was asked about no more"
    assert [note for note in told if "left out" not in note] == [f"{few} to find its dataset"]


def test_controls_that_another_version_answered_in_another_form_are_noted(upset: Run) -> None:
    controls = [
        replace(
            control,
            said={
                name: replace(answer, version="another", conceded=(NO_SYSTEM,))
                for name, answer in control.answers.items()
            },
        )
        for control in upset.controls
    ]
    notes = rescored(replace(upset, controls=controls), upset.plan.reading).notes
    of_samples, of_controls = (sum(len(s.answers) for s in of) for of in (upset.samples, controls))
    told = f"planted ({of_samples}), another ({of_controls})"
    assert notes[-2:] == [*on_form([NO_SYSTEM]), f"more than one model version answered: {told}"]
    seeds = [replace(upset.plan, settings=Settings(0.0, seed=seed)) for seed in (1, 2)]
    (together,) = pool_runs([replace(upset, plan=plan, controls=controls) for plan in seeds])
    assert on_form([NO_SYSTEM])[0] in together.notes


def test_our_own_models_answer_by_the_facts_of_the_question() -> None:
    knows, cannot_read, guesses = (
        evaluate(Spec(model=model, n=10, diagnose=True), quiet=True)
        for model in ("cdta/pocket-rules", "cdta/pocket", "cdta/random")
    )
    assert knows.results.metrics["rule_knowledge"] == 1
    assert knows.results.metrics["knowing_doing_gap"] == 0
    counts = cannot_read.results.outcomes["knows_allowed"]
    assert (counts["unreadable"], sum(counts.values())) == (10, 10)
    bounds = cannot_read.results.bounds["rule_knowledge"]
    assert (bounds.low, bounds.high, bounds.complete) == (-1, 1, None)
    assert any(
        "yes/no answers that could not be read: 100.0 %" in note for note in cannot_read.notes
    )
    assert "variant_impact_factor" not in cannot_read.results.bounds
    said = guesses.results.outcomes["knows_forbidden"]
    assert said["right"] and said["wrong"] and not said["unreadable"]


@pytest.mark.parametrize("prefix", ["", "completions/"])
def test_chat_and_base_models_are_asked_the_same(prefix: str) -> None:
    """Four tokens are enough for yes and no."""
    with serving(Loopback(PERFECT, model="planted", finish_reason="length")) as server:
        spec = Spec(model=f"{prefix}m", base_url=server.url, diagnose=True, n=10)
        run = evaluate(spec, quiet=True)
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

    with serving(Loopback(respond, model="planted")) as server:
        spec = Spec(model="cot/m", base_url=server.url, diagnose=True, n=5)
        assert evaluate(spec, quiet=True).results.metrics["rule_knowledge"] == 1
    assert all("the form that was asked for." in turn for turn in last_turns)


def test_a_wording_that_states_one_change_only_cannot_state_a_placebo(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("standard = 'Play.'\nchanged = 'Bishops move as knights.'\n")
    told = "states only bishops-as-knights, not rooks-as-knights, the placebo of a diagnosis; write"
    with pytest.raises(InvalidInput, match=told):
        evaluate(Spec(model="cdta/random", wording=str(file), diagnose=True))
    file.write_text(
        "standard = 'Play.'\nchanged = 'Play. {change}'\n"
        "question = '{move}? {answers}!'\nreminder = 'Note: {change}'\n"
    )
    run = evaluate(Spec(model="cdta/random", wording=str(file), diagnose=True, n=5), quiet=True)
    placebo, reminded, forbidden = (
        next(each for each in run.plan.conditions if each.name == name)
        for name in ("placebo", "reminded", "knows_forbidden")
    )
    assert placebo.text == f"Play. {placebo_of(BISHOPS_AS_KNIGHTS).statement}"
    assert reminded.added == f"Note: {BISHOPS_AS_KNIGHTS.statement}"
    asked = forbidden.question(run.samples[0].position)
    assert asked.messages[-1].content.split("\n\n")[-1].startswith(f"{asked.about}? ")


def test_an_estimate_says_what_a_diagnosis_costs_and_how_many_samples_it_takes() -> None:
    found = estimate(Spec(model="openai/gpt-4o", n=100, diagnose=True))
    assert found.measuring.requests == 900
    assert any("up to 9 a sample instead of 2" in each for each in found.assumptions)
    assert any("-n 952 to 1,514" in each for each in found.assumptions)


@pytest.mark.parametrize(
    ("share", "impact", "corrected", "specific"),
    [(0.67, 0, 1514, 3028), (0.67, -0.5, 952, 1331), (0.95, 0, 162, 324), (0.95, -0.5, 445, 486)],
)
def test_sample_sizes_for_a_half_width_of_five_points(
    share: float, impact: float, corrected: int, specific: int
) -> None:
    assert enough_for_corrected(share, impact) == corrected
    assert enough_for_specific(share, impact) == specific


def test_every_condition_has_its_text_in_run_json(upset: Run) -> None:
    told = {each["name"]: each for each in json.loads(json.dumps(facts_of(upset)))["conditions"]}
    assert told["placebo"]["text"].count(placebo_of(BISHOPS_AS_KNIGHTS).statement) == 1
    assert told["reminded"]["text"] == told["knows_allowed"]["text"] == told["changed"]["text"]
    assert BISHOPS_AS_KNIGHTS.statement in told["reminded"]["added"]
    assert "{move}" in told["knows_forbidden"]["added"]
