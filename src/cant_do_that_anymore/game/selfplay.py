"""Generate positions with special moves from engine games under changed rules.

Any UCI engine can play "X moves like Y" by relabeling: a standard game from an initial position in
which every X is a Y. The moves are then replayed on the real board, in three steps::

    play -> special_moves of each position -> few positions per game, evenly over the strata

A stratum is the number of earlier moves with the changed piece, by either side.
"""

import itertools
import math
import os
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

import chess
import chess.engine
from chess.engine import INFO_PV, INFO_SCORE, EngineError, SimpleEngine

from ..errors import Incomplete, InvalidInput, error_reason
from .position import Position, played
from .rules import PieceSwap, Rules, check_forbids_something

STRATA = 9  # 0, 1, ..., 7 earlier moves, and 8 or more
MAX_IDLE_GAMES = 100  # stop after this many games in a row without a new position
ENGINE_TIMEOUT_SECONDS = 10  # a move takes milliseconds, so a slower engine hangs
# Where engines are installed; the PATH of services and desktop programs lacks some of these.
ENGINE_FOLDERS = (
    "/usr/games",  # Debian, Ubuntu
    "/opt/homebrew/bin",  # Homebrew on Apple processors
    "/usr/local/bin",  # Homebrew on Intel processors, and manual installations
    "/home/linuxbrew/.linuxbrew/bin",
    "/opt/local/bin",  # MacPorts
)


@dataclass(frozen=True)
class Play:
    """Settings of the games and of the sampling of positions; the bundled pool has the defaults.

    Attributes:
        nodes: the engine's node limit per move, which limits its strength.
        lines: the number of best moves to sample from.
        temperature: a move this many centipawns worse is e times less likely.
        max_plies: the length limit of a game, since later positions would only lengthen prompts.
        per_game: the maximum number of positions from one game.
        apart: the minimum distance, in strata, between two positions of one game.
    """

    nodes: int = 1000
    lines: int = 4
    temperature: float = 50
    max_plies: int = 50
    per_game: int = 2
    apart: int = 3


POOL_PLAY = Play()


def find_engine() -> Path:
    """Find Stockfish on PATH or where package managers install it.

    Raises:
        InvalidInput: if it is not installed.
    """
    folders = (os.environ.get("PATH", os.defpath), *ENGINE_FOLDERS)
    engine = shutil.which("stockfish", path=os.pathsep.join(folders))
    if engine is None:
        raise InvalidInput(
            "no chess engine found: install Stockfish (on Debian and Ubuntu: apt install stockfish,"
            " on macOS: brew install stockfish) or give the path of one with --engine"
        )
    return Path(engine)


@contextmanager
def open_engine(path: Path) -> Iterator[SimpleEngine]:
    """Start the engine at ``path``, and quit it at the end of the block.

    Raises:
        InvalidInput: if it is not a UCI engine.
        Incomplete: if the engine fails within the block.
    """
    try:
        # In its own process group: Ctrl-C would end the engine before we can save anything.
        engine = SimpleEngine.popen_uci(str(path), setpgrp=True)
    except (OSError, EngineError) as problem:
        reason = error_reason(problem) if str(problem) else "no answer to 'uci'"
        raise InvalidInput(f"{path} is not a UCI engine such as Stockfish: {reason}") from None
    with engine:
        try:
            yield engine
        except (TimeoutError, EngineError) as problem:
            reason = str(problem) or "no move in time"
            raise Incomplete(f"the engine {path} failed: {reason}") from None


def play_positions(
    engine: SimpleEngine, rules: Rules, count: int, seed: int, play: Play = POOL_PLAY
) -> Iterator[Position]:
    """Play games until they gave ``count`` positions, equally many per stratum.

    The same engine, count and seed give the same positions.

    Raises:
        InvalidInput: if ``rules`` are not a piece swap that forbids something.
        Incomplete: if too many games in a row give no new position.
    """
    check_forbids_something(rules)
    if not isinstance(rules, PieceSwap):
        raise InvalidInput(
            "an engine can only play rules under which one piece moves like another, not "
            f"{rules.key}; use --eval all"
        )
    quota = math.ceil(count / STRATA)
    filled: Counter[int] = Counter()
    seen: set[tuple[str, ...]] = set()
    idle_games = 0
    for game in itertools.count():
        random = Random(f"{seed} {game}")
        offered = _by_stratum(game, play_game(engine, rules, random, play), rules, seen)
        wanted = [stratum for stratum in offered if filled[stratum] < quota]
        chosen = _choose_strata(wanted, filled, random, play)
        for stratum in chosen:
            position = random.choice(offered[stratum])
            filled[stratum] += 1
            seen.add(position.moves)
            yield position
            if len(seen) == count:
                return
        idle_games = 0 if chosen else idle_games + 1
        if idle_games == MAX_IDLE_GAMES:
            raise Incomplete(
                f"{MAX_IDLE_GAMES} games in a row contained no new position under {rules.key}"
            )


