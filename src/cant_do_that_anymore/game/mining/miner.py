"""Find positions with a special move in PGN games, in one process, several, or on a Ray cluster.

Blocks of games are mined by one function that looks at nothing else, so it does not matter
whether this process, several processes or a cluster does the work::

    inputs -> read_blocks -> mine_block, anywhere -> results in the order of the games
"""

import json
import logging
import os
import signal
import socket
import sqlite3
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from hashlib import blake2b
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import Any, NamedTuple, TypeVar

import chess

from ...errors import Incomplete, InvalidInput
from ..position import Position
from ..rules import Rules, check_forbids_something
from .inputs import check_input
from .openings import Openings
from .pgn import Block, Damaged, Game, is_plain, moves_of, read_blocks, tags_of

Thing = TypeVar("Thing")
Result = TypeVar("Result")
Ticket = TypeVar("Ticket")

_AHEAD = 3
"""How many things are handed out for each worker: enough to keep it busy, few enough to hold."""


def over_processes(
    work: Callable[[Thing], Result], things: Iterable[Thing], jobs: int
) -> Generator[Result, None, None]:
    """``map(work, things)`` by as many processes; with one job, by this one.

    Raises:
        Incomplete: if one of them is ended from outside.
    """
    if jobs == 1:
        yield from map(work, things)
        return
    # Only a process started afresh is safe beside the threads of a progress bar.
    pool = ProcessPoolExecutor(jobs, get_context("spawn"), initializer=_stay_with_the_parent)
    try:
        yield from _in_order(lambda thing: pool.submit(work, thing), Future.result, things, jobs)
    except BrokenExecutor:
        raise Incomplete("a worker process was ended; fewer --jobs need less memory") from None
    finally:
        pool.shutdown(cancel_futures=True)


def over_cluster(
    work: Callable[[Thing], Result], things: Iterable[Thing], address: str
) -> Generator[Result, None, None]:
    """``map(work, things)`` by the workers of the Ray cluster at ``address``, or ``auto``.

    This package has to be installed on every machine of the cluster.

    Raises:
        InvalidInput: if Ray is not installed or there is no cluster.
        Incomplete: if the cluster breaks down.
    """
    try:
        import ray
    except ImportError:
        raise InvalidInput(
            "--cluster needs Ray: pip install 'cant-do-that-anymore[ray]' on every machine of it"
        ) from None
    try:
        if address != "auto":
            _call(address)
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, ValueError, RuntimeError) as problem:
        reason = str(problem).partition("\n")[0]
        raise InvalidInput(
            f"no Ray cluster at {address!r} ({reason}): give the HOST:PORT that ray start --head"
            " printed, or auto on one of its machines"
        ) from None
    try:
        task: Any = ray.remote(lambda thing: work(thing))  # Ray takes plain functions only
        workers = int(ray.cluster_resources()["CPU"])  # type: ignore[no-untyped-call]
        wait: Callable[[Any], Result] = ray.get
        yield from _in_order(task.remote, wait, things, workers)
    except ray.exceptions.RayError as problem:
        raise Incomplete(f"the Ray cluster at {address!r} failed: {problem}") from None
    finally:
        ray.shutdown()


def _in_order(
    submit: Callable[[Thing], Ticket],
    wait: Callable[[Ticket], Result],
    things: Iterable[Thing],
    workers: int,
) -> Generator[Result, None, None]:
    tickets: deque[Ticket] = deque()
    for thing in things:
        tickets.append(submit(thing))
        if len(tickets) >= _AHEAD * workers:
            yield wait(tickets.popleft())
    while tickets:
        yield wait(tickets.popleft())


def _call(address: str) -> None:
    """Fail at once if nobody is there; Ray would go on trying for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    socket.create_connection((host, port), timeout=10).close()


def _stay_with_the_parent() -> None:
    """Leave Ctrl-C to it, and end when it ends, however that is."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_the_parent, daemon=True).start()


def _end_with_the_parent() -> None:
    if parent := parent_process():
        parent.join()
    os._exit(1)


MOST_PLIES = 1000
"""More than any tournament game on record; each position repeats all the moves before it."""

LONGEST_SOURCE = 300
"""It is kept with every position of a game, and a tag may hold anything."""

_MOST_MEMORY = 64_000
"""KB for digests of positions; more of them lie in a temporary file."""

NOT_STANDARD = "set-up position or other variant"
LOW_RATING = "rating too low or unknown"
_STANDARD_NAMES = {"standard", "chess", "normal"}


@dataclass(frozen=True)
class Wanted:
    """Which positions to take from which games.

    Attributes:
        rules: the changed rules, which make moves special.
        every: take every special move of a game, not only the first.
        min_elo: both players have at least this rating.
    """

    rules: Rules
    every: bool = False
    min_elo: int = 0


class Found(NamedTuple):
    """A position as a line of a file, and a digest of the moves before it, in their order."""

    line: str
    digest: bytes


@dataclass(frozen=True)
class Mined:
    """What some games held.

    Attributes:
        games: how many games there were.
        found: their positions.
        skipped: how many games were left out, by the reason.
        damaged: of each game that could not be read, the place and what is wrong.
        problem: why an input could not be read to its end.
        share: which share of all inputs had been read, if known.
    """

    games: int
    found: list[Found] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    damaged: list[str] = field(default_factory=list)
    problem: str | None = None
    share: float | None = None


