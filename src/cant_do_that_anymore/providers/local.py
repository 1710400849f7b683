"""Models on this machine: uniformly random moves, and a person at the terminal."""

import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from random import Random

import chess

from ..errors import Stopped
from ..game.move_parser import move_in
from ..game.notation import numbered, written_game
from ..game.rules import board_after
from .base import CHAT_TOKENS, Answer, ModelInfo, Question, RequestVariant, Settings


class RandomModel:
    """Plays a seeded, uniformly random move that is legal under the rules of the question."""

    name = "cdta/random"
    endpoint = provider = ""
    connections = 64
    max_tokens = CHAT_TOKENS
    may_think = False

    @property
    def identity(self) -> Mapping[str, object]:
        """The name says it all."""
        return {"name": self.name}

    async def answer(
        self, question: Question, settings: Settings, form: RequestVariant = ()
    ) -> Answer:
        """Play one move, or nothing where there is none; say yes or no to what asks for that."""
        board = board_after(question.moves)
        moves = sorted(move.uci() for move in question.rules.legal_moves(board))
        choices = ["yes", "no"] if question.about else moves
        text = Random(settings.seed).choice(choices) if choices else ""
        return Answer(text, version=self.name)

    async def close(self) -> None:
        """Nothing to let go of."""


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
        self._how_far = ""

    def hear(self, how_far: str) -> None:
        """Take note of how far it has come, to be shown with the next question."""
        self._how_far = how_far

    async def answer(
        self, question: Question, settings: Settings, form: RequestVariant = ()
    ) -> Answer:
        """Show the question and wait for a move, or for yes or no.

        Waiting blocks the event loop on purpose: nobody answers two questions at once.

        Raises:
            Stopped: when the person leaves, and from then on.
        """
        if not self._has_left:
            self._show(question)
            typed = _typed_yes_or_no() if question.about else _typed_move(question)
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
        game = numbered(written_game(question.moves))
        if self._how_far:
            _say(f"\n{self._how_far}")
        _say(f"\n{question.rules.title}. Moves so far: {game or 'none'}.")
        _say(f"{drawing(board)}\nYou are {_side(board.turn)}.")
        last = question.messages[-1]
        added = last.content.removeprefix("".join(question.moves[-1:])).strip()
        if added and last.role == "user":
            _say(f"\n{added}")


def listener(model: ModelInfo) -> Callable[[str], None] | None:
    """Who wants to hear how far it has come: a person."""
    return model.hear if isinstance(model, HumanModel) else None


def drawing(board: chess.Board) -> str:
    """The board in Unicode, seen by the side to move.

    >>> print(drawing(chess.Board()).splitlines()[-1])
      a b c d e f g h
    """
    rows = board.unicode(orientation=board.turn, empty_square="·").splitlines()
    ranks, files = ("87654321", "abcdefgh") if board.turn else ("12345678", "hgfedcba")
    lines = [f"{rank} {row}" for rank, row in zip(ranks, rows, strict=True)]
    return "\n".join([*lines, "  " + " ".join(files)])


def _typed_move(question: Question) -> str | None:
    """A move in UCI, legal or not, since that is the question; None if the person leaves."""
    board = board_after(question.moves)

    def meant(typed: str) -> str:
        move = move_in(typed, board, question.rules)
        if not move:
            raise ValueError("names no move there: write it as e2e4 or Nf3")
        if board.color_at(move.from_square) != board.turn:
            square = chess.square_name(move.from_square)
            raise ValueError(f"moves no piece of yours: {_side(board.turn)} has none on {square}")
        return move.uci()

    return _typed("Your move, such as e2e4 or Nf3 (Ctrl-D to stop): ", meant)


def _typed_yes_or_no() -> str | None:
    def meant(typed: str) -> str:
        if typed.lower() not in ("yes", "no"):
            raise ValueError("is neither yes nor no")
        return typed.lower()

    return _typed("Yes or no (Ctrl-D to stop): ", meant)


def _typed(asked: str, meant: Callable[[str], str]) -> str | None:
    """What is meant by what is typed, asked until it means something; None if the person leaves."""
    while True:
        _say(asked, end="")
        try:
            with _interruptible():
                typed = input().strip()
        except (EOFError, KeyboardInterrupt):
            _say("")
            return None
        try:
            return meant(typed)
        except ValueError as problem:
            _say(f"{typed!r} {problem}.")


def _side(colour: chess.Color) -> str:
    return "White" if colour else "Black"


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
