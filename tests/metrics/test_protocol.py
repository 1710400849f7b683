"""Protocol 3: what the numbers mean where answers cannot be used, and what they say."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from inspect_ai.model import GenerateConfig, ModelAPI, ModelOutput, modelapi
from inspect_ai.model._model_call import ModelCall

from cant_do_that_anymore.formatting import rounded
from cant_do_that_anymore.game.position import Position, write_positions
from cant_do_that_anymore.metrics.bounds import interval_of
from cant_do_that_anymore.metrics.measures import IMPACT, MEASURES, UPTAKE, measures_for
from cant_do_that_anymore.metrics.stopping import precision_notes
from cant_do_that_anymore.report.sentences import headline
from cant_do_that_anymore.runs.results import Run
from cant_do_that_anymore.runs.storage import run_json, save_run
from planted_models import silent_when_changed
from run_builders import Said
from testing import (
    POOL,
    SPECIAL,
    Body,
    answering,
    habit,
    is_changed,
    measure,
    moves_in,
    perfect,
    positions,
    run_of,
)

ALWAYS = {m.name: m for m in measures_for(("standard", "changed")) if not m.optional}
"""The measures of every run."""
Counted = tuple[Said, Said, int]
"""The outcomes under both rule sets, and how many samples have them."""
KEPT: tuple[Said, Said] = ("special", "special")
DROPPED: tuple[Said, Said] = ("special", "legal")


def planned(*counted: Counted) -> Run:
    """A run of which the outcomes are known."""
    pairs = [(before, after) for before, after, n in counted for _ in range(n)]
    told = [{"standard": before, "changed": after} for before, after in pairs]
    return run_of(list(zip(POOL, told, strict=False)))


def uptake_interval(run: Run) -> str:
    interval = run.results.intervals[UPTAKE]
    return f"[{rounded(interval.low)}, {rounded(interval.high)}]"


def test_models_of_known_score_have_no_bounds_and_say_what_they_do() -> None:
    deaf, adapts = measure(habit, n=40), measure(perfect, n=40)
    assert deaf.results.metrics[IMPACT] == deaf.results.metrics[UPTAKE] == 0
    assert (adapts.results.metrics[IMPACT], adapts.results.metrics[UPTAKE]) == (-1, 1)
    assert adapts.results.metrics["adaptation_rate"] == 1
    assert not deaf.results.bounds and not adapts.results.bounds
    nothing = "There is no evidence that it follows the new rule: rule uptake 0%"
    assert headline(deaf).endswith(f"{nothing} {uptake_interval(deaf)}.")
    assert headline(adapts).endswith(
        f"It follows the new rule in 100% {uptake_interval(adapts)} of the cases where it matters."
    )


def test_silence_when_the_rules_change_is_no_effect() -> None:
    """-1 by the original's definition, and nothing by what can be known."""
    run = measure(silent_when_changed, n=30)
    bounds = run.results.bounds[IMPACT]
    assert run.results.metrics[IMPACT] == -1
    assert (bounds.low, bounds.high) == (-1, 0)
    assert bounds.complete is None
    assert "Too many answers contain no move to tell" in headline(run)
    assert any("100.0% under the changed rules (30 unreadable)" in note for note in run.notes)


def test_replies_cut_off_under_one_condition_only_claim_nothing() -> None:
    """15% cut off for a model that ignores rules once made an effect of 16.6%."""
    run = planned((*KEPT, 850), ("special", "truncated", 150))
    bounds = run.results.bounds[IMPACT]
    assert run.results.metrics[IMPACT] == pytest.approx(-0.15)
    assert bounds.low == pytest.approx(-0.15)
    assert bounds.high == bounds.complete == 0
    interval = run.results.intervals[IMPACT]
    assert (interval.low, interval.high) == (bounds.lowest, bounds.highest)
    assert interval.low < -0.15 < 0 < interval.high
    assert interval.method == "score, bounded"
    assert "It follows the new rule in" not in headline(run)


def test_answers_that_never_came_claim_nothing_either() -> None:
    """A provider that fails just where the habit would be kept must not make an effect."""
    answered: list[Counted] = [(*KEPT, 40), ("special", "adapted", 3)]
    alone, failing = planned(*answered), planned(*answered, ("special", "error", 20))
    for name in ALWAYS:
        assert failing.results.metrics[name] == alone.results.metrics[name]
        narrow, wide = (each.results.intervals[name] for each in (alone, failing))
        assert wide.low <= narrow.low <= narrow.high <= wide.high
        assert (wide == narrow) == (name not in failing.results.bounds)
    bounds = failing.results.bounds[IMPACT]
    assert bounds.low == pytest.approx(-23 / 63)
    assert bounds.high == pytest.approx(-3 / 63)
    assert bounds.complete == alone.results.metrics[IMPACT]
    assert failing.results.metrics["changed_unusable_proportion"] == pytest.approx(20 / 63)
    assert "left out 20 samples without an answer" in failing.notes
    assert not alone.results.bounds


