"""Models with known behavior, as functions from a request to a reply."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from random import Random

import chess

from cant_do_that_anymore import shipped_pool
from cant_do_that_anymore.game.rules import BISHOPS_AS_KNIGHTS, STANDARD, board_after, placebo_of
from loopback import Body, asked_about, is_changed, is_placebo, moves_in

SPECIAL = {
    position.moves: position.special_moves[0]
    for name in ("diagonal", "pool")  # of those in both, the pool's
    for position in shipped_pool(name)
}
"""The special move after the moves of each shipped position."""


def number_of(moves: tuple[str, ...]) -> int:
    """A number that the moves so far decide, for behavior that differs and yet repeats."""
    return sum(map(ord, "".join(moves)))


def habit(request: Body) -> str:
    """Always the special move, whatever the rules."""
    return SPECIAL[moves_in(request)]


def adapting(request: Body) -> str:
    """A move that the changed rules allow, whatever the rules."""
    return _first_allowed(moves_in(request))


@cache  # every position is asked about several times
def _first_allowed(moves: tuple[str, ...]) -> str:
    return min(move.uci() for move in BISHOPS_AS_KNIGHTS.legal_moves(board_after(moves)))


def perfect(request: Body) -> str:
    """The habit, dropped for a legal move when the rules change."""
    return adapting(request) if is_changed(request) else habit(request)


def silent_when_changed(request: Body) -> str:
    """The habit, and not a word when the rules change."""
    return "" if is_changed(request) else habit(request)


def in_every_second(request: Body) -> str:
    """The habit in every second position, whatever the rules."""
    return habit(request) if number_of(moves_in(request)) % 2 else "a2a3"


def in_every_fifth(request: Body) -> str:
    """The habit in every fifth position, whatever the rules."""
    return habit(request) if number_of(moves_in(request)) % 5 == 0 else "a2a3"


def keeps_habit(moves: tuple[str, ...], *, changed: bool) -> bool:
    """Nine times in ten, and four in ten when the rules change."""
    return number_of(moves) % 10 < (4 if changed else 9)


def wavering(request: Body) -> str:
    """The habit where it is kept, elsewhere always the same move."""
    kept = keeps_habit(moves_in(request), changed=is_changed(request))
    return habit(request) if kept else "a2a3"


def mixed(request: Body) -> str:
    """Habits, legal moves, illegal moves and no moves."""
    fate = number_of(moves_in(request)) % 10
    if fate < (3 if is_changed(request) else 8):
        return habit(request)
    return ("a2a3", "h7h6", "I resign.", "a1a1", " e2e4")[fate % 5]


def own_move(moves: tuple[str, ...]) -> str:
    """A habit in every position: the special move, or in every second one that stays legal."""
    return SPECIAL[moves] if number_of(moves) % 2 else legal_under_both(moves)[0]


@cache
def legal_under_both(moves: tuple[str, ...]) -> tuple[str, ...]:
    """And under the placebo, so that a habit among them makes a control."""
    board, placebo = board_after(moves), placebo_of(BISHOPS_AS_KNIGHTS)
    legal = sorted(move.uci() for move in BISHOPS_AS_KNIGHTS.legal_moves(board))
    found = ((uci, chess.Move.from_uci(uci)) for uci in legal)
    both = (u for u, m in found if STANDARD.is_legal(board, m) and placebo.is_legal(board, m))
    return tuple(both)


def is_restated(request: Body) -> bool:
    """Whether the question states rules at all, the changed ones or those of the placebo."""
    return is_changed(request) or is_placebo(request)


def is_reminded(request: Body) -> bool:
    return "Remember the rules" in str(request)


def knows_the_rule(request: Body, about: str) -> str:
    """The truth about a move."""
    board, move = board_after(moves_in(request)), chess.Move.from_uci(about)
    return "yes" if BISHOPS_AS_KNIGHTS.is_legal(board, move) else "no"


def knows_the_old_rule(request: Body, about: str) -> str:
    """What was true before the change, and so is always wrong."""
    return "no" if knows_the_rule(request, about) == "yes" else "yes"


def says_yes(request: Body, about: str) -> str:
    return "Yes."


def says_no(request: Body, about: str) -> str:
    return "No."


def knows_half(request: Body, about: str) -> str:
    """The truth in every second position with a habit to drop, elsewhere its opposite."""
    knows = number_of(moves_in(request)) // 2 % 2
    return (knows_the_rule if knows else knows_the_old_rule)(request, about)


def unreadable_in_half(request: Body, about: str) -> str:
    """The truth in every second position with a habit to drop, elsewhere no answer at all."""
    knows = number_of(moves_in(request)) // 2 % 2
    return knows_the_rule(request, about) if knows else "Perhaps."


@dataclass(frozen=True)
class Planted:
    """A model that has a habit in every position.

    Attributes:
        drops: by the question, whether it plays another legal move instead.
        says: what it answers about a move.
    """

    drops: Callable[[Body], bool]
    says: Callable[[Body, str], str]

    def __call__(self, request: Body) -> str:
        about = asked_about(request)
        if about:
            return self.says(request, about)
        moves = moves_in(request)
        habit = own_move(moves)
        if not self.drops(request):
            return habit
        return next((uci for uci in legal_under_both(moves) if uci != habit), "h1h8")


def is_forbidden(request: Body) -> bool:
    """Whether its habit is illegal now."""
    moves = moves_in(request)
    return is_changed(request) and own_move(moves) == SPECIAL[moves]


DEAF = Planted(lambda _: False, knows_the_old_rule)
PERFECT = Planted(is_forbidden, knows_the_rule)
CANNOT_STOP = Planted(lambda _: False, knows_the_rule)
EASILY_UPSET = Planted(
    lambda request: is_restated(request) and bool(number_of(moves_in(request)) // 2 % 4),
    knows_the_old_rule,
)
"""Drops three of four habits, of whatever kind, as soon as the text is another one."""
SAYS_YES, SAYS_NO = Planted(is_forbidden, says_yes), Planted(is_forbidden, says_no)
INDEPENDENT = Planted(
    lambda request: is_forbidden(request) and number_of(moves_in(request)) // 4 % 5 < 3, knows_half
)
"""Knows the rule in half of the positions, and follows it in three of five, known or not."""
UNCLEAR = Planted(lambda _: False, unreadable_in_half)
FORGETFUL = Planted(lambda request: is_forbidden(request) and is_reminded(request), knows_the_rule)
"""Knows the rule, and heeds it only when it is stated right before the move."""


def noise(request: Body) -> str:
    """Yes and no, and habits kept or dropped, by a coin that every question throws anew."""
    coin = Random(str(request))
    return Planted(lambda _: coin.random() < 0.5, lambda *_: coin.choice(["yes", "no"]))(request)


def primed(request: Body) -> str:
    """Ignores the rule, but the placebo makes it play its habit more often than usual.

    Found with temperature 0, it has a habit in every position, and then drops two of five.
    """
    coin = Random(f"{is_placebo(request)} {moves_in(request)}").random()
    drops = request["temperature"] > 0 and coin < (0.1 if is_placebo(request) else 0.4)
    return Planted(lambda _: drops, knows_the_rule)(request)


def illegal_when_reminded(request: Body) -> str:
    """Keeps its habit, and replies with an illegal move when it is reminded of the rule."""
    return "h1h8" if is_reminded(request) else CANNOT_STOP(request)
