"""Many requests to one model: answered in order, sent once each, and saved first."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import aclosing, closing
from functools import partial
from pathlib import Path

import pytest

from cant_do_that_anymore.client.cache import Cache
from cant_do_that_anymore.client.client import AHEAD, MAX_FAILED_ATTEMPTS, Client, from_cache_again
from cant_do_that_anymore.client.pricing import CostLimit, Spending
from cant_do_that_anymore.habits.base import Message
from cant_do_that_anymore.habits.chess.position import Position
from cant_do_that_anymore.habits.chess.rules import STANDARD
from cant_do_that_anymore.providers.base import (
    Answer,
    Model,
    ModelInfo,
    Question,
    Request,
    Settings,
    TransientError,
    Usage,
)

SETTINGS = Settings()
INFO = ModelInfo(name="scripted", identity={"name": "scripted"}, endpoint="http://m")

pytestmark = pytest.mark.usefixtures("no_retry_delay")


class ScriptedModel(Model):
    """Waits or fails as ``script`` says for a request's number and attempt."""

    info = INFO

    def __init__(self, script: Callable[[int, int], float | Exception] = lambda *_: 0.0) -> None:
        self.script = script
        self.version = "m-1"
        self.attempts: Counter[int] = Counter()

    async def answer(self, question: Question, settings: Settings) -> Answer:
        number = int(question.messages[0].content)
        self.attempts[number] += 1
        outcome = self.script(number, self.attempts[number])
        if isinstance(outcome, Exception):
            raise outcome
        await asyncio.sleep(outcome)
        return Answer(f"answer {number}", usage=Usage(9, 3), version=self.version)


def requests(count: int) -> Iterator[Request]:
    for number in range(count):
        question = Question(STANDARD, Position(0, (), ()), (Message("system", str(number)),))
        yield Request(question, "measuring", "standard")


def texts(answers: list[Answer]) -> list[str]:
    return [answer.text for answer in answers]


def expected_texts(count: int) -> list[str]:
    return [f"answer {number}" for number in range(count)]


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Cache]:
    with closing(Cache(tmp_path / "answers.sqlite", INFO)) as cache:
        yield cache


def new_client(model: Model, cache: Cache, connections: int | None = 4) -> Client:
    return Client(model, cache, connections, Spending(CostLimit(), None))


async def all_answers(client: Client, count: int, ahead: int = AHEAD) -> list[Answer]:
    stream = client.answers(requests(count), SETTINGS, lambda: ahead)
    async with aclosing(stream) as answers:
        return [answer async for answer in answers]


def ask_all(
    model: ScriptedModel, cache: Cache, count: int, connections: int | None = 4
) -> list[Answer]:
    """The answers to so many requests in a new command."""
    client = new_client(model, cache, connections)
    return asyncio.run(from_cache_again(lambda: all_answers(client, count)))


LATE = TransientError("not yet")
SLOW_DOWN = TransientError("slow down", overloaded=True)


@pytest.mark.parametrize(
    "script",
    [
        lambda model, number, attempt: (number * 7 % 5) / 500,
        # Requests that fail until all others have been sent block none of them.
        lambda model, number, attempt: LATE if 0 < number < 5 and len(model.attempts) < 9 else 0,
        # An overload is not a failure.
        lambda model, number, attempt: SLOW_DOWN if attempt <= 2 * MAX_FAILED_ATTEMPTS else 0,
    ],
    ids=["varying times", "failures", "overload"],
)
def test_answers_come_in_request_order(
    script: Callable[[ScriptedModel, int, int], float | Exception], cache: Cache
) -> None:
    model = ScriptedModel()
    model.script = partial(script, model)
    assert texts(ask_all(model, cache, 9)) == expected_texts(9)


@pytest.mark.parametrize(("slow", "ahead", "n_sent"), [(0, AHEAD, 1), (1, 200, 201)])
def test_the_first_request_is_sent_alone_and_few_ahead_of_a_slow_one(
    slow: int, ahead: int, n_sent: int, cache: Cache
) -> None:
    model = ScriptedModel(lambda number, _: 0.3 if number == slow else 0.0)

    async def sent_before_the_slow_answer() -> int:
        task = asyncio.create_task(all_answers(new_client(model, cache, 64), 300, ahead))
        await asyncio.sleep(0.2)
        sent = len(model.attempts)
        await task
        return sent

    assert asyncio.run(sent_before_the_slow_answer()) == n_sent
    assert len(model.attempts) == 300


