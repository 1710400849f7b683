"""Many questions to one model: in order, once each, and saved before they count."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest

from cant_do_that_anymore.client import client as module
from cant_do_that_anymore.client.budget import Budget
from cant_do_that_anymore.client.cache import request_key
from cant_do_that_anymore.client.client import LOOKAHEAD, Client
from cant_do_that_anymore.client.pricing import Price, Pricing
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

pytestmark = pytest.mark.usefixtures("impatient")


class Scripted(Model):
    """A model that does what the script says of a question's number and of how often it came."""

    info = local_info("scripted", connections=4)

    def __init__(self, script: Callable[[int, int], float | Exception] = lambda *_: 0.0) -> None:
        self.script = script
        self.says, self.usage = "answer", Usage()
        self.asked: Counter[int] = Counter()
        self.in_flight = self.most_in_flight = 0

    async def answer(
        self, question: Question, settings: Settings, variant: RequestVariant = ()
    ) -> Answer:
        number = int(question.messages[0].content)
        self.asked[number] += 1
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            outcome = self.script(number, self.asked[number])
            if isinstance(outcome, Exception):
                raise outcome
            await asyncio.sleep(outcome)
            return Answer(f"{self.says} {number}", usage=self.usage)
        finally:
            self.in_flight -= 1


def asks(count: int) -> Iterator[Request]:
    for number in range(count):
        yield Request(
            Question(STANDARD, (), (Message("system", str(number)),)), "measuring", "standard"
        )


def texts(answers: list[Answer]) -> list[str]:
    return [answer.text for answer in answers]


def in_order(count: int) -> list[str]:
    return [f"answer {number}" for number in range(count)]


def are_saved(store: Store, model: Scripted, count: int) -> bool:
    return all(store.get("answer", request_key(model.info, ask, SETTINGS)) for ask in asks(count))


async def all_answers(asking: Client, count: int, ahead: int = LOOKAHEAD) -> list[Answer]:
    return [answer async for answer in asking.answers(asks(count), SETTINGS, ahead)]


def test_answers_come_in_the_order_of_the_questions(store: Store) -> None:
    model = Scripted(lambda number, _: (number * 7 % 5) / 500)
    answers = asyncio.run(all_answers(Client(model, store), 50))
    assert texts(answers) == in_order(50)
    assert model.most_in_flight == 4


def test_a_slow_answer_is_waited_for_when_very_many_others_wait_for_it(store: Store) -> None:
    model = Scripted(lambda number, _: 0.0 if number else 3600.0)

    async def begun() -> int:
        waiting = asyncio.create_task(all_answers(Client(model, store, 64), 300, ahead=200))
        async with asyncio.timeout(60):
            while len(model.asked) < 200:
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)  # in which others could be begun
        waiting.cancel()
        await asyncio.sleep(0)
        waiting.cancel()
        return len(model.asked)

    assert asyncio.run(begun()) == 200


def test_nothing_is_asked_twice_neither_later_nor_at_once(store: Store) -> None:
    model = Scripted()
    for count in (20, 50):
        assert texts(asyncio.run(all_answers(Client(model, store), count))) == in_order(count)

    async def twice() -> list[Answer]:
        asked = [ask for ask in asks(60) for _ in range(2)]
        return [answer async for answer in Client(model, store).answers(asked, SETTINGS)]

    assert texts(asyncio.run(twice())) == [text for text in in_order(60) for _ in range(2)]
    assert set(model.asked.values()) == {1}


def test_of_two_who_ask_at_once_the_first_to_save_is_right(tmp_path: Path, store: Store) -> None:
    same, other = Scripted(), Scripted()
    other.says = "another answer"

    async def both() -> list[list[Answer]]:
        elsewhere = Store(tmp_path / "answers.sqlite")
        asked = [all_answers(Client(same, store), 9), all_answers(Client(other, elsewhere), 9)]
        found = await asyncio.gather(*asked)
        elsewhere.close()
        return found

    one, two = asyncio.run(both())
    assert texts(one) == texts(two)
    assert set(same.asked.values()) == set(other.asked.values()) == {1}


def test_whatever_can_change_the_answer_changes_the_key() -> None:
    model, other = Scripted.info, local_info("other", connections=4)
    ask, different = asks(2)
    variations = [
        (model, ask, SETTINGS),
        (other, ask, SETTINGS),
        (model, different, SETTINGS),
        (model, replace(ask, question=replace(ask.question, rules=BISHOPS_AS_KNIGHTS)), SETTINGS),
        (model, Request(ask.question, "selection", "standard"), SETTINGS),
        (model, Request(ask.question, "measuring", "changed"), SETTINGS),
        (model, Request(ask.question, "measuring", "standard", 1), SETTINGS),
        (model, ask, Settings(0.0, 16)),
        (model, ask, Settings(None, 16)),
        (model, ask, Settings(1.0, 17)),
        (model, ask, Settings(1.0, 16, 5)),
    ]
    keys = {request_key(*variation) for variation in variations}
    keys.add(request_key(model, ask, SETTINGS, ("no system",)))
    assert len(keys) == len(variations) + 1


