"""Cells that run again, outputs that keep objects, and Ctrl-C in waits."""

from __future__ import annotations

import gc
import importlib.util
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import indelible
import numpy as np
import pytest
from conftest import MIB, not_tested, python


def test_a_cell_that_runs_again_has_the_same_objects(pool: indelible.Pool) -> None:
    pool.create("bytes", 8192)
    cells: dict[str, Callable[[], Any]] = {
        "log": lambda: pool.log("log"),
        "bytes": lambda: pool.attach("bytes"),
        "view": lambda: pool.view("view", 2),
        "context": lambda: pool.context("context", 4),
        "transactional": lambda: pool.transactional("bank", 3, "i8"),
        "dict": lambda: pool.dict("dict"),
    }
    kept = {name: cell() for name, cell in cells.items()}
    for name, cell in cells.items():
        assert cell() is kept[name], name
    # By another handle of the pool as well.
    other = indelible.open(pool.path)
    assert other.log("log") is kept["log"] and other.attach("bytes") is kept["bytes"]
    for each in kept.values():
        each.close()
    for name, cell in cells.items():
        again = cell()
        assert again is not kept[name] and not again.closed, name
        again.close()
    # A wrong key is refused.
    guarded = pool.log("guarded", key=b"k")
    assert pool.log("guarded", key=b"k") is guarded
    with pytest.raises((indelible.Held, indelible.WrongKey)):
        pool.log("guarded", key=b"other")
    guarded.close()
    # A name that is another object's by now.
    log = pool.log("log")
    pool.delete("log")
    assert pool.log("log") is not log
    with pytest.raises(indelible.Mismatch):
        bank = pool.transactional("bank")
        pool.transactional("bank", 4)
    with pytest.raises(indelible.Held, match="with_on_demand"):
        pool.transactional("bank", with_on_demand=True)
    bank.close()
    with pool.transactional("bank", with_on_demand=True):
        pass


NOTEBOOK = """
import sys, indelible
pool = indelible.open(sys.argv[1])
_oh = Out = {}
def cell(value):
    globals()["_"] = Out[len(Out) + 1] = value
cell(pool.array("w", 3)[1:])
kept = [pool.dict("d")]
def work():
    inner = pool.array("x", 3)
    raise KeyError("wrong")
try:
    work()
except KeyError as error:
    sys.last_value = sys.last_exc = error
def refused(call, *holders):
    try:
        call()
    except (indelible.Held, BufferError) as error:
        for holder in holders:
            assert holder in str(error), (holder, str(error))
    else:
        raise AssertionError("not refused")
refused(lambda: pool.remove("w"), "Out[1]", "the last outputs")
refused(lambda: pool.dict("d", "r"), "variable kept")
last = "the traceback of the last KeyError (sys.last_value)"
refused(lambda: pool.rename("x", "y"), "variable inner of work() in " + last)
d = kept[0]
d["a"] = __import__("numpy").ones(3)
view = d["a"]
refused(d.close, "variable view")
"""


def test_errors_name_outputs_and_tracebacks_that_hold_an_object(tmp_path: Path) -> None:
    path = tmp_path / "p.pmo"
    indelible.open(path, 64 * MIB).close()
    subprocess.run(python(NOTEBOOK, path), check=True, timeout=120)


def test_what_cannot_be_in_a_transaction_leaves_nothing(pool: indelible.Pool) -> None:
    bank = pool.transactional("bank", 2, "i8")
    before = list(pool)
    calls: list[Callable[[], object]] = [
        lambda: pool.array("new", 3),
        lambda: pool.array("new", 3, mode="w+"),
        lambda: pool.dict("new"),
        lambda: pool.transactional("new", 3),
        lambda: pool.log("new"),
        lambda: pool.checkpoints("new"),
        lambda: pool.view("new", 3),
        lambda: pool.context("new", 3),
    ]
    for call in calls:

        def body(tx: indelible.Tx) -> None:
            tx[bank][0] += 1
            call()

        with pytest.raises(indelible.InTransaction):
            bank.transaction(body)
        assert list(pool) == before
    assert bank.transaction(lambda tx: int(tx[bank][0])) == 0


HOLDS = """
import sys, indelible
w = indelible.open(sys.argv[1]).array("w")
print("held", flush=True)
sys.stdin.read()
"""


def interrupted(call: Callable[[], object]) -> float:
    """Seconds from Ctrl-C to the end of a call that waits for much longer."""
    sent: list[float] = []

    def send() -> None:
        # Once the main thread waits without the lock of the interpreter, or soon will.
        time.sleep(0.2)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            call()
            # It ended by itself: the signal comes here.
            time.sleep(60)
        return time.monotonic() - sent[0]
    finally:
        thread.join()


