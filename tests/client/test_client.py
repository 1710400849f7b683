"""Many requests to one model: answered in order, sent once each, and saved first."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import aclosing, closing
from dataclasses import replace
from pathlib import Path

import pytest

from cant_do_that_anymore.client import client as module
from cant_do_that_anymore.client.cache import request_key
from cant_do_that_anymore.client.client import LOOKAHEAD, Client
from cant_do_that_anymore.client.store import Store
from cant_do_that_anymore.errors import Incomplete, UserError
from cant_do_that_anymore.game.rules import BISHOPS_AS_KNIGHTS, STANDARD
from cant_do_that_anymore.providers.base import (
    Answer,
    Message,
    Model,
    Question,
    Request,
    RequestVariant,
    Settings,
    TransientError,
    Usage,
    local_info,
)

SETTINGS = Settings(1.0, 16)

pytestmark = pytest.mark.usefixtures("no_retry_delay")


class ScriptedModel(Model):
    """Waits or fails as ``script`` says for a request's number and attempt."""

    info = local_info("scripted", connections=4)

    def __init__(self, script: Callable[[int, int], float | Exception] = lambda *_: 0.0) -> None:
        self.script = script
        self.reply, self.usage = "answer", Usage()
        self.attempts: Counter[int] = Counter()
        self.in_flight = self.max_in_flight = 0

    async def answer(
        self, question: Question, settings: Settings, variant: RequestVariant = ()
    ) -> Answer:
        number = int(question.messages[0].content)
        self.attempts[number] += 1
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        try:
            outcome = self.script(number, self.attempts[number])
            if isinstance(outcome, Exception):
                raise outcome
            await asyncio.sleep(outcome)
            return Answer(f"{self.reply} {number}", usage=self.usage)
        finally:
            self.in_flight -= 1


def requests(count: int) -> Iterator[Request]:
    for number in range(count):
        question = Question(STANDARD, (), (Message("system", str(number)),))
        yield Request(question, "measuring", "standard")


def texts(answers: list[Answer]) -> list[str]:
    return [answer.text for answer in answers]


def expected_texts(count: int) -> list[str]:
    return [f"answer {number}" for number in range(count)]


def are_saved(store: Store, model: ScriptedModel, count: int) -> bool:
    keys = (request_key(model.info, request, SETTINGS) for request in requests(count))
    return all(store.get("answer", key) for key in keys)


async def all_answers(client: Client, count: int, ahead: int = LOOKAHEAD) -> list[Answer]:
    return [answer async for answer in client.answers(requests(count), SETTINGS, ahead)]


def test_answers_come_in_request_order(store: Store) -> None:
    model = ScriptedModel(lambda number, _: (number * 7 % 5) / 500)
    answers = asyncio.run(all_answers(Client(model, store), 50))
    assert texts(answers) == expected_texts(50)
    assert model.max_in_flight == 4


def test_lookahead_is_limited_by_a_slow_answer(store: Store) -> None:
    model = ScriptedModel(lambda number, _: 0.0 if number else 3600.0)

    async def requests_sent() -> int:
        task = asyncio.create_task(all_answers(Client(model, store, 64), 300, ahead=200))
        async with asyncio.timeout(60):
            while len(model.attempts) < 200:
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)  # time for more requests to be sent
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        return len(model.attempts)

    assert asyncio.run(requests_sent()) == 200


def test_no_request_is_sent_twice(store: Store) -> None:
    model = ScriptedModel()
    for count in (20, 50):
        assert texts(asyncio.run(all_answers(Client(model, store), count))) == expected_texts(count)

    async def answers_to_duplicates() -> list[Answer]:
        duplicates = [request for request in requests(60) for _ in range(2)]
        return [answer async for answer in Client(model, store).answers(duplicates, SETTINGS)]

    expected = [text for text in expected_texts(60) for _ in range(2)]
    assert texts(asyncio.run(answers_to_duplicates())) == expected
    assert set(model.attempts.values()) == {1}


def test_concurrent_clients_use_the_first_saved_answer(tmp_path: Path, store: Store) -> None:
    first, second = ScriptedModel(), ScriptedModel()
    second.reply = "another answer"

    async def answers_of_both() -> list[list[Answer]]:
        with closing(Store(tmp_path / "answers.sqlite")) as other_store:
            clients = Client(first, store), Client(second, other_store)
            return await asyncio.gather(*(all_answers(client, 9) for client in clients))

    of_first, of_second = asyncio.run(answers_of_both())
    assert texts(of_first) == texts(of_second)
    assert set(first.attempts.values()) == set(second.attempts.values()) == {1}


def test_everything_that_can_change_the_answer_changes_the_key() -> None:
    model, other = ScriptedModel.info, local_info("other", connections=4)
    request, different = requests(2)
    changed = replace(request.question, rules=BISHOPS_AS_KNIGHTS)
    variations = [
        (model, request, SETTINGS),
        (other, request, SETTINGS),
        (model, different, SETTINGS),
        (model, replace(request, question=changed), SETTINGS),
        (model, Request(request.question, "selection", "standard"), SETTINGS),
        (model, Request(request.question, "measuring", "changed"), SETTINGS),
        (model, Request(request.question, "measuring", "standard", 1), SETTINGS),
        (model, request, Settings(0.0, 16)),
        (model, request, Settings(None, 16)),
        (model, request, Settings(1.0, 17)),
        (model, request, Settings(1.0, 16, 5)),
    ]
    keys = {request_key(*variation) for variation in variations}
    keys.add(request_key(model, request, SETTINGS, ("no system",)))
    assert len(keys) == len(variations) + 1


