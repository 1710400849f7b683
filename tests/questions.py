"""Questions of the evaluation, for tests of whoever answers."""

import asyncio

from cant_do_that_anymore.game.position import Position
from cant_do_that_anymore.game.rules import STANDARD, Rules
from cant_do_that_anymore.providers.base import Answer, Model, Question, Settings
from cant_do_that_anymore.task.conditions import condition_named
from cant_do_that_anymore.task.prompts import DEFAULT


def question(moves: tuple[str, ...], rules: Rules = STANDARD) -> Question:
    """What is asked after these moves under these rules, in the default wording."""
    standard = rules == STANDARD
    text = DEFAULT.standard if standard else DEFAULT.changed_prompt(rules)
    condition = condition_named("standard" if standard else "changed", rules, text)
    return condition.question(Position(0, moves, ()))


def ask(
    model: Model, *moves: str, rules: Rules = STANDARD, settings: Settings | None = None
) -> Answer:
    """What a model answers to one question, by default at temperature 0; it is closed then."""

    async def answer() -> Answer:
        try:
            return await model.answer(question(moves, rules), settings or Settings(0.0))
        finally:
            await model.close()

    return asyncio.run(answer())
