"""Psyncs and queues in programs of asyncio: nothing is lost by a task that is cancelled."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import indelible
import numpy as np
import pytest
from conftest import Open, python


def test_a_psync_is_awaited_and_is_durable_then(open_pool: Open, path: Path) -> None:
    pool = open_pool()
    w, run = pool.array("w", 100_000), pool.dict("run")

    async def work() -> int:
        turns = 0
        for step in range(5):
            w[:] = step
            run["step"] = step
            ticket = pool.psync_async(w, run)
            while not ticket.done():
                turns += 1
                await asyncio.sleep(0)
            await ticket
            ticket.wait(0)
        w[:] = 9
        assert await pool.psync_async() is None
        return turns

    assert asyncio.run(work()) > 0
    code = "import sys, indelible; p = indelible.open(sys.argv[1]); print(p.array('w', mode='r')[-1], p.dict('run', 'r')['step'])"
    done = subprocess.run(python(code, path), capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["9.0", "4"] and pool.psync() == []
    run["a"] = 1
    assert pool.psync() == ["object \"run\""]


def test_the_error_of_a_psync_is_that_of_its_ticket(pool: indelible.Pool) -> None:
    w = pool.array("w", 3)
    obj = indelible._array.owner(w)
    del w
    obj.close()
    ticket = pool.psync_async(obj)
    with pytest.raises(indelible.Closed):
        ticket.wait()

    async def work() -> None:
        await ticket

    with pytest.raises(indelible.Closed):
        asyncio.run(work())
    assert "done" in repr(ticket)


def test_a_task_that_is_cancelled_does_not_cancel_the_psync(pool: indelible.Pool) -> None:
    w = pool.array("w", 1_000_000)
    w[:] = 1

    async def work() -> indelible.Ticket:
        ticket = pool.psync_async(w)
        waiting = asyncio.ensure_future(ticket)
        await asyncio.sleep(0)
        waiting.cancel()
        return ticket

    asyncio.run(work()).wait()
    assert not indelible._array.owner(w)._is_unsynced()


def test_messages_come_by_async_for(pool: indelible.Pool) -> None:
    queue = pool.queue("jobs", slots=4, most=100)

    async def work() -> list[bytes]:
        seen: list[bytes] = []

        async def produce() -> None:
            with queue.producer() as producer:
                for number in range(50):
                    assert await producer.send_async(b"%d" % number) is not None
                await producer.send_async(np.frombuffer(b"stop", "u1"))

        task = asyncio.create_task(produce())
        with queue.consumer() as consumer:
            async for message in consumer:
                if message == b"stop":
                    break
                seen.append(message)
            assert await consumer.receive_async(timeout=0) is None
            assert await consumer.receive_async(timeout=0.01) is None
        await task
        return seen

    assert asyncio.run(work()) == [b"%d" % number for number in range(50)]


def test_a_message_is_not_lost_by_a_task_that_is_cancelled(pool: indelible.Pool) -> None:
    queue = pool.queue("jobs", slots=4, most=100)
    consumer, producer = queue.consumer(), queue.producer()

    async def work() -> None:
        for number in range(5):
            waiting = asyncio.ensure_future(consumer.receive_async())
            # It waits in a thread by now.
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            waiting.cancel()
            producer.send(b"%d" % number)
            assert consumer.receive(timeout=5) == b"%d" % number
            with pytest.raises(asyncio.CancelledError):
                await waiting
        for number in range(4):
            producer.send(b"%d" % number)
        full = asyncio.ensure_future(producer.send_async(b"more"))
        await asyncio.sleep(0)
        assert await producer.send_async(b"more", timeout=0) is None
        full.cancel()
        with pytest.raises(asyncio.CancelledError):
            await full
        assert list(consumer.messages(timeout=0)) == [b"%d" % number for number in range(4)]

    asyncio.run(work())