def test_a_number_lies_within_its_bounds_also_where_samples_are_left_out() -> None:
    """Without a habit, whatever the missing answer was makes the difference smaller."""
    run = planned((*DROPPED, 5), ("legal", "error", 1), ("error", "special", 1))
    for name, bounds in run.results.bounds.items():
        value = run.results.metrics[name]
        assert bounds.low is not None and bounds.high is not None and value is not None
        assert bounds.low <= value <= bounds.high, name


def test_an_effect_that_no_junk_could_explain_is_claimed_with_its_interval() -> None:
    run = planned(("special", "adapted", 80), (*KEPT, 10), ("special", "refused", 10))
    interval = run.results.intervals[IMPACT]
    assert -interval.high < 0.8 < 0.9 < -interval.low
    uptake = run.results.intervals[UPTAKE]
    claimed = f"{rounded(uptake.low)} to {rounded(uptake.high)} of the cases where it matters (95% "
    assert f"It follows the new rule in {claimed}" in headline(run)


@pytest.mark.parametrize(("n", "few", "many"), [(40, 1, 4), (300, 2, 6), (1000, 3, 10)])
def test_unusable_answers_widen_the_interval_if_they_matter(n: int, few: int, many: int) -> None:
    """Whatever their share: 1% of unusable answers is nothing beside the interval of 40 samples."""

    with_few, with_many = (
        planned((*DROPPED, half), (*KEPT, half), ("special", "unreadable", unread))
        for unread in (few, many)
        for half in [(n - unread) // 2]
    )
    assert IMPACT not in with_few.results.bounds
    as_scored = interval_of(MEASURES[IMPACT], with_many.samples)
    bounds, interval = with_many.results.bounds[IMPACT], with_many.results.intervals[IMPACT]
    assert as_scored and bounds.low and bounds.high
    assert (interval.low, interval.high) == (bounds.lowest, bounds.highest)
    assert interval.low < bounds.low < bounds.high < as_scored.high < interval.high


@pytest.mark.parametrize(
    ("outcomes", "sentence"),
    [
        ([(*KEPT, 3)], "too few samples to tell whether it follows the new rule"),
        ([(*KEPT, 200)], "no evidence that it follows the new rule"),
        ([("legal", "special", 99), (*KEPT, 1)], "breaks the new rule more often when"),
        ([("legal", "legal", 5)], "None of its moves under standard rules breaks the new rule"),
        ([(*KEPT, 1)], "of 1 position under"),
    ],
)
def test_the_headline_claims_what_the_samples_show(outcomes: list[Counted], sentence: str) -> None:
    assert sentence in headline(planned(*outcomes))


def test_where_no_sample_is_whole_nothing_is_said_of_the_habit() -> None:
    run = planned(("special", "error", 1), ("legal", "error", 1), ("error", "error", 1))
    told = "was asked about 3 positions, but answered all requests for none of them."
    assert headline(run) == f"{run.version} {told}"
    assert run.notes[0] == "left out 3 samples without an answer, so nothing is left to measure"
    (unreached,) = precision_notes(3, run.results, replace(run.plan, precision=0.1))
    assert (
        "not reached: no sample has all its answers, so the impact factor is undefined" in unreached
    )
    assert not any("never" in note for note in run.notes)


def test_a_model_has_its_name_although_most_standard_questions_fail() -> None:
    async def fault(request: Body, number: int) -> web.Response | None:
        return web.Response(status=418) if number > 1 and not is_changed(request) else None

    with answering(habit, model="served", listed=("served",), fault=fault) as server:
        run = measure(server, dataset=positions(3), max_error_rate=1.0)
    assert run.results.metrics["n_failed"] == 2
    assert headline(run).startswith("served plays its usual move")


def test_a_weak_habit_and_a_growing_one_are_noted() -> None:
    run = planned((*KEPT, 4), ("legal", "special", 16))
    assert any(note.startswith("the habit is weak") for note in run.notes)
    assert any("above 0" in note for note in run.notes)


@pytest.mark.parametrize("pair", [("legal", "special"), ("special", "illegal")])
def test_few_samples_are_said_to_be_too_few_instead(pair: tuple[Said, Said]) -> None:
    """One habit dropped for an illegal move is no sign of anything."""
    few, enough = (planned((*pair, 1), (*KEPT, others)) for others in (18, 19))
    assert few.notes == [
        "19 samples are too few to tell how strong the habit is or what replaces it"
    ]
    assert len(enough.notes) == 1
    assert "too few" not in enough.notes[0]
    assert planned((*KEPT, 18)).notes == []  # nothing would be claimed


def test_the_diagonal_eval_says_what_it_counts_and_what_chance_would_give() -> None:
    run = measure("cdta/random", eval="all_diagonal", n=50)
    assert "moves a bishop diagonally in 20% of 50 positions under" in headline(run)
    assert "(at random: " in headline(run)
    level = run.results.metrics["random_special_proportion"]
    share = run.results.metrics["predicted_move_proportion"]
    assert level and share is not None and abs(share - level) < 0.2


def test_a_larger_limit_asks_only_the_samples_that_were_cut_off() -> None:
    long_winded = {position.moves for position in POOL[:5]}

    async def fault(request: Body, _: int) -> web.Response | None:
        if is_changed(request) and moves_in(request) in long_winded and request["max_tokens"] < 50:
            cut = server.completion(request)
            cut["choices"][0] |= {"finish_reason": "length", "message": {"content": "Well, I"}}
            return web.json_response(cut)
        return None

    options: dict[str, Any] = {"dataset": positions(40), "n": 40}
    with answering(habit, fault=fault) as server:
        short = measure(server, **options)
        # Others reply within the limit, so it is no reasoning model.
        assert len(server.requests) == 80
        whole = measure(server, max_tokens=64, **options)
        assert len(server.requests) == 80 + 1 + 2 * 5  # is it the same model?
        again = measure(server, max_tokens=64, **options)
        assert len(server.requests) == 91 + 1
    assert short.results.outcomes["changed"]["truncated"] == 5
    assert whole.results.metrics[IMPACT] == 0
    assert not whole.results.bounds
    assert again.samples == whole.samples


def test_a_temperature_that_was_refused_is_not_recorded_as_used() -> None:
    async def fault(request: Body, _: int) -> web.Response | None:
        message = "Unsupported value: 'temperature' does not support 0 with this model."
        error = web.json_response({"error": {"message": message}}, status=400)
        return error if "temperature" in request else None

    with answering(habit, fault=fault) as server:
        used = run_json(measure(server, n=20))["temperature"]
    assert used == dict.fromkeys(("selection", "measuring"), "the provider's own")


@modelapi(name="dropping")
class Dropping(ModelAPI):
    """A provider that leaves the temperature out and says nothing but what it sent."""

    async def generate(  # type: ignore[no-untyped-def]
        self, input, tools, tool_choice, config: GenerateConfig
    ) -> tuple[ModelOutput, ModelCall]:
        moves = tuple(turn.text for turn in input if turn.text in _MOVES)
        output = ModelOutput.from_content("dropping-1", SPECIAL.get(moves, "a2a3"))
        return output, ModelCall(request={"max_tokens": config.max_tokens}, response={})


_MOVES = {move for moves in SPECIAL for move in moves}


def test_a_temperature_that_inspect_drops_is_not_recorded_as_used() -> None:
    run, again = (measure("dropping/m", dataset=positions(10), n=10) for _ in range(2))
    assert run_json(run)["temperature"]["measuring"] == "the provider's own"
    assert again.samples == run.samples


def test_a_position_that_is_mate_already_is_no_trouble(tmp_path: Path) -> None:
    mated = Position(1, ("f2f3", "e7e5", "g2g4", "d8h4"), ("f1g2",))
    write_positions(tmp_path / "mate.jsonl", [mated])
    run = measure("cdta/random", dataset=tmp_path / "mate.jsonl", n=1)
    assert run.results.metrics["n_samples"] == 1


def test_run_json_tells_bounds_and_intervals_by_special_move(tmp_path: Path) -> None:
    save_run(planned(("special", "adapted", 20), ("special", "refused", 20)), tmp_path / "run")
    facts = json.loads((tmp_path / "run" / "run.json").read_text())
    assert facts["protocol"] == "3"
    bounds = facts["bounds"][IMPACT]
    ends = {"low": bounds.pop("lowest"), "high": bounds.pop("highest")}
    assert bounds == {"low": -1.0, "high": -0.5, "complete": -1.0}
    assert facts["intervals"][IMPACT] == ends | {"method": "score, bounded"}
    assert facts["by_special_move"][IMPACT]["method"] == "score by games"
