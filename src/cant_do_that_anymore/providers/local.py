"""Local models: uniformly random moves, and a person at the terminal."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random

import chess

from ..errors import Stopped
from ..game.move_parser import move_in
from ..game.notation import notate_game
from ..game.position import Position
from ..game.rules import board_after
from .base import Answer, Model, Question, RequestVariant, Settings, local_info


class RandomModel(Model):
    """Plays a seeded, uniformly random move that is legal under the rules of the question."""

    info = local_info("cdta/random", connections=64)

    async def answer(
        self, question: Question, settings: Settings, variant: RequestVariant = ()
    ) -> Answer:
        """Play one move, or none if there is none; answer yes or no to questions of legality."""
        board = Position(0, question.moves, ()).board()  # cached, for its score as well
        moves = sorted(move.uci() for move in question.rules.legal_moves(board))
        choices = ["yes", "no"] if question.about else moves
        text = Random(settings.seed).choice(choices) if choices else ""
        return Answer(text, version=self.info.name)


class HumanModel(Model):
    """Asks the person at the terminal, one question at a time.

    All prompts go to standard error; standard output is for results.
    """

    info = local_info("human", connections=1)

    def __init__(self) -> None:
        self._printed_tasks: set[str] = set()
        self._has_left = False
        self._progress = ""

    def on_progress(self, progress: str) -> None:
        """Set the progress text that is printed with the next question."""
        self._progress = progress

    async def answer(
        self, question: Question, settings: Settings, variant: RequestVariant = ()
    ) -> Answer:
        """Print the question and wait for a move, or for yes or no.

        Waiting blocks the event loop on purpose: a person answers one question at a time.

        Raises:
            Stopped: once the person has left.
        """
        if not self._has_left:
            self._print_question(question)
            reply = _prompt_for_yes_or_no() if question.about else _prompt_for_move(question)
            if reply:
                return Answer(reply, version=self.info.name)
            self._has_left = True
        raise Stopped

    def _print_question(self, question: Question) -> None:
        task = question.messages[0].content
        if task not in self._printed_tasks:
            self._printed_tasks.add(task)
            _print(f"\n{task}")
        board = board_after(question.moves)
        game = notate_game(question.moves)
        if self._progress:
            _print(f"\n{self._progress}")
        _print(f"\n{question.rules.title}. Moves so far: {game or 'none'}.")
        _print(f"{draw_board(board)}\nYou are {_side(board.turn)}.")
        last = question.messages[-1]
        addition = last.content.removeprefix("".join(question.moves[-1:])).strip()
        if addition and last.role == "user":
            _print(f"\n{addition}")


def draw_board(board: chess.Board) -> str:
    """Draw the board in Unicode, seen from the side to move.

    >>> print(draw_board(chess.Board()).splitlines()[-1])
      a b c d e f g h
    """
    rows = board.unicode(orientation=board.turn, empty_square="·").splitlines()
    ranks, files = ("87654321", "abcdefgh") if board.turn else ("12345678", "hgfedcba")
    lines = [f"{rank} {row}" for rank, row in zip(ranks, rows, strict=True)]
    return "\n".join([*lines, "  " + " ".join(files)])


def _prompt_for_move(question: Question) -> str | None:
    """Prompt for a move and return it in UCI, legal or not; None if the person leaves."""
    board = board_after(question.moves)

    def parse(typed: str) -> str:
        move = move_in(typed, board, question.rules)
        if not move:
            raise ValueError("is not a move there; write it as e2e4 or Nf3")
        if board.color_at(move.from_square) != board.turn:
            square = chess.square_name(move.from_square)
            raise ValueError(f"does not move your piece: {_side(board.turn)} has none on {square}")
        return move.uci()

    return _prompt("Your move, such as e2e4 or Nf3 (Ctrl-D to stop): ", parse)


def _prompt_for_yes_or_no() -> str | None:
    def parse(typed: str) -> str:
        if typed.lower() not in ("yes", "no"):
            raise ValueError("is neither yes nor no")
        return typed.lower()

    return _prompt("Yes or no (Ctrl-D to stop): ", parse)


def _prompt(text: str, parse: Callable[[str], str]) -> str | None:
    """Prompt until the input can be parsed, and return the result; None if the person leaves."""
    while True:
        _print(text, end="")
        try:
            with _interruptible():
                typed = input().strip()
        except (EOFError, KeyboardInterrupt):
            _print("")
            return None
        try:
            return parse(typed)
        except ValueError as problem:
            _print(f"{typed!r} {problem}.")


def _side(color: chess.Color) -> str:
    return "White" if color else "Black"


def _print(text: str, end: str = "\n") -> None:
    print(text, end=end, file=sys.stderr, flush=True)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C interrupt ``input`` at once; asyncio's handler would only set a flag."""
    try:
        handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    except ValueError:  # signals can be set in the main thread only
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
