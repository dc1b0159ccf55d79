"""SIGKILL while checkpoints, groups of zarr and frames are saved: acknowledged saves are there, and
each state is whole. `INDELIBLE_LIVES=1000` makes it a campaign.
"""

from __future__ import annotations

import importlib
import mmap
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import indelible
import numpy as np
import pytest
from conftest import MIB, not_tested
from test_kill import killed

LIVES = int(os.environ.get("INDELIBLE_LIVES", "12"))
SEED = int(os.environ.get("INDELIBLE_SEED", "20"))

Begin = Callable[[], None]


class Steps:
    """Steps of all lives: the last one that a call acknowledged, in memory that forks share."""

    def __init__(self) -> None:
        self._memory = memoryview(mmap.mmap(-1, 8)).cast("q")

    @property
    def last(self) -> int:
        return int(self._memory[0])

    def acknowledge(self, step: int) -> None:
        self._memory[0] = step

    def expect(self, found: int) -> None:
        """Checks the step that a life finds: the last one, or the next, not acknowledged yet."""
        assert found in (self.last, self.last + 1), (found, self.last)
        self.acknowledge(found)

    def survive(self, work: Callable[[Begin], None]) -> None:
        print(f"INDELIBLE_SEED={SEED}")
        random_ = random.Random(SEED)
        for _ in range(LIVES):
            # A life acknowledges up to three steps, and dies in the next, or soon after.
            enough = self.last + random_.randrange(4)
            assert killed(work, random_.randrange(1 << random_.randrange(20)), lambda: self.last >= enough)
        assert self.last > LIVES // 2
        print(f"{self.last} steps in {LIVES} lives")


def library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        not_tested(f"kills: {name} is not installed")
        pytest.skip(f"no {name}")


def test_killed_at_any_moment_checkpoints_are_whole(path: Path) -> None:
    steps = Steps()

    def state(step: int) -> dict[str, Any]:
        size = 1 + step % 7 * 20_000
        return {"step": step, "w": np.full(size, step), "nested": [(np.full((3, 5), -step), str(step))]}

    def work(begin: Begin) -> None:
        pool = indelible.open(path, 64 * MIB)
        saved = pool.checkpoints("c", last=2, best=1)
        for name in saved:
            found, wanted = saved.load(name), state(int(name))
            assert found["step"] == wanted["step"] and (found["w"] == wanted["w"]).all()
            assert found["w"].shape == wanted["w"].shape
            assert (found["nested"][0][0] == -int(name)).all() and found["nested"][0][1] == name
        steps.expect(int(saved.latest or 0))
        assert [int(name) for name in saved][-2:] == [step for step in (steps.last - 1, steps.last) if step > 0]
        # Leftovers go with the next save: one that was being made, and one that is dropped.
        assert sum(name.startswith("c~") for name in pool) <= len(saved) + 2
        begin()
        while True:
            step = steps.last + 1
            saved.save(str(step), state(step), score=step % 5)
            steps.acknowledge(step)

    steps.survive(work)


def test_killed_at_any_moment_groups_of_zarr_are_whole(path: Path) -> None:
    library("zarr")
    steps = Steps()

    def work(begin: Begin) -> None:
        zarr, stores = library("zarr"), library("indelible.zarr")
        store = stores.PoolStore(indelible.open(path, 64 * MIB), "climate")
        root = zarr.open_group(store)
        if steps.last == 0 and "b" not in root:
            with store.group():
                for name, shape in (("a", (20, 20)), ("b", (100,))):
                    root.create_array(name, shape=shape, chunks=(10,) * len(shape), dtype="i8")
                root.attrs["step"] = 0
        root = zarr.open_group(store)
        steps.expect(root.attrs["step"])
        assert (root["a"][:] == steps.last).all() and (root["b"][:] == steps.last).all()
        begin()
        while True:
            step = steps.last + 1
            with store.group():
                root["a"][:] = step
                root["b"][:] = step
                root.attrs["step"] = step
            steps.acknowledge(step)

    steps.survive(work)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_killed_at_any_moment_frames_are_whole(path: Path, kind: str) -> None:
    for name in ("pyarrow", kind):
        library(name)
    steps = Steps()

    def frame(step: int) -> Any:
        rows = 1 + step % 5 * 3000
        columns = {"step": np.full(rows, step), "x": np.arange(rows) / 7, "text": [str(step)] * rows}
        made = library(kind)
        return made.table(columns) if kind == "pyarrow" else made.DataFrame(columns)

    def work(begin: Begin) -> None:
        pool = indelible.open(path, 64 * MIB)
        if "df" in pool and pool.stat("df").psyncs:
            found = pool["df"]
            step = int(found["step"][0].as_py() if kind == "pyarrow" else found["step"][0])
            assert found.equals(frame(step))
            steps.expect(step)
            del found
        else:
            assert steps.last == 0
        begin()
        while True:
            step = steps.last + 1
            pool["df"] = frame(step)
            steps.acknowledge(step)

    steps.survive(work)
