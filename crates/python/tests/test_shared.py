"""Objects that processes share: their memory, words to wait for, lives, descriptors."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import indelible
import numpy as np
import pytest
from conftest import MIB, python

LONG = 60.0


class Alarm(Exception):
    """What the handler of a signal raises."""


@pytest.fixture
def alarm() -> Iterator[Callable[[], None]]:
    """Has a signal come soon, whose handler raises Alarm."""

    def raises(_signal: int, _frame: FrameType | None) -> None:
        raise Alarm

    before = signal.signal(signal.SIGALRM, raises)
    yield lambda: signal.setitimer(signal.ITIMER_REAL, 0.05) and None
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def said(child: subprocess.Popen[str]) -> str:
    """The next line of a process."""
    assert child.stdout is not None
    return child.stdout.readline().strip()


def child(code: str, *arguments: object) -> subprocess.Popen[str]:
    """A process that runs `code`."""
    return subprocess.Popen(
        python(code, *arguments), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )


def memory_of(shared: indelible.Shared) -> str:
    """The file that has the memory."""
    begin = f"{shared.address:x}-"
    (line,) = [line for line in Path("/proc/self/maps").read_text().splitlines() if line.startswith(begin)]
    inode = int(line.split()[4])
    # It had no name when it was mapped.
    (found,) = [entry.path for entry in os.scandir("/dev/shm") if entry.inode() == inode]
    return found


def test_it_is_memory_of_all_processes(pool: indelible.Pool) -> None:
    shared = pool.shared("counts", 10_000)
    assert (shared.name, shared.size, len(shared), shared.pool) == ("counts", 10_000, 10_000, pool)
    assert pool.stat("counts").durability == "shared" and shared.address == pool.stat("counts").address
    counts = np.frombuffer(shared, "u8", 1000)
    assert not counts.any()
    counts[7] = 42
    program = """
import sys, indelible, numpy as np
shared = indelible.open(sys.argv[1]).shared("counts")
counts = np.frombuffer(shared, "u8", 1000)
assert counts[7] == 42 and shared.address == int(sys.argv[2])
counts[8] = 43
"""
    subprocess.run(python(program, pool.path, shared.address), check=True, timeout=120)
    assert counts[8] == 43
    other = pool["counts"]
    assert isinstance(other, indelible.Shared) and memoryview(other)[56] == 42
    assert repr(shared) == '<indelible.Shared "counts", 10000 bytes>'
    assert memoryview(shared).nbytes == 10_000 and not memoryview(shared).readonly
    shared.check()


def test_its_contents_stay_when_no_process_has_it(pool: indelible.Pool) -> None:
    with pool.shared("counts", 4096) as shared:
        memoryview(shared)[:2] = b"hi"
    assert shared.closed and repr(shared) == '<indelible.Shared "counts", closed>'
    again = pool.shared("counts")
    assert bytes(memoryview(again)[:3]) == b"hi\0"
    again.close()
    pool.remove("counts")
    with pytest.raises(indelible.NotFound):
        pool.shared("counts")
    assert not any(memoryview(pool.shared("counts", 4096)))


def test_memory_in_use_is_not_taken_away(pool: indelible.Pool) -> None:
    shared = pool.shared("counts", 4096)
    counts = np.frombuffer(shared, "u4")
    assert shared.views == 1
    with pytest.raises(BufferError, match="still in use: 1"):
        shared.close()
    del counts
    shared.close()
    shared.close()
    for use in (lambda: memoryview(shared), lambda: shared.word(0), lambda: shared.queue(), shared.check, lambda: shared.life):
        with pytest.raises(indelible.Closed, match=r'shared object "counts": it is closed'):
            use()
    # Memory goes with whatever shows it last.
    held = np.frombuffer(pool.shared("counts"), "u4")
    assert held.sum() == 0
    word = pool.shared("counts").word(8)
    word.store(5)
    assert held[2] == 5 and word.load() == 5


def test_an_exception_is_not_covered_by_another(pool: indelible.Pool) -> None:
    with pytest.raises(KeyError, match="why not"), pool.shared("counts", 4096) as shared:
        view = memoryview(shared)
        raise KeyError("why not")
    assert shared.closed and view[0] == 0
    with pytest.raises(indelible.Closed):
        memoryview(shared)
    view.release()
    pool.remove("counts")


def test_it_is_had_as_what_it_is(pool: indelible.Pool, tmp_path: Path) -> None:
    pool.shared("counts", 4096).close()
    with pytest.raises(indelible.Mismatch, match="has 4096 bytes, and asked for were 8192"):
        pool.shared("counts", 8192)
    with pytest.raises(indelible.ClassMismatch):
        pool.attach("counts")
    with pytest.raises(indelible.ClassMismatch):
        pool.array("counts")
    pool.array("w", 10)
    with pytest.raises(indelible.ClassMismatch):
        pool.shared("w", 4096)
    with pytest.raises(indelible.BadSize):
        pool.shared("none", 0)
    pool.shared("guarded", 4096, key=b"k").close()
    with pytest.raises(indelible.WrongKey):
        pool.shared("guarded")
    assert pool.shared("guarded", key=b"k").size == 4096
    with pytest.raises(TypeError):
        indelible.Shared()  # type: ignore[call-arg]


def test_words_change_as_a_whole(pool: indelible.Pool) -> None:
    shared = pool.shared("counts", 4096)
    word = shared.word(4)
    assert word.load() == 0 and word.offset == 4
    word.store(2**32 - 1)
    assert word.add() == 2**32 - 1 and word.load() == 0
    assert word.add(-1) == 0 and word.add(3) == 2**32 - 1 and word.load() == 2
    assert word.exchange(7) == 2 and not word.compare_exchange(2, 3) and word.compare_exchange(7, 8)
    assert np.frombuffer(shared, "<u4", 2).tolist() == [0, 8]
    assert repr(word) == "<indelible.Word 8 at 4 of \"counts\">"
    for offset in (1, 4096, 1 << 60):
        with pytest.raises(indelible.BadSize, match="no place for a word"):
            shared.word(offset)
    for wrong in (-1, 2**32):
        with pytest.raises(OverflowError):
            word.store(wrong)
    for timeout in (-1.0, float("nan")):
        with pytest.raises(ValueError, match="timeout is a number of seconds"):
            word.wait(8, timeout)


def test_processes_count_together(pool: indelible.Pool) -> None:
    program = """