def test_no_request_is_sent_twice(cache: Cache) -> None:
    model = ScriptedModel()
    for count in (20, 50):
        assert texts(ask_all(model, cache, count)) == expected_texts(count)

    async def answers_to_duplicates() -> list[Answer]:
        duplicates = [request for request in requests(60) for _ in range(2)]
        stream = new_client(model, cache).answers(duplicates, SETTINGS)
        return [answer async for answer in stream]

    expected = [text for text in expected_texts(60) for _ in range(2)]
    assert texts(asyncio.run(answers_to_duplicates())) == expected
    assert set(model.attempts.values()) == {1}


def test_an_interruption_does_not_wait_for_retry_after(cache: Cache) -> None:
    later = TransientError("later", retry_after=600, overloaded=True)
    model = ScriptedModel(lambda number, _: later if number == 3 else 0.0)

    async def interrupt() -> None:
        task = asyncio.create_task(all_answers(new_client(model, cache), 1000))
        while not model.attempts[3]:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 5)

    asyncio.run(interrupt())


@pytest.mark.parametrize("is_interrupted", [True, False])
def test_a_consumer_that_stops_early_saves_requests_in_flight(
    is_interrupted: bool, cache: Cache
) -> None:
    """Also if Ctrl-C is pressed while they are finished."""
    model = ScriptedModel(lambda number, _: 0.1 if number > 1 else 0.0)

    async def stop_after_two() -> None:
        async def receive_two() -> None:
            stream = new_client(model, cache).answers(requests(1000), SETTINGS, lambda: 8)
            async with aclosing(stream) as answers:
                await anext(answers)  # sent alone
                await anext(answers)
                has_two.set()

        has_two = asyncio.Event()
        task = asyncio.create_task(receive_two())
        await has_two.wait()
        if is_interrupted:
            task.cancel()
        await asyncio.wait([task])
        assert task.cancelled() == is_interrupted

    asyncio.run(stop_after_two())
    assert 2 < len(model.attempts) < 2 + 3 * 4
    assert all(cache.answer(each, SETTINGS) for each in requests(len(model.attempts)))


def test_an_unanswered_request_is_an_error_and_is_sent_again_next_time(cache: Cache) -> None:
    model = ScriptedModel(lambda number, _: TransientError("broken") if number == 5 else 0.0)
    answers = ask_all(model, cache, 9)
    assert [answer.stop_reason for answer in answers].count("error") == 1
    assert (answers[5].error, model.attempts[5]) == ("broken", MAX_FAILED_ATTEMPTS)
    model.script = lambda *_: 0.0
    assert texts(ask_all(model, cache, 9)) == expected_texts(9)
    assert model.attempts.total() == 9 + MAX_FAILED_ATTEMPTS


def test_two_versions_behind_one_address_are_one_model(cache: Cache) -> None:
    model = ScriptedModel()

    def answer_as_one_of_two(number: int, _: int) -> float:
        model.version = "m-2" if number * 7 % 20 == 0 else "m-1"
        return 0.0

    model.script = answer_as_one_of_two
    for count in range(15, 150, 15):
        ask_all(model, cache, count, 1)
    assert set(model.attempts.values()) == {1}


def test_an_answer_that_another_process_saved_meanwhile_is_used(
    cache: Cache, tmp_path: Path
) -> None:
    *_, waiting = requests(3)
    theirs = Answer("theirs", usage=Usage(9, 3), version="m-1")
    model = ScriptedModel(lambda *_: 0.1)

    async def ask_while_another_process_answers() -> list[Answer]:
        answers = asyncio.create_task(all_answers(new_client(model, cache, 1), 3))
        await asyncio.sleep(0.15)  # the last request waits for the others
        with closing(Cache(tmp_path / "answers.sqlite", INFO)) as other:
            other.save([(waiting, SETTINGS, theirs, None)])
        return await answers

    assert texts(asyncio.run(ask_while_another_process_answers()))[-1] == "theirs"
    assert model.attempts == {0: 1, 1: 1}
