"""Run asynchronous work until it is done, or until Ctrl-C or SIGTERM."""

import asyncio
import signal
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing, suppress
from typing import Any, TypeVar

from .errors import Stopped

T = TypeVar("T")
POLL_SECONDS = 0.2  # a longer wait cannot be interrupted everywhere


def run_interruptible(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine from synchronous code until it is done or interrupted.

    It gets a thread of its own where an event loop is running already.

    Raises:
        Stopped: on Ctrl-C or SIGTERM, once the requests in flight are finished and saved.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_until_stopped(work))
    return _run_in_thread(work)  # such as in a notebook


def _run_in_thread(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a thread of its own; Ctrl-C in this one cancels it."""
    with closing(asyncio.new_event_loop()) as loop, ThreadPoolExecutor(1) as thread:
        task = loop.create_task(_until_stopped(work))
        result = thread.submit(loop.run_until_complete, task)
        try:
            while not wait([result], POLL_SECONDS).done:
                pass
        except KeyboardInterrupt:
            loop.call_soon_threadsafe(task.cancel)
        return result.result()


async def _until_stopped(work: Coroutine[Any, Any, T]) -> T:
    """Await the work; cancel it on Ctrl-C or SIGTERM, so that it saves the requests in flight.

    A second signal cancels the requests in flight as well.
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