def test_ctrl_c_ends_every_wait(tmp_path: Path) -> None:
    path = tmp_path / "p.pmo"
    pool = indelible.open(path, 64 * MIB, wait=60)
    pool.array("w", 3).psync()
    gc.collect()
    queue = pool.queue("queue", slots=2, most=8)
    producer, consumer = queue.producer(), queue.consumer()
    shared = pool.shared("shared", 8192)
    log = pool.log("log")
    full = pool.queue("full", slots=2, most=8)
    filled = full.producer()
    while filled.send(b"x", 0) is not None:
        pass
    holder = subprocess.Popen(
        python(HOLDS, path), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None and holder.stdin is not None
    assert holder.stdout.readline() == "held\n"
    waits: dict[str, Callable[[], object]] = {
        "attach": lambda: pool.attach("w"),
        "array": lambda: pool.array("w"),
        "remove": lambda: pool.remove("w"),
        "rename": lambda: pool.rename("w", "x"),
        "receive": lambda: consumer.receive(60),
        "look": lambda: consumer.look(60),
        "send": lambda: filled.send(b"x", 60),
        "collect": lambda: log.collect(consumer, timeout=60),
        "stream": lambda: indelible.StreamReader(pool.queue("stream"), 60).read(1),
        "word": lambda: shared.word(0).wait(0, 60),
        "any": lambda: indelible.wait_any([(shared.word(0), 0)], 60),
        "follow": lambda: next(pool.log("log", "r").follow(60)),
    }
    try:
        for name, wait in waits.items():
            # 0.1 s where the machine has nothing else to do.
            assert interrupted(wait) < 5, name
        before = time.monotonic()
        with pytest.raises(indelible.Held, match=str(holder.pid)):
            indelible.open(path, wait=0.3).array("w")
        assert time.monotonic() - before >= 0.3
    finally:
        holder.stdin.close()
        holder.wait()
        holder.stdout.close()
    assert (
        pool.array("w").sum() == 0
        and producer.send(b"y", 0) is not None
        and consumer.receive(0) == b"y"
    )


def test_an_interrupt_loses_no_record_and_no_byte(pool: indelible.Pool) -> None:
    """At every line of the package's own code, as `test_interrupts` does for other calls."""
    from test_interrupts import interrupted as at_line

    with pool.log("log") as log:
        for number in range(200):
            log.append(b"%d" % number)
    queue = pool.queue("stream", slots=256, most=8)
    with indelible.StreamWriter(queue, 0) as stream:
        stream.write(bytes(range(200)))
    records, pieces = pool.log("log", "r"), indelible.StreamReader(queue, 0)
    found: list[bytes] = []
    into = bytearray(3)

    def take() -> None:
        record = records.read()
        assert record is not None
        found.append(record.data)

    def iterate() -> None:
        for record in records:
            found.append(record.data)
            break

    taken: list[int] = []

    def readinto() -> None:
        count = pieces.readinto(into)
        taken.extend(into[:count])

    for at in range(20):
        for call in (take, iterate, readinto):
            at_line(call, at)
    assert found == [b"%d" % number for number in range(len(found))] and len(found) >= 20
    assert taken == list(range(len(taken))) and len(taken) >= 20


def test_errors_of_actions_do_not_hide_what_became_of_the_transaction(pool: indelible.Pool) -> None:
    bank = pool.transactional("bank", 1, "i8")

    def fails(tx: indelible.Tx) -> None:
        tx[bank][0] += 1
        tx.on_abort(lambda: {}["abort"])
        raise ValueError("body")

    # Not committed: no AfterCommit, and the body's error is not lost.
    with pytest.raises(KeyError) as raised:
        bank.transaction(fails)
    assert not isinstance(raised.value, indelible.AfterCommit) and isinstance(
        raised.value.__context__, ValueError
    )
    with pytest.raises(indelible.AfterCommit) as after:
        bank.transaction(
            lambda tx: (tx[bank].__setitem__(0, 5), tx.on_commit(lambda: {}["commit"]))
        )
    assert isinstance(after.value.exceptions[0], KeyError)
    assert bank.transaction(lambda tx: int(tx[bank][0])) == 5


def test_a_pool_is_a_mapping_of_names_to_contents(pool: indelible.Pool) -> None:
    array = pool.array("w", 3, "i8")
    array[:] = 7
    values = pool.dict("d")
    values["a"] = 1
    assert isinstance(pool, Mapping) and issubclass(indelible.Pool, Mapping)
    typed: Mapping[str, Any] = pool
    assert typed is pool
    # As a dict of the same contents, wherever a mapping is used.
    model: dict[str, Any] = dict(pool)
    assert list(model) == list(dict(pool.items())) == list({**pool}) == ["d", "w"]
    assert pool.keys() == model.keys() and pool.keys() & {"d", "x"} == {"d"}
    assert pool.keys() | {"x"} == {"d", "w", "x"} and pool.keys() - {"d"} == {"w"}
    assert sorted(pool.keys() ^ {"w", "x"}) == ["d", "x"] and pool.keys() <= {"d", "w", "x"}
    assert len(pool.items()) == len(pool.values()) == 2 and ("d", values) in pool.items()
    assert ("d", 1) not in pool.items() and values in pool.values() and bool(pool)
    for missing in (3, None, ("d",), b"d"):
        assert missing not in pool and missing not in pool.keys() and (missing, 1) not in pool.items()
    with pytest.raises(KeyError):
        pool["none"]
    match pool:
        case {"d": found, **rest}:
            assert found is values and list(rest) == ["w"]
        case _:
            raise AssertionError("a pool is no mapping for match")
    assert list(pool.keys()) == ["d", "w"] and "w" in pool.keys()
    assert [len(value) for value in pool.values()] == [1, 3]
    assert {name: type(value) for name, value in pool.items()} == {"d": indelible.Dict, "w": indelible.Array}
    assert pool.get("none") is None and pool.get("none", 5) == 5
    assert pool.get("w").tolist() == [7, 7, 7]
    # Two handles of a pool are not one, whatever they hold.
    assert pool != indelible.open(pool.path) and hash(pool) == hash(pool)


class _Cells(HTMLParser):
    """The text of a table, cell by cell. Fails at a tag that a table does not have."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        assert tag in ("table", "caption", "tr", "th", "td", "pre"), tag
        if tag in ("caption", "tr", "pre"):
            self.rows.append([])

    def handle_data(self, data: str) -> None:
        self.rows[-1].append(data)


def test_pools_and_dicts_are_tables_in_a_notebook(pool: indelible.Pool) -> None:
    hostile = "<script>alert(1)</script>\u202e"
    pool.create(hostile, 5000)
    array = pool.array("w", 3, "i8")
    array.psync()
    rows = _Cells(pool._repr_html_()).rows
    assert rows[0][0].startswith(f"{pool.path}: 2 objects, ")
    assert rows[1][:3] == ["object", "size", "kind"]
    assert "".join(rows[2]).startswith("<script>alert(1)</script>\\u202e4.9 KiBpsync")
    assert rows[3][:4] == ["w", "8.0 KiB", "psync", "W"] and rows[3][4] == str(pool.stat("w").psyncs)
    values = pool.dict("d")
    for i in range(150):
        values[f"key {i:03}"] = np.arange(4.0) if i == 0 else "x" * i
    rows = _Cells(values._repr_html_()).rows
    assert rows[0] == ["dict 'd', 150 items"] and len(rows) == 103 and rows[-1] == ["and 50 more"]
    assert ["key 000", "array of float64, shape (4,)"] in rows
    assert max(len(cell) for row in rows for cell in row) <= 60
    assert values._ipython_key_completions_() == list(values)
    assert pool._ipython_key_completions_() == list(pool)
    values.close()
    assert values._repr_html_() == "&lt;indelible.Dict &#x27;d&#x27;, closed&gt;"


def test_objects_and_arrays_are_tables_in_a_notebook(pool: indelible.Pool) -> None:
    heads = ["object", "size", "kind", "state", "psyncs", "process"]
    array = pool.array("w", 3, "i8")
    array.psync()

    def row(name: str) -> list[str]:
        stat = pool.stat(name)
        return [name, "8.0 KiB", stat.durability, stat.state, str(stat.psyncs), *([str(stat.holder)] if stat.holder else [])]

    assert _Cells(array._repr_html_() or "").rows == [
        ["array of int64, shape (3,)"], heads, row("w"), ["Array([0, 0, 0])"],
    ]  # fmt: skip
    array[1] = 5
    rows = _Cells(array[1:]._repr_html_() or "").rows
    assert rows[0] == ["array of int64, shape (2,), with changes that are not psynced"]
    assert rows[2][3] == "W" and rows[3] == ["Array([5, 0])"]
    assert array[[0, 1]]._repr_html_() is None and (array + 1)[()].shape == (3,)
    pool.create("<raw>", 8192)
    raw = pool.attach("<raw>")
    assert _Cells(raw._repr_html_() or "").rows == [["bytes"], heads, row("<raw>")]
    raw.close()
    assert raw._repr_html_() is None
    bank = pool.transactional("bank", 4, "i8")
    rows = _Cells(bank._repr_html_() or "").rows
    assert rows[0] == [f"transactional array: {bank._layout}"] and rows[2] == row("bank")
    bank.close()
    assert bank._repr_html_() is None
    # The name is another object's by now: that one is not shown.
    pool.delete("w")
    pool.array("w", 3, "i8", "w+")
    assert array._repr_html_() is None


def test_the_extension_is_loaded_by_ipython(tmp_path: Path) -> None:
    if importlib.util.find_spec("IPython") is None:
        not_tested("the extension in IPython, which is not installed")
        return
    code = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for cell in ("%load_ext indelible", "import indelible; p = indelible.open('p.pmo', 1 << 24); d = p.dict('run')",
             "d['a'] = 1", "d['b'] = 2", "d.psync()", "d['a'] = 3", "%unload_ext indelible", "d['a'] = 4; d.psync()"):
    assert shell.run_cell(cell).success
"""
    done = subprocess.run(python(code), cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "not psynced yet: run\n" * 2), done
