"""Reading beside a writer: what one psync left, the newest when it is asked for; no writer waits, and nothing changes in use."""

from __future__ import annotations

import gc
import logging
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import indelible
import numpy as np
import pytest
from conftest import MIB, Open, python

SEED = int(os.environ.get("INDELIBLE_SEED", "17"))

# Space that the pool's table may have taken for its own pages.
TABLE = 512 << 10

# Each psync has the same number in all of an array and in the dict.
WRITER = """
import sys, indelible
pool = indelible.open(sys.argv[1], tracking=sys.argv[2])
a, run = pool.array("a"), pool.dict("run")
step = run.get("step", 0)
assert (a == step).all()
while True:
    step += 1
    a += 1
    run.update(step=step, same=step, all=a[0])
    indelible.psync(a, run)
    print(step, flush=True)
"""


class Writer:
    """A process that writes without pause."""

    def __init__(self, path: Path, tracking: str) -> None:
        self.process = subprocess.Popen(python(WRITER, path, tracking), stdout=subprocess.PIPE, text=True)

    def next(self) -> int:
        """The next step that it says."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the writer ended"
        return int(line)

    def kill(self) -> int:
        """Kills it; the last step that it said, 0 if none is left to read."""
        assert self.process.stdout is not None
        self.process.kill()
        said = [line for line in self.process.stdout if line.endswith("\n")]
        self.process.stdout.close()
        self.process.wait()
        return int(said[-1]) if said else 0


@contextmanager
def writing(path: Path, tracking: str) -> Iterator[Writer]:
    writer = Writer(path, tracking)
    try:
        yield writer
    finally:
        if writer.process.returncode is None:
            writer.kill()


def prepared(open_pool: Open) -> indelible.Pool:
    pool = open_pool()
    a, run = pool.array("a", (8, 4096), "i8"), pool.dict("run")
    run.update(step=0, same=0, all=a[0])
    indelible.psync(a, run)
    return pool


def step_of(a: np.ndarray[Any, Any]) -> int:
    step = int(a[0, 0])
    assert (a == step).all()
    return step


def step_in(run: indelible.Dict) -> int:
    step = run["step"]
    assert run["same"] == step and (run["all"] == step).all()
    return int(step)


def test_a_reader_follows_a_writer_that_is_killed(open_pool: Open, path: Path, tracking: str) -> None:
    print(f"INDELIBLE_SEED={SEED}")
    random_ = random.Random(SEED)
    pool = prepared(open_pool)
    free: list[int] = []
    seen = 0
    for _ in range(3):
        with writing(path, tracking) as writer:
            writer.next()
            a, run = pool.array("a", mode="r"), pool.dict("run", mode="r")
            kept: list[tuple[int, np.ndarray[Any, Any]]] = []
            for _ in range(random_.randrange(2, 12)):
                at_least = writer.next()
                a = a.refresh()
                step = step_of(a)
                assert step >= max(at_least, seen)
                seen = step
                run.refresh()
                assert step_in(run) >= step
                kept.append((step, a[2:4]))
            # An array that was taken before is as it was, while the writer goes on.
            writer.next()
            assert all((view == step).all() for step, view in kept)
            last = writer.kill()
        kept.clear()
        # That of the dead writer is the newest.
        newest = step_of(a.refresh())
        assert newest >= max(last, seen)
        run.refresh()
        assert step_in(run) == newest
        run.close()
        assert step_of(pool.array("a", mode="r")) == newest
        del a
        assert step_of(pool.array("a")) == newest and pool.dict("run")["step"] == newest
        gc.collect()
        pool.collect()
        assert not pool.stat("a").shares and not pool.stat("run").shares
        assert pool.collect() == indelible.Collected(0, 0)
        free.append(pool.info()["free"])
    assert all(abs(later - free[0]) <= TABLE for later in free)


def test_readers_keep_no_writer_away(open_pool: Open, path: Path, tracking: str) -> None:
    pool = prepared(open_pool)
    a, run = pool.array("a", mode="r"), pool.dict("run", mode="r")
    assert a.refresh() is a and not run.refresh() and not a.flags.writeable
    with writing(path, tracking) as writer:
        assert writer.next() == 1
        assert step_of(a) == 0 and step_in(run) == 0
        with pytest.raises(indelible.Held):
            pool.array("a", mode="r", lock=True)
        # A second call has the newest; of a dict it is the same dict.
        assert step_of(pool.array("a", mode="r")) > 0 and step_of(a) == 0
        assert pool.dict("run", mode="r") is run
        raw = pool.attach_snapshot("a")
        memory = memoryview(raw)
        with pytest.raises(BufferError, match='cannot refresh object "a"'):
            raw.refresh()
        memory.release()
        while not raw.refresh():
            writer.next()
        assert raw.readonly and raw.size == len(memoryview(raw))
        raw.close()
    # This process stores beside its own reader, too.
    writes = pool.array("a")
    before = step_of(writes)
    writes += 1
    assert step_of(pool.array("a", mode="r")) == before + 1  # what it stores itself is read as it is
    writes.psync()
    assert step_of(a) == 0 and step_of(a.refresh()) == before + 1
    assert writes.refresh() is writes


def test_with_a_lock_no_process_writes(open_pool: Open) -> None:
    pool = prepared(open_pool)
    a, run = pool.array("a", mode="r", lock=True), pool.dict("run", mode="r", lock=True)
    for name, attach in (("a", pool.array), ("run", pool.attach)):
        with pytest.raises(indelible.Held):
            attach(name)
    assert pool.array("a", mode="r").ctypes.data == a.ctypes.data and pool.dict("run", mode="r") is run
    assert a.refresh() is a and not run.refresh()
    assert pool.stat("a").state == "R" and not pool.stat("a").shares
    with pytest.raises(ValueError, match="lock is for mode 'r'"):
        pool.array("a", lock=True)
    run.close()
    del a
    pool.array("a")[:] = 1


def fill(pool: indelible.Pool) -> list[str]:
    """Creates objects until there is no room for one like those of `prepared`."""
    names: list[str] = []
    while (room := pool.info()["largest_free"]) > 64 << 10:
        names.append(f"fill {len(names)} {room}")
        pool.create(names[-1], room)
    return names


def test_a_pool_without_room_is_locked_and_says_so(
    tmp_path: Path, tracking: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "p.pmo"
    pool = indelible.open(path, 16 * MIB, tracking=tracking)
    pool.array("a", (8, 4096), "i8").psync()
    with pool.dict("run") as run:
        run.update(step=0, same=0, all=np.zeros(4096, "i8"))
    filled = fill(pool)
    with caplog.at_level(logging.WARNING, "indelible"):
        a, run = pool.array("a", mode="r"), pool.dict("run", mode="r")
    assert step_of(a) == 0 == step_in(run)
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 2
    assert "'a'" in caplog.text and "no process can store to it" in caplog.text
    with pytest.raises(indelible.Held):
        pool.array("a")
    run.close()
    del a, run
    # Beside a writer there is no other way to attach.
    for name in filled:
        pool.remove(name)
    with writing(path, tracking) as writer:
        writer.next()
        fill(pool)
        for attach in (pool.array, pool.dict):
            with pytest.raises(indelible.NoRoom):
                attach("a" if attach == pool.array else "run", mode="r")
        writer.next()


def test_a_refresh_that_fails_changes_nothing(tmp_path: Path, tracking: str) -> None:
    path = tmp_path / "p.pmo"
    pool = indelible.open(path, 16 * MIB, tracking=tracking)
    a = pool.array("a", (8, 4096), "i8")
    a.psync()
    del a
    following = pool.array("a", mode="r")
    a = pool.array("a")
    a += 1
    a.psync()
    # The log goes back to the reader's state only while a writer is attached.
    del a
    pool.create("fill", pool.info()["largest_free"])
    with pytest.raises(indelible.NoRoom):
        following.refresh()
    assert step_of(following) == 0
    pool.remove("fill")
    assert step_of(following.refresh()) == 1 and step_of(following) == 0


def test_arrays_in_use_are_not_refreshed(open_pool: Open) -> None:
    pool = open_pool()
    one = indelible.Struct("Settings", {"rate": "f8"})
    writes = indelible.open(pool.path)
    with writes.dict("run") as values:
        values["w"] = np.arange(5)
        values.record("settings", one)["rate"] = 0.5
    run = pool.dict("run", mode="r")
    array, record = run["w"], run.record("settings", one)
    for _ in range(2):
        with pytest.raises(BufferError, match='cannot refresh object "run": .* in use'):
            run.refresh()
        assert array.sum() == 10 and record["rate"] == 0.5
        array = array[1:]
    del array, record
    assert not run.refresh() and run["w"].sum() == 10
    run.close()
    for use in (run.refresh, run.__len__):
        with pytest.raises(indelible.Closed):
            use()


def changes(path: Path, tracking: str, code: str) -> None:
    """Has another process do something with the pool."""
    code = "import sys, indelible, numpy as np\npool = indelible.open(sys.argv[1], tracking=sys.argv[2])\n" + code
    subprocess.run(python(code, path, tracking), check=True, timeout=120)


def test_what_is_read_may_grow_go_or_be_another(open_pool: Open, path: Path, tracking: str) -> None:
    pool = open_pool()
    log = pool.array("log", (-1, 2), "i4")
    log = log.grow(3)
    log[:] = 1
    log.psync()
    with pool.dict("run") as run:
        run["w"] = np.ones(3)
    del log, run
    read, run = pool.array("log", mode="r"), pool.dict("run", mode="r")
    items = iter(run.items())
    next(items)
    changes(path, tracking, """