import sys, indelible
word = indelible.open(sys.argv[1]).shared("counts").word(0)
for _ in range(2000):
    word.add()
"""
    word = pool.shared("counts", 4096).word(0)
    children = [child(program, pool.path) for _ in range(3)]
    for _ in range(2000):
        word.add()
    assert [process.wait(120) for process in children] == [0, 0, 0]
    assert word.load() == 8000


def test_processes_wait_for_each_other(pool: indelible.Pool) -> None:
    program = """
import sys, indelible
shared = indelible.open(sys.argv[1]).shared("turns")
ask, answer = shared.word(0), shared.word(64)
print("ready", flush=True)
seen = 0
while seen < 100:
    assert ask.wait(seen, 60)
    seen = ask.load()
    answer.store(seen)
    answer.wake()
"""
    shared = pool.shared("turns", 4096)
    ask, answer = shared.word(0), shared.word(64)
    assert not answer.wait(0, 0) and not answer.wait(0, 0.01) and answer.wait(1, 0)
    with child(program, pool.path) as other:
        assert said(other) == "ready"
        for turn in range(1, 101):
            ask.store(turn)
            ask.wake(1)
            assert answer.wait(turn - 1, LONG) and answer.load() == turn
        assert other.wait(120) == 0
    assert ask.wake() == 0


def test_one_waits_for_any_of_many_words(pool: indelible.Pool) -> None:
    first, second = pool.shared("a", 4096), pool.shared("b", 4096)
    words = [(first.word(0), 0), (second.word(128), 0)]
    assert indelible.wait_any(words, 0) is None
    second.word(128).store(1)
    assert indelible.wait_any(words) == 1
    first.word(0).store(1)
    assert indelible.wait_any(words, LONG) == 0
    with pytest.raises(indelible.BadSize, match="it takes from 1 to 128"):
        indelible.wait_any([])
    with pytest.raises(indelible.BadSize, match="129 words"):
        indelible.wait_any([(first.word(0), 0)] * 129)
    with pytest.raises(TypeError):
        indelible.wait_any([first], 0)  # type: ignore[list-item]


def test_waiting_lets_other_threads_run(pool: indelible.Pool) -> None:
    word, found = pool.shared("a", 4096).word(0), []
    waiting = threading.Thread(target=lambda: found.append(word.wait(0, LONG)))
    waiting.start()
    word.store(1)
    word.wake()
    waiting.join()
    assert found == [True]


def test_waiting_is_interrupted_by_signals(pool: indelible.Pool, alarm: Callable[[], None]) -> None:
    shared = pool.shared("a", 4096)
    word = shared.word(0)
    waits: list[Callable[[], object]] = [
        lambda: word.wait(0, LONG),
        lambda: indelible.wait_any([(word, 0), (shared.word(4), 0)], LONG),
        lambda: shared.wait_end(shared.life, LONG),
    ]
    for wait in waits:
        alarm()
        with pytest.raises(Alarm):
            wait()
    interrupted = """
import sys, indelible
word = indelible.open(sys.argv[1]).shared("a").word(0)
print("waiting", flush=True)
word.wait(0)
"""
    with child(interrupted, pool.path) as other:
        assert said(other) == "waiting"
        other.send_signal(signal.SIGINT)
        assert other.wait(120) == -signal.SIGINT


def test_the_end_of_a_process_and_of_a_life_is_noticed(pool: indelible.Pool) -> None:
    program = """
