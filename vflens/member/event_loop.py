"""Run a coroutine from synchronous code; signals end it in order."""

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")

_LEFT_SECONDS = 2.0  # gRPC's remaining tasks take milliseconds
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # Ctrl-C, a supervisor, a closed terminal


def run_to_end(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run ``coroutine`` here, or in a thread of its own where an event loop is running already (a notebook).

    A signal that ends the process first ends the coroutine in order; then the signal's own handler runs.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _run(coroutine)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(_run, coroutine).result()


def _run(coroutine: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        whole = loop.create_task(_with_what_it_leaves(coroutine))
        with _held_signals(lambda: loop.call_soon_threadsafe(whole.cancel)):
            return loop.run_until_complete(whole)


async def _with_what_it_leaves(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run ``coroutine``, then its remaining tasks.

    A gRPC call that is cancelled is done at once, but gRPC's core still reports to it. Where its loop is
    closed by then, the next loop of the process logs "Event loop is closed".
    """
    try:
        return await coroutine
    finally:
        left = asyncio.all_tasks() - {asyncio.current_task()}
        if left:
            await asyncio.wait(left, timeout=_LEFT_SECONDS)


@contextmanager
def _held_signals(cancel: Callable[[], object]) -> Iterator[None]:
    """Inside, signals call ``cancel``; their handlers run at the end.

    An exception that a handler raises in the middle of gRPC's own code is printed there and lost, its loop
    hangs.

    Raises:
        KeyboardInterrupt: there was one.
    """
    caught: list[int] = []

    def hold(number: int, _: object) -> None:
        caught.append(number)
        cancel()

    here = threading.current_thread() is threading.main_thread()
    handlers = {n: h for n in ENDING if here and callable(h := signal.getsignal(n))}
    for number in handlers:
        signal.signal(number, hold)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if caught:
            handlers[signal.Signals(caught[0])](caught[0], None)
            raise KeyboardInterrupt
