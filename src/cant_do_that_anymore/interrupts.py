"""Run asynchronous work to its end, or until Ctrl-C or SIGTERM."""

import asyncio
import signal
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

from .errors import Interrupted, Stopped

T = TypeVar("T")


def run_interruptible(work: Coroutine[Any, Any, T], *, kept: bool = True) -> T:
    """Do asynchronous work, whose answers are kept or not, from synchronous code.

    Raises:
        Stopped: on Ctrl-C or SIGTERM, once what is in flight is finished and saved.
        Interrupted: as the work does; it tells what is kept.
    """
    try:
        return _done(work)
    except Interrupted as end:
        end.kept = kept
        raise


def _done(work: Coroutine[Any, Any, T]) -> T:
    """Do it, also where a loop is running already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_until_stopped(work))
    with ThreadPoolExecutor(1) as thread:  # a notebook has a loop of its own
        return thread.submit(asyncio.run, work).result()


async def _until_stopped(work: Coroutine[Any, Any, T]) -> T:
    """Await; on Ctrl-C or SIGTERM finish what is in flight, save it and say how to go on.

    A second signal cancels what is in flight as well.
    """
    task = asyncio.current_task()
    assert task
    with suppress(NotImplementedError, RuntimeError):  # Windows, or not the main thread
        for stop in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(stop, task.cancel)
    try:
        return await work
    except asyncio.CancelledError:
        raise Stopped from None
