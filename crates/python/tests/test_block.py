"""The `with` block of a pool makes all that was stored in it durable, also without
variables; elsewhere a loss is shown.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import indelible
import numpy as np
import pytest
from conftest import MIB, Open


def in_function(pool: indelible.Pool) -> None:
    def work() -> None:
        w = pool.array("w", 3)
        w[:] = 7

    work()


def one_line(pool: indelible.Pool) -> None:
    pool.dict("d")["x"] = 1


def open_log(pool: indelible.Pool) -> object:
    log = pool.log("l")
    log.append(b"x")
    return log


def dropped_log(pool: indelible.Pool) -> None:
    pool.log("l").append(b"x")
    gc.collect()
    pool.log("l").append(b"y")


def open_bytes(pool: indelible.Pool) -> object:
    pool.create("r", 4096)
    obj = pool.attach("r")
    memoryview(obj)[:3] = b"abc"
    return obj


def dropped_view(pool: indelible.Pool) -> None:
    pool.create("target", 8192)
    pool.view("v", 2).set(0, "target")


def open_context(pool: indelible.Pool) -> object:
    context = pool.context("c", 4)
    context.set_default("r")
    return context


def attached_view(pool: indelible.Pool) -> object:
    pool.array("w", 3).psync()
    with pool.view("v", 2) as made:
        made.set(0, "w")
    view = pool.attach_view("v")
    array = view.array(0)
    array[:] = 7
    return view, array


def on_demand(pool: indelible.Pool) -> object:
    bank = pool.transactional("t", 3, "i8", durability="on-demand")
    bank.transaction(lambda tx: tx[bank].__setitem__(0, 7))
    return bank


def again_and_again(pool: indelible.Pool) -> None:
    """Objects that nothing refers to are there again with what was stored to them."""
    for number in range(3):
        pool.array("w", 3)[number] = 7
        pool.dict("d")[str(number)] = np.full(2, number)
        gc.collect()
    assert pool.array("w").tolist() == [7, 7, 7] and list(pool.dict("d")) == ["0", "1", "2"]


def then_used_otherwise(pool: indelible.Pool) -> None:
    """Calls that need an object to themselves get it, with what was stored."""
    pool.array("a", 3)[:] = 7
    pool.rename("a", "w")
    pool.array("gone", 3)[:] = 7
    pool.remove("gone")
    pool.dict("d")["x"] = 1
    gc.collect()
    assert pool.dict("d", "r")["x"] == 1


Look = Callable[[indelible.Pool], object]
WORK: dict[str, tuple[Callable[[indelible.Pool], object], Look, object]] = {
    "array in a function": (in_function, lambda pool: pool.array("w").tolist(), [7, 7, 7]),
    "dict in one line": (one_line, lambda pool: dict(pool.dict("d")), {"x": 1}),
    "log": (open_log, lambda pool: [record.data for record in pool.log("l", "r")], [b"x"]),
    "log without a variable": (
        dropped_log,
        lambda pool: [record.data for record in pool.log("l", "r")],
        [b"x", b"y"],
    ),
    "bytes": (open_bytes, lambda pool: bytes(memoryview(pool.attach("r"))[:3]), b"abc"),
    "view without a variable": (
        dropped_view,
        lambda pool: [slot.slot for slot in pool.view_slots("v")],
        [0],
    ),
    "context": (open_context, lambda pool: pool.context_rules("c").default, "r"),
    "attached view": (attached_view, lambda pool: pool.array("w").tolist(), [7, 7, 7]),
    "array on demand": (
        on_demand,
        lambda pool: pool.transactional("t").transaction(lambda tx: 7),
        7,
    ),
    "again and again": (
        again_and_again,
        lambda pool: (pool.array("w").tolist(), len(pool.dict("d"))),
        ([7, 7, 7], 3),
    ),
    "then used otherwise": (
        then_used_otherwise,
        lambda pool: (pool.array("w").tolist(), "gone" in pool),
        ([7, 7, 7], False),
    ),
}


@pytest.mark.parametrize("name", WORK)
def test_a_block_keeps_what_was_stored_in_it(name: str, open_pool: Open) -> None:
    work, look, expected = WORK[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with open_pool() as pool:
            kept = work(pool)
            gc.collect()
        if name == "array on demand":
            assert kept.pending.transactions == 0  # type: ignore[attr-defined]
            kept.close()  # type: ignore[attr-defined]
        del pool
        # As a crash would: changes that are not durable by now are gone.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", indelible.UnsyncedWarning)
            del kept
            gc.collect()
    assert look(open_pool()) == expected


def test_a_block_psyncs_what_another_handle_has_opened(open_pool: Open) -> None:
    other = open_pool()
    w = other.array("w", 3)
    d = other.dict("d")
    indelible.psync(w, d)
    with open_pool() as pool:
        v = pool.array("w")
        v[:] = 5
        pool.dict("d")["x"] = 1
    w[:] = 6
    del w, v, d
    gc.collect()
    assert other.array("w").tolist() == [5, 5, 5] and dict(other.dict("d")) == {"x": 1}


def test_a_block_is_one_step_and_says_what_it_did(
    pool: indelible.Pool, caplog: pytest.LogCaptureFixture
) -> None:
    w, clean = pool.array("w", 3), pool.array("clean", 3)
    psyncs = pool.stat("w").psyncs
    caplog.set_level("INFO", "indelible")
    path = pool.path
    with pool:
        w[:] = 1
        pool.array("w")[0] = 2
        pool.dict("d")["x"] = 1
        pool.log("l").append(b"x")
    (record,) = caplog.records
    assert record.getMessage().endswith(': log "l", object "d", object "w"') and clean.sum() == 0
    assert indelible.open(path).stat("w").psyncs == psyncs + 1


def test_a_block_that_fails_keeps_nothing(open_pool: Open) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ZeroDivisionError), open_pool() as pool:
            pool.array("w", 3)[:] = 7
            pool.log("l").append(b"x")
            gc.collect()
            1 / 0  # noqa: B018
    gc.collect()
    pool = open_pool()
    assert not pool.array("w").any() and len(pool.log("l", "r")) == 0


def test_what_is_closed_in_a_block_is_warned_of(open_pool: Open) -> None:
    with open_pool() as pool:
        d = pool.dict("d")
        d["x"] = 1
        with pytest.warns(indelible.UnsyncedWarning, match='object "d"'):
            d.close()
        pool.array("w", 3)[:] = 1
        with pytest.warns(indelible.UnsyncedWarning, match='object "w"'):
            pool.close()
    assert not open_pool().dict("d")


LOSES = """
import indelible, sys
pool = indelible.open(sys.argv[1])
def lose():
    pool.array("w")[:] = 5          # line 5
