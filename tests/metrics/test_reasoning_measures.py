"""Reasoning measures of a model with known reasoning, and moves found in reasoning."""

from statistics import mean

import pytest

from cant_do_that_anymore.formatting import amount
from cant_do_that_anymore.metrics.intervals import mean_interval
from cant_do_that_anymore.metrics.measures import REASONING_DIFFERENCE, reasoning_name
from cant_do_that_anymore.report.sentences import reasoning_sentence
from reasoning_servers import CountedInTotal, longer_when_changed
from testing import (
    checksum,
    measure,
    perfect,
    positions_of,
    serving_in_process,
)

NAMES = {*map(reasoning_name, ("standard", "changed")), REASONING_DIFFERENCE}


def test_reasoning_tokens_match_the_planted_model() -> None:
    source = CountedInTotal(perfect, reasoning_tokens=longer_when_changed)
    with serving_in_process(source) as server:
        run = measure(server, n=60)
    moves = [position.moves for position in positions_of(run.samples)]
    before = mean(500 + checksum(m) * 37 % 7_501 for m in moves)
    differences = [1_000 * (checksum(m) % 4 > 0) for m in moves]
    values = {name: run[name].value for name in NAMES}
    assert values == pytest.approx(
        {
            "standard_reasoning_tokens": before,
            "changed_reasoning_tokens": before + mean(differences),
            REASONING_DIFFERENCE: mean(differences),
        }
    )
    estimate = run[REASONING_DIFFERENCE]
    games = [sample.item.group for sample in run.samples]
    assert mean_interval(differences, games, signed=True) == (estimate.low, estimate.high)
    ends = f"[{amount(estimate.low or 0)}, {amount(estimate.high or 0)}]"
    sentence = f"a difference of {amount(estimate.value)} {ends}."
    assert reasoning_sentence(run).endswith(sentence)
