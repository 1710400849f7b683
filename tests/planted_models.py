"""Models with known behavior, as functions from a request to a reply."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from random import Random

import chess

from cant_do_that_anymore import shipped_pool
from cant_do_that_anymore.habits.chess.rules import (
    BISHOPS_AS_KNIGHTS,
    STANDARD,
    board_after,
)
from loopback import (
    Body,
    Loopback,
    Reasoning,
    Responder,
    checksum,
    is_changed,
    is_placebo,
    moves_in,
    queried_move,
)

USUAL = {
    position.moves: position.usual[0]
    for name in ("diagonal", "pool")  # the pool overrides
    for position in shipped_pool(name)
}
"""The usual move of each shipped position, by its moves."""


def habit(request: Body) -> str:
    """Always the usual move, whatever the rules."""
    return USUAL[moves_in(request)]


@cache  # every position is used several times
def _first_legal(moves: tuple[str, ...]) -> str:
    return min(move.uci() for move in BISHOPS_AS_KNIGHTS.legal_moves(board_after(moves)))


def adapting(request: Body) -> str:
    """A move that the changed rules allow, whatever the rules."""
    return _first_legal(moves_in(request))


def perfect(request: Body) -> str:
    """The habit, replaced by a legal move when the rules change."""
    return adapting(request) if is_changed(request) else habit(request)


def habit_in_every(number: int) -> Callable[[Body], str]:
    """The habit in every position of this number, whatever the rules."""
    return lambda request: "a2a3" if checksum(moves_in(request)) % number else habit(request)


habit_in_every_second, habit_in_every_fifth = habit_in_every(2), habit_in_every(5)


def wavering(request: Body) -> str:
    """The habit in nine of ten positions, and in four of ten when the rules change."""
    kept = checksum(moves_in(request)) % 10 < (4 if is_changed(request) else 9)
    return habit(request) if kept else "a2a3"


def mixed(request: Body) -> str:
    """Habits, legal moves, illegal moves and replies without a move."""
    number = checksum(moves_in(request)) % 10
    if number < (3 if is_changed(request) else 8):
        return habit(request)
    return ("a2a3", "h7h6", "I resign.", "a1a1", " e2e4")[number % 5]


def usual_move(moves: tuple[str, ...]) -> str:
    """The habit in every position: the usual move, or in every second one a move still legal."""
    return USUAL[moves] if checksum(moves) % 2 else legal_under_both(moves)[0]


@cache
def legal_under_both(moves: tuple[str, ...]) -> tuple[str, ...]:
    """Moves legal under both rules and the placebo, so that positions can be controls."""
    board, placebo = board_after(moves), BISHOPS_AS_KNIGHTS.placebo_change
    legal = sorted(BISHOPS_AS_KNIGHTS.legal_moves(board), key=chess.Move.uci)
    others = (STANDARD, placebo)
    return tuple(m.uci() for m in legal if all(rules.is_legal(board, m) for rules in others))


def states_rules(request: Body) -> bool:
    """Whether the prompt states rules: the changed ones or the placebo."""
    return is_changed(request) or is_placebo(request)


def is_reminded(request: Body) -> bool:
    return "Remember the rules" in str(request)


def planted(
    drops_habit: Callable[[Body], bool], legality_answer: Callable[[Body, str], str]
) -> Responder:
    """A model with a habit in every position.

    The functions tell whether it plays another legal move in reply to a request, and its answer
    about the legality of a move.
    """

    def respond(request: Body) -> str:
        if uci := queried_move(request):
            return legality_answer(request, uci)
        moves = moves_in(request)
        habit = usual_move(moves)
        if not drops_habit(request):
            return habit
        return next((uci for uci in legal_under_both(moves) if uci != habit), "h1h8")

    return respond


def never(request: Body) -> bool:
    return False


def when_forbidden(request: Body) -> bool:
    """Whether the rules of the request forbid the habit."""
    moves = moves_in(request)
    return is_changed(request) and usual_move(moves) == USUAL[moves]


def correct(request: Body, uci: str) -> str:
    """Whether a move is legal under the changed rules."""
    board, move = board_after(moves_in(request)), chess.Move.from_uci(uci)
    return "yes" if BISHOPS_AS_KNIGHTS.is_legal(board, move) else "no"


def outdated(request: Body, uci: str) -> str:
    """The opposite of the correct answer, as if the rules had not changed."""
    return "no" if correct(request, uci) == "yes" else "yes"


def half_unreadable(request: Body, uci: str) -> str:
    """Correct in every second position with a habit to drop, elsewhere unreadable."""
    return correct(request, uci) if checksum(moves_in(request)) // 2 % 2 else "Perhaps."


IGNORES_RULE = planted(never, outdated)
PERFECT = planted(when_forbidden, correct)
CANNOT_STOP = planted(never, correct)
UPSET_BY_ANY_CHANGE = planted(
    lambda r: states_rules(r) and bool(checksum(moves_in(r)) // 2 % 4), outdated
)
"""Drops three of four habits, usual moves or not, whenever the prompt is different."""
SAYS_YES = planted(when_forbidden, lambda *_: "Yes.")
SAYS_NO = planted(when_forbidden, lambda *_: "No.")
HALF_UNREADABLE = planted(never, half_unreadable)
NEEDS_REMINDER = planted(lambda r: when_forbidden(r) and is_reminded(r), correct)
"""Knows the rule, and follows it only when it is stated right before the move."""


def noise(request: Body) -> str:
    """Random answers and random habits, by a coin that depends on the whole request."""
    coin = Random(str(request))
    return planted(lambda _: coin.random() < 0.5, lambda *_: coin.choice(["yes", "no"]))(request)


def primed(request: Body) -> str:
    """Ignores the rule, but the placebo makes it play its habit more often than usual.

    At temperature 0 it has a habit in every position; otherwise it drops two of five.
    """
    coin = Random(f"{is_placebo(request)} {moves_in(request)}").random()
    drops = request["temperature"] > 0 and coin < (0.1 if is_placebo(request) else 0.4)
    return planted(lambda _: drops, correct)(request)


def illegal_when_reminded(request: Body) -> str:
    """Keeps its habit, and replies with an illegal move when reminded of the rule."""
    return "h1h8" if is_reminded(request) else CANNOT_STOP(request)


HIDDEN = Reasoning(field="", counted="details", cut_off=("", "length"))
"""Hidden but counted, as by OpenAI."""

HABITS_KEPT = {
    "yielding": {"none": 9, "low": 6, "medium": 4, "high": 1},
    "stubborn": {"none": 9, "low": 9, "medium": 8, "high": 7},
}
"""In how many of ten positions a model keeps its habit when the rules change, by effort."""
MIN_REASONING_TOKENS = {"none": 0, "low": 500, "medium": 1_500, "high": 4_000}
"""The fewest reasoning tokens, by effort."""


def keeps_habit_at(effort: str, moves: tuple[str, ...], model: str) -> bool:
    """Whether a model keeps its habit under the changed rules."""
    return checksum(moves) % 10 < HABITS_KEPT[model][effort]


def reasoning_tokens_at(effort: str, moves: tuple[str, ...], *, changed: bool) -> int:
    """The number of reasoning tokens, about 1.5 times as many when the rules change."""
    tokens = MIN_REASONING_TOKENS[effort]
    return tokens and (tokens * 3 // 2 if changed else tokens) + checksum(moves) % 100


def effort_server() -> Loopback:
    """A server whose models follow the rule more with more effort, by a known function."""

    def respond(request: Body) -> str:
        kept = keeps_habit_at(request["reasoning_effort"], moves_in(request), request["model"])
        return habit(request) if kept or not is_changed(request) else adapting(request)

    def tokens(request: Body) -> int:
        effort, changed = request["reasoning_effort"], is_changed(request)
        return reasoning_tokens_at(effort, moves_in(request), changed=changed)

    return Loopback(respond, reasoning=replace(HIDDEN, tokens=tokens))