for _ in range(3):
    lose()
log = pool.log("l")                 # line 8
log.append(b"x")
del log
"""


def test_a_loss_is_shown_once_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "p.pmo"
    indelible.open(path, 64 * MIB).array("w", 3).psync()
    program = tmp_path / "program.py"
    program.write_text(LOSES)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONWARNINGS"}

    def told(*options: str) -> list[str]:
        ran = subprocess.run(
            [sys.executable, *options, program, path],
            capture_output=True,
            text=True,
            env=environment,
            timeout=120,
        )
        assert ran.returncode == 0, ran.stderr
        return [line for line in ran.stderr.splitlines() if "UnsyncedWarning" in line]

    first, second = told()
    assert first.startswith(f'{program}:5: UnsyncedWarning: object "w" is detached')
    assert second.startswith(f'{program}:8: UnsyncedWarning: log "l" is detached')
    assert told("-W", "ignore") == []


def test_a_fork_ends_a_block_for_its_parent_alone(pool: indelible.Pool) -> None:
    with pool:
        w: Any = pool.array("w", 3)
        w[:] = 7
        with warnings.catch_warnings():
            # Of threads that packages of other tests have begun.
            warnings.simplefilter("ignore")
            child = os.fork()
        if child == 0:
            try:
                del w
                gc.collect()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        path = pool.path
        del w
    assert indelible.open(path).array("w").tolist() == [7, 7, 7]
