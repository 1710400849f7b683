"""Token limits and rejected fields: what one model accepts is learned from its answers."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from cant_do_that_anymore.client.sender import Sender
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
    RENAMED_LIMIT,
    SMALLER_LIMIT,
    USER_FIRST,
    adjusted,
    advice_on_limit,
    named_limit,
    with_adjustments,
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

pytestmark = pytest.mark.usefixtures("no_retry_delay")

Rejection = Callable[[int], str]


class Scripted(Model):
    """Rejects what ``rejection`` says, and gives its answers in turn, then short ones."""

    def __init__(self, *answers: Answer, rejection: Rejection = lambda _: "") -> None:
        self.info = INFO
        self.answers = list(answers)
        self.rejection = rejection
        self.sent: list[int] = []

    async def answer(self, question: Question, settings: Settings) -> Answer:
        limit = settings.max_tokens or 0
        self.sent.append(limit)
        if message := self.rejection(limit):
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
        return [*model.sent, sender.wanted(settings)]

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


def test_only_replies_cut_off_below_the_limit_are_too_short() -> None:
    sender, cut_off = Sender(Scripted(), ROOM), replace(CUT_OFF, limit=REPLY)
    assert sender.is_too_short(cut_off, SETTINGS)
    assert not sender.is_too_short(replace(cut_off, stop_reason="stop"), SETTINGS)
    assert not sender.is_too_short(replace(cut_off, limit=ROOM), SETTINGS)
    assert not sender.is_too_short(replace(cut_off, adjustments=(SMALLER_LIMIT,)), SETTINGS)
    assert not Sender(Scripted(), REPLY).is_too_short(cut_off, SETTINGS)


def above(accepted: int, message: str) -> Rejection:
    """Reject larger token limits than this one."""
    return lambda limit: message if limit > accepted else ""


@pytest.mark.parametrize(
    ("message", "accepted", "expected"),
    [
        ("This model supports at most 4096 completion tokens, not 32768.", 4096, None),
        ("tokens per min (TPM): Limit 30000, Requested 33012", 30_000, None),
        (
            "'max_tokens' or 'max_completion_tokens' is too large: 32768. This model's maximum "
            "context length is 4096 tokens and your request has 210 input tokens",
            *(4096, None),
        ),
        ("max_tokens: 32768 > 8,192, which is the maximum allowed number", 8192, None),
        ("The prompt exceeds the context", 3_000, 2048),  # halved
    ],
)
def test_a_named_limit_less_the_prompt_is_sent_again(
    message: str, accepted: int, expected: int | None
) -> None:
    """The next request is accepted at once."""
    model = Scripted(rejection=above(accepted, message))

    async def send_two() -> None:
        sender = Sender(model)
        await sender.send(QUESTION, SETTINGS)
        n_sent = len(model.sent)
        await sender.send(QUESTION, SETTINGS)
        assert len(model.sent) == n_sent + 1

    asyncio.run(send_two())
    assert model.sent[-1] == (expected or accepted - PROMPT_TOKENS)


def test_an_answer_names_a_limit_that_was_made_smaller() -> None:
    model = Scripted(CUT_OFF_REASONING, SHORT, rejection=above(1024, "at most 1024 tokens"))
    sender = Sender(model)
    cut_off = asyncio.run(sender.send(QUESTION, SETTINGS))
    assert (cut_off.limit, cut_off.adjustments) == (1024 - PROMPT_TOKENS, (SMALLER_LIMIT,))
    assert advice_on_limit(cut_off.adjustments) == "the server refused more"
    assert not sender.learn(cut_off, SETTINGS)  # no limit above the granted one is tried
    sender.limit = REPLY
    assert asyncio.run(sender.send(QUESTION, SETTINGS)).adjustments == ()


@pytest.mark.parametrize(
    ("message", "limit", "expected"),
    [
        ("at most 4096 tokens", 4096, None),  # not below ours
        ("at most 4096 tokens", 5000, 4096),
        ("model gpt-4o-2024-05-13 with release 1024.5 of the tokenizer", ROOM, None),
        ("upstream failed after 3000 ms", ROOM, None),  # not about tokens
        ("255 tokens", ROOM, None),
    ],
)
def test_numbers_in_rejections(message: str, limit: int, expected: int | None) -> None:
    assert named_limit(message, limit) == expected


def test_the_length_of_a_prompt_is_not_taken_for_the_context() -> None:
    """vLLM names it after the context, which may be as large as our limit."""
    question = Question(STANDARD, START, (Message("system", "x" * 4_000),))
    message = (
        "This model's maximum context length is 32768 tokens. However, you requested 33768 "
        "tokens (1000 in the messages, 32768 in the completion)."
    )
    model = Scripted(rejection=above(31_768, message))
    assert asyncio.run(Sender(model).send(question, SETTINGS)).limit == 16_384


REJECTIONS: list[tuple[str, Adjustments, Adjustments | None]] = [
    ("no max_tokens", (), (RENAMED_LIMIT,)),
    ("use max_completion_tokens", (RENAMED_LIMIT,), None),
    ("must alternate", (), (USER_FIRST,)),
    ("must alternate", (USER_FIRST,), (USER_FIRST, NO_SYSTEM)),
    ("it must start: user", (), (USER_FIRST,)),
    ("only users", (), (NO_SYSTEM,)),
    ("Unexpected role: system", (), (NO_SYSTEM,)),
    ("'messages[0].role' does not support 'system' with this", (), (NO_SYSTEM,)),
    ("a system message is not allowed", (), (NO_SYSTEM,)),
    ("temperature must be less than 2", (), None),
    ("Reasoning is mandatory for this endpoint and cannot be disabled.", (), None),
]


@pytest.mark.parametrize(("message", "made", "expected"), REJECTIONS)
def test_the_message_of_a_rejection_decides(
    message: str, made: Adjustments, expected: Adjustments | None
) -> None:
    assert adjusted(message, made) == expected
    assert adjusted(message.upper().replace(" ", "\n"), made) == expected


def arranged(messages: tuple[Message, ...], made: Adjustments) -> tuple[Message, ...]:
    return with_adjustments(replace(QUESTION, messages=messages), SETTINGS, made)[0].messages


def test_adjustments_arrange_the_turns() -> None:
    turns = tuple(Message(role, role) for role in ("system", "assistant", "user"))
    roles = {
        (): "system assistant user",
        (USER_FIRST,): "system user assistant user",
        (NO_SYSTEM,): "user assistant user",
        (USER_FIRST, NO_SYSTEM): "user assistant user",
    }
    for made, expected in roles.items():
        assert " ".join(turn.role for turn in arranged(turns, made)) == expected
    assert arranged(turns, (USER_FIRST,))[1].content == "The game begins. You play White."
    system, question = Message("system", "Play."), Message("user", "e2e4")
    assert {arranged((question,), made) for made in roles} == {(question,)}
    assert arranged((system, question), (USER_FIRST,)) == (system, question)
    assert arranged((system, question), (NO_SYSTEM,)) == (Message("user", "Play.\n\ne2e4"),)