log = pool.array("log").grow(100_000)
log[3:] = 2
with pool.dict("run") as run:
    run["more"] = np.zeros(1_000_000)
log.psync()
""")  # fmt: skip
    longer = read.refresh()
    assert longer.shape == (100_000, 2) and (longer[3:] == 2).all() and (longer[:3] == read).all()
    del items
    assert run.refresh() and run["more"].shape == (1_000_000,) and run.size > 8 * MIB
    with pytest.raises(ValueError, match="whole"):
        read[1:].refresh()
    iterator = iter(run)
    next(iterator)
    changes(path, tracking, "with pool.dict('run') as run: del run['more']")
    assert run.refresh()
    with pytest.raises(RuntimeError, match="changed"):
        next(iterator)
    changes(path, tracking, "pool.remove('log'); pool.remove('run'); pool.array('run', 3).psync()")
    with pytest.raises(indelible.NotFound):
        longer.refresh()
    assert (longer[3:] == 2).all()
    with pytest.raises(indelible.Error) as caught:
        run.refresh()
    # Nothing is left of a dict that is none any more. An object at other addresses is another one.
    assert (caught.value.kind, run.closed) in (("NotAHeap", True), ("NotFound", False))


def test_what_cannot_be_read_beside_a_writer(open_pool: Open, path: Path, tracking: str) -> None:
    pool = open_pool()
    for read in (pool.array, pool.dict):
        with pytest.raises(indelible.NotFound):
            read("none", mode="r")
    with pytest.raises(indelible.NotFound):
        pool.attach_snapshot("none")
    pool.create("new", 8192)
    with pytest.raises(indelible.NotFound, match="nothing was psynced to the object"):
        pool.array("new", mode="r")
    pool.array("a", 10, key=b"secret").psync()
    with pool.dict("run", key=b"secret") as run:
        run["x"] = 1
    for attach in (
        lambda: pool.array("a", mode="r"),
        lambda: pool.dict("run", mode="r", key=b"wrong"),
        lambda: pool.attach_snapshot("a"),
    ):
        with pytest.raises(indelible.WrongKey):
            attach()
    a, run = pool.array("a", mode="r", key=b"secret"), pool.dict("run", mode="r", key=b"secret")
    with pytest.raises(indelible.Held, match="this process reads it already, at the same addresses"):
        pool.dict("run", key=b"secret")
    changes(path, tracking, "a = pool.array('a', key=b'secret'); a[:] = 1; a.psync()")
    assert a.refresh().sum() == 10 and run["x"] == 1
    with pytest.raises(indelible.ReadOnly):
        run["x"] = 2
    run.close()
    with pool.dict("run", key=b"secret"), pytest.raises(indelible.Held, match="this process stores to it already"):
        pool.dict("run", mode="r", key=b"secret")
    with open_pool(None, read_only=True) as reader:
        assert reader.array("a", mode="r", key=b"secret").sum() == 10
        assert reader.dict("run", mode="r", key=b"secret")["x"] == 1
    pool.close()
    with pytest.raises(indelible.Closed):
        pool.attach_snapshot("a")
    assert a.refresh().sum() == 10  # closing ends the use of the handle alone


def test_checkpoints_are_loaded_beside_the_process_that_saves_them(open_pool: Open, path: Path, tracking: str) -> None:
    pool = open_pool()
    with pytest.raises(indelible.NotFound):
        pool.checkpoints("saved", mode="r")
    save = """
