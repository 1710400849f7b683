"""A person at the terminal: sees the board, types a move."""

import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import chess

from ..errors import Stopped
from ..game.rules import board_after
from .model import CHAT_TOKENS, Answer, Form, Question, Settings


class HumanModel:
    """Asks the person at the terminal, one question at a time.

    Everything is shown on standard error, so that standard output stays for results.
    """

    name = "human"
    endpoint = provider = ""
    connections = 1
    max_tokens = CHAT_TOKENS
    may_think = False

    @property
    def identity(self) -> Mapping[str, object]:
        """The name says it all."""
        return {"name": self.name}

    def __init__(self) -> None:
        self._shown: set[str] = set()
        self._has_left = False

    async def answer(self, question: Question, settings: Settings, form: Form = ()) -> Answer:
        """Show the question and wait for a move, or for yes or no.

        Waiting blocks the event loop on purpose: nobody answers two questions at once.

        Raises:
            Stopped: when the person leaves, and from then on.
        """
        if not self._has_left:
            self._show(question)
            typed = _typed_yes_or_no() if question.about else _typed_move()
            if typed:
                return Answer(typed, version=self.name)
            self._has_left = True
        raise Stopped

    async def close(self) -> None:
        """Nothing to let go of."""

    def _show(self, question: Question) -> None:
        task = question.messages[0].content
        if task not in self._shown:
            self._shown.add(task)
            _say(f"\n{task}")
        board = board_after(question.moves)
        side = "White" if board.turn else "Black"
        _say(f"\n{question.rules.title}. Moves so far: {' '.join(question.moves) or 'none'}")
        _say(f"{drawing(board)}\nYou are {side}.")
        last = question.messages[-1]
        added = last.content.removeprefix("".join(question.moves[-1:])).strip()
        if added and last.role == "user":
            _say(f"\n{added}")


def drawing(board: chess.Board) -> str:
    """The board in Unicode, seen by the side to move.

    >>> print(drawing(chess.Board()).splitlines()[-1])
      a b c d e f g h
    """
    rows = board.unicode(orientation=board.turn, empty_square="·").splitlines()
    ranks, files = ("87654321", "abcdefgh") if board.turn else ("12345678", "hgfedcba")
    lines = [f"{rank} {row}" for rank, row in zip(ranks, rows, strict=True)]
    return "\n".join([*lines, "  " + " ".join(files)])


def _typed_move() -> str | None:
    """A move in UCI, legal or not, since that is the question; None if the person leaves."""
    return _typed(
        "Your move, such as e2e4 (Ctrl-D to stop): ",
        _is_move,
        "is no move: give the square the piece leaves and the one it arrives on.",
    )


def _typed_yes_or_no() -> str | None:
    asked = "Yes or no (Ctrl-D to stop): "
    return _typed(asked, lambda text: text in ("yes", "no"), "is neither yes nor no.")


def _typed(asked: str, fits: Callable[[str], bool], else_said: str) -> str | None:
    """What is typed and fits; None if the person leaves."""
    while True:
        _say(asked, end="")
        try:
            with _interruptible():
                typed = input().strip().lower()
        except (EOFError, KeyboardInterrupt):
            _say("")
            return None
        if fits(typed):
            return typed
        _say(f"{typed!r} {else_said}")


def _is_move(text: str) -> bool:
    try:
        return bool(chess.Move.from_uci(text))
    except chess.InvalidMoveError:
        return False


def _say(text: str, end: str = "\n") -> None:
    print(text, end=end, file=sys.stderr, flush=True)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C end the waiting at once; asyncio would only take note of it."""
    try:
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
    except ValueError:  # signals can be set in the main thread only
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
