"""Models whose behaviour is known, as answers of the loopback server: whom the tests measure."""

from cant_do_that_anymore.game.position import shipped_pool
from cant_do_that_anymore.game.rules import BISHOPS_AS_KNIGHTS, board_after
from loopback import Request, is_changed, moves_in

SPECIAL = {
    position.moves: position.special_moves[0]
    for name in ("diagonal", "pool")  # of those in both, the pool's
    for position in shipped_pool(name)
}
"""The special move after the moves of each shipped position."""


def number_of(moves: tuple[str, ...]) -> int:
    """A number that the moves so far decide, for behaviour that differs and yet repeats."""
    return sum(map(ord, "".join(moves)))


def habit(request: Request) -> str:
    """Always the special move, whatever the rules."""
    return SPECIAL[moves_in(request)]


def adapting(request: Request) -> str:
    """A move that the changed rules allow, whatever the rules."""
    board = board_after(moves_in(request))
    return min(move.uci() for move in BISHOPS_AS_KNIGHTS.legal_moves(board))


def perfect(request: Request) -> str:
    """The habit, dropped for a legal move when the rules change."""
    return adapting(request) if is_changed(request) else habit(request)


def silent_when_changed(request: Request) -> str:
    """The habit, and not a word when the rules change."""
    return "" if is_changed(request) else habit(request)


def in_every_second(request: Request) -> str:
    """The habit in every second position, whatever the rules."""
    return habit(request) if number_of(moves_in(request)) % 2 else "a2a3"


def keeps_habit(moves: tuple[str, ...], *, changed: bool) -> bool:
    """Nine times in ten, and four in ten when the rules change."""
    return number_of(moves) % 10 < (4 if changed else 9)


def wavering(request: Request) -> str:
    """The habit where it is kept, elsewhere always the same move."""
    kept = keeps_habit(moves_in(request), changed=is_changed(request))
    return habit(request) if kept else "a2a3"


def mixed(request: Request) -> str:
    """Habits, legal moves, illegal moves and no moves."""
    fate = number_of(moves_in(request)) % 10
    if fate < (3 if is_changed(request) else 8):
        return habit(request)
    return ("a2a3", "h7h6", "I resign.", "a1a1", " e2e4")[fate % 5]
