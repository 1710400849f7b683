"""Token limits and rejected fields: what one model accepts is learned from its answers."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from cant_do_that_anymore.client.sender import Sender
from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.habits.base import Message
from cant_do_that_anymore.habits.chess.position import Position
from cant_do_that_anymore.habits.chess.rules import STANDARD
from cant_do_that_anymore.providers.base import (
    Adjustments,
    Answer,
    Model,
    ModelInfo,
    Question,
    RequestRejected,
    Settings,
    Usage,
)
from cant_do_that_anymore.providers.request_fields import (
    NO_SYSTEM,
    NO_TEMPERATURE,
    OPENING_TURN,
    RENAMED_LIMIT,
    SMALLER_LIMIT,
    USER_FIRST,
    advice_on_limit,
    named_limit,
)

INFO = ModelInfo(name="m", identity={"name": "m"}, endpoint="http://m")
START = Position(0, (), ())
TURNS = Message("assistant", "e2e4"), Message("user", "e7e5")
QUESTION = Question(STANDARD, START, (Message("system", "x" * 400), *TURNS))
PROMPT_TOKENS = 2 * (408 // 3 + 3 * 4)
SHORT = Answer("e7e5", usage=Usage(100, 3))
LONG = Answer("e7e5 " * 200, usage=Usage(100, 600))
REASONED = Answer("e7e5", reasoning="hm", usage=Usage(100, 700, 650))
COUNTED = Answer("e7e5", usage=Usage(100, 700, 650))
CUT_OFF = Answer("I think", "length", usage=Usage(100, 512))
CUT_OFF_REASONING = replace(CUT_OFF, reasoning="hm")
CUT_OFF_HIDDEN = Answer("", "length")
ROOM, REPLY = 32_768, 512
SETTINGS = Settings()

Rejection = Callable[[Settings, Adjustments], str]


def adjustments_in(question: Question, settings: Settings) -> Adjustments:
    """The adjustments of a request, as far as it shows them."""
    shown = {
        NO_SYSTEM: question.messages[0].role == "user",
        USER_FIRST: OPENING_TURN in question.messages,
        RENAMED_LIMIT: RENAMED_LIMIT in settings.extra_body,
        NO_TEMPERATURE: settings.temperature is None,
    }
    return tuple(adjustment for adjustment, is_made in shown.items() if is_made)


class Scripted(Model):
    """Rejects what ``rejection`` says, and gives its answers in turn, then short ones."""

    def __init__(self, *answers: Answer, rejection: Rejection = lambda *_: "") -> None:
        self.info = INFO
        self.answers = list(answers)
        self.rejection = rejection
        self.sent: list[tuple[int | None, Adjustments]] = []

    async def answer(self, question: Question, settings: Settings) -> Answer:
        made = adjustments_in(question, settings)
        self.sent.append((settings.max_tokens, made))
        if message := self.rejection(settings, made):
            raise RequestRejected(message, message)
        return self.answers.pop(0) if self.answers else SHORT


def limits(*answers: Answer, settings: Settings = SETTINGS, info: ModelInfo = INFO) -> list[int]:
    """The limits of the requests with these answers, and that of the next request."""
    model = Scripted(*answers)
    model.info = info

    async def send_all() -> list[int]:
        sender = Sender(model)
        for _ in answers:
            sender.learn(await sender.send(QUESTION, settings), settings)
        return [*(limit or 0 for limit, _ in model.sent), sender.wanted(settings)]

    return asyncio.run(send_all())


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([SHORT], [ROOM, REPLY]),
        ([REASONED], [ROOM, ROOM]),
        ([COUNTED], [ROOM, ROOM]),
        ([LONG, LONG], [ROOM, ROOM, ROOM]),  # writes at length
        ([LONG, SHORT, LONG], [ROOM, ROOM, REPLY, REPLY]),
        ([REASONED, SHORT], [ROOM, ROOM, ROOM]),
        ([SHORT, CUT_OFF], [ROOM, REPLY, REPLY]),  # a long text is no reasoning
        ([SHORT, CUT_OFF_REASONING, SHORT], [ROOM, REPLY, ROOM, ROOM]),
        ([SHORT, CUT_OFF_HIDDEN, SHORT], [ROOM, REPLY, ROOM, ROOM]),
        ([replace(SHORT, usage=Usage())], [ROOM, REPLY]),  # nothing is counted
        ([replace(LONG, usage=Usage(), text="e7e5 " * 500)], [ROOM, ROOM]),
        ([Answer("", "refused")], [ROOM, ROOM]),
    ],
)
def test_the_first_answers_settle_the_limit(answers: list[Answer], expected: list[int]) -> None:
    assert limits(*answers) == expected


def test_a_limit_of_the_user_or_of_a_base_model_stays() -> None:
    assert limits(SHORT, CUT_OFF_REASONING, settings=Settings(max_tokens=77)) == [77, 77, 77]
    base_model = replace(INFO, max_tokens=4)
    assert limits(SHORT, CUT_OFF_HIDDEN, info=base_model) == [4, 4, 4]


def test_a_request_with_a_limit_of_its_own_gets_the_larger_one() -> None:
    sender = Sender(Scripted(), REPLY)
    assert sender.wanted(Settings(), 1_000) == 1_000
    assert sender.wanted(Settings(), 100) == REPLY
    assert sender.wanted(Settings(max_tokens=8), 100) == 100
    assert Sender(Scripted(), ROOM).wanted(Settings(), 1_000) == ROOM


def test_only_replies_cut_off_below_the_limit_are_too_short() -> None:
    sender, settings = Sender(Scripted(), ROOM), Settings()
    cut_off = replace(CUT_OFF, limit=REPLY)
    assert sender.is_too_short(cut_off, settings)
    assert not sender.is_too_short(replace(cut_off, stop_reason="stop"), settings)
    assert not sender.is_too_short(replace(cut_off, limit=ROOM), settings)
    assert not sender.is_too_short(replace(cut_off, adjustments=(SMALLER_LIMIT,)), settings)
    assert not Sender(Scripted(), REPLY).is_too_short(cut_off, settings)


def test_effort_none_is_an_error_if_the_model_reasons_anyway() -> None:
    with pytest.raises(InvalidInput, match="--extra-body"):
        limits(REASONED, settings=Settings(reasoning_effort="none"))


def last_sent(
    rejection: Rejection, settings: Settings = SETTINGS
) -> tuple[int | None, Adjustments]:
    """Send two requests to a model with this rejection; the second is accepted at once."""
    model = Scripted(rejection=rejection)

    async def send_two() -> None:
        sender = Sender(model)
        await sender.send(QUESTION, settings)
        n_sent = len(model.sent)
        await sender.send(QUESTION, settings)
        assert len(model.sent) == n_sent + 1

    asyncio.run(send_two())
    return model.sent[-1]


MESSAGES = {
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
    "'max_completion_tokens' instead.": RENAMED_LIMIT,
    "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) "
    "value is supported.": NO_TEMPERATURE,
    "temperature: Extra inputs are not permitted": NO_TEMPERATURE,
    "invalid temperature: only 1 is allowed for this model": NO_TEMPERATURE,
    "Conversation roles must alternate user/assistant/user/assistant/...": USER_FIRST,
    "System role not supported": NO_SYSTEM,
    "Unsupported parameter: 'max_tokens' with gpt-9-2031-05-13. Use 'max_completion_tokens'.": (
        RENAMED_LIMIT
    ),
}


@pytest.mark.parametrize("message", MESSAGES)
def test_a_rejected_field_is_renamed_or_left_out(message: str) -> None:
    expected = MESSAGES[message]
    limit, adjustments = last_sent(lambda _, made: "" if expected in made else message)
    assert (limit, adjustments) == (ROOM, (expected,))


def test_several_rejections_add_up() -> None:
    messages = {adjustment: message for message, adjustment in MESSAGES.items()}

    def rejection(_: Settings, made: Adjustments) -> str:
        return next((messages[a] for a in (NO_SYSTEM, RENAMED_LIMIT) if a not in made), "")

    assert last_sent(rejection)[1] == (NO_SYSTEM, RENAMED_LIMIT)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            "max_tokens is too large: 32768. This model supports at most 4096 completion tokens.",
            4096,
        ),
        (
            "This model's maximum context length is 4096 tokens. However, you requested 32900 "
            "tokens (132 in the messages, 32768 in the completion).",
            4096,
        ),
        (
            "'max_tokens' or 'max_completion_tokens' is too large: 32768. This model's maximum "
            "context length is 4096 tokens and your request has 210 input tokens",
            4096,
        ),
        ("max_tokens: 32768 > 8,192, which is the maximum allowed number of output tokens", 8192),
        ("max_model_len=4096", 4096),
    ],
)
def test_a_named_limit_less_the_prompt_is_sent_again(message: str, expected: int) -> None:
    def rejection(settings: Settings, _: Adjustments) -> str:
        return message if (settings.max_tokens or 0) > expected else ""

    assert last_sent(rejection) == (expected - PROMPT_TOKENS, ())


def test_without_a_number_the_limit_is_halved() -> None:
    def rejection(settings: Settings, _: Adjustments) -> str:
        too_long = (settings.max_tokens or 0) > 3_000
        return "The prompt and max_tokens exceed the context of this model" if too_long else ""

    assert last_sent(rejection) == (2048, ())
    answer = asyncio.run(Sender(Scripted(rejection=rejection)).send(QUESTION, SETTINGS))
    assert answer.adjustments == (SMALLER_LIMIT,)
    assert advice_on_limit(answer.adjustments) == "the server refused more"


def test_an_answer_names_a_limit_that_was_made_smaller() -> None:
    def rejection(settings: Settings, _: Adjustments) -> str:
        return "at most 1024 tokens" if (settings.max_tokens or 0) > 1024 else ""

    async def send(sender: Sender) -> Answer:
        return await sender.send(QUESTION, Settings())

    sender = Sender(Scripted(CUT_OFF_REASONING, SHORT, rejection=rejection))
    cut_off = asyncio.run(send(sender))
    assert (cut_off.limit, cut_off.adjustments) == (1024 - PROMPT_TOKENS, (SMALLER_LIMIT,))
    assert not sender.learn(cut_off, Settings())  # no limit above the granted one is tried
    sender.limit = REPLY
    assert asyncio.run(send(sender)).adjustments == ()


def test_a_rejection_that_does_not_happen_twice_teaches_nothing() -> None:
    messages = [*MESSAGES, "at most 4096 tokens", "bad request"]
    rejections = list(messages)

    async def send_all() -> None:
        sender = Sender(model)
        for _ in messages:
            await sender.send(QUESTION, SETTINGS)

    # Every second request is rejected.
    model = Scripted(rejection=lambda *_: rejections.pop() if len(model.sent) % 2 else "")
    asyncio.run(send_all())
    assert set(model.sent) == {(ROOM, ())}
    assert len(model.sent) == 2 * len(messages)


def test_an_adjustment_that_does_not_help_is_not_learned() -> None:
    """A policy may reject one prompt, in words that sound like a rejected field."""

    async def send_all() -> None:
        sender = Sender(model)
        with pytest.raises(RequestRejected):
            await sender.send(QUESTION, Settings())
        model.rejection = lambda *_: ""
        await sender.send(QUESTION, Settings())

    model = Scripted(rejection=lambda *_: "not allowed by our system: temperature of the debate")
    asyncio.run(send_all())
    assert model.sent[-1] == (ROOM, ())


@pytest.mark.parametrize(
    ("message", "limit", "expected"),
    [
        ("at most 4096 tokens", 4096, None),  # not below ours
        ("at most 4096 tokens", 5000, 4096),
        ("model gpt-4o-2024-05-13: token error", ROOM, None),
        ("release 1024.5 of the tokenizer", ROOM, None),
        ("upstream failed after 3000 ms", ROOM, None),  # not about tokens
        ("255 tokens", ROOM, None),
    ],
)
def test_numbers_in_rejections(message: str, limit: int, expected: int | None) -> None:
    assert named_limit(message, limit) == expected


@pytest.mark.parametrize("named", ["32768", "of this model"])
def test_the_length_of_a_prompt_is_not_taken_for_the_context(named: str) -> None:
    """vLLM names it after the context, which may be as large as our limit."""
    question = Question(STANDARD, START, (Message("system", "x" * 4_000),))
    message = (
        f"This model's maximum context length is {named} tokens. However, you requested 33768 "
        "tokens (1000 in the messages, 32768 in the completion)."
    )
    model = Scripted(rejection=lambda sent, _: message if (sent.max_tokens or 0) > 31_768 else "")
    assert asyncio.run(Sender(model).send(question, Settings())).limit == 16_384
