"""Questions of the evaluation, for tests of whoever answers."""

from cant_do_that_anymore.game.position import Position
from cant_do_that_anymore.game.rules import STANDARD, Rules
from cant_do_that_anymore.providers.base import Question
from cant_do_that_anymore.task.conditions import condition_named
from cant_do_that_anymore.task.prompts import DEFAULT


def question(moves: tuple[str, ...], rules: Rules = STANDARD) -> Question:
    """What is asked after these moves under these rules, in the default wording."""
    standard = rules == STANDARD
    text = DEFAULT.standard if standard else DEFAULT.changed_prompt(rules)
    condition = condition_named("standard" if standard else "changed", rules, text)
    return condition.question(Position(0, moves, ()))
