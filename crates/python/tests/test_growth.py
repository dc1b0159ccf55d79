"""Arrays and dicts that grow while other objects lie right behind them in the pool."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import indelible
import numpy as np
import pytest
from conftest import MIB, Open, python


def begin(path: Path, name: str) -> int:
    """First byte of the object in the pool."""
    command = [sys.executable, "-m", "indelible", "stat", str(path), name, "--json"]
    return int(json.loads(subprocess.run(command, capture_output=True, check=True, timeout=120).stdout)["offset"])


def test_they_move_and_lose_nothing(open_pool: Open, path: Path) -> None:
    pool = open_pool()
    log = pool.array("log", (100,), "i8")
    run = pool.dict("run", size=64 << 10)
    pool.create("wall", 4096)  # right behind the dict, which lies right behind the array
    places = {name: begin(path, name) for name in ("log", "run", "wall")}
    assert places["log"] < places["run"] < places["wall"]
    addresses = log.ctypes.data, run.address
    log[:] = np.arange(100)
    run["first"] = np.arange(10)
    indelible.psync(log, run)

    log[:50] = -1  # not psynced when it moves
    run["second"] = "x" * 100
    first, views = run["first"], [log]
    for step in range(1, 6):
        log = log.grow(40_000 * step)
        log[-1] = step
        views.append(log)
        run[f"array {step}"] = np.full(50_000, step)
        first[0] = views[0][99] = step  # views of before show the same memory
        assert log[99] == step and run["first"][0] == step
    assert (log.ctypes.data, run.address) == addresses
    assert begin(path, "log") != places["log"] and begin(path, "run") != places["run"]
    assert begin(path, "wall") == places["wall"]
    indelible.psync(log, run)
    del log, views, first
    run.close()

    log, run = pool.array("log"), pool.dict("run")
    assert len(log) == 200_000 and (log[:50] == -1).all() and (log[50:99] == np.arange(50, 99)).all()
    assert [log[40_000 * step - 1] for step in range(1, 6)] == [1, 2, 3, 4, 5] and log.sum() == 5 + 15 - 50 + log[50:99].sum()
    assert run["first"][0] == 5 and run["second"] == "x" * 100 and run._check() == []
    assert all((run[f"array {step}"] == step).all() for step in range(1, 6))


def test_they_grow_until_the_pool_is_full_and_say_so(open_pool: Open) -> None:
    pool = open_pool(48 * MIB)
    log = pool.array("log", (-1,), "u1")
    run = pool.dict("run")
    pool.create("wall", 4096)
    log, arrays = log.grow(1000), 0
    log[:] = 7
    with pytest.raises(indelible.NoRoom, match="pool"):
        while True:
            log = log.grow(len(log) + MIB)
    with pytest.raises(indelible.NoRoom, match="pool"):
        while True:
            run[f"array {arrays}"] = np.full(MIB // 8, arrays)
            arrays += 1
    # An object that moves needs both places at once.
    assert len(log) > 12 * MIB and len(log) + arrays * MIB > 16 * MIB
    indelible.psync(log, run)
    assert (log[:1000] == 7).all() and not log[1000:].any()
    assert len(run) == arrays and all((run[f"array {n}"] == n).all() for n in range(arrays))
    # With the wall and the array gone there is room again.
    del log
    pool.remove("log")
    pool.remove("wall")
    run["more"] = np.zeros(MIB)
    assert run._check() == []


# Grows by moving, psyncs, prints that, and goes on without psync.
KILLED = """
import sys, indelible, numpy as np
pool = indelible.open(sys.argv[1], tracking=sys.argv[2])
log, run = pool.array("log"), pool.dict("run")
for step in range(int(run.get("step", 0)) + 1, 1000):
    log = log.grow(len(log) + 3000)
    log[-3000:] = step
    run["step"] = step
    run[f"array {step}"] = np.full(3000, step)
    indelible.psync(log, run)
    print(step, flush=True)
"""


def test_killed_while_they_move_both_are_of_one_psync(open_pool: Open, path: Path, tracking: str) -> None:
    pool = open_pool()
    log, run = pool.array("log", (-1,), "i8"), pool.dict("run", size=64 << 10)
    pool.create("wall", 4096)
    indelible.psync(log, run)
    del log
    run.close()
    for after in range(3, 30, 4):
        with subprocess.Popen(python(KILLED, path, tracking), stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            said = [int(writer.stdout.readline()) for _ in range(after)]
            writer.send_signal(signal.SIGKILL)
            said += map(int, writer.stdout.read().split())
        log, run = pool.array("log"), pool.dict("run")
        step = run["step"]
        assert step >= said[-1] and len(log) == 3000 * step and (log == np.repeat(np.arange(1, step + 1), 3000)).all()
        assert all((run[f"array {n}"] == n).all() for n in range(1, step + 1)) and run._check() == []
        del log
        run.close()


def test_their_reach_can_be_chosen(open_pool: Open) -> None:
    pool = open_pool()
    pool.array("a", 10, "u1", reach=128 << 20)
    pool.dict("d", reach=256 << 20)
    assert (pool.stat("a").reach, pool.stat("d").reach) == (128 << 20, 256 << 20)
