"""SIGKILL at any moment: a fork that does the work is killed, and what it left is looked at."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import indelible
import numpy as np
import pytest
from conftest import MIB, Open
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

LIVES = 30
SEED = int(os.environ.get("INDELIBLE_SEED", "20"))


def killed(
    work: Callable[[Callable[[], None]], None],
    spins: int,
    ready: Callable[[], bool] = lambda: True,
) -> bool:
    """Runs `work` in a fork and kills it `spins` turns after it called what it is given, and
    `ready` is true.

    Returns whether it was still running.
    """
    begun, tell = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(begun)
            work(lambda: os.write(tell, b"x") and None)
            os._exit(0)
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(1)
    os.close(tell)
    assert os.read(begun, 1) == b"x", "the work failed before it began"
    while not ready() and os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        os.sched_yield()
    for _ in range(spins):
        pass
    os.kill(child, signal.SIGKILL)
    os.close(begun)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def test_killed_at_any_moment_arrays_and_dict_agree(path: Path, tracking: str) -> None:
    """Each step changes two arrays and a dict and psyncs them together: all are of one step, always."""
    print(f"INDELIBLE_SEED={SEED}")
    random_ = random.Random(SEED)

    def work(begin: Callable[[], None]) -> None:
        pool = indelible.open(path, 32 * MIB, tracking=tracking)
        a, b, run = pool.array("a", 5000, "i8"), pool.array("b", (-1, 100), "i4"), pool.dict("run")
        step = run.get("step", 0)
        if step:
            assert (a == step).all() and b.shape == (step, 100) and (run["values"] == step).all()
            assert run[f"at {step % 3}"] == "x" * step and run._check() == []
            assert (b == np.arange(1, step + 1)[:, None]).all()
        begin()
        while True:
            step += 1
            a += 1
            b = b.grow(step)
            b[-1] = step
            if step % 4 == 1:
                run["values"] = np.full(step, step)
            else:
                run["values"] = run["values"].copy() + 1
            run[f"at {step % 3}"] = "x" * step
            run["step"] = step
            indelible.psync(a, b, run)

    died = sum(killed(work, random_.randrange(1_000_000)) for _ in range(LIVES))
    assert died == LIVES
    with indelible.open(path, tracking=tracking) as pool:
        print(f"{pool.dict('run').get('step')} steps in {LIVES} lives")


def test_killed_while_arrays_and_dicts_are_made(path: Path, tracking: str) -> None:
    random_ = random.Random(SEED)

    def work(begin: Callable[[], None]) -> None:
        pool = indelible.open(path, 32 * MIB, tracking=tracking)
        begin()
        for number in range(1000):
            array, values = pool.array(f"a{number}", 100), pool.dict(f"d{number}", size=64 << 10)
            values["x"] = array[0] = 1
            indelible.psync(array, values)
            array.psync()
            del array
            values.close()
            if number > 2:
                pool.remove(f"a{number - 1}")
                pool.remove(f"d{number - 1}")

    for _ in range(12):
        assert killed(work, random_.randrange(300_000))
        with indelible.open(path, tracking=tracking) as pool:
            for stat in pool.list():
                if stat.name.startswith("a"):
                    assert pool.array(stat.name, 100)[0] in (0, 1)
                else:
                    assert dict(pool.dict(stat.name)) in ({}, {"x": 1})


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=40), st.binary(max_size=300),
    hnp.arrays(st.sampled_from(["f8", "i2", "u1", "S3", "c8"]), hnp.array_shapes(min_dims=0, max_dims=3, min_side=0)),
)  # fmt: skip
KEYS = st.one_of(st.sampled_from([f"key {number}" for number in range(6)]), st.text(max_size=12))


def image(values: Any) -> dict[str, Any]:
    """Values in a form that compares bit by bit."""
    return {
        key: (value.dtype.str, value.shape, value.tobytes())
        if isinstance(value, np.ndarray)
        else (type(value), repr(value))
        for key, value in values.items()
    }


class DictModel(RuleBasedStateMachine):
    """The dict against a dict: what was psynced is what there is after a crash, in the same order.

    A crash is what is left to the next process: the object is abandoned in a fork that is killed.
    """

    path: Path
    tracking: str

    @initialize()
    def begin(self) -> None:
        self.pool = indelible.open(self.path, 64 * MIB, tracking=self.tracking)
        self.pool.dict("run", "w+").close()
        self.model: dict[str, Any] = {}
        self.durable: dict[str, Any] = {}
        self.views: list[tuple[np.ndarray[Any, Any], bytes]] = []
        self.values = self.pool.dict("run")

    @rule(key=KEYS, value=VALUES)
    def assign(self, key: str, value: Any) -> None:
        self.values[key] = value
        self.model[key] = value.copy() if isinstance(value, np.ndarray) else value

    @rule(key=KEYS)
    def delete(self, key: str) -> None:
        if key in self.model:
            del self.model[key], self.values[key]
        else:
            with pytest.raises(KeyError):
                del self.values[key]

    @rule(key=KEYS)
    def store_to_elements(self, key: str) -> None:
        if isinstance(self.model.get(key), np.ndarray) and self.model[key].dtype.kind in "fiuc":
            with np.errstate(all="ignore"):
                self.values[key] += self.model[key].dtype.type(1)
                self.model[key] += self.model[key].dtype.type(1)

    @rule(key=KEYS)
    def hold_a_view_and_drop_the_entry(self, key: str) -> None:
        if isinstance(self.model.get(key), np.ndarray):
            view = self.values[key]
            self.views.append((view, view.tobytes()))
            del self.model[key], self.values[key]

    @rule()
    def drop_views(self) -> None:
        self.views.clear()

    @rule()
    def psync(self) -> None:
        self.values.psync()
        self.durable = {
            key: value.copy() if isinstance(value, np.ndarray) else value for key, value in self.model.items()
        }

    @rule()
    def close_and_open(self) -> None:
        self.reopen()

    def reopen(self) -> None:
        self.views.clear()
        self.values.close()
        self.values = self.pool.dict("run")
        self.model = {
            key: value.copy() if isinstance(value, np.ndarray) else value
            for key, value in self.durable.items()
        }
        assert self.values._check() == []

    @rule(key=KEYS, value=VALUES)
    def die_in_a_fork(self, key: str, value: Any) -> None:
        """Another process changes it, psyncs, changes more, and is killed."""
        self.reopen()
        self.values.close()

        def work(begin: Callable[[], None]) -> None:
            values = indelible.open(self.path, tracking=self.tracking).dict("run")
            values[key] = value
            values.psync()
            values["lost"] = 1
            values.pop(key)
            begin()
            signal.pause()

        assert killed(work, 0)
        self.values = self.pool.dict("run")
        self.model[key] = value
        self.durable = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in self.model.items()}
        assert self.values._check() == []

    @invariant()
    def agrees(self) -> None:
        if hasattr(self, "values"):
            assert list(self.values) == list(self.model)
            assert image(self.values) == image(self.model)
            assert all(view.tobytes() == bytes_ for view, bytes_ in self.views)

    def teardown(self) -> None:
        if hasattr(self, "values"):
            self.views.clear()
            self.values.close()


def test_the_dict_agrees_with_a_dict(path: Path, tracking: str, open_pool: Open) -> None:
    class Model(DictModel):
        pass

    Model.path, Model.tracking = path, tracking
    run_state_machine_as_test(Model, settings=settings(max_examples=12, stateful_step_count=30))
