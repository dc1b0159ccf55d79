"""Memory that a program can still reach: nothing may crash, and nothing may be taken for durable that is not."""

from __future__ import annotations

import gc
import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path

import indelible
import numpy as np
import pytest
from conftest import MIB, Open, python


def test_closing_is_refused_while_views_exist(open_pool: Open) -> None:
    pool = open_pool()
    pool.create("a", 4096)
    obj = pool.attach("a")
    view, array = memoryview(obj), np.frombuffer(obj, np.uint8)
    part = array[5:10]
    assert obj.views == 2
    with pytest.raises(BufferError, match='object "a"'):
        obj.close()
    view.release()
    del array
    with pytest.raises(BufferError):
        obj.close()
    part[0] = 3  # still good
    obj.psync()
    del part
    obj.close()
    assert obj.closed and pool.stat("a").state == "D"
    obj.close()  # again
    for use in (
        obj.psync,
        lambda: obj.size,
        lambda: memoryview(obj),
        lambda: obj.grow(9999),
        obj.__enter__().psync,
    ):
        with pytest.raises(indelible.Closed) as caught:
            use()
        assert 'object "a"' in str(caught.value) and isinstance(caught.value, ValueError)


def test_an_exception_is_not_covered_by_another(open_pool: Open) -> None:
    pool = open_pool()
    pool.create("a", 4096)
    kept = []
    with pytest.raises(ZeroDivisionError), pool.attach("a") as obj:
        kept.append(np.frombuffer(obj, np.uint8))
        1 / 0  # noqa: B018
    assert obj.closed and pool.stat("a").state == "W"
    with pytest.raises(indelible.Closed):
        obj.psync()
    with pytest.raises(indelible.Closed):
        indelible.psync(obj)
    kept[0][0] = 1  # memory still; never durable
    kept.clear()
    assert pool.stat("a").state == "D"
    values = pool.dict("run")
    values["w"] = np.ones(10)
    values.psync()
    with pytest.raises(ZeroDivisionError), values:
        kept.append(values["w"])
        1 / 0  # noqa: B018
    with pytest.raises(indelible.Closed):
        values["x"] = 1
    assert kept[0].sum() == 10
    kept.clear()
    assert dict(pool.dict("run")).keys() == {"w"}


def test_an_array_outlives_everything_it_came_from(open_pool: Open) -> None:
    with open_pool() as pool:
        array = pool.array("w", 100)
        values = pool.dict("run")
        values["a"] = np.arange(5)
        inner = values["a"][1:]
        with pytest.raises(BufferError):
            values.close()
    del pool, values
    gc.collect()
    array[:] = 4
    inner[:] = 9
    array.psync()
    del array
    gc.collect()
    with open_pool() as pool:
        assert (pool.array("w") == 4).all()
        del inner
        # The end of the block psynced what there was then: the store after it was forgotten.
        assert pool.dict("run")["a"].tolist() == [0, 1, 2, 3, 4]


def test_cycles_are_collected(open_pool: Open) -> None:
    pool = open_pool()
    array = pool.array("w", 10)
    cycle: list[object] = [array]
    cycle.append(cycle)
    del array, cycle
    gc.collect()
    assert pool.stat("w").state == "D"


def test_a_view_of_a_view_keeps_the_object(open_pool: Open) -> None:
    pool = open_pool()
    array = pool.array("w", (10, 10), "u1")
    views = [
        array.T[2:],
        array.view(np.int8),
        np.asarray(array),
        memoryview(array),
        np.lib.stride_tricks.as_strided(array),
    ]
    del array
    gc.collect()
    for _ in range(5):
        assert pool.stat("w").state == "W"
        views.pop()
    assert pool.stat("w").state == "D"


