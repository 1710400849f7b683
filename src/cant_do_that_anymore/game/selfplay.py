"""Engine games under changed rules -> positions where the old habit tempts.

Any UCI engine plays "X moves as Y does" by relabelling: it is a standard game from an initial
position that shows every X as a Y. The moves are then read on the real board, in three steps::

    play -> special_moves of each position -> few positions a game, even over the strata

A stratum is the number of earlier moves made with the changed piece, by either side.
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
from .position import Position
from .rules import PieceSwap, Rules, check_forbids_something

STRATA = 9
"""0, 1, ..., 7 earlier moves, and 8 or more."""

PATIENCE = 100
"""Games without a new position after which no more are expected."""

HANGING_SECONDS = 10
"""A move takes milliseconds; an engine that needs this long has stopped working."""

ENGINE_FOLDERS = (
    "/usr/games",  # Debian, Ubuntu
    "/opt/homebrew/bin",  # Homebrew on Apple processors
    "/usr/local/bin",  # Homebrew on Intel processors, and what is built by hand
    "/home/linuxbrew/.linuxbrew/bin",
    "/opt/local/bin",  # MacPorts
)
"""Where engines are installed; the PATH of services and of programs with windows lacks some."""


@dataclass(frozen=True)
class Play:
    """How the games are played and how many positions are taken; the defaults made the pool.

    Attributes:
        nodes: how far the engine may search for a move, which limits its strength.
        lines: how many of its best moves one is drawn from.
        temperature: a move this many centipawns worse is drawn e times less often.
        max_plies: where a game is cut off, since later positions would only make longer questions.
        per_game: how many positions are taken from one game at most.
        apart: how many strata two positions of one game differ by at least.
    """

    nodes: int = 1000
    lines: int = 4
    temperature: float = 50
    max_plies: int = 50
    per_game: int = 2
    apart: int = 3


POOL_PLAY = Play()


def find_engine() -> Path:
    """Stockfish on PATH, or where package managers put it.

    Raises:
        InvalidInput: if there is none.
    """
    folders = (os.environ.get("PATH", os.defpath), *ENGINE_FOLDERS)
    found = shutil.which("stockfish", path=os.pathsep.join(folders))
    if found is None:
        raise InvalidInput(
            "no chess engine found: install Stockfish (on Debian and Ubuntu: apt install stockfish,"
            " on macOS: brew install stockfish) or give the path of one with --engine"
        )
    return Path(found)


@contextmanager
def opened_engine(path: Path) -> Iterator[SimpleEngine]:
    """The engine at ``path``, until the body ends.

    Raises:
        InvalidInput: if no UCI engine starts there.
        Incomplete: if it breaks down on the way.
    """
    try:
        # Its own process group, or Ctrl-C would end the engine before we can save anything.
        engine = SimpleEngine.popen_uci(str(path), setpgrp=True)
    except (OSError, EngineError) as problem:
        reason = error_reason(problem) if str(problem) else "no answer to 'uci'"
        raise InvalidInput(f"{path} is no UCI engine such as Stockfish: {reason}") from None
    with engine:
        try:
            yield engine
        except (TimeoutError, EngineError) as problem:
            reason = str(problem) or "no move in time"
            raise Incomplete(f"the engine {path} broke down: {reason}") from None


def play_positions(
    engine: SimpleEngine, rules: Rules, count: int, seed: int, play: Play = POOL_PLAY
) -> Iterator[Position]:
    """Play games until ``count`` positions are found, as many in each stratum.

    The same engine, count and seed give the same positions.

    Raises:
        InvalidInput: if ``rules`` are no piece swap that forbids a move of the standard rules.
        Incomplete: if game after game brings no new position.
    """
    swap = _playable(rules)
    quota = math.ceil(count / STRATA)
    filled: Counter[int] = Counter()
    seen: set[tuple[str, ...]] = set()
    idle_games = 0
    for game in itertools.count():
        random = Random(f"{seed} {game}")
        offered = _by_stratum(game, play_game(engine, swap, random, play), swap, seen)
        wanted = [stratum for stratum in offered if filled[stratum] < quota]
        chosen = _chosen_strata(wanted, filled, random, play)
        for stratum in chosen:
            position = random.choice(offered[stratum])
            filled[stratum] += 1
            seen.add(position.moves)
            yield position
            if len(seen) == count:
                return
        idle_games = 0 if chosen else idle_games + 1
        if idle_games == PATIENCE:
            raise Incomplete(f"{PATIENCE} games in a row brought no new position under {rules.key}")


def play_game(
    engine: SimpleEngine, rules: PieceSwap, random: Random, play: Play = POOL_PLAY
) -> list[chess.Move]:
    """Let the engine play one game under ``rules`` against itself."""
    game = object()  # a new one makes the engine forget the last game
    # A plain board drops the castling rights of relabelled rooks; an engine would choke on them.
    board = chess.Board(rules.view(chess.Board()).fen())
    while not is_over(board) and len(board.move_stack) < play.max_plies:
        # The engine takes a promoted X for one that moves as X did, so it is not offered one.
        moves = [m for m in board.legal_moves if not m.promotion or m.promotion != rules.piece]
        limit = chess.engine.Limit(nodes=play.nodes, time=HANGING_SECONDS)
        lines = engine.analyse(
            board, limit, multipv=play.lines, game=game, root_moves=moves, info=INFO_SCORE | INFO_PV
        )
        board.push(_drawn(lines, random, play.temperature))
    return board.move_stack


def is_over(view: chess.Board) -> bool:
    """Whether a game has ended: mate, stalemate, repetition, 50 moves or too few pieces."""
    return view.is_game_over() or view.is_repetition(3) or view.is_fifty_moves()


def special_moves(board: chess.Board, rules: Rules) -> tuple[str, ...]:
    """The special moves of the side to move; none where one of them is doubtful.

    It is if it captures the king, or leaves its own king in check under the standard or the changed
    rules, which forbid it then for another reason as well.
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


