"""Processes: shared memory, words to wait for, queues, logs and streams."""

from ._indelible import (
    Consumer,
    Event,
    Life,
    Log,
    Producer,
    Queue,
    Shared,
    Word,
    wait_any,
)
from ._log import LogReader, LogRecord
from ._stream import StreamReader, StreamWriter

__all__ = [
    "Consumer",
    "Event",
    "Life",
    "Log",
    "LogReader",
    "LogRecord",
    "Producer",
    "Queue",
    "Shared",
    "StreamReader",
    "StreamWriter",
    "Word",
    "wait_any",
]
