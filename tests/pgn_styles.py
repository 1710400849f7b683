"""Games written as PGN in many styles, and a simple miner to compare with."""

from collections.abc import Iterable, Iterator, Sequence
from random import Random

import chess

from cant_do_that_anymore import Rules, shipped_pool
from cant_do_that_anymore.habits.chess.rules import board_after

MinedLine = tuple[int, list[str], str]
"""The index of a game, the moves so far, and the usual move."""

TAGS = '[Event "Open"]\n[White "Müller, J."]\n[Black "N.N."]\n\n'
ANNOTATIONS = (
    *[""] * 8,
    *("{a comment (with 1. e4 1-0 in it) and a [%clk 0:01:00]}", "; up to here\n", "$142", "+-"),
    *("{a long\n\ncomment\n\n1. e4 is best by test}", "\n% escaped\n"),
    "(12. Nonsense {with a ) inside} (1. deeper (still) 0-1) 13. e9)",
)


def game_from_choices(choices: Sequence[int]) -> list[chess.Move]:
    """A legal game in which each number chooses one of the legal moves."""
    board = chess.Board()
    for choice in choices:
        legal = list(board.legal_moves)
        if not legal:
            break
        board.push(legal[choice % len(legal)])
    return board.move_stack


def pool_games(count: int, random: Random) -> Iterator[list[chess.Move]]:
    """Real openings, continued with random moves."""
    for position in shipped_pool("pool")[:count]:
        board = board_after(position.moves)
        board.push_uci(position.usual[0])
        while len(board.move_stack) < 24 and (legal := list(board.legal_moves)):
            board.push(random.choice(legal))
        yield board.move_stack


def usual(games: Iterable[list[chess.Move]], rules: Rules, every: bool) -> list[MinedLine]:
    """The usual moves in games, or only the first of each game."""
    lines = []
    for index, moves in enumerate(games):
        board = chess.Board()
        for move in moves:
            if rules.is_habit(board, move):
                lines.append((index, [m.uci() for m in board.move_stack], move.uci()))
                if not every:
                    break
            board.push(move)
    return lines


def plain_pgn(moves: Sequence[chess.Move]) -> str:
    """A game in the usual style."""
    return TAGS + chess.Board().variation_san(moves) + " *\n\n"


def styled_pgn(moves: Sequence[chess.Move], random: Random) -> str:
    """The same game in a random style."""
    board = chess.Board()
    tokens = []
    for move in moves:
        tokens += [_number(board, random) + _san(board, move, random), random.choice(ANNOTATIONS)]
        board.push(move)
    tokens.append(random.choice(["1-0", "0-1", "1/2-1/2", "*"]))
    text = "".join(token + random.choice([" ", " ", " ", "\n"]) for token in tokens)
    return random.choice([TAGS, TAGS + "{Before the first move.}\n\n"]) + text + "\n\n"


def _number(board: chess.Board, random: Random) -> str:
    number = board.fullmove_number
    if board.turn == chess.WHITE:
        return random.choice([f"{number}.", f"{number}. ", f"{number} ", f"{number}.\n", ""])
    return random.choice(["", "", f"{number}...", f"{number}... "])


def _san(board: chess.Board, move: chess.Move, random: Random) -> str:
    san = board.san(move)
    if board.is_en_passant(move):
        return random.choice([san, san + " e.p."])
    mark = random.choice(["!", "?!", " ?", " $14"])
    styles = [san, san.rstrip("+#"), san + mark, board.lan(move), move.uci()]
    return random.choice([*styles, san.replace("O", "0"), san.replace("=", "")])
