"""What is kept of a model: which of its answers count, and what they are found by."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

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

QUESTION = Question(STANDARD, ("e2e4",), (Message("user", "e2e4"),))
OTHER_QUESTION = replace(QUESTION, messages=(Message("user", "d2d4"),))
ASK = Request(QUESTION, "measuring", "standard")
SMALL, MIDDLE, LARGE = (Settings(max_tokens=limit) for limit in (50, 80, 100))
WHOLE, CUT_OFF = Answer("e7e5"), Answer("e7", "length")


MODEL, OTHER = RandomModel.info, local_info("other", connections=4)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path / "answers.sqlite")
    yield store
    store.close()


def save(kept: ModelCache, ask: Request, settings: Settings, answer: Answer) -> Answer:
    async def saved() -> Answer:
        return await kept.save(ask, settings, answer)

    return asyncio.run(saved())


def test_of_smaller_limits_the_largest_counts_unless_it_cut_the_answer_off(store: Store) -> None:
    kept = ModelCache(MODEL, store)
    whole, cut, grown, cut_later = (replace(ASK, draw=draw) for draw in range(4))
    for ask, at_small, at_middle in (
        (whole, WHOLE, None),
        (cut, CUT_OFF, None),
        (grown, CUT_OFF, WHOLE),
        (cut_later, WHOLE, CUT_OFF),
    ):
        save(kept, ask, SMALL, at_small)
        if at_middle:
            save(kept, ask, MIDDLE, at_middle)
    found = [kept.answer(ask, LARGE) for ask in (whole, cut, grown, cut_later)]
    assert found == [WHOLE, None, WHOLE, None]
    assert [kept.had_truncation([ask], LARGE) for ask in (whole, cut, grown, cut_later)] == [
        *(False, True, False, True)
    ]
    assert not kept.had_truncation([replace(ASK, draw=9), whole], LARGE)


def test_room_to_think_is_part_of_the_limit(store: Store) -> None:
    kept = ModelCache(MODEL, store)
    save(kept, ASK, Settings(max_tokens=60, reasoning_tokens=20), WHOLE)
    for max_tokens, reasoning_tokens, found in ((50, 30, WHOLE), (50, 31, WHOLE), (50, 29, None)):
        settings = Settings(max_tokens=max_tokens, reasoning_tokens=reasoning_tokens)
        assert kept.answer(ASK, settings) == found


def test_under_its_own_limit_an_answer_counts_however_it_ended(store: Store) -> None:
    kept = ModelCache(MODEL, store)
    save(kept, ASK, SMALL, CUT_OFF)
    assert kept.answer(ASK, SMALL) == CUT_OFF
    assert not kept.had_truncation([ASK], SMALL)
    assert kept.answer(replace(ASK, same_limit_only=True), SMALL) == CUT_OFF


def test_a_larger_limit_and_for_who_asks_anew_a_smaller_one_does_not_count(store: Store) -> None:
    kept = ModelCache(MODEL, store)
    save(kept, ASK, MIDDLE, WHOLE)
    assert kept.answer(ASK, SMALL) is None
    assert kept.answer(ASK, LARGE) == WHOLE
    assert kept.answer(replace(ASK, same_limit_only=True), LARGE) is None
    assert kept.answer(ASK, replace(LARGE, temperature=0.0)) is None


def test_an_answer_counts_in_whatever_form_it_was_asked(store: Store) -> None:
    kept = ModelCache(MODEL, store)
    bare = replace(WHOLE, conceded=("no temperature",))
    save(kept, ASK, SMALL, bare)
    save(kept, replace(ASK, draw=1), LARGE, WHOLE)
    assert kept.answer(ASK, SMALL) == bare
    assert kept.variants(SMALL) == [(), ("no temperature",)]
    assert ModelCache(OTHER, store).answer(ASK, SMALL) is None


def test_the_form_of_a_model_is_known_by_model_effort_and_body(store: Store) -> None:
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


def test_the_answer_that_was_first_is_the_one_that_counts(store: Store) -> None:
    kept = ModelCache(MODEL, store)
    assert save(kept, ASK, SMALL, WHOLE) is WHOLE
    assert save(kept, ASK, SMALL, CUT_OFF) == WHOLE


def test_the_seed_of_a_question_is_the_same_in_every_version() -> None:
    settings = Settings(0.5, 16, 7)
    assert with_request_seed(MODEL, ASK, settings) == replace(settings, seed=269961778539680)
    seeds = {
        with_request_seed(model, ask, each).seed
        for model, ask, each in (
            (MODEL, ASK, settings),
            (OTHER, ASK, settings),
            (MODEL, replace(ASK, question=OTHER_QUESTION), settings),
            (MODEL, replace(ASK, purpose="selection"), settings),
            (MODEL, replace(ASK, draw=1), settings),
            (MODEL, ASK, replace(settings, temperature=0.0)),
            (MODEL, ASK, replace(settings, max_tokens=17)),
            (MODEL, ASK, replace(settings, seed=8)),
        )
    }
    assert len(seeds) == 8
