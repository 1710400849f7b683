"""The cached answers of a model: what their keys depend on, and which answer stays."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from cant_do_that_anymore.client.cache import Cache, with_request_seed
from cant_do_that_anymore.errors import UserError
from cant_do_that_anymore.habits.base import Message
from cant_do_that_anymore.habits.chess.position import Position
from cant_do_that_anymore.habits.chess.rules import BISHOPS_AS_KNIGHTS, STANDARD
from cant_do_that_anymore.providers.base import Answer, Question, Request, Settings, local_info
from cant_do_that_anymore.providers.bundled import RandomModel
from cant_do_that_anymore.providers.catalog import server_info

QUESTION = Question(STANDARD, Position(0, ("e2e4",), ()), (Message("user", "e2e4"),))
REQUEST = Request(QUESTION, "measuring", "standard")
MODEL = RandomModel.info
SETTINGS = Settings()
COMPLETE = Answer("e7e5", version="m-1", limit=512)
CUT_OFF = Answer("e7", "length", version="m-1", limit=512)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "answers.sqlite"


@pytest.fixture
def cache(path: Path) -> Iterator[Cache]:
    with closing(Cache(path, MODEL)) as cache:
        yield cache


def test_everything_that_can_change_the_answer_changes_the_key(cache: Cache) -> None:
    """test_cache_keys.py has the options of a run."""
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
    return cache.save(REQUEST, SETTINGS, answer, None)


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


def test_answers_survive_with_the_limit_of_the_newest(cache: Cache, path: Path) -> None:
    assert (cache.is_empty, cache.token_limit(None)) == (True, None)
    answer = Answer("e7e5", version="m-1", adjustments=("no system",), cost=0.1)
    for number, limit in enumerate((32_768, 512)):
        cache.save(replace(REQUEST, draw=number), SETTINGS, answer, limit)
    with closing(Cache(path, MODEL)) as again:
        assert (again.is_empty, again.token_limit(None)) == (False, 512)
        assert again.token_limit("high") is None
        assert again.answer(REQUEST, SETTINGS) == answer
    with closing(Cache(path, local_info("other", connections=4))) as of_other_model:
        assert of_other_model.is_empty


def test_another_version_has_answers_of_its_own(cache: Cache) -> None:
    others = [replace(REQUEST, draw=number) for number in range(2)]
    save(cache, COMPLETE)
    cache.save(others[1], SETTINGS, replace(COMPLETE, version="m-2"), None)
    cache.start_namespace("m-2")
    assert [bool(cache.answer(each, SETTINGS)) for each in others] == [False, True]
    cache.start_namespace("m-1")
    assert [bool(cache.answer(each, SETTINGS)) for each in others] == [True, False]


def test_only_bundled_models_get_a_seed_of_each_request() -> None:
    seeds = {
        with_request_seed(MODEL, request, settings).seed
        for request in (REQUEST, replace(REQUEST, draw=1), replace(REQUEST, tokens=100))
        for settings in (SETTINGS, Settings(0.0), Settings(seed=1))
    }
    assert len(seeds) == 9
    server = server_info("m", "http://localhost:1/v1")
    assert with_request_seed(server, REQUEST, Settings(seed=7)).seed == 7


def test_a_damaged_file_ends_in_one_sentence(path: Path) -> None:
    path.write_bytes(b"not a database at all, but long enough to be read as one" * 100)
    with pytest.raises(UserError, match=r"sqlite3 FILE \.recover saves"):
        Cache(path, MODEL)
    path.unlink()
    with closing(Cache(path, MODEL)) as cache:
        save(cache, COMPLETE)
        cache._database.execute("UPDATE answers_5 SET answer = '{'")
        with pytest.raises(UserError, match="damaged"):
            cache.answer(REQUEST, SETTINGS)


def test_a_file_that_cannot_be_written_ends_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"set CDTA_HOME to a folder"):
        Cache(tmp_path / "missing" / "answers.sqlite", MODEL)