def _drawn(lines: list[chess.engine.InfoDict], random: Random, temperature: float) -> chess.Move:
    scored = [
        (line["pv"][0], line["score"].relative.score(mate_score=10_000))
        for line in lines
        if line.get("pv") and "score" in line
    ]
    if not scored:
        raise EngineError("it named no move and score")
    best = max(score for _, score in scored)
    weights = [math.exp((score - best) / temperature) for _, score in scored]
    return random.choices([move for move, _ in scored], weights)[0]


def _by_stratum(
    game: int, moves: list[chess.Move], rules: Rules, seen: set[tuple[str, ...]]
) -> dict[int, list[Position]]:
    board = chess.Board()
    history: tuple[str, ...] = ()
    earlier = 0
    found = defaultdict(list)
    for move in moves:
        special = special_moves(board, rules)
        if special and history not in seen:
            found[min(earlier, STRATA - 1)].append(Position(game, history, special))
        earlier += rules.affects(board, move)
        board.push(move)
        history += (move.uci(),)
    return found


def _chosen_strata(
    wanted: list[int], filled: Counter[int], random: Random, play: Play
) -> list[int]:
    """The emptiest of the wanted strata, clearly apart from each other."""
    chosen: list[int] = []
    for stratum in sorted(wanted, key=lambda s: (filled[s], random.random())):
        if all(abs(stratum - other) >= play.apart for other in chosen):
            chosen.append(stratum)
    return sorted(chosen[: play.per_game])


def _playable(rules: Rules) -> PieceSwap:
    check_forbids_something(rules)
    if not isinstance(rules, PieceSwap):
        raise InvalidInput(
            f"an engine can only play rules by which one piece moves as another, not {rules.key}: "
            "measure with --eval all"
        )
    return rules
