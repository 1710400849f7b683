"""The effect of the wording: one wording per position, and the spread between wordings."""

import re
from collections import Counter
from itertools import pairwise, product
from pathlib import Path
from random import Random
from statistics import stdev

import pytest

from cant_do_that_anymore import Position
from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.habits.chess.forms import FORMS
from cant_do_that_anymore.habits.chess.position import write_positions
from cant_do_that_anymore.habits.chess.rules import BISHOPS_AS_KNIGHTS, CATALOG
from cant_do_that_anymore.metrics.measures import UPTAKE
from cant_do_that_anymore.report.sentences import wording_sentence
from cant_do_that_anymore.task.conditions import DIAGNOSIS_CONDITIONS, question
from cant_do_that_anymore.task.prompts import SHIPPED_WORDINGS, Wording, shipped_wording
from loopback import Body, Responder
from testing import (
    POOL,
    adapting,
    habit,
    measure,
    moves_in,
    positions,
    run_with_outcomes,
    serving_in_process,
)

RULES = [rules for rules in CATALOG.values() if rules.forbids_something]


@pytest.mark.parametrize("name", SHIPPED_WORDINGS)
def test_every_wording_states_every_rule_in_every_form(name: str) -> None:
    for rules, form, condition in product(RULES, FORMS.values(), DIAGNOSIS_CONDITIONS):
        wording = shipped_wording(name, rules)
        prompt = question(POOL[0], rules, condition, wording, form.name)
        text = "\n".join(message.content for message in prompt.messages)
        errors = r"\{\w+\}|\.\.|\S  \S|[a-z] \.|[a-z]\. [a-z]"
        assert form.name == "board" or not re.search(errors, text), text
        assert "UCI" in text and form.description in text
        if condition in ("changed", "reminded"):
            placeholder = {"positive": "{now}", "negative": "{no_longer}"}.get(name, "{change}")
            assert rules.texts[placeholder] in text
        roles = [message.role for message in prompt.messages]
        assert roles[0] == ("user" if name == "user-turn" else "system")
        assert all(role != next_role for role, next_role in pairwise(roles))


def test_each_position_gets_one_wording_and_no_request_is_added() -> None:
    with serving_in_process(habit, model="m") as server:
        run = measure(server, dataset=positions(60), wording="all")
        assert len(server.requests) == 2 * 60
        default_run = measure(server, dataset=positions(60))
        assert len(server.requests) == 4 * 60
    wordings = Counter(run.plan.wording_of(sample.item) for sample in run.samples)
    assert {*wordings} == {*SHIPPED_WORDINGS} and sum(wordings.values()) == 60
    for sample in run.samples:
        for condition in run.plan.conditions:
            index = SHIPPED_WORDINGS.index(run.plan.wording_of(sample.item))
            assert condition.prompt(sample.item) is condition.prompts[index]
    assert default_run.results.wordings is None and default_run.plan.wordings == ("plain",)


# The planted model drops these shares of its habits. Their standard deviation is 0.12.
DROPS = dict(zip(SHIPPED_WORDINGS, (0.35, 0.42, 0.45, 0.5, 0.55, 0.6, 0.66, 0.71), strict=True))


def planted_model(shares: dict[str, float]) -> Responder:
    """A model that drops a share of its habits, by wording."""

    change = BISHOPS_AS_KNIGHTS
    texts = {shipped_wording(name, change).changed_prompt(change): name for name in shares}

    def answer(request: Body) -> str:
        prompt = request["messages"][0]["content"]
        wording = next((name for text, name in texts.items() if prompt.startswith(text)), "")
        drops = Random(str(moves_in(request))).random() < shares.get(wording, 0)
        return adapting(request) if drops else habit(request)

    return answer


def test_the_spread_between_wordings_matches_the_planted_one() -> None:
    run = measure(planted_model(DROPS), dataset=positions(800), wording="all")
    result, pooled = run.results.wordings, run["rule_uptake"]
    assert result and result.by_wording.keys() == DROPS.keys()
    for name, estimate in result.by_wording.items():
        samples = [s for s in run.samples if run.plan.wording_of(s.item) == name]
        assert estimate == UPTAKE.estimate(samples) and abs(estimate.value - DROPS[name]) < 0.2
    spread = result.spread
    assert spread.low is not None and spread.high is not None
    assert spread.low <= stdev(DROPS.values()) <= spread.high
    assert (spread.n, spread.sign) == (8, 1)
    assert pooled == UPTAKE.estimate(run.samples) and pooled.n == 800
    assert wording_sentence(run).startswith("The standard deviation of the rule uptake between ")


def test_results_by_wording_need_two_wordings_with_a_value() -> None:
    run = measure("cdta/pocket", dataset=positions(1), wording="terse,formal")
    assert run.results.wordings is None
    assert wording_sentence(run) == "2 wordings, with too few samples to compare them."
    assert wording_sentence(run_with_outcomes()) == "Measured with one wording, plain."


OWN = Wording("own", "Chess. {position}.", "Chess. {change} {position}.")


@pytest.mark.parametrize(
    ("wording", "message"),
    [
        ([OWN, OWN], "each once, not 'own, own'"),
        ((), "give at least one wording"),
        (Wording("own", "A.", "B. {change}"), "fits only the form moves, not fen; write"),
        (
            Wording("own", "A. {position}", "Bishops move as knights. {position}"),
            "states only bishops-as-knights, not rooks-as-knights; write .* placebo of a diagnosis",
        ),
    ],
)
def test_wordings_that_cannot_work_are_refused(wording: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        measure("cdta/random", wording=wording, form="fen", diagnose=True, n=2)


@pytest.mark.parametrize(("form", "n"), [("fen", 1), ("board", 1), ("moves", 2), ("pgn", 2)])
def test_positions_shown_alike_are_one_sample(form: str, n: int, tmp_path: Path) -> None:
    orders = ("e2e4 e7e5 g1f3 b8c6 b1c3 g8f6", "e2e4 e7e5 b1c3 g8f6 g1f3 b8c6")
    transposed = [Position(i, tuple(order.split()), ("f1b5",)) for i, order in enumerate(orders)]
    write_positions(tmp_path / "pool.jsonl", transposed)
    with serving_in_process(lambda _: "f1b5") as server:
        run = measure(server, pool=str(tmp_path / "pool.jsonl"), form=form, keep_looking=True)
    assert len(run.samples) == n
