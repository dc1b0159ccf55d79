"""Objects whose end is decided before it comes: deleted while a process has them, tied, volatile."""

from __future__ import annotations

import gc
import os
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import indelible
import numpy as np
import pytest
from conftest import MIB, Open, not_tested, python


def test_a_deleted_object_goes_with_its_last_user(open_pool: Open) -> None:
    pool = open_pool()
    pool.array("w", 100_000).psync()
    w, objects = pool.array("w"), pool.info()["objects"]
    reader = pool.array("w", mode="r")
    pool.delete("w")
    assert "w" not in pool
    with pytest.raises(indelible.NotFound):
        pool.delete("w")
    w[:] = 1
    w.psync()
    assert (reader == 1).all()  # of this process's own array
    # The name is free at once: another object has it.
    part = w[:10]
    del w, reader
    again = pool.array("other", 10)
    again[:] = 2
    again.psync()
    assert (part == 1).all()
    free = pool.info()["free"]
    del part, again
    gc.collect()
    pool.remove("other")
    pool.collect()
    assert pool.info()["objects"] == objects - 1 and pool.info()["free"] > free + 800_000


def test_a_name_that_is_free_again_is_another_object(open_pool: Open) -> None:
    pool = open_pool()
    old = pool.array("w", 10)
    old[:] = 1
    pool.delete("w")
    new = pool.array("w", 20)
    assert new.shape == (20,) and not new.any() and (old == 1).all()
    old.psync()
    new[:] = 2
    new.psync()
    assert (pool.array("w") == 2).all()
    with pool.dict("run") as run:
        run["x"] = 1
    run = pool.dict("run")
    pool.delete("run")
    with pool.dict("run") as other:
        assert dict(other) == {} and dict(run) == {"x": 1}
        other["y"] = 2
    assert dict(pool.dict("run")) == {"y": 2}


def test_ties_keep_what_others_need(open_pool: Open) -> None:
    pool = open_pool()
    for name in ("index", "part", "more"):
        pool.array(name, 100, key=b"secret" if name == "part" else None).psync()
    with pytest.raises(indelible.WrongKey):
        pool.tie("part", "index")
    pool.tie("part", "index", key=b"secret")
    pool.tie("index", "more")
    assert pool.ties("part") == [indelible.Tie("index", False)] and pool.ties("more") == []
    with pytest.raises(indelible.TieCycle) as cycle:
        pool.tie("more", "part")
    assert isinstance(cycle.value, ValueError) and "untie" in str(cycle.value)
    for wrong in (lambda: pool.tie("none", "index"), lambda: pool.tie("index", "none"), lambda: pool.ties("none")):
        with pytest.raises(indelible.NotFound):
            wrong()
    assert not pool.untie("more", "part") and pool.untie("index", "more")
    objects = pool.info()["objects"]
    pool.delete("part", key=b"secret")
    assert "part" not in pool and pool.info()["objects"] == objects
    pool.delete("index")
    pool.collect()
    assert pool.info()["objects"] == objects - 2 and list(pool) == ["more"]


TIED = """
import os, signal, sys, indelible
pool = indelible.open(sys.argv[1])
pool.array("work", 100).psync()
pool.tie_to_process("work")
pool.delete("work")
print(pool.collect() and pool.info()["objects"], flush=True)
sys.stdin.read()
"""


def test_ties_to_processes_and_threads_end_with_them(open_pool: Open) -> None:
    pool = open_pool()
    pool.array("kept", 100).psync()
    objects = pool.info()["objects"]
    command = python(TIED) + [str(pool.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as tied:
        assert tied.stdout is not None
        # The array, and the process's own object.
        assert int(tied.stdout.readline()) == objects + 2
        pool.collect()
        assert pool.info()["objects"] == objects + 2
        tied.kill()
    pool.collect()
    assert pool.info()["objects"] == objects

    def run() -> int:
        pool.array("work", 100).psync()
        pool.tie_to_thread("work")
        pool.delete("work")
        pool.collect()
        assert pool.info()["objects"] == objects + 2
        return threading.get_native_id()

    with ThreadPoolExecutor(1) as threads:
        thread = threads.submit(run).result()
    # Python says that a thread has ended shortly before it has.
    while Path(f"/proc/self/task/{thread}").exists():
        os.sched_yield()
    assert pool.info()["objects"] == objects
    pool.tie_to_process("kept")
    assert pool.ties("kept") == [indelible.Tie(f"process {os.getpid()}", False)]
    with pytest.raises(indelible.NotFound):
        pool.tie_to_thread("none")


# Begins with another boot ID, for this process and those it starts.
REBOOTED = """
import os, subprocess, sys
with open(sys.argv[1], "w") as file:
    file.write("11111111-2222-3333-4444-555555555555\\n")
subprocess.run(["mount", "--bind", sys.argv[1], "/proc/sys/kernel/random/boot_id"], check=True)
import indelible
pool = indelible.open(sys.argv[2])
assert pool.stat("cache").gone and pool.stat("run").gone and not pool.stat("kept").gone
for use in (lambda: pool.array("cache"), lambda: pool.array("cache", mode="r"), lambda: pool.dict("run")):
    try:
        use()
    except indelible.VolatileGone as error:
        assert isinstance(error, LookupError) and error.kind == "VolatileGone"
    else:
        raise AssertionError("it is there")
cache = pool.array("cache", (20, 5), "f4", volatile=True)
assert not cache.any() and not pool.stat("cache").gone
assert dict(pool.dict("run", volatile=True)) == {} and (pool.array("kept") == 1).all()
"""


def test_a_volatile_object_is_made_again_after_a_reboot(open_pool: Open, path: Path) -> None:
    pool = open_pool()
    cache = pool.array("cache", (10, 10), volatile=True)
    cache[:] = 1
    cache.psync()
    kept = pool.array("kept", 5)
    kept[:] = 1
    kept.psync()
    with pool.dict("run", volatile=True) as run:
        run["w"] = np.ones(3)
    del cache, kept, run
    stat = pool.stat("cache")
    assert (stat.volatile, stat.gone) == (True, False) and not pool.stat("kept").volatile
    assert (pool.array("cache", volatile=True) == 1).all() and list(pool.dict("run", volatile=True)) == ["w"]
    pool.close()
    gc.collect()
    if os.getuid() != 0:
        not_tested("an object of an earlier boot: that takes a mount")
        return
    mounted = subprocess.run(["unshare", "--mount", "true"], capture_output=True)
    if mounted.returncode != 0:
        not_tested("an object of an earlier boot: this machine has no mount namespaces")
        return
    command = ["unshare", "--mount", *python(REBOOTED, path.with_name("boot_id"), path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_pool_that_is_closed_has_no_ends_to_decide(tmp_path: Path) -> None:
    pool = indelible.open(tmp_path / "p.pmo", 16 * MIB)
    pool.close()
    for use in (lambda: pool.delete("w"), lambda: pool.tie("a", "b"), lambda: pool.untie("a", "b"), lambda: pool.ties("a")):
        with pytest.raises(indelible.Closed):
            use()
