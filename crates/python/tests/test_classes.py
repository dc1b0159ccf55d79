"""Objects of every class: copied, pickled, compared, used after their end, by threads and after a fork, each in a process of its own."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import indelible
import numpy as np
import pytest
from conftest import MIB, python

Make = Callable[[indelible.Pool], Any]


def view(pool: indelible.Pool) -> indelible.View:
    pool.create("target", 8192)
    made = pool.view("view", 2)
    made.set(0, "target")
    made.psync()
    return made


def attached_view(pool: indelible.Pool) -> indelible.AttachedView:
    view(pool).close()
    return pool.attach_view("view")


def log_reader(pool: indelible.Pool) -> indelible.LogReader:
    with pool.log("log") as log:
        log.append(b"x")
    return pool.log("log", "r")


def space(pool: indelible.Pool) -> indelible.Space:
    pool.create("home", MIB, position_independent=True)
    made = indelible.Space()
    made.attach(pool, "home")
    return made


def elements(pool: indelible.Pool) -> Any:
    array = pool.transactional("tx", 3, "i8")
    return array.transaction(lambda tx: tx[array])


def tx(pool: indelible.Pool) -> Any:
    return pool.transactional("tx", 3, "i8").transaction(lambda tx: tx)


def array_of_bytes(pool: indelible.Pool) -> indelible.Object:
    pool.create("bytes", 8192)
    return pool.attach("bytes")


def run(pool: indelible.Pool) -> indelible.Dict:
    made = pool.dict("run")
    made["a"] = np.arange(3)
    return made


def shared(pool: indelible.Pool) -> indelible.Shared:
    return pool.shared("shared", 8192)


# A class, one object of it, and a use of it.
MADE: dict[str, tuple[Make, Callable[[Any], object]]] = {
    "Array": (lambda pool: pool.array("array", 3), lambda x: (x[0], x.psync())),
    "ByName": (lambda pool: pool.array("array", 3).by_name("r"), repr),
    "AttachedView": (attached_view, lambda x: x.slots()),
    "Checkpoints": (lambda pool: pool.checkpoints("saved"), lambda x: (x.save("a", {"w": 1}), x.load())),
    "Consumer": (lambda pool: pool.queue("queue").consumer(), lambda x: x.receive(0)),
    "Dict": (run, lambda x: (x["a"][0], x.psync())),
    "Event": (lambda pool: shared(pool).event(0, 0), lambda x: x.fileno()),
    "Life": (lambda pool: shared(pool).begin_life(), lambda x: x.ended),
    "Log": (lambda pool: pool.log("log"), lambda x: (x.append(b"a"), x.psync())),
    "LogReader": (log_reader, lambda x: (x.refresh(), len(x))),
    "Object": (array_of_bytes, lambda x: (bytes(memoryview(x)[:3]), x.psync())),
    "Pool": (lambda pool: pool, lambda x: (x.list(), x.info())),
    "Producer": (lambda pool: pool.queue("queue").producer(), lambda x: x.send(b"x", 0)),
    "Queue": (lambda pool: pool.queue("queue"), lambda x: x.skipped),
    "SealKey": (lambda pool: indelible.SealKey.bytes(bytes(32)), repr),
    "SecurityContext": (lambda pool: pool.context("context", 4), lambda x: x.rules()),
    "Shared": (shared, lambda x: (x.check(), bytes(memoryview(x)[:3]))),
    "Space": (space, lambda x: x.objects),
    "StreamReader": (lambda pool: indelible.StreamReader(pool.queue("queue"), 0), lambda x: x.readable()),
    "StreamWriter": (lambda pool: indelible.StreamWriter(pool.queue("queue"), 0), lambda x: x.writable()),
    "Ticket": (lambda pool: pool.psync_async(), lambda x: x.wait()),
    "Tx": (tx, repr),
    "TxArray": (
        lambda pool: pool.transactional("tx", 3, "i8"),
        lambda x: (x.transaction(lambda tx: tx[x].__setitem__(0, 7)), x.psync()),
    ),
    "TxElements": (elements, repr),
    "View": (view, lambda x: (x.list(), x.psync())),
    "Word": (lambda pool: shared(pool).word(0), lambda x: x.add(1)),
}

# Plain values, and those that are never attached to anything.
VALUES = {"Backup", "Collected", "Difference", "Far", "Field", "Found", "KeySlot", "Left", "LogRecord", "Pending", "Resumed", "Rule"}
VALUES |= {"Rules", "Scrubbed", "SlotState", "Stat", "StrayPointer", "Struct", "Tie", "Version", "ViewSlot"}

REFUSED = (TypeError, ValueError, BufferError, indelible.Error)


def allowed(call: Callable[[], object]) -> object:
    """The result, or None if the use is refused."""
    try:
        return call()
    except REFUSED as error:
        assert str(error)
        return None


def child(name: str, path: str) -> None:
    """All uses of an object of a class, in a process of its own."""
    make, use = MADE[name]
    pool = indelible.open(path, 64 * MIB)
    made = make(pool)
    use(made)
    copies = [
        lambda: pickle.loads(pickle.dumps(made)),
        lambda: pickle.loads(pickle.dumps(made, 0)),
        lambda: copy.copy(made),
        lambda: copy.deepcopy(made),
        lambda: copy.deepcopy({"a": [made]}),
    ]
    for each in copies:
        # The end of a copy leaves the original as it is.
        copied = allowed(each)
        del copied
        gc.collect()
        use(made)
    assert repr(made) and str(made)
    allowed(lambda: made == made)
    allowed(lambda: made == object())
    allowed(lambda: hash(made))
    allowed(lambda: memoryview(made))
    allowed(lambda: np.asarray(made))
    # A consumer waits; a stream for writing has the iteration of `io.RawIOBase`.
    if name not in ("Consumer", "StreamWriter"):
        allowed(lambda: list(zip(range(3), made, strict=False)))
    failed: list[BaseException] = []

    def several() -> None:
        try:
            for _ in range(20):
                allowed(lambda: use(made))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=several) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed
    forked = os.fork()
    if forked == 0:
        try:
            # Memory for stores is absent there: numpy cannot turn that into an error.
            if name != "Array":
                allowed(lambda: use(made))
                allowed(lambda: repr(made))
            allowed(lambda: getattr(made, "close", lambda: None)())
            del made
            gc.collect()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(forked, 0)[1]) == 0
    use(made)
    # The pool's handle goes first, then the object, or the other way round; then uses of closed things.
    if name != "Pool":
        pool.close()
        allowed(lambda: use(made))
    allowed(lambda: getattr(made, "close", lambda: None)())
    allowed(lambda: getattr(made, "close", lambda: None)())
    for each in [*copies, lambda: repr(made), lambda: hash(made), lambda: made == made, lambda: use(made)]:
        allowed(each)
    del pool, made
    gc.collect()


def test_each_class_is_tested() -> None:
    classes = {name for name in indelible.__all__ if isinstance(getattr(indelible, name), type)}
    errors = {name for name in classes if issubclass(getattr(indelible, name), BaseException)}
    assert classes - errors == set(MADE) | VALUES - errors


@pytest.mark.parametrize("name", MADE)
def test_each_use_of_an_object_is_right_or_an_error(name: str, pool: indelible.Pool) -> None:
    path = f"{os.fspath(pool.path)}.{name}"
    command = python("import sys; sys.path.insert(0, sys.argv[1]); import test_classes; test_classes.child(*sys.argv[2:])", Path(__file__).parent, name, path)
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{done.returncode}\n{done.stderr}"