EXIT = """
import sys, indelible, numpy as np
pool = indelible.open(sys.argv[1])
class Keeper:
    def __init__(self, *kept): self.kept = kept; self.me = self
    def __del__(self): assert self.kept[0][1] >= 0
array, values = pool.array("w", 1000), pool.dict("run")
values["a"] = np.arange(10)
keepers = [Keeper(array), Keeper(values["a"], values, pool), Keeper(memoryview(array[5:]))]
sys.modules["keeps"] = keepers
raw = pool.attach("raw"); view = memoryview(raw)
if sys.argv[2] == "thread":
    import threading
    def busy():
        while True: array.sum()
    threading.Thread(target=busy, daemon=True).start()
elif sys.argv[2] == "error":
    raise SystemExit(3)
"""


@pytest.mark.parametrize("how", ["plain", "thread", "error"])
def test_the_interpreter_ends_in_peace(open_pool: Open, path: Path, how: str) -> None:
    pool = open_pool()
    pool.create("raw", 4096)
    done = subprocess.run(python(EXIT, path, how), capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (3 if how == "error" else 0, "")
    assert pool.array("w").sum() == 0 and dict(pool.dict("run")) == {}


FORK = """
import os, sys, indelible, numpy as np
pool = indelible.open(sys.argv[1])
array, values = pool.array("w", 10), pool.dict("run")
values["a"] = np.arange(3)
inner = values["a"]
raw = pool.attach("raw")
array[:] = 1
indelible.psync(array, values)
import threading, warnings
warnings.simplefilter("ignore", DeprecationWarning)
child = os.fork()
if child == 0:
    try:
        assert "closed" in repr(values)
        uses = [
            pool.list, lambda: pool.attach("raw"), lambda: pool.array("w"), lambda: pool.dict("run"),
            array.psync, lambda: array.grow(20), lambda: indelible.psync(array, values),
            lambda: values["a"], lambda: values.update(b=1), lambda: len(values), values.psync, values.close,
            lambda: memoryview(raw), raw.psync, raw.close, lambda: raw.size, lambda: raw.grow(10000),
        ]
        for number, use in enumerate(uses):
            try:
                use()
            except indelible.Forked as error:
                assert "fork" in str(error) and error.kind == "Forked"
            else:
                raise AssertionError(f"use {number} was not refused")
        assert pool.closed and raw.closed and values.closed
        del array, inner, values, raw, pool
        import gc
        gc.collect()
        pool = indelible.open(sys.argv[1])
        try:
            pool.array("w")
        except indelible.Held as error:
            pass
        else:
            raise AssertionError("the parent has it")
        pool.array("own", 5)[:] = 2
    except BaseException:
        import traceback
        traceback.print_exc()
        os._exit(1)
    os._exit(0)
_, status = os.waitpid(child, 0)
assert status == 0, status
array[:] = 2
indelible.psync(array, values)
assert inner.sum() == 3
if sys.argv[2] == "touch":
    child = os.fork()
    if child == 0:
        array[0] = 5  # absent here: a fault, not silent divergence
        os._exit(0)
    _, status = os.waitpid(child, 0)
    import signal
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGSEGV, status
"""


@pytest.mark.parametrize("how", ["calls", "touch"])
def test_a_fork_has_nothing_and_says_so(open_pool: Open, path: Path, how: str) -> None:
    pool = open_pool()
    pool.create("raw", 4096)
    command = [word for word in python(FORK, path, how) if word not in ("-X", "faulthandler")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert (pool.array("w") == 2).all()


READERS = """
import gc, multiprocessing, os, sys, indelible, numpy as np
pool = indelible.open(sys.argv[1])
array, values = pool.array("w", mode="r", lock=True), pool.dict("run", mode="r", lock=True)
raw = pool.attach("raw", "r")
inner = values["a"]

def refused(use):
    try:
        use()
    except indelible.Forked:
        return True
    return False

def work(number):
    assert array[number] == number and inner[number] == 1 and not array.flags.writeable
    assert values["step"] == 7 and list(values) == ["a", "step"] and values["a"].sum() == 100
    assert bytes(memoryview(raw)[:2]) == b"ab" and raw.size == 4096 and not raw.closed
    for use in (pool.list, raw.close, values.close):
        assert refused(use)
    return float(array.sum())

def anew():
    global array, values, inner, raw
    again = indelible.open(sys.argv[1])
    assert again.array("w", mode="r")[5] == 5  # the parent's
    del array, values, inner, raw
    gc.collect()
    array = again.array("w", mode="r")  # its addresses are free
    assert array.sum() == 499500 and again.dict("run", mode="r")["step"] == 7

with multiprocessing.get_context("fork").Pool(2) as workers:
    assert workers.map(work, range(4)) == [499500.0] * 4
    del array, values, inner, raw
    try:
        pool.array("w")
    except indelible.Held as error:
        assert "reading" in str(error) or "process" in str(error), error
    else:
        raise AssertionError("the children read it")
    workers.close()
    workers.join()
pool.array("w")[0] = 0
array, values = pool.array("w", mode="r", lock=True), pool.dict("run", mode="r", lock=True)
raw = pool.attach("raw", "r")
inner = values["a"]
child = os.fork()
if child == 0:
    try:
        anew()
    except BaseException:
        import traceback
        traceback.print_exc()
        os._exit(1)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""


def test_what_is_attached_for_reading_survives_a_fork(open_pool: Open, path: Path) -> None:
    with open_pool() as pool:
        pool.create("raw", 4096)
        array, values = pool.array("w", 1000), pool.dict("run")
        array[:] = np.arange(1000)
        values["a"], values["step"] = np.ones(100), 7
        with pool.attach("raw") as raw:
            memoryview(raw)[:2] = b"ab"
        indelible.psync(array, values)
        del array, values
    gc.collect()
    done = subprocess.run(python(READERS, path), capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


SPAWN = """
import multiprocessing, sys, indelible
def work(path):
    array = indelible.open(path).array("w", mode="r")
    return float(array.sum())
if __name__ == "__main__":
    pool = indelible.open(sys.argv[1], 16 << 20)
    array = pool.array("w", 1000)
    array[:] = 1
    array.psync()
    del array
    with multiprocessing.get_context(sys.argv[2]).Pool(2) as workers:
        print(workers.map(work, [sys.argv[1]] * 4))
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_of_multiprocessing_read_together(tmp_path: Path, method: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(SPAWN)
    command = [python("")[0], str(program), str(tmp_path / "p.pmo"), method]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[1000.0, 1000.0, 1000.0, 1000.0]\n", "")


# A thread for which `mmap` over a mapping of its own fails, then grows what it is told to.
LOST = """
import ctypes, sys, threading, indelible, numpy as np
pool = indelible.open(sys.argv[1], size=64 << 20)
array = pool.array("w", 1000)
array[:] = 1
array.psync()
view = array[:500]
[pool.create(f"behind {number}", 1 << 20) for number in range(8)]
libc = ctypes.CDLL(None, use_errno=True)
MMAP = {"x86_64": 9, "aarch64": 222}[__import__("platform").machine()]
class Step(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint16), ("jt", ctypes.c_uint8), ("jf", ctypes.c_uint8), ("k", ctypes.c_uint32)]
class Program(ctypes.Structure):
    _fields_ = [("len", ctypes.c_uint16), ("steps", ctypes.POINTER(Step))]
steps = (Step * 7)((0x20, 0, 0, 0), (0x15, 0, 4, MMAP), (0x20, 0, 0, 40), (0x54, 0, 0, 16), (0x15, 0, 1, 16),
                   (6, 0, 0, 0x0005000C), (6, 0, 0, 0x7FFF0000))
errors = []
def grow():
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    assert libc.prctl(22, 2, ctypes.byref(Program(7, steps))) == 0, ctypes.get_errno()
    for _ in range(2):
        try:
            array.grow(1_000_000)
        except indelible.Error as error:
            errors.append(type(error).__name__)
thread = threading.Thread(target=grow)
thread.start()
thread.join()
view[:] = 2  # memory still, good for nothing
assert view.sum() == 1000 and array.shape == (1000,)
try:
    array.psync()
except indelible.Error as error:
    errors.append(type(error).__name__)
del view, array
pool.close()
with indelible.open(sys.argv[1]) as pool:
    print(errors[1:], pool.array("w").sum())
"""


def test_an_array_whose_object_was_lost_while_it_grew_is_no_segfault(tmp_path: Path) -> None:
    program = tmp_path / "lost.py"
    program.write_text(LOST)
    done = subprocess.run(
        [python("")[0], str(program), str(tmp_path / "p.pmo")], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout) == (0, "['Poisoned', 'Poisoned'] 1000.0\n"), done.stderr


def test_growth_beyond_everything_harms_no_array(pool: indelible.Pool) -> None:
    array = pool.array("w", 100)
    array[:] = 1
    for length in (1 << 40, 1 << 61, 1 << 62):
        with pytest.raises((indelible.NoRoom, ValueError)):
            array.grow(length)
    with pytest.raises(TypeError):
        array.grow(200.5)  # type: ignore[arg-type]
    assert array.grow(MIB).sum() == 100


def lost(work: Callable[[], object]) -> list[str]:
    """The objects that `work` loses stores of, as warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ResourceWarning)
        work()
        gc.collect()
    for each in caught:
        assert each.category is indelible.UnsyncedWarning and "were not psynced" in str(each.message)
        assert each.filename == __file__
    return [str(each.message).split('"')[1] for each in caught]


def test_stores_that_vanish_are_warned_of(open_pool: Open) -> None:
    pool = open_pool()
    pool.create("raw", 8192)

    def vanishing() -> None:
        pool.array("w", 1000)[:] = 5

    def a_slice_outlives_the_array() -> None:
        part = pool.array("w")[5:]
        gc.collect()
        part[0] = 3

    def an_element_of_a_dict() -> None:
        values = pool.dict("run")
        values["a"] = np.zeros(10)
        values.psync()
        values["a"][3] = 1

    def bytes_and_close() -> None:
        raw = pool.attach("raw")
        with memoryview(raw) as memory:
            memory[5000] = 1
        raw.close()

    assert lost(vanishing) == ["w"]
    assert lost(a_slice_outlives_the_array) == ["w"]
    assert lost(an_element_of_a_dict) == ["run"]
    assert lost(bytes_and_close) == ["raw"]
    assert not pool.array("w").any() and pool.dict("run")["a"].sum() == 0


def test_nothing_is_warned_of_where_nothing_is_lost(open_pool: Open) -> None:
    pool = open_pool()
    pool.array("w", 1000).psync()
    pool.dict("run").psync()

    def stored() -> None:
        array, values = pool.array("w"), pool.dict("run")
        array[:] = 5
        values["a"] = np.ones(1000)
        indelible.psync(array, values)
        array[:] = 5  # what it is already

    def only_read() -> None:
        assert pool.array("w").sum() == 5000 and pool.dict("run")["a"].sum() == 1000
        assert pool.array("w", mode="r").sum() == 5000

    def left_unlinked() -> None:
        values = pool.dict("run")
        values["a"] = 0
        values.psync()

    def given_up() -> None:
        with pytest.raises(ZeroDivisionError), pool.dict("run") as values:
            values["a"] = 7
            1 / 0  # noqa: B018

    for work in (stored, only_read, left_unlinked, only_read_dict(pool), given_up):
        assert lost(work) == []
    with pool:
        kept = pool.array("w")
        kept[:] = 6
    assert lost(lambda: None) == [] and (kept == 6).all()


def only_read_dict(pool: indelible.Pool) -> Callable[[], object]:
    return lambda: list(pool.dict("run").items())


def test_a_warning_that_is_an_error_ends_nothing(pool: indelible.Pool) -> None:
    pool.create("raw", 4096)
    raw = pool.attach("raw")
    with memoryview(raw) as memory:
        memory[0] = 1
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        with pytest.raises(ResourceWarning, match="raw"):
            raw.close()
        assert raw.closed and pool.stat("raw").state == "D"