def mine(
    inputs: Sequence[str],
    wanted: Wanted,
    *,
    unique: bool = True,
    limit: int | None = None,
    jobs: int = 1,
    cluster: str | None = None,
) -> Generator[Mined, None, None]:
    """Find the wanted positions in ``inputs``, block by block, in the order of the games.

    Args:
        inputs: files, ``-`` for standard input, and web addresses, compressed or not.
        wanted: which positions to take from which games.
        unique: take only the first of the positions that have the same moves in the same order.
        limit: stop after this many positions.
        jobs: how many processes to use.
        cluster: the address of a Ray cluster to use instead, or ``auto``.

    Raises:
        InvalidInput: if an input does not exist or the rules make no move special.
        Incomplete: if the workers break down.
    """
    check_forbids_something(wanted.rules)
    for name in inputs:
        check_input(name)
    work, blocks = partial(mine_block, wanted=wanted), read_blocks(inputs)
    results = over_cluster(work, blocks, cluster) if cluster else over_processes(work, blocks, jobs)
    left = limit
    with closing(results), closing(_Seen()) as seen:
        for mined in results:
            found = [one for one in mined.found if not unique or seen.add(one.digest)][:left]
            yield replace(mined, found=found)
            if left is not None:
                left -= len(found)
                if not left:
                    return


def mine_block(block: Block, wanted: Wanted) -> Mined:
    """Find the wanted positions in a block of games."""
    found: list[Found] = []
    skipped: Counter[str] = Counter()
    damages = {0: block.lost} if block.lost else {}
    for index, game in enumerate(block.games, block.index):
        reason = _reason_to_skip(block.text, game, wanted)
        if reason:
            skipped[reason] += 1
            continue
        try:
            found += _positions(block.text, game, index, wanted)
        except Damaged as damage:
            damages[game.start] = str(damage)
    places = zip(block.places(damages), damages.values(), strict=True)
    damaged = [f"{place}: {damage}" for place, damage in places]
    games = len(block.games) + bool(block.lost)
    return Mined(games, found, skipped, damaged, block.problem, block.share)


def _positions(text: bytes, game: Game, index: int, wanted: Wanted) -> list[Found]:
    found: list[Found] = []
    moves: list[str] = []
    source = None
    for uci, special in _openings(wanted.rules).follow(moves_of(text, game)):
        if special:
            source = source or _source(tags_of(text, game))
            found.append(_found(Position(index, tuple(moves), (uci,), source)))
            if not wanted.every:
                break
        moves.append(uci)
        if len(moves) > MOST_PLIES:
            raise Damaged(f"more than {MOST_PLIES:,} moves")
    return found


@lru_cache(maxsize=1)
def _openings(rules: Rules) -> Openings:
    """One a process, kept from block to block."""
    return Openings(rules)


def _found(position: Position) -> Found:
    digest = blake2b(" ".join(position.moves).encode(), digest_size=16).digest()
    return Found(json.dumps(position.to_json()), digest)


def _reason_to_skip(text: bytes, game: Game, wanted: Wanted) -> str | None:
    if not wanted.min_elo and is_plain(text, game):
        return None
    tags = tags_of(text, game)
    set_up = "FEN" in tags or tags.get("SetUp", "0") != "0"
    if set_up and tags.get("FEN") != chess.STARTING_FEN:
        return NOT_STANDARD
    if tags.get("Variant", "standard").lower() not in _STANDARD_NAMES:
        return NOT_STANDARD
    ratings = [tags.get(f"{side}Elo", "") for side in ("White", "Black")]
    if not all(_is_at_least(wanted.min_elo, rating) for rating in ratings):
        return LOW_RATING
    return None


def _is_at_least(least: int, rating: str) -> bool:
    known = rating.isascii() and rating.isdigit() and len(rating) < 6
    return not least or (known and int(rating) >= least)


def _source(tags: dict[str, str]) -> str | None:
    """The game's link, or else who played whom, where and when."""
    for name in ("Link", "Site"):
        if tags.get(name, "").startswith(("https://", "http://")):
            return tags[name][:LONGEST_SOURCE]
    told = {name: value for name, value in tags.items() if value.strip("?-. ")}
    players = " - ".join(told[name] for name in ("White", "Black") if name in told)
    occasion = [told[name] for name in ("Event", "Site", "Date") if name in told]
    return "; ".join([players, *occasion]).strip("; ")[:LONGEST_SOURCE] or None


class _Seen:
    """Digests seen before: in a temporary file once there are too many for the memory."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("")
        self._database.execute("PRAGMA journal_mode = OFF")  # nothing is ever taken back
        self._database.execute(f"PRAGMA cache_size = -{_MOST_MEMORY}")
        self._database.execute("CREATE TABLE seen (digest BLOB PRIMARY KEY) WITHOUT ROWID")

    def add(self, digest: bytes) -> bool:
        """Whether ``digest`` is new."""
        row = self._database.execute("INSERT OR IGNORE INTO seen VALUES (?)", (digest,))
        return row.rowcount == 1

    def close(self) -> None:
        """Forget everything."""
        self._database.close()