saved = pool.checkpoints("saved", last=2, best=0)
for step in range(int(sys.argv[3]), int(sys.argv[3]) + 3):
    saved.save(f"step {step}", {"w": np.full(1000, step)}, score=step)
"""
    code = "import sys, indelible, numpy as np\npool = indelible.open(sys.argv[1], tracking=sys.argv[2])\n" + save
    subprocess.run(python(code, path, tracking, 0), check=True, timeout=120)
    saved = pool.checkpoints("saved", mode="r")
    assert list(saved) == ["step 1", "step 2"] and not saved.refresh()
    subprocess.run(python(code, path, tracking, 3), check=True, timeout=120)
    state = saved.load()
    assert saved.latest == "step 2" and (state["w"] == 2).all()
    assert saved.refresh() and saved.latest == "step 5" and (saved.load()["w"] == 5).all() and (state["w"] == 2).all()
    with pytest.raises(indelible.ReadOnly):
        saved.save("step 6", {})


def test_threads_follow_together(open_pool: Open, path: Path, tracking: str) -> None:
    pool = prepared(open_pool)
    run = pool.dict("run", mode="r")
    errors: list[BaseException] = []
    seen = {"refreshed": 0, "read": 0, "followed": 0}

    def guarded(work: Callable[[], None]) -> Callable[[], None]:
        def guard() -> None:
            try:
                while min(seen.values()) < 10 and not errors:
                    work()
            except BaseException as error:
                errors.append(error)

        return guard

    def refresh() -> None:
        try:
            seen["refreshed"] += run.refresh()
        except BufferError:
            pass

    def read() -> None:
        try:
            values = dict(run.items())
        except RuntimeError:
            return  # it was refreshed meanwhile
        assert values["same"] == values["step"] and (values["all"] == values["step"]).all()
        seen["read"] += 1

    def follow() -> None:
        nonlocal a
        newer = a.refresh()
        step_of(newer)
        seen["followed"] += newer is not a
        a = newer

    a = pool.array("a", mode="r")
    with writing(path, tracking) as writer:
        writer.next()
        threads = [threading.Thread(target=guarded(work)) for work in (refresh, read, follow, follow)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert errors == []


def test_other_threads_run_meanwhile(open_pool: Open) -> None:
    """A thread that gives way at each turn counts during a call that the main thread does not leave."""
    pool = prepared(open_pool)
    writes = indelible.open(pool.path).array("a")
    reader = pool._attach_anywhere("a", None, None)
    counted, stop = [0], threading.Event()

    def count() -> None:
        while not stop.is_set():
            counted[0] += 1
            time.sleep(0)

    def counts(call: Callable[[], object]) -> bool:
        for _ in range(200):
            writes[:] += 1
            writes.psync()
            before = counted[0]
            kept = call()
            if counted[0] > before:
                del kept
                return True
        return False

    number = iter(range(1000))
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    thread = threading.Thread(target=count)
    thread.start()
    try:
        assert counts(reader._newer)
        assert counts(reader.refresh)
        assert counts(lambda: pool.snapshot("a", f"a@{next(number)}"))
        assert counts(pool.collect)
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(interval)


FORK = """
import gc, os, sys, indelible, numpy as np
pool = indelible.open(sys.argv[1])
a, run = pool.array("a", mode="r"), pool.dict("run", mode="r")
inner = run["all"]