import sys, indelible
shared = indelible.open(sys.argv[1]).shared("crew")
print(shared.life, shared.begin_life().number, flush=True)
life = shared.begin_life()
print(life.number, flush=True)
sys.stdin.read()
"""
    shared = pool.shared("crew", 4096)
    assert shared.is_alive(shared.life) and not shared.is_alive(0) and shared.wait_end(0)
    with child(program, pool.path) as other:
        process, dropped = map(int, said(other).split())
        kept = int(said(other))
        assert len({shared.life, process, dropped, kept}) == 4
        assert [shared.is_alive(number) for number in (process, dropped, kept)] == [True, False, True]
        assert not shared.wait_end(kept, 0.01)
        other.kill()
        assert shared.wait_end(process, LONG) and shared.wait_end(kept) and not shared.is_alive(kept)
    with shared.begin_life() as life:
        number = life.number
        assert shared.is_alive(number) and not life.ended and repr(life) == f"<indelible.Life {number}>"
    assert life.ended and not shared.is_alive(number) and repr(life) == f"<indelible.Life {number}, ended>"
    life.end()


def test_a_descriptor_tells_of_a_word(pool: indelible.Pool) -> None:
    shared = pool.shared("a", 4096)
    word = shared.word(8)
    with shared.event(8, 0) as event:
        assert select.select([event], [], [], 0)[0] == [] and event.take() == 0
        word.store(1)
        word.wake()
        assert select.select([event], [], [], LONG)[0] == [event]
        assert event.take() == 1 and select.select([event], [], [], 0)[0] == []
    assert event.closed
    with pytest.raises(indelible.Closed):
        event.fileno()
    with pytest.raises(indelible.BadSize):
        shared.event(3, 0)

    async def changed() -> int:
        loop, told = asyncio.get_running_loop(), asyncio.Event()
        with shared.event(8, 1) as event:
            loop.add_reader(event.fileno(), told.set)
            loop.call_soon(lambda: (word.store(2), word.wake()))
            await asyncio.wait_for(told.wait(), LONG)
            loop.remove_reader(event.fileno())
        return word.load()

    assert asyncio.run(changed()) == 2


def test_memory_that_is_cut_is_an_error_and_no_fault(pool: indelible.Pool) -> None:
    shared = pool.shared("a", MIB)
    memory, word, queue = np.frombuffer(shared, "u1"), shared.word(8), shared.queue(4096)
    producer, consumer, life, event = queue.producer(), queue.consumer(), shared.begin_life(), shared.event(16, 0)
    memory[:] = 1
    os.truncate(memory_of(shared), 4096)
    # Direct reads give zeros; stores succeed, and no other process has these bytes.
    assert memory[-1] == 0 and memory[4096:].sum() == 0
    memory[-1] = 3
    assert memory[-1] == 3
    uses: list[Callable[[], object]] = [
        shared.check, word.load, lambda: word.store(1), word.add, lambda: word.wait(0, LONG), word.wake, event.take,
        lambda: shared.queue(8192), lambda: shared.is_alive(life.number), lambda: shared.wait_end(life.number, LONG),
        lambda: producer.send(b"x", LONG), lambda: consumer.receive(LONG), queue.producer,
    ]  # fmt: skip
    for number, use in enumerate(uses):
        with pytest.raises(indelible.Gone, match="was truncated"):
            use()
            raise AssertionError(f"use {number} was not refused")


FORK = """
import os, sys, warnings, indelible
warnings.simplefilter("ignore", DeprecationWarning)
pool = indelible.open(sys.argv[1])
shared = pool.shared("a")
word, queue, life, event = shared.word(0), shared.queue(64), shared.begin_life(), shared.event(8, 0)
producer, consumer = queue.producer(), queue.consumer()
number = life.number
child = os.fork()
if child == 0:
    try:
        uses = [
            lambda: memoryview(shared), lambda: shared.word(0), shared.check, shared.close, word.load, word.wake,
            lambda: word.wait(0, 0), lambda: indelible.wait_any([(word, 0)], 0), life.end, event.fileno, event.take, queue.producer,
            lambda: queue.id, lambda: producer.send(b"x", 0), producer.close, lambda: consumer.receive(0), consumer.release,
        ]
        for number, use in enumerate(uses):
            try:
                use()
            except indelible.Forked as error:
                assert error.kind == "Forked"
            else:
                raise AssertionError(f"use {number} was not refused")
        assert shared.closed and life.ended and producer.closed and consumer.closed
        repr(shared), repr(word), repr(queue), repr(life)
        del shared, word, queue, life, event, producer, consumer
        own = indelible.open(sys.argv[1]).shared("a")
        own.word(0).add()
    except BaseException:
        import traceback
        traceback.print_exc()
        os._exit(1)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert word.load() == 1 and shared.is_alive(number)
producer.send(b"x")
assert consumer.receive() == b"x"
"""


def test_a_fork_opens_it_anew(pool: indelible.Pool) -> None:
    pool.shared("a", MIB).close()
    done = subprocess.run(python(FORK, pool.path), capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