def test_no_request_waits_for_anothers_retry_and_overload_is_no_failure(store: Store) -> None:
    """The first four fail for as long as anything else is left to ask."""
    model = Scripted()
    model.script = lambda number, _: (
        TransientError("not yet") if number < 4 and len(model.asked) < 8 else 0.0
    )
    assert texts(asyncio.run(all_answers(Client(model, store, 4), 8))) == in_order(8)
    many = 2 * module.MAX_FAILED_ATTEMPTS
    slow_down = TransientError("slow down", overloaded=True)
    busy = Scripted(lambda _, time: slow_down if time <= many else 0.0)
    busy.info = replace(busy.info, identity={"name": "busy"})
    assert texts(asyncio.run(all_answers(Client(busy, store), 3))) == in_order(3)


def test_a_long_wait_is_told_with_its_reason_and_not_again_and_again(
    store: Store, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOG_WAIT_AFTER", 0.05)
    slow = TransientError("slow", retry_after=0.06, overloaded=True)
    model = Scripted(lambda number, time: slow if (number, time) == (1, 1) else 0.0)
    asyncio.run(all_answers(Client(model, store), 3))
    assert [record.getMessage() for record in caplog.records] == [
        "waiting for scripted, which asks to wait 0 s (slow)"
    ]


def test_a_consumer_that_has_enough_begins_nothing_more(store: Store) -> None:
    model = Scripted(lambda *_: 0.001)

    async def first(count: int) -> list[Answer]:
        found: list[Answer] = []
        async with aclosing(Client(model, store, 4).answers(asks(1000), SETTINGS)) as answers:
            async for answer in answers:
                found.append(answer)
                if len(found) == count:
                    break
        return found

    assert texts(asyncio.run(first(10))) == in_order(10)
    asked = len(model.asked)
    assert asked < 10 + 3 * 4
    assert are_saved(store, model, asked)


async def interrupted(model: Scripted, asking: Client, begun: Callable[[], bool]) -> int:
    """Send many requests, and stop as soon as something has begun: how many were sent by then."""
    task = asyncio.create_task(all_answers(asking, 1000))
    while not begun():
        await asyncio.sleep(0)
    sent = len(model.asked)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 5)
    return sent


def test_one_interruption_finishes_and_saves_what_is_in_flight(store: Store) -> None:
    model = Scripted(lambda *_: 0.02)
    sent = asyncio.run(interrupted(model, Client(model, store, 4), lambda: len(model.asked) >= 8))
    assert len(model.asked) == sent >= 8
    assert are_saved(store, model, sent)


def test_after_an_interruption_money_that_comes_free_is_spent_on_nothing(store: Store) -> None:
    """A question may cost 16 dollars at most, and there are 40: the third waits for the others."""
    model = Scripted(lambda *_: 0.02)
    model.usage = Usage(output_tokens=1)
    asking = Client(model, store, 4, Budget(40.0), Pricing(lambda _: Price(0.0, 1.0)))
    asyncio.run(interrupted(model, asking, lambda: len(model.asked) >= 2))
    assert len(model.asked) == model.most_in_flight == 2
    assert are_saved(store, model, 2)


def test_an_interruption_does_not_wait_out_retry_after(store: Store) -> None:
    later = TransientError("later", retry_after=600, overloaded=True)
    model = Scripted(lambda number, _: later if number == 3 else 0.0)
    asyncio.run(interrupted(model, Client(model, store, 4), lambda: bool(model.asked[3])))


def test_an_interruption_when_enough_was_had_saves_what_is_in_flight(store: Store) -> None:
    model = Scripted(lambda number, _: 0.1 if number else 0.0)

    async def first_then_interrupted() -> None:
        enough = asyncio.Event()

        async def first() -> None:
            asked = Client(model, store, 4).answers(asks(1000), SETTINGS, 8)
            async with aclosing(asked) as answers:
                await anext(answers)
                enough.set()

        task = asyncio.create_task(first())
        await enough.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(first_then_interrupted())
    assert are_saved(store, model, len(model.asked))


def test_a_question_without_answer_is_an_error_and_is_asked_again_next_time(store: Store) -> None:
    model = Scripted(lambda number, _: TransientError("broken") if number == 5 else 0.0)
    answers = asyncio.run(all_answers(Client(model, store), 9))
    assert [answer.stop_reason for answer in answers].count("error") == 1
    assert (answers[5].error, model.asked[5]) == ("broken", module.MAX_FAILED_ATTEMPTS)
    model.script = lambda *_: 0.0
    assert texts(asyncio.run(all_answers(Client(model, store), 9))) == in_order(9)
    assert model.asked.total() == 9 + module.MAX_FAILED_ATTEMPTS


def test_a_model_that_is_gone_ends_the_asking_and_the_answers_are_kept(store: Store) -> None:
    model = Scripted(lambda number, _: TransientError("gone") if number >= 20 else 0.0)
    with pytest.raises(Incomplete, match=r"scripted stopped answering \(gone\); the 20 answers"):
        asyncio.run(all_answers(Client(model, store), 1000))
    assert len(model.asked) < 60
    assert are_saved(store, model, 20)


def test_an_error_that_no_retry_can_fix_ends_the_work_at_once(store: Store) -> None:
    model = Scripted(lambda number, _: UserError("bad key") if number == 0 else 0.01)
    with pytest.raises(UserError, match="bad key"):
        asyncio.run(all_answers(Client(model, store), 1000))
    assert len(model.asked) <= 8
    store._writer.execute("PRAGMA query_only = ON")
    model = Scripted()
    with pytest.raises(UserError, match="cannot save answers"):
        asyncio.run(all_answers(Client(model, store), 1000))
    assert len(model.asked) < 200
