"""Ctrl-C in waits for locks of other processes: each is answered while the call waits, and an
exception of it ends the call, which has done nothing then.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import indelible
import numpy as np
import pytest
from conftest import MIB, not_tested, offers, python

# Keeps the locks of a pool: the table, or all lanes' changes of objects.
LOCKS = """
import fcntl, sys
file = open(sys.argv[1], "r+b")
base, changes = 1 << 62, (1 << 62) + (1 << 61)
start, count = {"table": (base, 1), "changes": (changes, 1 << 20)}[sys.argv[2]]
fcntl.lockf(file, fcntl.LOCK_EX, count, start)
print("held", flush=True)
sys.stdin.read()
"""

OBJECT = """
import sys, indelible
w = indelible.open(sys.argv[1]).array(sys.argv[2])
print("held", flush=True)
sys.stdin.read()
"""

ENOUGH = 5


def interrupted(call: Callable[[], object]) -> None:
    """Sends Ctrl-C, and again once it was answered; the last one raises."""
    answered = threading.Semaphore(0)
    answers = 0
    over = False

    def handler(_number: int, _frame: object) -> None:
        nonlocal answers
        answers += 1
        answered.release()
        if answers >= ENOUGH and not over:
            raise KeyboardInterrupt

    def send() -> None:
        while answers < ENOUGH and not over:
            os.kill(os.getpid(), signal.SIGINT)
            answered.acquire()

    before = signal.signal(signal.SIGINT, handler)
    thread = threading.Thread(target=send)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            call()
    finally:
        over = True
        answered.release()
        thread.join()
        signal.signal(signal.SIGINT, before)
    assert answers == ENOUGH


@contextmanager
def holding(code: str, *arguments: object) -> Iterator[None]:
    """Another process has locks."""
    pipe = subprocess.PIPE
    holder = subprocess.Popen(python(code, *arguments), stdin=pipe, stdout=pipe, text=True)
    assert holder.stdin is not None and holder.stdout is not None
    try:
        assert holder.stdout.readline() == "held\n"
        yield
    finally:
        holder.communicate()


def opened(path: Path) -> indelible.Pool:
    return indelible.open(path, 64 * MIB, wait=20)


def test_in_waits_for_the_table(tmp_path: Path) -> None:
    pool = opened(tmp_path / "p.pmo")
    other = opened(tmp_path / "other.pmo")
    array, values, log = pool.array("array", (-1,)), pool.dict("values"), pool.log("log")
    pool.create("bytes", 4096)
    attached = pool.attach("bytes")
    view, context = pool.view("view", 4), pool.context("context", 4)
    pool.array("a", 4).psync()
    pool.array("b", 4).psync()
    view.set(0, "a")
    view.set(1, "b")
    view.psync()
    work = pool.attach_view("view")
    calls: dict[str, Callable[[], object]] = {
        "Array.grow": lambda: array.grow(1 << 20),
        "Object.grow": lambda: attached.grow(1 << 20),
        "Dict": lambda: values.update(big=np.ones(1 << 20)),
        "Log.append": lambda: log.append(b"x" * (1 << 21)),
        "View.set": lambda: view.set(2, "array"),
        "SecurityContext.allow": lambda: context.allow("array", "r"),
        "AttachedView.bring": lambda: work.bring(0),
        "AttachedView.buffer": lambda: work.buffer(0),
        "AttachedView.bring_all": work.bring_all,
        "AttachedView.adopt": work.adopt,
        "Pool.copy_to": lambda: pool.copy_to("a", other, "copy"),
        "Pool.snapshot": lambda: pool.snapshot("a", "kept"),
        "Pool.grow": lambda: pool.grow(128 * MIB),
    }
    with holding(LOCKS, pool.path, "table"):
        for name, call in calls.items():
            try:
                interrupted(call)
            except BaseException as error:
                raise AssertionError(name) from error
        assert len(array) == 0 and attached.size == 4096 and list(values) == [] and len(log) == 0
    for call in calls.values():
        call()
    assert values["big"].sum() == 1 << 20 and len(log) == 1 and "copy" in other and "kept" in pool


def test_in_closes_that_wait_for_the_table(tmp_path: Path) -> None:
    """What is interrupted stays open, and is closed by the next call."""
    pool = opened(tmp_path / "p.pmo")
    other = indelible.open(pool.path)
    pool.create("bytes", 4096)
    pool.create("far", MIB, position_independent=True)
    pool.array("read", 4).psync()
    attached, reader = pool.attach("bytes"), pool.attach("read", "r")
    values, log, log_reader = pool.dict("values"), pool.log("log"), pool.log("log", "r")
    view, context, bank = pool.view("view", 4), pool.context("context", 4), pool.transactional("bank", 4)
    work, shared = pool.attach_view("view"), pool.shared("shared", 4096)
    space = indelible.Space()
    space.attach(pool, "far")
    handles: list[Any] = [attached, reader, values, log, log_reader, view, context, bank, work, shared, space, other]
    with holding(LOCKS, pool.path, "table"):
        for each in handles:
            try:
                interrupted(each.close)
            except BaseException as error:
                raise AssertionError(each) from error
        assert not any(each.closed for each in handles)
        assert other.medium == pool.medium and bytes(memoryview(attached)[:2]) == b"\0\0"
    bank.transaction(lambda tx: tx[bank].__setitem__(0, 7))
    values["kept"] = 1
    values.psync()
    for each in handles:
        each.close()
        assert each.closed
    assert pool.dict("values")["kept"] == 1
    assert all(not stat.holder for stat in pool.list() if stat.name in ("bytes", "read", "log", "bank", "far"))


def test_a_refresh_that_waits_for_the_table(tmp_path: Path) -> None:
    pool = opened(tmp_path / "p.pmo")
    if pool.medium != "file":
        not_tested("waits of a refresh: the folder for tests is in memory")
        pytest.skip("in memory, a refresh takes no lock")
    pool.array("w", 4).psync()
    reader = pool.attach_snapshot("w")
    newer = "import sys, indelible\nw = indelible.open(sys.argv[1]).array('w')\nw[:] = 7\nw.psync()"
    assert subprocess.run(python(newer, pool.path)).returncode == 0
    with holding(LOCKS, pool.path, "table"):
        interrupted(reader.refresh)
        assert not reader.closed
    assert reader.refresh() and np.frombuffer(reader, "f8", 4, 4096).tolist() == [7] * 4


def test_in_waits_for_changes_of_objects(tmp_path: Path) -> None:
    pool = opened(tmp_path / "p.pmo")
    if pool.medium != "file":
        not_tested("waits for changes of objects: the folder for tests is in memory")
        pytest.skip("in memory, words are the locks")
    array, values = pool.array("array", 1000), pool.dict("values")
    indelible.psync(array, values)
    calls: dict[str, Callable[[], object]] = {
        "psync": array.psync,
        "cut": lambda: array.psync(cut=True),
        "dict": values.psync,
        "several": lambda: indelible.psync(array, values),
    }
    with holding(LOCKS, pool.path, "changes"):
        for number, (name, call) in enumerate(calls.items()):
            array[:] = values["number"] = number
            try:
                interrupted(call)
            except BaseException as error:
                raise AssertionError(name) from error
    for call in calls.values():
        call()
    reader = indelible.open(pool.path).array("array", mode="r")
    assert (reader == 3).all() and values["number"] == 3


def test_in_waits_for_objects_of_a_view(tmp_path: Path) -> None:
    pool = opened(tmp_path / "p.pmo")
    pool.array("held", 4).psync()
    for name, rights, at_once in (("writes", "rw", False), ("reads", "r", False), ("at once", "r", True)):
        with pool.view(name, 1) as view:
            view.set(0, "held", rights, at_once=at_once)
    with holding(OBJECT, pool.path, "held"):
        with pool.attach_view("writes") as work:
            interrupted(lambda: work.bring(0))
        with pool.attach_view("reads") as work:
            interrupted(lambda: work.bring(0))
            # Slots keep the errors of their objects, but not those of slices.
            interrupted(work.bring_all)
        interrupted(lambda: pool.attach_view("at once"))
    with pool.attach_view("reads") as work:
        assert work.bring_all() == 1


def test_in_a_cut_that_waits_for_stores(tmp_path: Path) -> None:
    """Numpy stores without the GIL all the time, and the cut, which waits with it, answers signals."""
    if not offers("wp-async"):
        not_tested("cuts that wait: this kernel does not offer wp-async")
        pytest.skip("mprotect holds stores up at once")
    pool = indelible.open(tmp_path / "p.pmo", 512 * MIB, tracking="wp-async")
    # Rows are sorted one by one, without the GIL: few pages change between two looks.
    array = pool.array("w", (4, 1 << 10, 1 << 12))
    array[:] = np.random.default_rng(1).random(array.shape)
    array.psync()
    places: list[tuple[int, int]] = []
    over = threading.Event()

    def handler(_number: int, frame: FrameType | None) -> None:
        assert frame is not None
        places.append((id(frame), frame.f_lasti))

    def sort(rows: np.ndarray[Any, Any]) -> None:
        while not over.is_set():
            rows.sort(kind="heapsort")

    before = signal.signal(signal.SIGALRM, handler)
    sorting = [threading.Thread(target=sort, args=(part,)) for part in array]
    for thread in sorting:
        thread.start()
    twice = False
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        # On a busy machine the others may pause, and a cut is soon done.
        for _ in range(3000):
            places.clear()
            array.psync(cut=True)
            twice = any(place == last for place, last in pairwise(places))
            if twice:
                break
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        over.set()
        for thread in sorting:
            thread.join()
    # Twice at one instruction: the second time at the latest within the call.
    assert twice


def test_a_thread_that_waits_with_an_object_keeps_ctrl_c_from_none(tmp_path: Path) -> None:
    pool = opened(tmp_path / "p.pmo")
    array = pool.array("array", (-1,))
    with holding(LOCKS, pool.path, "table"):
        growing = threading.Thread(target=lambda: array.grow(1 << 20))
        growing.start()
        interrupted(lambda: array.grow(1 << 20))
    growing.join()
    assert array.psync() is None
