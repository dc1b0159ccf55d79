"""Going back to the last psync without closing."""

from __future__ import annotations

import gc
from pathlib import Path

import indelible
import numpy as np
import pytest
from conftest import Open


def test_an_array_goes_back_to_its_last_psync(open_pool: Open) -> None:
    pool = open_pool()
    w = pool.array("w", (1000, 100))
    assert w.revert() is w and not w.any()
    w[:] = 1
    w.psync()
    part = w[500:]
    w[:] = 2
    assert part.revert() is part
    assert (w == 1).all() and (part == 1).all()
    w[0] = 3
    w.psync()
    del w, part
    w = pool.array("w")
    assert w.sum() == 100_000 + 200
    reader = pool.array("w", mode="r")
    assert reader.revert() is reader


def test_an_array_that_has_grown_since_has_its_length_again(open_pool: Open) -> None:
    pool = open_pool()
    log = pool.array("log", (-1, 4), "f4").grow(3)
    log[:] = 1
    log.psync()
    longer = log.grow(100_000)
    longer[:] = 2
    again = longer.revert()
    assert again.shape == (3, 4) and (again == 1).all()
    assert longer.shape == (100_000, 4) and not longer[3:].any()  # still memory
    again = again.grow(5)
    again.psync()
    del log, longer, again
    assert pool.array("log").shape == (5, 4)


def test_a_dict_goes_back_to_its_last_psync(open_pool: Open) -> None:
    pool = open_pool()
    settings = indelible.Struct("Settings", {"rate": "f8"})
    values = pool.dict("run")
    values.update(step=1, w=np.ones(1000), text="x" * 1000)
    values.record("settings", settings)["rate"] = 0.5
    values.psync()
    for _ in range(20):
        values.update({f"key {number}": np.zeros(number * 100) for number in range(30)})
        values["w"][:] = 7
        values["step"] = 2
        values.record("settings", settings)["rate"] = 1
        del values["text"]
        array = values["key 9"]
        with pytest.raises(BufferError, match='cannot revert object "run": .* in use'):
            values.revert()
        assert values["step"] == 2
        del array
        keys = iter(values)
        next(keys)
        values.revert()
        with pytest.raises(RuntimeError, match="changed"):
            next(keys)
        assert list(values) == ["step", "w", "text"] and values["step"] == 1 and values["w"].sum() == 1000
        assert values.record("settings", settings)["rate"] == 0.5 and values._check() == []
    size = values.size
    values.psync()
    values.close()
    for use in (values.revert,):
        with pytest.raises(indelible.Closed):
            use()
    with pool.dict("run") as values:
        assert values["text"] == "x" * 1000 and values.size == size


def test_bytes_go_back_to_the_last_psync(tmp_path: Path) -> None:
    pool = indelible.open(tmp_path / "p.pmo", 16 << 20)
    pool.create("raw", 10_000)
    raw = pool.attach("raw")
    with memoryview(raw) as memory:
        memory[:5] = b"first"
        raw.psync()
        memory[:5] = b"wrong"
        raw.revert()
        assert bytes(memory[:5]) == b"first"
    raw.close()
    with pytest.raises(indelible.Closed):
        raw.revert()
    gc.collect()
