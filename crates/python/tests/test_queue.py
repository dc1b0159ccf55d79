"""Queues of messages, whose producers and consumers are killed, and over which others scribble."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from random import Random

import indelible
import numpy as np
import pytest
from conftest import python
from test_shared import LONG, Alarm, alarm, child, said

__all__ = ["alarm"]

SEED = int(os.environ.get("INDELIBLE_SEED", "20"))


def test_messages_come_in_their_order(pool: indelible.Pool) -> None:
    queue = pool.queue("jobs", slots=4, most=100)
    assert (queue.slots, queue.most, queue.one_producer, queue.offset, queue.skipped) == (4, 100, False, 0, 0)
    assert queue.shared.name == "jobs" and queue.id == pool.queue("jobs", slots=4, most=100).id != 0
    assert repr(queue) == '<indelible.Queue in "jobs" at 0, 4 messages of up to 100 bytes>'
    producer, consumer = queue.producer(), queue.consumer()
    assert consumer.receive(0) is None and consumer.receive(0.01) is None and consumer.look(0) is None
    messages = [b"", bytearray(b"two"), memoryview(b"three"), np.arange(4, dtype="u2")]
    numbers = [producer.send(message) for message in messages]
    assert numbers == [0, 1, 2, 3]
    assert producer.send(b"no room", 0) is None and producer.send(b"no room", timeout=0.01) is None
    assert not producer.wait_taken(0, 0)
    assert consumer.receive() == b"" and producer.wait_taken(0) and not producer.wait_taken(1, 0)
    assert consumer.look() == (1, b"two") and consumer.look() == (2, b"three")
    consumer.rewind()
    assert consumer.look() == (1, b"two") and not producer.wait_taken(1, 0)
    consumer.release()
    assert producer.wait_taken(1) and consumer.receive() == b"three"
    assert consumer.receive() == np.arange(4, dtype="u2").tobytes()
    # Elements that do not lie side by side come so.
    producer.send(np.arange(10, dtype="u1")[::3])
    assert list(consumer.messages(0)) == [bytes([0, 3, 6, 9])]


def test_one_iterates_over_messages(pool: indelible.Pool) -> None:
    queue = pool.queue("jobs", slots=64)
    with queue.producer() as producer, queue.consumer() as consumer:
        for number in range(10):
            producer.send(b"%d" % number)
        for number, message in enumerate(consumer):
            assert message == b"%d" % number
            if number == 4:
                break
        # The loop left the rest in the queue.
        assert list(consumer.messages(timeout=0)) == [b"5", b"6", b"7", b"8", b"9"]
        with pytest.raises(ValueError, match="timeout"):
            consumer.messages(-1)
    assert producer.closed and consumer.closed
    for use in (lambda: producer.send(b"x"), lambda: producer.wait_taken(0), lambda: next(iter(consumer)), consumer.release, consumer.rewind):
        with pytest.raises(indelible.Closed, match="of a queue: it is closed"):
            use()
    producer.close()
    queue.consumer().close()


def test_wrong_options_and_messages_are_errors(pool: indelible.Pool) -> None:
    queue = pool.queue("jobs", slots=4, most=100)
    for options in ({"slots": 8, "most": 100}, {"slots": 4, "most": 99}, {"slots": 4, "most": 100, "one_producer": True}):
        with pytest.raises((indelible.RootType, indelible.BadSize)):
            pool.queue("jobs", **options)
    with pytest.raises(indelible.RootType, match="of other options"):
        queue.shared.queue(0, slots=2, most=100)
    for slots, most in ((3, 64), (1, 64), (1 << 29, 64), (4, 0), (4, 1 << 29)):
        with pytest.raises(indelible.BadSize):
            pool.queue("none", slots=slots, most=most)
    assert "none" not in pool
    with pytest.raises(indelible.BadSize, match="multiple of 64"):
        queue.shared.queue(8)
    producer, consumer = queue.producer(), queue.consumer()
    with pytest.raises(indelible.BadSize, match="101 bytes is longer than the 100"):
        producer.send(bytes(101))
    for wrong in ("text", 5, None, [1, 2]):
        with pytest.raises(TypeError):
            producer.send(wrong)  # type: ignore[arg-type]
    for timeout in (-1.0, float("nan")):
        for call in (lambda t: producer.send(b"", t), lambda t: producer.wait_taken(0, t), consumer.receive, consumer.look):
            with pytest.raises(ValueError, match="timeout is a number of seconds"):
                call(timeout)
    assert consumer.receive(0) is None
    pool.array("w", 10)
    with pytest.raises(indelible.ClassMismatch):
        pool.queue("w")


def test_a_part_is_had_by_one_at_a_time(pool: indelible.Pool) -> None:
    queue = pool.queue("jobs", one_producer=True)
    producer, consumer = queue.producer(), queue.consumer()
    with pytest.raises(indelible.Held, match="has another consumer"):
        queue.consumer()
    with pytest.raises(indelible.Held, match="has another producer"):
        queue.producer()
    producer.send(b"one")
    assert consumer.receive() == b"one"
    del producer
    consumer.close()
    queue.producer().send(b"two")
    assert queue.consumer().receive() == b"two"


def test_several_queues_are_in_one_object(pool: indelible.Pool) -> None:
    shared = pool.shared("both", 1 << 20)
    there, back = shared.queue(0, slots=16), shared.queue(1 << 19, slots=16, one_producer=True)
    assert there.id != back.id and there.shared is shared
    with there.producer() as ask, back.producer() as answer:
        ask.send(b"?")
        answer.send(b"!")
    assert there.consumer().receive(0) == b"?" and back.consumer().receive(0) == b"!"


@pytest.mark.parametrize("one_producer", [False, True])
def test_threads_send_and_receive_while_others_wait(pool: indelible.Pool, one_producer: bool) -> None:
    queue = pool.queue("jobs", slots=2, most=8, one_producer=one_producer)
    consumer, received = queue.consumer(), []

    def send() -> None:
        with queue.producer() as producer:
            for number in range(2000):
                assert producer.send(number.to_bytes(8, "little"), LONG) == number

    sending = threading.Thread(target=send)
    sending.start()
    for message in consumer:
        received.append(int.from_bytes(message, "little"))
        if len(received) == 2000:
            break
    sending.join()
    assert received == list(range(2000))


def test_waiting_is_interrupted_by_signals_and_loses_nothing(pool: indelible.Pool, alarm: Callable[[], None]) -> None:
    queue = pool.queue("jobs", slots=2)
    producer, consumer = queue.producer(), queue.consumer()
    for wait in (lambda: consumer.receive(LONG), lambda: consumer.look(LONG), lambda: next(iter(consumer))):
        alarm()
        with pytest.raises(Alarm):
            wait()
    assert producer.send(b"a") == 0 and producer.send(b"b") == 1
    for wait in (lambda: producer.send(b"c", LONG), lambda: producer.wait_taken(0, LONG)):
        alarm()
        with pytest.raises(Alarm):
            wait()
    assert list(consumer.messages(0)) == [b"a", b"b"]


SENDER = """
import sys, indelible
queue = indelible.open(sys.argv[1]).queue("jobs", slots=16, most=24)
with queue.producer() as producer:
    print("sending", flush=True)
    number = 0
    while True:
        producer.send(b"%s %d" % (sys.argv[2].encode(), number))
        number += 1
