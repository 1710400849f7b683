"""One function over many things, here, in other processes or on a Ray cluster, results in order."""

import logging
import os
import signal
import socket
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import Any, TypeVar

from ...errors import Incomplete, InvalidInput

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