def test_retries_block_no_other_request_and_overload_is_not_a_failure(store: Store) -> None:
    """The first four requests fail until all others have been sent."""
    model = ScriptedModel()
    model.script = lambda number, _: (
        TransientError("not yet") if number < 4 and len(model.attempts) < 8 else 0.0
    )
    assert texts(asyncio.run(all_answers(Client(model, store, 4), 8))) == expected_texts(8)
    overloads = 2 * module.MAX_FAILED_ATTEMPTS
    slow_down = TransientError("slow down", overloaded=True)
    busy = ScriptedModel(lambda _, attempt: slow_down if attempt <= overloads else 0.0)
    busy.info = replace(busy.info, identity={"name": "busy"})
    assert texts(asyncio.run(all_answers(Client(busy, store), 3))) == expected_texts(3)


def test_a_long_wait_is_logged_once_with_its_reason(
    store: Store, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOG_WAIT_AFTER", 0.05)
    slow = TransientError("slow", retry_after=0.06, overloaded=True)
    model = ScriptedModel(lambda number, attempt: slow if (number, attempt) == (1, 1) else 0.0)
    asyncio.run(all_answers(Client(model, store), 3))
    assert [record.getMessage() for record in caplog.records] == [
        "waiting for scripted, which asks to wait 0 s (slow)"
    ]


def test_a_consumer_that_stops_early_sends_no_more_requests(store: Store) -> None:
    model = ScriptedModel(lambda *_: 0.001)

    async def first_answers(count: int) -> list[Answer]:
        received: list[Answer] = []
        async with aclosing(Client(model, store, 4).answers(requests(1000), SETTINGS)) as answers:
            async for answer in answers:
                received.append(answer)
                if len(received) == count:
                    break
        return received

    assert texts(asyncio.run(first_answers(10))) == expected_texts(10)
    sent = len(model.attempts)
    assert sent < 10 + 3 * 4
    assert are_saved(store, model, sent)


async def interrupt(model: ScriptedModel, client: Client, should_stop: Callable[[], bool]) -> int:
    """Send many requests, and cancel once ``should_stop()``; return how many were sent by then."""
    task = asyncio.create_task(all_answers(client, 1000))
    while not should_stop():
        await asyncio.sleep(0)
    sent = len(model.attempts)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 5)
    return sent


def test_an_interruption_saves_requests_in_flight(store: Store) -> None:
    model = ScriptedModel(lambda *_: 0.02)
    sent = asyncio.run(interrupt(model, Client(model, store, 4), lambda: len(model.attempts) >= 8))
    assert len(model.attempts) == sent >= 8
    assert are_saved(store, model, sent)


def test_an_interruption_does_not_wait_for_retry_after(store: Store) -> None:
    later = TransientError("later", retry_after=600, overloaded=True)
    model = ScriptedModel(lambda number, _: later if number == 3 else 0.0)
    asyncio.run(interrupt(model, Client(model, store, 4), lambda: bool(model.attempts[3])))


def test_an_interruption_while_closing_saves_requests_in_flight(store: Store) -> None:
    model = ScriptedModel(lambda number, _: 0.1 if number else 0.0)

    async def interrupt_after_first() -> None:
        has_first = asyncio.Event()

        async def receive_first() -> None:
            stream = Client(model, store, 4).answers(requests(1000), SETTINGS, 8)
            async with aclosing(stream) as answers:
                await anext(answers)
                has_first.set()

        task = asyncio.create_task(receive_first())
        await has_first.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(interrupt_after_first())
    assert are_saved(store, model, len(model.attempts))


def test_an_unanswered_request_is_an_error_and_is_sent_again_next_time(store: Store) -> None:
    model = ScriptedModel(lambda number, _: TransientError("broken") if number == 5 else 0.0)
    answers = asyncio.run(all_answers(Client(model, store), 9))
    assert [answer.stop_reason for answer in answers].count("error") == 1
    assert (answers[5].error, model.attempts[5]) == ("broken", module.MAX_FAILED_ATTEMPTS)
    model.script = lambda *_: 0.0
    assert texts(asyncio.run(all_answers(Client(model, store), 9))) == expected_texts(9)
    assert model.attempts.total() == 9 + module.MAX_FAILED_ATTEMPTS


def test_answers_are_saved_when_the_model_stops_answering(store: Store) -> None:
    model = ScriptedModel(lambda number, _: TransientError("gone") if number >= 20 else 0.0)
    with pytest.raises(Incomplete, match=r"scripted stopped answering \(gone\); the 20 answers"):
        asyncio.run(all_answers(Client(model, store), 1000))
    assert len(model.attempts) < 60
    assert are_saved(store, model, 20)


def test_a_permanent_error_ends_the_run_at_once(store: Store) -> None:
    model = ScriptedModel(lambda number, _: UserError("bad key") if number == 0 else 0.01)
    with pytest.raises(UserError, match="bad key"):
        asyncio.run(all_answers(Client(model, store), 1000))
    assert len(model.attempts) <= 8
    store._writer.execute("PRAGMA query_only = ON")
    model = ScriptedModel()
    with pytest.raises(UserError, match="cannot save answers"):
        asyncio.run(all_answers(Client(model, store), 1000))
    assert len(model.attempts) < 200
