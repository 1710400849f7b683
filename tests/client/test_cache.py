"""The cache of a model: which answers can be reused, and what their keys depend on."""

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
REQUEST = Request(QUESTION, "measuring", "standard")
SMALL, MIDDLE, LARGE = (Settings(max_tokens=limit) for limit in (50, 80, 100))
COMPLETE, TRUNCATED = Answer("e7e5"), Answer("e7", "length")
MODEL, OTHER = RandomModel.info, local_info("other", connections=4)


def save(store: Store, settings: Settings, answer: Answer, draw: int = 0) -> Answer:
    async def save_answer() -> Answer:
        return await ModelCache(MODEL, store).save(replace(REQUEST, draw=draw), settings, answer)

    return asyncio.run(save_answer())


REASONING = Settings(max_tokens=60, reasoning_tokens=20)


@pytest.mark.parametrize(
    ("saved", "requested", "expected", "was_truncated"),
    [
        # Among smaller limits, the largest counts, unless the answer was truncated.
        ([(SMALL, COMPLETE)], LARGE, COMPLETE, False),
        ([(SMALL, TRUNCATED)], LARGE, None, True),
        ([(SMALL, TRUNCATED), (MIDDLE, COMPLETE)], LARGE, COMPLETE, False),
        ([(SMALL, COMPLETE), (MIDDLE, TRUNCATED)], LARGE, None, True),
        # Reasoning tokens are part of the limit.
        ([(REASONING, COMPLETE)], Settings(max_tokens=50, reasoning_tokens=30), COMPLETE, False),
        ([(REASONING, COMPLETE)], Settings(max_tokens=50, reasoning_tokens=31), COMPLETE, False),
        ([(REASONING, COMPLETE)], Settings(max_tokens=50, reasoning_tokens=29), None, False),
        # At the same limit, truncated answers count, too, and the first answer stays.
        ([(SMALL, TRUNCATED)], SMALL, TRUNCATED, False),
        ([(SMALL, COMPLETE), (SMALL, TRUNCATED)], SMALL, COMPLETE, False),
        # Answers with a larger limit or another temperature do not count.
        ([(MIDDLE, COMPLETE)], SMALL, None, False),
        ([(MIDDLE, COMPLETE)], replace(LARGE, temperature=0.0), None, False),
    ],
)
def test_which_cached_answer_is_used(
    store: Store,
    saved: list[tuple[Settings, Answer]],
    requested: Settings,
    expected: Answer | None,
    was_truncated: bool,
) -> None:
    first: dict[Settings, Answer] = {}
    for settings, answer in saved:
        assert save(store, settings, answer) == first.setdefault(settings, answer)
    cache = ModelCache(MODEL, store)
    assert cache.answer(REQUEST, requested) == expected
    requests = cache.same_limit_if_cut([replace(REQUEST, draw=9), REQUEST], requested)
    assert [request.same_limit_only for request in requests] == [was_truncated] * 2
    has_same_limit = limit_of((), requested) in (limit_of((), settings) for settings in first)
    same_limit_only = replace(REQUEST, same_limit_only=True)
    assert cache.answer(same_limit_only, requested) == (expected if has_same_limit else None)
    assert ModelCache(OTHER, store).answer(REQUEST, requested) is None


def test_an_answer_to_any_request_variant_is_used(store: Store) -> None:
    answer = replace(COMPLETE, conceded=("no temperature",), seconds=1.5)
    save(store, SMALL, answer)
    save(store, LARGE, COMPLETE, draw=1)
    cache = ModelCache(MODEL, store)
    cached = cache.answer(REQUEST, SMALL)
    assert cached == answer and cached.seconds == 1.5
    assert cache.variants(SMALL) == [(), ("no temperature",)]
    other = replace(REQUEST, draw=2)
    save(store, LARGE, replace(TRUNCATED, conceded=("no system",)), draw=2)
    # No smaller limit truncated it.
    assert ModelCache(MODEL, store).same_limit_if_cut([other], LARGE) == [other]


def test_variants_are_cached_by_model_effort_and_body(store: Store) -> None:
    ModelCache(MODEL, store).set_variant(SMALL, ("no system",))
    reopened = ModelCache(MODEL, store)
    assert reopened.variant(SMALL) == reopened.variant(LARGE) == ("no system",)
    assert reopened.variant(replace(SMALL, reasoning_effort="high")) == ()
    assert reopened.variant(replace(SMALL, extra_body='{"a": 1}')) == ()
    assert ModelCache(OTHER, store).variant(SMALL) == ()
    reopened.set_variant(SMALL, ())
    assert reopened.variant(SMALL) == ModelCache(MODEL, store).variant(SMALL) == ()


def test_fingerprints_are_recorded_by_name_and_model(store: Store) -> None:
    steps: list[tuple[dict[str, str], dict[str, list[str]]]] = [
        ({"fingerprint": "c", "owner": "b"}, {"fingerprint": [], "owner": []}),
        ({"fingerprint": "a", "owner": "b"}, {"fingerprint": ["c"]}),
        ({"fingerprint": "d"}, {"fingerprint": ["a", "c"]}),
        ({"fingerprint": "c"}, {}),
    ]
    for fingerprints, earlier in steps:
        assert ModelCache(MODEL, store).record_fingerprints(fingerprints) == earlier
    assert ModelCache(OTHER, store).record_fingerprints({"owner": "b"}) == {"owner": []}


def test_request_seeds_are_stable_and_distinct() -> None:
    settings = Settings(0.5, 16, 7)
    assert with_request_seed(MODEL, REQUEST, settings) == replace(settings, seed=269961778539680)
    other_question = replace(QUESTION, messages=(Message("user", "d2d4"),))
    seeds = {
        with_request_seed(model, request, varied).seed
        for model, request, varied in (
            (MODEL, REQUEST, settings),
            (OTHER, REQUEST, settings),
            (MODEL, replace(REQUEST, question=other_question), settings),
            (MODEL, replace(REQUEST, purpose="selection"), settings),
            (MODEL, replace(REQUEST, draw=1), settings),
            (MODEL, REQUEST, replace(settings, temperature=0.0)),
            (MODEL, replace(REQUEST, tokens=100), settings),
            (MODEL, REQUEST, replace(settings, seed=8)),
        )
    }
    assert len(seeds) == 8
    other_limit = replace(settings, max_tokens=512)
    seeded = with_request_seed(MODEL, REQUEST, other_limit)
    assert seeded == replace(other_limit, seed=269961778539680)
