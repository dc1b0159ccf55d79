"""Logs: records that are durable as of a psync, readers beside them, messages that are acknowledged once they are durable."""

from __future__ import annotations

import os
import signal
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from random import Random

import indelible
import numpy as np
import pytest
from conftest import MIB, Open
from test_shared import LONG, Alarm, alarm, child, said

__all__ = ["alarm"]

SEED = int(os.environ.get("INDELIBLE_SEED", "20"))


def records(pool: indelible.Pool, name: str) -> list[bytes]:
    with pool.log(name, "r") as reader:
        return [record.data for record in reader]


def test_records_are_durable_as_of_a_psync(open_pool: Open) -> None:
    with open_pool() as pool:
        log = pool.log("events")
        assert (log.name, log.pool, len(log), log.closed, bool(log)) == ("events", pool, 0, False, True)
        assert [log.append(record) for record in (b"one", bytearray(b"two"), np.arange(3, dtype="u1"), b"")] == [0, 1, 2, 3]
        assert len(log) == 4 and records(pool, "events") == [] and repr(log) == "<indelible.Log \"events\", 4 records>"
        log.psync()
        assert records(pool, "events") == [b"one", b"two", bytes([0, 1, 2]), b""]
        log.append(b"never psynced")
        log.close()
        assert log.closed and repr(log) == "<indelible.Log \"events\", closed>"
        log.close()
        for use in (lambda: log.append(b""), log.psync, lambda: len(log)):
            with pytest.raises(indelible.Closed, match='log "events": it is closed'):
                use()
    with open_pool() as pool:
        with pool.log("events") as log:
            assert len(log) == 4
            # It grows as it needs.
            big = os.urandom(300_000)
            assert log.append(big) == 4
        assert records(pool, "events")[4] == big
        with pytest.raises(KeyError, match="why not"), pool.log("events") as log:
            log.append(b"not this")
            raise KeyError("why not")
        assert len(records(pool, "events")) == 5


def test_a_reader_follows_a_log(pool: indelible.Pool) -> None:
    log = pool.log("events")
    for number in range(3):
        log.append(b"%d" % number)
    log.psync()
    reader = pool.log("events", "r")
    assert (reader.name, reader.pool, len(reader), bool(reader)) == ("events", pool, 3, True)
    assert reader.read() == indelible.LogRecord(0, b"0", None) and not reader.refresh()
    assert [record.number for record in reader] == [1, 2] and reader.read() is None
    log.append(b"3")
    assert not reader.refresh() and reader.read() is None
    log.psync()
    assert reader.read() is None and reader.refresh() and [record.data for record in reader] == [b"3"]
    assert repr(reader) == "<indelible.LogReader 'events', 4 records>"

    def append() -> None:
        for number in range(4, 30):
            log.append(b"%d" % number)
            log.psync()

    appending = threading.Thread(target=append)
    appending.start()
    for record in reader.follow(every=0):
        assert record.data == b"%d" % record.number
        if record.number == 29:
            break
    appending.join()
    with pytest.raises(ValueError, match="every"):
        next(reader.follow(-1))
    reader.close()
    assert reader.closed and repr(reader) == "<indelible.LogReader 'events', closed>"
    with pytest.raises(indelible.Closed):
        reader.read()


def test_a_log_is_had_as_what_it_is(pool: indelible.Pool) -> None:
    pool.array("w", 10)
    for mode in ("r", "r+"):
        with pytest.raises(indelible.RootType):
            pool.log("w", mode)  # type: ignore[call-overload]
    with pytest.raises(indelible.NotFound):
        pool.log("none", "r")
    with pytest.raises(ValueError, match="mode is 'r' or 'r\\+', not 'w'"):
        pool.log("w", "w")  # type: ignore[call-overload]
    log = pool.log("guarded", key=b"k")
    assert pool.log("guarded", key=b"k") is log
    for wrong in ("text", 5, None):
        with pytest.raises(TypeError):
            log.append(wrong)  # type: ignore[arg-type]
    log.close()
    with pytest.raises(indelible.WrongKey):
        pool.log("guarded")
    # Bytes that contradict themselves are an error of their own.
    with pool.log("events") as log:
        log.append(b"a record")
    with pool.attach("events") as obj:
        memory = memoryview(obj)
        memory[64 + 40] ^= 1
        memory.release()
    with pytest.raises(indelible.Damaged, match="checksum"):
        records(pool, "events")


def test_a_reader_that_has_the_addresses_of_its_log_is_named(pool: indelible.Pool) -> None:
    with pool.log("events") as log:
        log.append(b"kept")
    reader = indelible.open(pool.path, read_only=True).log("events", "r")
    with pool.log("events", "r") as beside:
        assert reader.locked and not beside.locked
    with pytest.raises(indelible.Error, match="a reader of the log 'events', .* close it first") as told:
        pool.log("events")
    assert told.value.kind == "AddressTaken" and "anonymous memory" in str(told.value)
    reader.close()
    with pool.log("events") as log:
        assert len(log) == 1


def test_records_that_vanish_are_warned_of(pool: indelible.Pool) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        log = pool.log("events")
        log.append(b"kept")
        log.psync()
        log.close()
        del log
        assert told == []
        log = pool.log("events")
        log.append(b"lost")
        log.close()
        assert len(told) == 1 and "log \"events\" is detached with changes that were not psynced" in str(told[0].message)
        log = pool.log("events")
        log.append(b"lost")
        del log
        assert len(told) == 2 and told[1].category is indelible.UnsyncedWarning
    assert records(pool, "events") == [b"kept"]


