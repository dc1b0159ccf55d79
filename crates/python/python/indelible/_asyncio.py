"""Waits of asyncio: psyncs as tickets, messages of queues. The native half asks for `receive`,
`messages` and `send`.

A wait is a call in a thread that takes nothing, so that a task that is cancelled loses nothing.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from ._indelible import Consumer, Producer

if TYPE_CHECKING:
    from typing_extensions import Buffer

# Seconds of a wait in a thread: the interpreter's end waits for it.
_SLICE = 0.2
_LONGEST_PAUSE = 0.02
_threads: ThreadPoolExecutor | None = None


def _forget() -> None:
    """A child has none of the threads."""
    global _threads
    _threads = None


os.register_at_fork(after_in_child=_forget)


def _executor() -> ThreadPoolExecutor:
    global _threads
    if _threads is None:
        # One for each wait: threads are made as they are needed.
        _threads = ThreadPoolExecutor(1024, "indelible wait")
    return _threads


class Ticket:
    """A psync made by another thread: see `Pool.psync_async`. A task awaits it, a thread calls
    `wait`; both get the error of the psync. Cancelling the task does not cancel the psync.
    """

    def __init__(self, psync: Callable[[], object]) -> None:
        self._done: Future[object] = _executor().submit(psync)

    def __await__(self) -> Generator[object, None, None]:
        yield from asyncio.shield(asyncio.wrap_future(self._done)).__await__()

    def done(self) -> bool:
        """Whether the psync has ended."""
        return self._done.done()

    def wait(self, timeout: float | None = None) -> None:
        """Waits until everything is durable; TimeoutError after so many seconds."""
        self._done.result(timeout)

    def __repr__(self) -> str:
        return f"<indelible.Ticket, {'done' if self.done() else 'under way'}>"


async def receive(consumer: Consumer, timeout: float | None = None) -> bytes | None:
    """Takes the next message; None after the timeout."""
    loop = asyncio.get_running_loop()
    end = None if timeout is None else loop.time() + timeout
    while (message := consumer.receive(0)) is None:
        left = _SLICE if end is None else min(_SLICE, end - loop.time())
        if left <= 0:
            return None
        await loop.run_in_executor(_executor(), consumer._is_ready, left)
    return message


async def messages(consumer: Consumer) -> AsyncIterator[bytes]:
    """Takes messages, waiting for each."""
    while (message := await receive(consumer)) is not None:
        yield message


async def send(
    producer: Producer, message: Buffer, timeout: float | None = None
) -> int | None:
    """Sends a message; None if the queue stayed full."""
    loop = asyncio.get_running_loop()
    end = None if timeout is None else loop.time() + timeout
    pause = _LONGEST_PAUSE / 32
    while (number := producer.send(message, 0)) is None:
        left = pause if end is None else min(pause, end - loop.time())
        if left <= 0:
            return None
        await asyncio.sleep(left)
        pause = min(2 * pause, _LONGEST_PAUSE)
    return number