def refused(use):
    try:
        use()
    except indelible.Forked:
        return True
    return False

child = os.fork()
if child == 0:
    try:
        assert a.sum() == 0 and inner.sum() == 0 and run["step"] == 0
        assert refused(a.refresh) and refused(run.refresh) and refused(lambda: pool.array("a", mode="r"))
        own = indelible.open(sys.argv[1])
        writes = own.array("a")
        writes[:] = 1
        writes.psync()
        del writes
        assert (own.array("a", mode="r") == 1).all() and a.sum() == 0
        del inner
        del run, a
        gc.collect()
        assert own.dict("run", mode="r")["step"] == 0
    except BaseException:
        import traceback
        traceback.print_exc()
        os._exit(1)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert a.sum() == 0 and (a.refresh() == 1).all()
"""


def test_a_fork_reads_on_and_attaches_what_is_newest_itself(open_pool: Open, path: Path) -> None:
    prepared(open_pool)
    gc.collect()
    done = subprocess.run(python(FORK, path), capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


EXIT = """
import sys, indelible
pool = indelible.open(sys.argv[1])
a, run = pool.array("a", mode="r"), pool.dict("run", mode="r")
inner = run["all"]
older, a = a, a.refresh()
"""


def test_readers_that_end_leave_nothing(open_pool: Open, path: Path) -> None:
    pool = prepared(open_pool)
    gc.collect()
    free = pool.info()["free"]
    for _ in range(3):
        done = subprocess.run(python(EXIT, path), capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stderr) == (0, "")
    pool.collect()
    assert free - pool.info()["free"] <= TABLE
    for _ in range(50):
        a, run = pool.array("a", mode="r"), pool.dict("run", mode="r")
        run.close()
        del a
    pool.collect()
    assert free - pool.info()["free"] <= TABLE