def test_messages_are_acknowledged_once_they_are_durable(pool: indelible.Pool) -> None:
    queue = pool.queue("clients", slots=8, most=100)
    producer, consumer = queue.producer(), queue.consumer()
    with pool.log("log") as log:
        assert log.collect(consumer, timeout=0) == [] and log.collect(consumer, timeout=0.01) == []
        numbers = [producer.send(b"line %d" % number) for number in range(5)]
        assert not producer.wait_taken(0, 0)
        assert log.collect(consumer, 2) == [b"line 0", b"line 1"]
        # Durable before they are taken out.
        assert records(pool, "log") == [b"line 0", b"line 1"]
        assert producer.wait_taken(1) and not producer.wait_taken(2, 0)
        log.append(b"between")
        assert log.collect(consumer) == [b"line 2", b"line 3", b"line 4"] and producer.wait_taken(4)
        with pytest.raises(ValueError, match="at least one"):
            log.collect(consumer, 0)
        with pytest.raises(TypeError):
            log.collect(producer)  # type: ignore[arg-type]
        with pool.log("log", "r") as reader:
            assert [record.message for record in reader] == [(queue.id, 0), (queue.id, 1), None, *((queue.id, number) for number in numbers[2:])]
        consumer.close()
        with pytest.raises(indelible.Closed, match="consumer of a queue"):
            log.collect(consumer)
    with pytest.raises(indelible.Closed, match="log"):
        log.collect(queue.consumer())


def test_collecting_waits_beside_threads_and_is_interrupted(pool: indelible.Pool, alarm: Callable[[], None]) -> None:
    queue, log = pool.queue("clients"), pool.log("log")
    producer, consumer, found = queue.producer(), queue.consumer(), []
    alarm()
    with pytest.raises(Alarm):
        log.collect(consumer, timeout=LONG)
    collecting = threading.Thread(target=lambda: found.append(log.collect(consumer, timeout=LONG)))
    collecting.start()
    assert producer.wait_taken(producer.send(b"line") or 0, LONG)
    collecting.join()
    assert found == [[b"line"]] and records(pool, "log") == [b"line"]


SERVER = """
import sys, indelible
pool = indelible.open(sys.argv[1])
queue = pool.queue("clients", slots=32)
with queue.consumer() as consumer, pool.log("log") as log:
    print("serving", flush=True)
    while True:
        log.collect(consumer, 8)
"""


def test_servers_are_killed_and_each_line_is_in_the_log_once(pool: indelible.Pool) -> None:
    print(f"INDELIBLE_SEED={SEED}")
    random = Random(SEED)
    producer, sent = pool.queue("clients", slots=32).producer(), 0
    for life in range(6):
        server = child(SERVER, pool.path)
        assert said(server) == "serving"
        acknowledged = 0
        for _ in range(random.randrange(1, 40)):
            number = producer.send(b"%d" % sent, LONG)
            assert number == sent
            sent += 1
            if random.randrange(2):
                assert producer.wait_taken(number, LONG)
                acknowledged = sent
        server.kill()
        assert server.wait(120) == -signal.SIGKILL
        server.communicate()
        found = records(pool, "log")
        assert len(found) >= acknowledged and found == [b"%d" % number for number in range(len(found))], life
    # The next server collects the rest.
    with pool.queue("clients", slots=32).consumer() as consumer, pool.log("log") as log:
        while log.collect(consumer, timeout=0):
            pass
        log.collect(consumer, timeout=0)
    assert records(pool, "log") == [b"%d" % number for number in range(sent)]


def test_a_killed_writer_leaves_the_records_of_a_psync(pool: indelible.Pool) -> None:
    program = """
import sys, indelible
log = indelible.open(sys.argv[1]).log("events")
log.append(b"durable")
log.psync()
log.append(b"not durable")
print("appended", flush=True)
sys.stdin.read()
"""
    with child(program, pool.path) as writer:
        assert said(writer) == "appended"
        with pytest.raises(indelible.Held):
            pool.log("events")
        assert records(pool, "events") == [b"durable"]
        writer.kill()
    with pool.log("events") as log:
        assert len(log) == 1 and log.append(b"after") == 1
    assert records(pool, "events") == [b"durable", b"after"]


def test_readers_take_no_space_from_a_log(tmp_path: Path) -> None:
    pool = indelible.open(tmp_path / "p.pmo", 16 * MIB)
    with pool.log("l") as log, pool.log("l", "r") as reader:
        with pytest.raises(indelible.NoRoom):
            while True:
                log.append(bytes(100_000))
                log.psync()
                assert reader.refresh() and len(next(reader).data) == 100_000
        assert len(log) * 100_000 > 10 * MIB
        log.psync()
        with pool.log("l", "r") as other:
            assert [len(record.data) for record in other] == [100_000] * len(log)
    assert pool.info()["largest_free"] < pool.stat("l").size


def test_a_log_is_read_in_a_pool_that_is_opened_for_reading(tmp_path: Path) -> None:
    path = tmp_path / "p.pmo"
    pool = indelible.open(path, 16 * MIB)
    with pool.log("l") as log:
        log.append(b"x")
    pool.close()
    with indelible.open(path, read_only=True) as archive, archive.log("l", "r") as reader:
        assert [record.data for record in reader] == [b"x"] and not reader.refresh()
