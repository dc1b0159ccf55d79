"""Readers of logs."""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterator
from typing import NamedTuple

from . import _indelible


class LogRecord(NamedTuple):
    """A record of a log."""

    number: int
    """From 0 on."""
    data: bytes
    message: tuple[int, int] | None
    """The queue that it came from (`Queue.id`), and its number there (`Producer.send`); None: it was appended otherwise."""


class LogReader(_indelible.LogReader):
    """A log, as a psync left it, from its first record on, beside its writer: an iterator over its records. Made by `Pool.log` with mode "r".

    It ends where that psync ends. `refresh` goes to the newest one, and iteration goes on from where it was; `follow` does so by itself.
    """

    def __init__(self, *_given: object) -> None:
        if self.locked:
            locked.add(self)

    @classmethod
    def at(cls, address: int) -> LogReader | None:
        """An open one that has the addresses of its object, which begins at `address`."""
        for reader in locked:
            if not reader.closed and not reader.pool.closed:
                if reader.pool._stat(reader.name)["address"] == address:
                    return reader
        return None

    def follow(self, every: float = 0.1) -> Iterator[LogRecord]:
        """Yields all further records, future ones included: looks for a newer psync every `every`
        seconds. It never ends by itself.
        """
        if every < 0:
            raise ValueError(f"every is a number of seconds, not negative, not {every}")
        while True:
            yield from self
            if not self.refresh():
                time.sleep(every)

    def __repr__(self) -> str:
        about = "closed" if self.closed else f"{len(self)} records"
        return f"<indelible.LogReader {self.name!r}, {about}>"


locked: weakref.WeakSet[LogReader] = weakref.WeakSet()
