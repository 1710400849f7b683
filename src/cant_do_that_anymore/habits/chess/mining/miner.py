"""Find positions with a usual move in PGN games, in one process, several, or on a Ray cluster.

A pure function mines each block of games, so it does not matter where it runs::

    inputs -> read_blocks -> mine_block, anywhere -> results in the order of the games
"""

import json
import logging
import os
import signal
import socket
import sqlite3
import sys
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from hashlib import blake2b
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import Any, NamedTuple

from ....errors import Incomplete, InvalidInput
from ..position import Position
from ..rules import Rules
from .inputs import check_input
from .openings import Openings, Played
from .pgn import Block, Damaged, is_standard, moves_of, read_blocks

_QUEUED_PER_WORKER = 3  # enough to keep a worker busy, few enough for the memory
_CACHE_KB = 64_000  # memory for digests of positions; SQLite moves the rest to a temporary file

NOT_STANDARD = "set-up position or other variant"
_openings = lru_cache(maxsize=1)(Openings)  # one tree per process, which all blocks share


@dataclass(frozen=True)
class MiningCriteria:
    """Which positions to take from which games.

    Attributes:
        rules: the changed rules, which define the usual moves.
        every: take every usual move of a game, not only the first.
        unique: skip positions whose moves so far occurred before, in the same order.
    """

    rules: Rules
    every: bool = False
    unique: bool = True


class MinedPosition(NamedTuple):
    """A position as a JSON line, and a digest of the moves before it."""

    line: str
    digest: bytes


@dataclass(frozen=True)
class MiningResult:
    """The result of mining a block of games.

    Attributes:
        games: the number of games.
        found: their positions.
        skipped: the number of games skipped, by reason.
        damaged: the place and the problem of each unreadable game.
        problem: why an input could not be read to its end.
    """

    games: int
    found: list[MinedPosition] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    damaged: list[str] = field(default_factory=list)
    problem: str | None = None


Work = Callable[[Block], MiningResult]
Results = Generator[MiningResult, None, None]


def mine(
    inputs: Sequence[str],
    wanted: MiningCriteria,
    *,
    limit: int | None = None,
    jobs: int = 1,
    cluster: str | None = None,
) -> Results:
    """Find the wanted positions in ``inputs``, and yield them block by block in order.

    Args:
        inputs: files, and ``-`` for standard input, compressed or not.
        wanted: which positions to take from which games.
        limit: stop after this many positions.
        jobs: the number of processes.
        cluster: the address of a Ray cluster to use instead, or ``auto``.

    Raises:
        InvalidInput: if an input does not exist or the rules forbid nothing.
        Incomplete: if the workers fail.
    """
    wanted.rules.check_forbids_something()
    for name in inputs:
        check_input(name)
    work, blocks = partial(mine_block, wanted=wanted), read_blocks(inputs)
    results = map_cluster(work, blocks, cluster) if cluster else map_processes(work, blocks, jobs)
    found = 0
    with closing(results), closing(_digest_table()) as seen:
        for mined in results:
            positions = [p for p in mined.found if not wanted.unique or _is_new(p.digest, seen)]
            if limit is not None:
                positions = positions[: limit - found]
            found += len(positions)
            yield replace(mined, found=positions)
            if found == limit:
                return


def mine_block(block: Block, wanted: MiningCriteria) -> MiningResult:
    """Find the wanted positions in a block of games."""
    mined = MiningResult(len(block.games), problem=block.problem)
    openings = _openings(wanted.rules)
    seen: set[bytes] = set()
    for index, game in enumerate(block.games, block.index):
        if not is_standard(block.text, game):
            mined.skipped[NOT_STANDARD] += 1
            continue
        try:
            played = openings.follow(moves_of(block.text, game))
            found = list(_positions(played, index, wanted, seen))
        except Damaged as damage:
            mined.damaged.append(f"{block.place(game)}: {damage}")
        else:
            mined.found.extend(found)
            seen.update(position.digest for position in found)
    return mined


