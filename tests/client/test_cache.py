"""What is cached of a model: which of its answers count, and what they are found by."""

import asyncio
from dataclasses import replace

import pytest

from cant_do_that_anymore.client.cache import ModelCache, with_request_seed
from cant_do_that_anymore.client.store import Store
from cant_do_that_anymore.game.rules import STANDARD
from cant_do_that_anymore.providers.base import (
    Answer,
    Message,
    Question,
    Request,
    Settings,
    local_info,
)
from cant_do_that_anymore.providers.local import RandomModel
from cant_do_that_anymore.providers.request_variants import limit_of

QUESTION = Question(STANDARD, ("e2e4",), (Message("user", "e2e4"),))
ASK = Request(QUESTION, "measuring", "standard")
SMALL, MIDDLE, LARGE = (Settings(max_tokens=limit) for limit in (50, 80, 100))
WHOLE, CUT_OFF = Answer("e7e5"), Answer("e7", "length")
MODEL, OTHER = RandomModel.info, local_info("other", connections=4)


def save(store: Store, settings: Settings, answer: Answer, draw: int = 0) -> Answer:
    async def saved() -> Answer:
        return await ModelCache(MODEL, store).save(replace(ASK, draw=draw), settings, answer)

    return asyncio.run(saved())


ROOM = Settings(max_tokens=60, reasoning_tokens=20)


@pytest.mark.parametrize(
    ("saved", "wanted", "found", "was_truncated"),
    [
        # of smaller limits the largest counts, unless it cut the answer off
        ([(SMALL, WHOLE)], LARGE, WHOLE, False),
        ([(SMALL, CUT_OFF)], LARGE, None, True),
        ([(SMALL, CUT_OFF), (MIDDLE, WHOLE)], LARGE, WHOLE, False),
        ([(SMALL, WHOLE), (MIDDLE, CUT_OFF)], LARGE, None, True),
        # room to think is part of the limit
        ([(ROOM, WHOLE)], Settings(max_tokens=50, reasoning_tokens=30), WHOLE, False),
        ([(ROOM, WHOLE)], Settings(max_tokens=50, reasoning_tokens=31), WHOLE, False),
        ([(ROOM, WHOLE)], Settings(max_tokens=50, reasoning_tokens=29), None, False),
        # under its own limit an answer counts however it ended, and the first one stays
        ([(SMALL, CUT_OFF)], SMALL, CUT_OFF, False),
        ([(SMALL, WHOLE), (SMALL, CUT_OFF)], SMALL, WHOLE, False),
        # a larger limit or another temperature does not count
        ([(MIDDLE, WHOLE)], SMALL, None, False),
        ([(MIDDLE, WHOLE)], replace(LARGE, temperature=0.0), None, False),
    ],
)
def test_which_answer_counts(
    store: Store,
    saved: list[tuple[Settings, Answer]],
    wanted: Settings,
    found: Answer | None,
    was_truncated: bool,
) -> None:
    first: dict[Settings, Answer] = {}
    for settings, answer in saved:
        assert save(store, settings, answer) == first.setdefault(settings, answer)
    cache = ModelCache(MODEL, store)
    assert cache.answer(ASK, wanted) == found
    asks = cache.same_limit_for([replace(ASK, draw=9), ASK], wanted)
    assert [ask.same_limit_only for ask in asks] == [was_truncated] * 2
    of_the_same_limit = limit_of((), wanted) in (limit_of((), settings) for settings in first)
    same_limit_only = replace(ASK, same_limit_only=True)
    assert cache.answer(same_limit_only, wanted) == (found if of_the_same_limit else None)
    assert ModelCache(OTHER, store).answer(ASK, wanted) is None


def test_an_answer_counts_in_whatever_variant_it_was_requested(store: Store) -> None:
    bare = replace(WHOLE, conceded=("no temperature",), seconds=1.5)
    save(store, SMALL, bare)
    save(store, LARGE, WHOLE, draw=1)
    cache = ModelCache(MODEL, store)
    found = cache.answer(ASK, SMALL)
    assert found == bare and found.seconds == 1.5
    assert cache.variants(SMALL) == [(), ("no temperature",)]
    other = replace(ASK, draw=2)
    save(store, LARGE, replace(CUT_OFF, conceded=("no system",)), draw=2)
    assert ModelCache(MODEL, store).same_limit_for([other], LARGE) == [
        other
    ]  # no smaller limit cut it off


def test_the_variant_of_a_model_is_known_by_model_effort_and_body(store: Store) -> None:
    ModelCache(MODEL, store).set_variant(SMALL, ("no system",))
    later = ModelCache(MODEL, store)
    assert later.variant(SMALL) == later.variant(LARGE) == ("no system",)
    assert later.variant(replace(SMALL, reasoning_effort="high")) == ()
    assert later.variant(replace(SMALL, extra_body='{"a": 1}')) == ()
    assert ModelCache(OTHER, store).variant(SMALL) == ()
    later.set_variant(SMALL, ())
    assert later.variant(SMALL) == ModelCache(MODEL, store).variant(SMALL) == ()


def test_what_a_server_said_is_known_by_name_and_model(store: Store) -> None:
    said: list[tuple[dict[str, str], dict[str, list[str]]]] = [
        ({"fingerprint": "c", "owner": "b"}, {"fingerprint": [], "owner": []}),
        ({"fingerprint": "a", "owner": "b"}, {"fingerprint": ["c"]}),
        ({"fingerprint": "d"}, {"fingerprint": ["a", "c"]}),
        ({"fingerprint": "c"}, {}),
    ]
    for now, earlier in said:
        assert ModelCache(MODEL, store).record_fingerprints(now) == earlier
    assert ModelCache(OTHER, store).record_fingerprints({"owner": "b"}) == {"owner": []}


def test_the_seed_of_a_question_is_the_same_in_every_version() -> None:
    settings = Settings(0.5, 16, 7)
    assert with_request_seed(MODEL, ASK, settings) == replace(settings, seed=269961778539680)
    other_question = replace(QUESTION, messages=(Message("user", "d2d4"),))
    seeds = {
        with_request_seed(model, ask, each).seed
        for model, ask, each in (
            (MODEL, ASK, settings),
            (OTHER, ASK, settings),
            (MODEL, replace(ASK, question=other_question), settings),
            (MODEL, replace(ASK, purpose="selection"), settings),
            (MODEL, replace(ASK, draw=1), settings),
            (MODEL, ASK, replace(settings, temperature=0.0)),
            (MODEL, ASK, replace(settings, max_tokens=17)),
            (MODEL, ASK, replace(settings, seed=8)),
        )
    }
    assert len(seeds) == 8