def play_game(
    engine: SimpleEngine, rules: PieceSwap, random: Random, play: Play = POOL_PLAY
) -> list[chess.Move]:
    """Let the engine play one game under ``rules`` against itself."""
    game = object()  # a new object tells the engine to forget the last game
    # A plain board drops the castling rights of relabeled rooks, which an engine would reject.
    board = chess.Board(rules.view(chess.Board()).fen())
    while not is_over(board) and len(board.move_stack) < play.max_plies:
        # To the engine a promoted X would move as X did before, so it may not promote to X.
        moves = [m for m in board.legal_moves if not m.promotion or m.promotion != rules.piece]
        limit = chess.engine.Limit(nodes=play.nodes, time=ENGINE_TIMEOUT_SECONDS)
        lines = engine.analyse(
            board, limit, multipv=play.lines, game=game, root_moves=moves, info=INFO_SCORE | INFO_PV
        )
        board.push(_sample_move(lines, random, play.temperature))
    return board.move_stack


def is_over(view: chess.Board) -> bool:
    """Whether the game is over: mate, stalemate, repetition, 50 moves or too few pieces."""
    return view.is_game_over() or view.is_repetition(3) or view.is_fifty_moves()


def special_moves(board: chess.Board, rules: Rules) -> tuple[str, ...]:
    """Return the special moves of the side to move; none if one of them is ambiguous.

    A move is ambiguous if it captures the king, or leaves its own king in check under the standard
    or the changed rules, since it is then illegal for another reason as well.
    """
    view = rules.view(board)
    moves = [
        move
        for move in board.generate_pseudo_legal_moves()
        if rules.affects(board, move) and not view.is_pseudo_legal(move)
    ]
    if not all(rules.is_special(board, move) and _is_safe(board, move, rules) for move in moves):
        return ()
    return tuple(sorted(move.uci() for move in moves))


def _is_safe(board: chess.Board, move: chess.Move, rules: Rules) -> bool:
    after = board.copy(stack=False)
    after.push(move)
    return not rules.view(after).was_into_check()


def _sample_move(
    lines: list[chess.engine.InfoDict], random: Random, temperature: float
) -> chess.Move:
    scored = [
        (line["pv"][0], line["score"].relative.score(mate_score=10_000))
        for line in lines
        if line.get("pv") and "score" in line
    ]
    if not scored:
        raise EngineError("it gave no move and score")
    best = max(score for _, score in scored)
    weights = [math.exp((score - best) / temperature) for _, score in scored]
    return random.choices([move for move, _ in scored], weights)[0]


def _by_stratum(
    game: int, moves: list[chess.Move], rules: Rules, seen: set[tuple[str, ...]]
) -> dict[int, list[Position]]:
    history: tuple[str, ...] = ()
    earlier = 0
    positions = defaultdict(list)
    for board, move in played(moves):
        special = special_moves(board, rules)
        if special and history not in seen:
            positions[min(earlier, STRATA - 1)].append(Position(game, history, special))
        earlier += rules.affects(board, move)
        history += (move.uci(),)
    return positions


def _choose_strata(
    wanted: list[int], filled: Counter[int], random: Random, play: Play
) -> list[int]:
    """Choose the wanted strata with the fewest positions, far enough from each other."""
    chosen: list[int] = []
    for stratum in sorted(wanted, key=lambda s: (filled[s], random.random())):
        if all(abs(stratum - other) >= play.apart for other in chosen):
            chosen.append(stratum)
    return sorted(chosen[: play.per_game])
