"""Makes the shipped pool of `all_diagonal`: positions of games played under changed rules.

    python tools/selfplay.py stockfish pool.jsonl.gz

A UCI engine can play "bishops move like knights" as a standard game from an initial position in
which every bishop is a knight. The moves are then replayed on the real board. The positions are
spread evenly over strata: the number of earlier moves of bishops, 0 to 7, and 8 or more.
"""

import itertools
import json
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from random import Random

import chess
import chess.engine
from chess.engine import INFO_PV, INFO_SCORE, SimpleEngine

from cant_do_that_anymore.habits.chess.position import Position, played, write_positions
from cant_do_that_anymore.habits.chess.rules import BISHOPS_AS_KNIGHTS as RULES

POSITIONS, SEED, STRATA = 2250, 0, 9
# A move is sampled from the best LINES; one that is TEMPERATURE centipawns worse is e times less
# likely. Two positions of one game are at least APART strata from each other.
NODES, LINES, TEMPERATURE, MAX_PLIES, PER_GAME, APART = 1000, 4, 50, 50, 2, 3


def play_positions(engine: SimpleEngine, count: int) -> Iterator[Position]:
    """Play games until they gave ``count`` positions, equally many per stratum."""
    quota = math.ceil(count / STRATA)
    filled: Counter[int] = Counter()
    seen: set[tuple[str, ...]] = set()
    for game in itertools.count():
        random = Random(f"{SEED} {game}")
        offered = by_stratum(game, play_game(engine, random), seen)
        wanted = [stratum for stratum in offered if filled[stratum] < quota]
        for stratum in choose_strata(wanted, filled, random):
            position = random.choice(offered[stratum])
            filled[stratum] += 1
            seen.add(position.moves)
            yield position
            if len(seen) == count:
                return


def play_game(engine: SimpleEngine, random: Random) -> list[chess.Move]:
    """Let the engine play one game under the changed rules against itself."""
    game = object()  # a new object tells the engine to forget the last game
    board = chess.Board(RULES.view(chess.Board()).fen())
    while not is_over(board) and len(board.move_stack) < MAX_PLIES:
        # To the engine a promoted bishop would move as bishops did before, so there is none.
        moves = [move for move in board.legal_moves if move.promotion != chess.BISHOP]
        limit = chess.engine.Limit(nodes=NODES)
        lines = engine.analyse(
            board, limit, multipv=LINES, game=game, root_moves=moves, info=INFO_SCORE | INFO_PV
        )
        scores = [line["score"].relative.score(mate_score=10_000) for line in lines]
        weights = [math.exp((score - max(scores)) / TEMPERATURE) for score in scores]
        board.push(random.choices([line["pv"][0] for line in lines], weights)[0])
    return board.move_stack


def is_over(view: chess.Board) -> bool:
    return view.is_game_over() or view.is_repetition(3) or view.is_fifty_moves()


def by_stratum(
    game: int, moves: list[chess.Move], seen: set[tuple[str, ...]]
) -> dict[int, list[Position]]:
    history: tuple[str, ...] = ()
    earlier = 0
    positions = defaultdict(list)
    for board, move in played(moves):
        usual = usual_moves(board)
        if usual and history not in seen:
            positions[min(earlier, STRATA - 1)].append(Position(game, history, usual))
        earlier += RULES.affects(board, move)
        history += (move.uci(),)
    return positions


def usual_moves(board: chess.Board) -> tuple[str, ...]:
    """Return the usual moves of the side to move; none if one is illegal for another reason."""
    view = RULES.view(board)
    moves = [
        move
        for move in board.generate_pseudo_legal_moves()
        if RULES.affects(board, move) and not view.is_pseudo_legal(move)
    ]
    if not all(RULES.is_habit(board, move) and is_safe(board, move) for move in moves):
        return ()
    return tuple(sorted(move.uci() for move in moves))


def is_safe(board: chess.Board, move: chess.Move) -> bool:
    """Whether the king is not left in check under the changed rules."""
    after = board.copy(stack=False)
    after.push(move)
    return not RULES.view(after).was_into_check()


def choose_strata(wanted: list[int], filled: Counter[int], random: Random) -> list[int]:
    """Choose the wanted strata with the fewest positions, far enough from each other."""
    chosen: list[int] = []
    for stratum in sorted(wanted, key=lambda s: (filled[s], random.random())):
        if all(abs(stratum - other) >= APART for other in chosen):
            chosen.append(stratum)
    return sorted(chosen[:PER_GAME])


def main(path: str, output: Path) -> None:
    with SimpleEngine.popen_uci(path) as engine:
        positions = list(play_positions(engine, POSITIONS))
        name = engine.id["name"]
    write_positions(output, positions)
    record = {
        "command": "python tools/selfplay.py ENGINE FILE",
        "version": version("cant-do-that-anymore"),
        "rules": RULES.key,
        "seed": SEED,
        "engine": name,
        "positions": len(positions),
        "games": len({position.game for position in positions}),
    }
    print(json.dumps(record, indent=2))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
