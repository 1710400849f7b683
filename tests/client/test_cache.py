"""The cached answers of a model: what their keys depend on, and which answer stays."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cant_do_that_anymore.client.cache import Cache
from cant_do_that_anymore.habits.base import Message
from cant_do_that_anymore.habits.chess.position import Position
from cant_do_that_anymore.habits.chess.rules import BISHOPS_AS_KNIGHTS, STANDARD
from cant_do_that_anymore.providers.base import Answer, Question, Request, Settings, local_info
from cant_do_that_anymore.providers.bundled import RandomModel
from testing import Serve, measure, positions

QUESTION = Question(STANDARD, Position(0, ("e2e4",), ()), (Message("user", "e2e4"),))
REQUEST = Request(QUESTION, "measuring", "standard")
MODEL = RandomModel.info
SETTINGS = Settings()
COMPLETE = Answer("e7e5", version="m-1", limit=512)
CUT_OFF = Answer("e7", "length", version="m-1", limit=512)


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Cache]:
    with closing(Cache(tmp_path / "answers.sqlite", MODEL)) as cache:
        yield cache


def test_everything_that_can_change_the_answer_changes_the_key(cache: Cache) -> None:
    requests = [
        REQUEST,
        replace(REQUEST, question=replace(QUESTION, rules=BISHOPS_AS_KNIGHTS)),
        replace(REQUEST, question=replace(QUESTION, messages=(Message("system", "e2e4"),))),
        replace(REQUEST, purpose="selection"),
        replace(REQUEST, condition="changed"),
        replace(REQUEST, draw=1),
        replace(REQUEST, tokens=100),
    ]
    keys = {cache.key(request, SETTINGS) for request in requests}
    assert len(keys) == len(requests)


def save(cache: Cache, answer: Answer) -> Answer:
    return cache.save([(REQUEST, SETTINGS, answer, None)])[0]


@pytest.mark.parametrize(
    ("first", "second", "stays"),
    [
        (COMPLETE, replace(COMPLETE, text="d7d5"), "e7e5"),
        (CUT_OFF, replace(COMPLETE, text="d7d5", limit=32_768), "d7d5"),
        (CUT_OFF, replace(CUT_OFF, text="d7"), "e7"),
        (COMPLETE, replace(COMPLETE, text="d7d5", limit=32_768), "e7e5"),
    ],
)
def test_the_first_answer_stays_unless_it_was_cut_off(
    first: Answer, second: Answer, stays: str, cache: Cache
) -> None:
    assert save(cache, first) == first
    assert save(cache, second).text == stays
    saved = cache.answer(REQUEST, SETTINGS)
    assert saved and saved.text == stays


def test_answers_survive_with_the_limit_of_the_newest(cache: Cache, tmp_path: Path) -> None:
    assert cache.token_limit(None) is None
    answer = Answer("e7e5", version="m-1", adjustments=("no system",), cost=0.1)
    for number, limit in enumerate((32_768, 512)):
        cache.save([(replace(REQUEST, draw=number), SETTINGS, answer, limit)])
    path = tmp_path / "answers.sqlite"
    with closing(Cache(path, MODEL)) as again:
        assert again.token_limit(None) == 512
        assert again.token_limit("high") is None
        assert again.answer(REQUEST, SETTINGS) == answer
    with closing(Cache(path, local_info("other", connections=4))) as of_other_model:
        assert of_other_model.token_limit(None) is None
        assert of_other_model.answer(REQUEST, SETTINGS) is None


# Requests that a second run sends which differs in one option: of 4 positions, each under the
# standard and under the changed rules.
ASKED_AGAIN: list[tuple[dict[str, Any], int]] = [
    ({}, 0),
    # What the model gets, or who answers; `test_design` has the settings.
    ({"extra_body": '{"top_p": 0.5}'}, 8),
    ({"wording": "terse"}, 8),
    ({"form": "fen"}, 8),
    ({"tag": "week-46"}, 8),
    ({"fresh": True}, 8),
    # A prompt under the standard rules does not depend on the change.
    ({"rules": "bishops-as-rooks"}, 4),
    ({"interventions": "repeated"}, 4),
    # How many answers, and how they are read, paid for and transported.
    ({"n": 2, "reading": "exact", "max_cost": 1.0, "price": "1,1"}, 0),
    ({"max_connections": 1, "header": ("X-Trace=1",)}, 0),
]


def test_options_that_ask_again(serve: Serve) -> None:
    server, dataset = serve(lambda _: "a2a3"), positions(4)
    measure(server, dataset=dataset)
    for option, n_requests in ASKED_AGAIN:
        n_before = len(server.requests)
        measure(server, dataset=dataset, **option)
        identity_checks = len(server.requests) - n_before - n_requests
        assert identity_checks in (0, 1), option
