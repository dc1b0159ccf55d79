"""Streams of bytes through queues, as files."""

from __future__ import annotations

import io
from random import Random

import indelible
import pytest
from indelible import StreamReader, StreamWriter
from test_shared import LONG, child, said

WRITER = """
import io, sys, indelible
from random import Random
queue = indelible.open(sys.argv[1]).queue("stream", slots=8, most=1000, one_producer=True)
with indelible.StreamWriter(queue) as stream:
    random = Random(7)
    for _ in range(300):
        assert stream.write(piece := random.randbytes(random.randrange(3000))) == len(piece)
"""


def test_a_stream_comes_whole_and_in_order(pool: indelible.Pool) -> None:
    queue, random = pool.queue("stream", slots=8, most=1000, one_producer=True), Random(7)
    whole = b"".join(random.randbytes(random.randrange(3000)) for _ in range(300))
    with child(WRITER, pool.path) as writer, io.BufferedReader(StreamReader(queue, LONG)) as reader:
        assert reader.read() == whole and reader.read() == b""
        assert writer.wait(120) == 0
    # The queue is as it was made: another stream comes.
    with StreamWriter(queue, LONG) as stream:
        text = io.TextIOWrapper(stream)
        text.write("first\nzweite Zeile: ä\n")
        text.detach()
    with io.TextIOWrapper(io.BufferedReader(StreamReader(queue, LONG))) as lines:
        assert list(lines) == ["first\n", "zweite Zeile: ä\n"]


def test_a_stream_whose_writer_dies_goes_on_with_the_next(pool: indelible.Pool) -> None:
    queue = pool.queue("stream", slots=8, most=10, one_producer=True)
    program = """
import sys, indelible
stream = indelible.StreamWriter(indelible.open(sys.argv[1]).queue("stream", slots=8, most=10, one_producer=True))
stream.write(b"one, ")
print("written", flush=True)
sys.stdin.read()
"""
    with child(program, pool.path) as writer:
        assert said(writer) == "written"
        writer.kill()
    reader = StreamReader(queue, 0)
    assert reader.read(100) == b"one, "
    with pytest.raises(TimeoutError, match="nothing was written"):
        reader.read(100)
    with pytest.raises(KeyError), StreamWriter(queue) as stream:
        stream.write(b"two, ")
        raise KeyError
    with StreamWriter(queue, 0) as stream:
        assert stream.writable() and stream.write(b"") == 0 and stream.write(bytearray(b"three and four")) == 14
    assert stream.closed and reader.readall() == b"two, three and four" and reader.readinto(bytearray(5)) == 0
    reader.close()


def test_wrong_uses_of_streams_are_errors(pool: indelible.Pool) -> None:
    queue = pool.queue("stream", slots=2, most=10)
    stream, reader = StreamWriter(queue, 0), StreamReader(queue, 0)
    with pytest.raises(indelible.Held):
        StreamReader(queue)
    # As much as there is room for, and then nothing.
    assert stream.write(bytes(50)) == 20
    for use in (lambda: stream.write(b"x"), stream.end):
        with pytest.raises(TimeoutError, match="full"):
            use()
    with pytest.raises(TypeError):
        stream.write("text")  # type: ignore[arg-type]
    assert reader.readinto(bytearray(4)) == 4 and reader.readinto(bytearray()) == 0
    assert not stream.readable() and not reader.writable()
    stream.close()
    stream.close()
    reader.close()
    for closed in (lambda: stream.write(b"x"), stream.end, lambda: reader.readinto(bytearray(1)), lambda: reader.read(1)):
        with pytest.raises(ValueError, match="closed"):
            closed()
    queue.consumer().close()
