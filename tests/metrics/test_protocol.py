"""Protocol 3: what the numbers mean, and what they claim, if answers are unusable."""

from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from aiohttp import web
from inspect_ai.model import GenerateConfig, ModelAPI, ModelOutput, modelapi
from inspect_ai.model._model_call import ModelCall

from cant_do_that_anymore.formatting import rounded
from cant_do_that_anymore.habits.chess.position import Position, write_positions
from cant_do_that_anymore.metrics.bounds import interval_of
from cant_do_that_anymore.metrics.measures import IMPACT, MEASURES, UPTAKE, measures_for
from cant_do_that_anymore.providers.base import REPLY_TOKENS
from cant_do_that_anymore.report.sentences import headline
from cant_do_that_anymore.runs.results import Run
from cant_do_that_anymore.runs.storage import run_json
from run_builders import AnswerOrOutcome
from testing import (
    POOL,
    USUAL,
    Body,
    habit,
    is_changed,
    measure,
    moves_in,
    perfect,
    positions,
    run_from_answers,
    serving_in_process,
)

COMMON = {m.name: m for m in measures_for(("standard", "changed")) if not m.optional}
"""The measures of every run."""
OutcomeCount = tuple[AnswerOrOutcome, AnswerOrOutcome, int]
"""The outcomes under both rule sets, and how many samples have them."""
KEPT: tuple[AnswerOrOutcome, AnswerOrOutcome] = ("usual", "usual")
DROPPED: tuple[AnswerOrOutcome, AnswerOrOutcome] = ("usual", "legal")


def run_with(*counts: OutcomeCount) -> Run:
    """A run with known outcomes."""
    pairs = [(before, after) for before, after, n in counts for _ in range(n)]
    outcomes = [{"standard": before, "changed": after} for before, after in pairs]
    return run_from_answers(list(zip(POOL, outcomes, strict=False)))


def uptake_interval(run: Run) -> str:
    interval = run.results.intervals[UPTAKE]
    return f"[{rounded(interval.low)}, {rounded(interval.high)}]"


def test_models_with_known_scores_have_known_headlines_and_no_bounds() -> None:
    ignores, adapts = measure(habit, n=40), measure(perfect, n=40)
    assert ignores.results.metrics[IMPACT] == ignores.results.metrics[UPTAKE] == 0
    assert (adapts.results.metrics[IMPACT], adapts.results.metrics[UPTAKE]) == (-1, 1)
    assert adapts.results.metrics["adaptation_rate"] == 1
    assert not ignores.results.bounds and not adapts.results.bounds
    no_evidence = "There is no evidence that it follows the new rule: rule uptake 0%"
    assert headline(ignores).endswith(f"{no_evidence} {uptake_interval(ignores)}.")
    assert headline(adapts).endswith(
        f"It follows the new rule in 100% {uptake_interval(adapts)} of the cases where it matters."
    )


def test_truncated_replies_under_one_condition_claim_no_effect() -> None:
    """For a model that ignores rules, 15% truncated replies once gave an effect of 16.6%."""
    run = run_with((*KEPT, 850), ("usual", "truncated", 150))
    bounds = run.results.bounds[IMPACT]
    assert run.results.metrics[IMPACT] == pytest.approx(-0.15)
    assert bounds.low == pytest.approx(-0.15)
    assert bounds.high == bounds.complete == 0
    interval = run.results.intervals[IMPACT]
    assert (interval.low, interval.high) == (bounds.lowest, bounds.highest)
    assert interval.low < -0.15 < 0 < interval.high
    assert interval.method == "score, bounded"
    assert "It follows the new rule in" not in headline(run)


def test_missing_answers_claim_no_effect() -> None:
    """A provider that fails only where the model keeps its habit must not create an effect."""
    answered: list[OutcomeCount] = [(*KEPT, 40), ("usual", "adapted", 3)]
    complete, failing = run_with(*answered), run_with(*answered, ("usual", "error", 20))
    for name in COMMON:
        assert failing.results.metrics[name] == complete.results.metrics[name]
        narrow, wide = (run.results.intervals[name] for run in (complete, failing))
        assert wide.low <= narrow.low <= narrow.high <= wide.high
        assert (wide == narrow) == (name not in failing.results.bounds)
    bounds = failing.results.bounds[IMPACT]
    assert bounds.low == pytest.approx(-23 / 63)
    assert bounds.high == pytest.approx(-3 / 63)
    assert bounds.complete == complete.results.metrics[IMPACT]
    assert failing.results.metrics["changed_unusable_proportion"] == pytest.approx(20 / 63)
    assert "left out 20 samples without an answer" in failing.notes
    assert not complete.results.bounds


def test_an_effect_beyond_the_unusable_answers_is_claimed_with_its_interval() -> None:
    run = run_with(("usual", "adapted", 80), (*KEPT, 10), ("usual", "refused", 10))
    interval = run.results.intervals[IMPACT]
    assert -interval.high < 0.8 < 0.9 < -interval.low
    uptake = run.results.intervals[UPTAKE]
    share = f"{rounded(uptake.low)} to {rounded(uptake.high)} of the cases where it matters (95% "
    assert f"It follows the new rule in {share}" in headline(run)