"""


def test_producers_are_killed_and_nothing_that_they_sent_is_lost(pool: indelible.Pool) -> None:
    print(f"INDELIBLE_SEED={SEED}")
    random = Random(SEED)
    queue = pool.queue("jobs", slots=16, most=24)
    consumer = queue.consumer()
    for life in range(3):
        names = [f"{life}.{index}" for index in range(3)]
        children = {name: child(SENDER, pool.path, name) for name in names}
        assert [said(process) for process in children.values()] == ["sending"] * 3
        expected = dict.fromkeys(names, 0)

        def take(message: bytes) -> None:
            name, number = message.decode().split()
            assert int(number) == expected[name]
            expected[name] += 1

        for name in random.sample(names, 3):
            for _ in range(random.randrange(500)):
                message = consumer.receive(LONG)
                assert message is not None
                take(message)
            children[name].kill()
            assert children[name].wait(120) == -signal.SIGKILL
        for message in consumer.messages(0):
            take(message)
    assert queue.skipped <= 9
    producer = queue.producer()
    for number in range(40):
        assert producer.send(b"%d" % number, LONG) is not None and consumer.receive(LONG) == b"%d" % number
    for process in children.values():
        process.communicate()


TAKER = """
import sys, indelible
queue = indelible.open(sys.argv[1]).queue("jobs", slots=1024)
consumer = queue.consumer()
print("taking", flush=True)
if sys.argv[2] == "look":
    for _ in range(10):
        print(consumer.look(60)[0], flush=True)
else:
    for message in consumer:
        print(message.decode(), flush=True)
sys.stdin.read()
"""


def test_the_next_consumer_goes_on_where_a_killed_one_was(pool: indelible.Pool) -> None:
    queue = pool.queue("jobs", slots=1024)
    producer = queue.producer()
    for number in range(100):
        producer.send(b"%d" % number)
    with child(TAKER, pool.path, "look") as taker:
        assert said(taker) == "taking"
        assert [said(taker) for _ in range(10)] == [str(number) for number in range(10)]
        with pytest.raises(indelible.Held):
            queue.consumer()
        taker.kill()
    # It looked at messages, and did not release them.
    with child(TAKER, pool.path, "take") as taker:
        assert said(taker) == "taking"
        taken = [said(taker) for _ in range(20)]
        taker.kill()
        assert taker.stdout is not None
        taken += taker.stdout.read().split()
    assert taken == [str(number) for number in range(len(taken))]
    rest = [int(message) for message in queue.consumer().messages(0)]
    # One that it had taken out, and did not live to print.
    assert len(taken) <= 100 and (not rest or rest == list(range(rest[0], 100)) and rest[0] - len(taken) in (0, 1))
    assert rest or len(taken) >= 99


def test_a_sole_producer_that_is_killed_is_followed_by_another(pool: indelible.Pool) -> None:
    queue = pool.queue("jobs", one_producer=True)
    program = """
