"""Streams of bytes through queues: parts of them are messages, and an empty message is the end."""

from __future__ import annotations

import io
from types import TracebackType
from typing import TYPE_CHECKING

from ._indelible import Queue, StreamBytes

if TYPE_CHECKING:
    from typing_extensions import Buffer


class StreamWriter(io.RawIOBase):
    """Writes a stream of bytes into a queue without other producers, as a file: also for
    `io.TextIOWrapper` (whose `detach` flushes, and leaves the stream to be ended) and other writers
    of files.

    Each write waits for room, with a `timeout` for so many seconds: then TimeoutError. A `with`
    block that ends without an exception ends the stream, and so does `end`; one that is closed
    otherwise, or whose process dies, leaves it open for the next writer.
    """

    def __init__(self, queue: Queue, timeout: float | None = None) -> None:
        super().__init__()
        self._producer, self._most, self._timeout = queue.producer(), queue.most, timeout

    def writable(self) -> bool:
        return True

    def write(self, data: Buffer, /) -> int:
        """Writes bytes, as parts that the queue has room for; returns how many: all, unless the time was over."""
        self._expect_open()
        rest, written = memoryview(data).cast("B"), 0
        while rest:
            part = rest[: self._most]
            if self._producer.send(part, self._timeout) is None:
                if written:
                    return written
                raise TimeoutError("the queue of the stream is full")
            rest, written = rest[len(part) :], written + len(part)
        return written

    def end(self) -> None:
        """Ends the stream, and closes the writer: its reader has all of it then."""
        self._expect_open()
        if self._producer.send(b"", self._timeout) is None:
            raise TimeoutError("the queue of the stream is full")
        self.close()

    def close(self) -> None:
        """Leaves the stream as it is, for the next writer."""
        if not self.closed:
            super().close()
            self._producer.close()

    def __exit__(
        self,
        exception: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if exception is None and not self.closed:
            self.end()
        else:
            self.close()

    def _expect_open(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file")


class StreamReader(io.RawIOBase):
    """Reads a stream of bytes out of a queue, as a file: for lines and small pieces in an
    `io.BufferedReader`, which asks seldom.

    Each read waits for bytes, with a `timeout` for so many seconds: then TimeoutError. At the end
    of the stream it returns no bytes, and the queue is empty.
    """

    def __init__(self, queue: Queue, timeout: float | None = None) -> None:
        super().__init__()
        self._consumer = queue.consumer()
        self._bytes = StreamBytes(self._consumer, timeout)
        # No line of Python runs between a message that was taken and the caller: an interrupt there
        # would lose it.
        self.readinto = self._bytes.readinto  # type: ignore[method-assign]

    def readable(self) -> bool:
        return True

    def readinto(self, into: Buffer, /) -> int:
        """Reads the bytes present, or waits for the first; returns their number, 0 at the end of
        the stream.
        """
        return self._bytes.readinto(into)

    def close(self) -> None:
        """Ends the reader's part. Unread bytes stay in the queue, except those of a message that
        was begun.
        """
        if not self.closed:
            super().close()
            self._bytes.close()
            self._consumer.close()