@pytest.mark.parametrize(("n", "few", "many"), [(40, 1, 4), (300, 2, 6), (1000, 3, 10)])
def test_unusable_answers_widen_the_interval_if_they_matter(n: int, few: int, many: int) -> None:
    """No fixed share decides: 1% is negligible compared with the interval of 40 samples."""
    with_few, with_many = (
        run_with((*DROPPED, half), (*KEPT, half), ("usual", "unreadable", unusable))
        for unusable in (few, many)
        for half in [(n - unusable) // 2]
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
        ([("legal", "usual", 99), (*KEPT, 1)], "breaks the new rule more often when"),
        ([("legal", "legal", 5)], "So there is no habit to measure."),
        ([("usual", "unreadable", 30)], "Too many replies contain no move to tell whether"),
        ([(*KEPT, 1)], "of 1 position under"),
    ],
)
def test_the_headline_matches_the_samples(outcomes: list[OutcomeCount], sentence: str) -> None:
    assert sentence in headline(run_with(*outcomes))


def test_no_claim_about_the_habit_without_a_complete_sample() -> None:
    run = run_with(("usual", "error", 1), ("legal", "error", 1), ("error", "error", 1))
    claim = "was asked about 3 positions, but answered all requests for none of them."
    assert headline(run) == f"{run.version} {claim}"
    assert run.notes[0] == "left out 3 samples without an answer, so nothing is left to measure"
    assert not any("never" in text for text in run.notes)


def test_the_headline_names_the_model_if_most_standard_requests_fail() -> None:
    async def fault(request: Body, number: int) -> web.Response | None:
        return web.Response(status=418) if number > 1 and not is_changed(request) else None

    served = serving_in_process(habit, model="served", listed=("served",), fault=fault)
    with served as server, patch("cant_do_that_anymore.runs.evaluate.MAX_ERROR_RATE", 1.0):
        run = measure(server, dataset=positions(3))
    assert run.results.metrics["n_failed"] == 2
    assert headline(run).startswith("served plays its usual move")


def test_a_weak_and_growing_habit_is_noted() -> None:
    run = run_with((*KEPT, 4), ("legal", "usual", 16))
    assert any(note.startswith("the habit is weak") for note in run.notes)
    assert any("above 0" in note for note in run.notes)


@pytest.mark.parametrize("pair", [("legal", "usual"), ("usual", "illegal")])
def test_few_samples_are_noted_as_too_few(pair: tuple[AnswerOrOutcome, AnswerOrOutcome]) -> None:
    """One habit that was dropped for an illegal move is no evidence."""
    few, enough = (run_with((*pair, 1), (*KEPT, n)) for n in (18, 19))
    assert few.notes == [
        "19 samples are too few to tell how strong the habit is or what replaces it"
    ]
    assert len(enough.notes) == 1
    assert "too few" not in enough.notes[0]
    assert run_with((*KEPT, 18)).notes == []  # no claim to qualify


def test_the_diagonal_headline_names_the_moves_and_the_random_share() -> None:
    run = measure("cdta/random", eval="all_diagonal", n=50)
    assert "moves a bishop diagonally in 20% of 50 positions under" in headline(run)
    assert "(at random: " in headline(run)
    random_share = run.results.metrics["random_usual_proportion"]
    share = run.results.metrics["predicted_move_proportion"]
    assert random_share and share is not None and abs(share - random_share) < 0.2


def test_a_run_with_max_tokens_does_not_change_later_runs_without_it() -> None:
    """Otherwise a reply that was cut off at the usual limit would be sent again."""
    wordy = POOL[0].moves

    async def fault(request: Body, _: int) -> web.Response | None:
        if moves_in(request) != wordy or request["max_tokens"] > REPLY_TOKENS:
            return None
        reply = server.completion(request)
        reply["choices"][0] |= {"finish_reason": "length", "message": {"content": "Well, I"}}
        return web.json_response(reply)

    options: dict[str, Any] = {"dataset": positions(20), "n": 20}
    with serving_in_process(habit, fault=fault) as server:
        first = measure(server, **options)
        assert first.results.outcomes["changed"]["truncated"] == 1
        measure(server, max_tokens=20, **options)
        n_requests = len(server.requests)
        assert measure(server, **options).samples == first.samples
        assert len(server.requests) == n_requests


def test_a_rejected_temperature_is_not_recorded_as_used() -> None:
    async def fault(request: Body, _: int) -> web.Response | None:
        message = "Unsupported value: 'temperature' does not support 0 with this model."
        error = web.json_response({"error": {"message": message}}, status=400)
        return error if "temperature" in request else None

    with serving_in_process(habit, fault=fault) as server:
        assert run_json(measure(server, n=20))["temperature"] == "the provider's own"


@modelapi(name="dropping")
class Dropping(ModelAPI):
    """A provider that drops the temperature and reports only the request that it sent."""

    async def generate(  # type: ignore[no-untyped-def]
        self, input, tools, tool_choice, config: GenerateConfig
    ) -> tuple[ModelOutput, ModelCall]:
        moves = tuple(turn.text for turn in input if turn.text in _MOVES)
        output = ModelOutput.from_content("dropping-1", USUAL.get(moves, "a2a3"))
        return output, ModelCall(request={"max_tokens": config.max_tokens}, response={})


_MOVES = {move for moves in USUAL for move in moves}


def test_a_temperature_that_inspect_drops_is_not_recorded_as_used() -> None:
    run, repeated = (measure("dropping/m", dataset=positions(10), n=10) for _ in range(2))
    assert run_json(run)["temperature"] == "the provider's own"
    assert repeated.samples == run.samples


def test_a_checkmate_position_can_be_measured(tmp_path: Path) -> None:
    mated = Position(1, ("f2f3", "e7e5", "g2g4", "d8h4"), ("f1g2",))
    write_positions(tmp_path / "mate.jsonl", [mated])
    run = measure("cdta/random", dataset=tmp_path / "mate.jsonl", n=1)
    assert run.results.metrics["n_samples"] == 1