import sys, indelible
producer = indelible.open(sys.argv[1]).queue("jobs", one_producer=True).producer()
producer.send(b"last words")
print("sent", flush=True)
sys.stdin.read()
"""
    with child(program, pool.path) as other:
        assert said(other) == "sent"
        with pytest.raises(indelible.Held):
            queue.producer()
        other.kill()
    assert queue.producer().send(b"more") == 1
    assert list(queue.consumer().messages(0)) == [b"last words", b"more"]


ODD = [0, 1, 2**64 - 1, 2**63, 2**62, 2**32 - 1, 2**40, 3 << 62]


@pytest.mark.parametrize("one_producer", [False, True])
def test_odd_words_are_errors_or_wrong_messages(pool: indelible.Pool, one_producer: bool) -> None:
    """Each odd word in each word of the queue in turn, below its producer and its consumer."""
    print(f"INDELIBLE_SEED={SEED}")
    random, shared = Random(SEED), pool.shared("a", 2048)
    words, kinds = np.frombuffer(shared, "u8"), set()

    def judge(call: Callable[[], object]) -> None:
        try:
            found = call()
            assert not isinstance(found, bytes) or len(found) <= 32
        except indelible.Error as error:
            kinds.add(error.kind)

    for place in range(len(words)):
        for odd in [*ODD, random.getrandbits(64)]:
            words[:] = 0
            queue = shared.queue(0, slots=8, most=32, one_producer=one_producer)
            with queue.producer() as producer, queue.consumer() as consumer:
                judge(lambda: producer.send(b"before", 0))
                words[place] = odd
                judge(lambda: producer.send(b"m" * random.randrange(33), 0))
                judge(lambda: consumer.receive(0))
                judge(lambda: consumer.look(0))
                judge(consumer.release)
                judge(lambda: producer.wait_taken(1, 0))
                judge(lambda: shared.queue(0, slots=8, most=32, one_producer=one_producer))
    assert {"Damaged", "RootType"} <= kinds <= {"Damaged", "RootType", "Held"}


@pytest.mark.parametrize("one_producer", [False, True])
def test_scribbles_beside_the_calls_are_errors_or_wrong_messages(pool: indelible.Pool, one_producer: bool) -> None:
    """A thread stores odd words anywhere in the queue while others use it; what they find depends on the machine."""
    print(f"INDELIBLE_SEED={SEED}")
    random, size = Random(SEED), 2048
    shared = pool.shared("a", size)
    words = np.frombuffer(shared, "u8")
    stop = threading.Event()

    def scribble() -> None:
        while not stop.is_set():
            words[random.randrange(len(words))] = random.choice([*ODD, random.getrandbits(64)])

    def judge(call: Callable[[], object]) -> None:
        try:
            found = call()
            assert not isinstance(found, bytes) or len(found) <= 32
        except indelible.Error as error:
            assert error.kind in ("Damaged", "RootType", "Held")

    for _ in range(30):
        words[:] = 0
        queue = shared.queue(0, slots=8, most=32, one_producer=one_producer)
        producer, consumer = queue.producer(), queue.consumer()
        thread = threading.Thread(target=scribble)
        stop.clear()
        thread.start()
        for turn in range(60):
            judge(lambda: producer.send(b"m" * random.randrange(33), 0))
            judge(lambda: consumer.receive(0))
            judge(lambda: consumer.look(0))
            judge(consumer.release)
            judge(lambda: producer.wait_taken(turn, 0))
            judge(lambda: shared.queue(0, slots=8, most=32, one_producer=one_producer))
        stop.set()
        thread.join()
        producer.close()
        consumer.close()


def test_two_processes_talk_by_queues(pool: indelible.Pool) -> None:
    program = """
import sys, indelible
shared = indelible.open(sys.argv[1]).shared("talk")
ask, answer = shared.queue(0, slots=4, one_producer=True), shared.queue(65536, slots=4, one_producer=True)
with ask.consumer() as questions, answer.producer() as answers:
    for question in questions:
        if not question:
            break
        answers.send(question[::-1])
"""
    shared = pool.shared("talk", 1 << 17)
    ask, answer = shared.queue(0, slots=4, one_producer=True), shared.queue(65536, slots=4, one_producer=True)
    with child(program, pool.path) as other, ask.producer() as questions, answer.consumer() as answers:
        for number in range(500):
            questions.send(b"%d" % number)
            assert answers.receive(LONG) == (b"%d" % number)[::-1]
        questions.send(b"")
        assert other.wait(120) == 0