def _positions(
    game: Iterator[Played], index: int, wanted: MiningCriteria, seen: set[bytes]
) -> Iterator[MinedPosition]:
    """Yield the wanted positions of a game; of unique ones, only those not yet ``seen``."""
    moves: list[str] = []
    for uci, usual in game:
        if usual:
            digest = blake2b(" ".join(moves).encode(), digest_size=16).digest()
            if not (wanted.unique and digest in seen):
                position = Position(index, tuple(moves), (uci,))
                yield MinedPosition(json.dumps(position.to_json()), digest)
            if not wanted.every:
                return
        moves.append(uci)


def _digest_table() -> sqlite3.Connection:
    """Create a table of the digests seen so far, in a temporary file if it needs much memory."""
    database = sqlite3.connect("")
    database.execute("PRAGMA journal_mode = OFF")  # nothing is ever rolled back
    database.execute(f"PRAGMA cache_size = -{_CACHE_KB}")
    database.execute("CREATE TABLE seen (digest BLOB PRIMARY KEY) WITHOUT ROWID")
    return database


def _is_new(digest: bytes, seen: sqlite3.Connection) -> bool:
    """Whether a digest was not yet in the table, which now has it."""
    return seen.execute("INSERT OR IGNORE INTO seen VALUES (?)", (digest,)).rowcount == 1


def map_processes(work: Work, blocks: Iterable[Block], jobs: int) -> Results:
    """``map(work, blocks)`` in ``jobs`` processes; with one job, in this process.

    Raises:
        Incomplete: if a worker process is killed.
    """
    if jobs == 1:
        yield from map(work, blocks)
        return
    # The progress bar has threads, so forking is unsafe.
    pool = ProcessPoolExecutor(jobs, get_context("spawn"), initializer=_init_worker)

    def submit(block: Block) -> Future[MiningResult]:
        with _ctrl_c_blocked():  # this may start a worker, which must not receive it either
            return pool.submit(work, block)

    try:
        yield from _map_in_order(submit, blocks, jobs)
    except BrokenExecutor:
        raise Incomplete(
            "a worker process was killed, probably because memory ran out; use fewer --jobs"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def map_cluster(work: Work, blocks: Iterable[Block], address: str) -> Results:
    """``map(work, blocks)`` on the Ray cluster at ``address``, or ``auto``.

    Every machine of the cluster must have this package installed.

    Raises:
        InvalidInput: if Ray is not installed or there is no cluster.
        Incomplete: if the cluster breaks down.
    """
    try:
        import ray
    except ImportError:
        raise InvalidInput(
            "--cluster needs Ray on all its machines: pip install 'cant-do-that-anymore[ray]'"
        ) from None
    try:
        if address != "auto":  # Ray would try to connect for minutes
            host, _, port = address.removeprefix("ray://").rpartition(":")
            socket.create_connection((host, port), timeout=10).close()
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, ValueError, RuntimeError) as problem:
        reason = str(problem).partition("\n")[0]
        raise InvalidInput(
            f"no Ray cluster at {address!r} ({reason}); give the HOST:PORT of ray start --head"
        ) from None
    try:
        task: Any = ray.remote(lambda block: work(block))  # Ray accepts plain functions only
        workers = int(ray.cluster_resources()["CPU"])  # type: ignore[no-untyped-call]
        yield from _map_in_order(lambda block: task.remote(block).future(), blocks, workers)
    except ray.exceptions.RayError as problem:
        raise Incomplete(f"the Ray cluster at {address!r} failed: {problem}") from None
    finally:
        ray.shutdown()


def _map_in_order(
    submit: Callable[[Block], Future[MiningResult]], blocks: Iterable[Block], workers: int
) -> Results:
    futures: deque[Future[MiningResult]] = deque()
    for block in blocks:
        futures.append(submit(block))
        if len(futures) >= _QUEUED_PER_WORKER * workers:
            yield futures.popleft().result()
    yield from (future.result() for future in futures)


@contextmanager
def _ctrl_c_blocked() -> Iterator[None]:
    """Delay Ctrl-C; a process that starts meanwhile never receives it, except on Windows."""
    if sys.platform == "win32":
        yield
        return
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _init_worker() -> None:
    """Let a worker ignore Ctrl-C, and exit when its parent process ends for any reason."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_exit_with_parent, daemon=True).start()


def _exit_with_parent() -> None:
    if parent := parent_process():
        parent.join()
    os._exit(1)
