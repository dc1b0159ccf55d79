"""Ctrl-C at every line of the package's own code: each public call happens as a whole or not at all, and can be repeated."""

from __future__ import annotations

import gc
import itertools
import linecache
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import indelible
import numpy as np
import pytest

PACKAGE = str(Path(indelible.__file__).parent)


class Interrupt:
    """Raises KeyboardInterrupt at the line of the package that is executed as number `at`; none: notes all of them."""

    def __init__(self, at: int) -> None:
        self.left = at
        self.where = ""
        self.lines: list[tuple[str, int]] = []

    def __call__(self, frame: FrameType, _event: str, _argument: Any) -> Any:
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        withs: set[int] = set()

        def line(frame: FrameType, event: str, _argument: Any) -> Any:
            if event != "line":
                return line
            text = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
            if text.startswith("with "):
                # Its second event is the end of the block: Python runs no signal handler before the call of `__exit__`.
                if frame.f_lineno in withs:
                    return line
                withs.add(frame.f_lineno)
            if text == "try:":
                # No signal handler runs there: it is neither a call nor a jump.
                return line
            if self.left == 0:
                self.where = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}: {text}"
                raise KeyboardInterrupt
            self.left -= 1
            self.lines.append((frame.f_code.co_filename, frame.f_lineno))
            return line

        return line


def interrupted(call: Callable[[], object], at: int) -> str:
    """The line at which a call was interrupted; empty: it ended before."""
    return traced(call, Interrupt(at)).where


def first_times(call: Callable[[], object]) -> list[int]:
    """Numbers of the executed lines without repetitions: a loop is interrupted in its first round."""
    seen: dict[tuple[str, int], int] = {}
    for at, line in enumerate(traced(call, Interrupt(-1)).lines):
        seen.setdefault(line, at)
    return list(seen.values())


def traced(call: Callable[[], object], interrupt: Interrupt) -> Interrupt:
    """Runs a call under the tracer."""
    before = sys.gettrace()
    sys.settrace(interrupt)
    try:
        call()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return interrupt


class State:
    """A pool with one of each, and a number for names."""

    def __init__(self, pool: indelible.Pool) -> None:
        self.pool = pool
        self.bank = self.pool.transactional("bank", 4, "i8")
        self.weights = self.pool.array("weights", 8)
        self.run = self.pool.dict("run")
        self.number = itertools.count()
        self.saved = self.pool.checkpoints("saved", last=2)
        self.pool.create("bytes", 8192)

    def add(self, tx: indelible.Tx) -> None:
        tx[self.bank][0] += 1
        tx[self.bank][1] += 1
        tx.on_commit(int)
        tx.on_abort(int)

    def check(self) -> None:
        gc.collect()
        if self.bank.closed:
            self.bank = self.pool.transactional("bank")
        # The thread is in no transaction, and both elements changed, or none did.
        one, other = self.bank.transaction(lambda tx: (tx[self.bank][0], tx[self.bank][1]))
        assert one == other
        self.weights[0] += 1
        self.weights.psync()
        indelible.psync(self.weights, self.run)
        # No lock is left to this thread.
        ended: list[int] = []

        def others() -> None:
            self.pool.array("weights")
            self.pool.dict("run")
            self.saved.save("check", {"w": 1})
            ended.append(1)

        thread = threading.Thread(target=others, daemon=True)
        thread.start()
        thread.join(10)
        assert ended, "another thread waits for ever"


def fail(tx: indelible.Tx) -> None:
    raise KeyError(tx)


def fails(s: State) -> None:
    with pytest.raises(KeyError):
        s.bank.transaction(fail)


def reopen(s: State) -> None:
    s.bank.close()
    s.bank = s.pool.transactional("bank")


def block(s: State) -> None:
    with indelible.open(s.pool.path) as pool:
        pool.array("weights")[1] += 1
        pool.dict("run")["block"] = 1
        pool.log("block").append(b"x")


CALLS: dict[str, Callable[[State], object]] = {
    "transaction": lambda s: s.bank.transaction(s.add),
    "transaction, function": lambda s: indelible.transaction([s.bank], s.add),
    "transaction that fails": fails,
    "transactional": lambda s: s.pool.transactional(f"t{next(s.number)}", 2, "i8").close(),
    "transactional again": reopen,
    "TxArray.psync": lambda s: (s.bank.psync(), s.bank.pending),
    "array": lambda s: s.pool.array(f"a{next(s.number)}", 2),
    "array again": lambda s: s.pool.array("weights"),
    "array read": lambda s: s.pool.array("weights", mode="r"),
    "array anew": lambda s: s.pool.array("anew", 4, mode="w+"),
    "Array.grow": lambda s: s.pool.array("grown", (-1, 2)).grow(next(s.number)).psync(),
    "Array.revert": lambda s: s.weights.revert(),
    "dict": lambda s: s.pool.dict(f"d{next(s.number)}", size=1).close(),
    "dict again": lambda s: s.pool.dict("run"),
    "Dict": lambda s: (s.run.update(a=np.zeros(2), b=[1, {"c": 2.0}]), s.run["b"], s.run.copy(), s.run.psync()),
    "psync": lambda s: indelible.psync(s.weights, s.run),
    "snapshot": lambda s: s.pool.snapshot("weights", f"weights@{next(s.number)}"),
    "item": lambda s: (s.pool["weights"], s.pool["run"]),
    "list": lambda s: (s.pool.list(), len(s.pool), list(s.pool)),
    "log": lambda s: s.pool.log(f"l{next(s.number)}").close(),
    "save": lambda s: s.saved.save(f"s{next(s.number)}", {"w": np.zeros(4), "o": {"n": 1}}, score=1.0),
    "load": lambda s: s.saved.load(),
    "refresh": lambda s: s.pool.checkpoints("saved").refresh(),
    "attach": lambda s: s.pool.attach("bytes").psync(),
    "view": lambda s: s.pool.view("view", 2).psync(),
    "context": lambda s: s.pool.context("context", 2).psync(),
    "block": block,
}


@pytest.mark.parametrize("name", CALLS)
def test_an_interrupt_at_any_line_leaves_all_in_order(name: str, pool: indelible.Pool) -> None:
    s = State(pool)
    s.saved.save("first", {"w": np.zeros(4)})
    call = CALLS[name]
    call(s)
    seen = 0
    for at in first_times(lambda: call(s)):
        where = interrupted(lambda: call(s), at)
        try:
            s.check()
            call(s)
        except BaseException as error:
            raise AssertionError(f"after an interrupt at {where}") from error
        seen += bool(where)
    assert seen > 0


def test_errors_after_a_commit_are_told_apart_from_a_failing_one(pool: indelible.Pool) -> None:
    bank = pool.transactional("bank", 1, "i8")
    done: list[str] = []

    def body(tx: indelible.Tx) -> None:
        tx[bank][0] += 1
        for name in ("a", "b", "c"):
            tx.on_commit(lambda name=name: done.append(name) if name == "b" else {}[name])

    with pytest.raises(indelible.AfterCommit) as raised:
        bank.transaction(body)
    assert [error.args for error in raised.value.exceptions] == [("a",), ("c",)] and done == ["b"]

    def stops(tx: indelible.Tx) -> None:
        tx[bank][0] += 1

        def interrupt() -> None:
            raise KeyboardInterrupt

        tx.on_commit(interrupt)
        tx.on_commit(lambda: done.append("after"))

    with pytest.raises(KeyboardInterrupt):
        bank.transaction(stops)
    assert done == ["b", "after"]
    assert bank.transaction(lambda tx: tx[bank][0]) == 2
