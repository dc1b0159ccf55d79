"""Pickles of arrays, dicts and pools have names: processes that load them attach the objects."""

from __future__ import annotations

import copy
import importlib.util
import io
import multiprocessing
import os
import pickle
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import indelible
import numpy as np
import pytest
from conftest import MIB, Open, not_tested


def prepared(pool: indelible.Pool) -> tuple[indelible.Array, indelible.Dict]:
    w, run = pool.array("w", (1000, 50), "f4"), pool.dict("run")
    w[:] = np.arange(50_000).reshape(1000, 50)
    run.update({"step": 7, "m": np.arange(1000)})
    indelible.psync(w, run)
    return w, run


def seen(w: Any, part: Any, run: Any, pool: Any) -> tuple[Any, ...]:
    """The parts as another process gets them."""
    assert isinstance(w, indelible.Array) and isinstance(run, indelible.Dict)
    refused = 0
    for store in (lambda: w.__setitem__(0, 1), lambda: run.__setitem__("a", 1)):
        try:
            store()
        except (ValueError, indelible.ReadOnly):
            refused += 1
    return os.getpid(), float(w.sum()), part.tolist(), w.name, run["step"], int(run["m"].sum()), refused, sorted(pool)


def expect_seen(found: tuple[Any, ...], w: np.ndarray[Any, Any]) -> None:
    assert found[0] != os.getpid()
    assert found[1:] == (float(w.sum()), w[10:2:-3, 1::7].tolist(), "w", 7, 499_500, 2, ["run", "w"])


@pytest.mark.parametrize("start", ["spawn", "forkserver"])
def test_processes_attach_what_they_are_given(pool: indelible.Pool, start: str) -> None:
    w, run = prepared(pool)
    large = len(pickle.dumps((w, w[10:2:-3, 1::7], run)))
    assert large < 2000
    with ProcessPoolExecutor(1, multiprocessing.get_context(start)) as workers:
        expect_seen(workers.submit(seen, w, w[10:2:-3, 1::7], run, pool).result(timeout=60), w)


def test_workers_of_joblib_attach_what_they_are_given(pool: indelible.Pool) -> None:
    joblib = pytest.importorskip("joblib")
    w, run = prepared(pool)
    work = [joblib.delayed(seen)(w, w[10:2:-3, 1::7], run, pool)]
    with joblib.parallel_config("loky", n_jobs=2):
        (found,) = joblib.Parallel()([*work])
    expect_seen(found, w)
    importlib.import_module("joblib.externals.loky").get_reusable_executor().shutdown(wait=True)


def test_workers_of_dask_attach_what_they_are_given(pool: indelible.Pool) -> None:
    dask = pytest.importorskip("dask")
    w, run = prepared(pool)
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as workers:
        found = dask.delayed(seen, pure=False)(w, w[10:2:-3, 1::7], run, pool).compute(scheduler="processes", pool=workers)
    expect_seen(found, w)


class Rows:
    """A data set of torch."""

    def __init__(self, w: indelible.Array) -> None:
        self.w = w

    def __len__(self) -> int:
        return len(self.w)

    def __getitem__(self, at: int) -> Any:
        assert isinstance(self.w, indelible.Array)
        return np.array(self.w[at])


def test_workers_of_torch_attach_what_they_are_given(pool: indelible.Pool) -> None:
    if importlib.util.find_spec("torch") is None:
        not_tested("workers of torch's DataLoader: torch is not installed")
        pytest.skip("no torch")
    data = importlib.import_module("torch.utils.data")
    w, _ = prepared(pool)
    loader = data.DataLoader(Rows(w), batch_size=100, num_workers=1, multiprocessing_context="spawn")
    assert sum(float(rows.double().sum()) for rows in loader) == w.sum(dtype="f8")


def test_a_fork_has_the_values_of_what_it_may_read(pool: indelible.Pool) -> None:
    w, _ = prepared(pool)
    total = float(w.sum())
    del w
    w = pool.array("w", mode="r", lock=True)
    child = os.fork()
    if child == 0:
        try:
            # A name would need the parent's pool, which is not open in the child.
            values = pickle.loads(pickle.dumps(w))
            os._exit(0 if type(values) is np.ndarray and float(values.sum()) == total else 2)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_what_a_name_cannot_say_is_pickled_by_value(pool: indelible.Pool) -> None:
    w, run = prepared(pool)
    w[0] = -1
    run["step"] = 8
    values, items = pickle.loads(pickle.dumps((w, run)))
    assert type(values) is np.ndarray and type(items) is dict and items["step"] == 8
    assert (values == w).all() and not np.shares_memory(values, w)
    with pytest.raises(indelible.Error, match="not psynced"):
        w.by_name()
    keyed = pool.array("keyed", 3, key=b"secret")
    assert type(pickle.loads(pickle.dumps(keyed))) is np.ndarray
    # Another object has the name now.
    indelible.psync(w, run)
    pool.delete("w")
    other = pool.array("w", 3)
    assert type(pickle.loads(pickle.dumps(w))) is np.ndarray and (pickle.loads(pickle.dumps(w))[0] == -1).all()
    assert isinstance(pickle.loads(pickle.dumps(other)), indelible.Array)
    assert type(pickle.loads(pickle.dumps(w + 1))) is np.ndarray


def test_in_the_same_process_nothing_is_stored_by_what_was_loaded(pool: indelible.Pool) -> None:
    w, run = prepared(pool)
    again, items = pickle.loads(pickle.dumps((w, run)))
    assert isinstance(again, indelible.Array) and not again.flags.writeable and np.shares_memory(again, w)
    assert type(items) is dict
    items["step"] = 100
    items["m"][:] = 0
    assert run["step"] == 7 and run["m"].sum() == 499_500
    assert type(copy.deepcopy(w)) is np.ndarray and type(copy.copy(run)) is dict
    reader = pool.array("w", mode="r")
    assert (pickle.loads(pickle.dumps(reader)) == w).all()


def test_a_pickle_of_something_that_is_gone_says_so(pool: indelible.Pool, tmp_path: Path) -> None:
    w, _ = prepared(pool)
    name = pickle.dumps(w)
    del w
    pool.remove("w")
    with pytest.raises(indelible.NotFound):
        pickle.loads(name)
    pool.array("w", (1000, 50), "f4").psync()
    with pytest.raises(indelible.NotFound, match="another one than the pickle was made of"):
        pickle.loads(name)
    whole = pickle.dumps(pool)
    assert pickle.loads(whole).id == pool.id
    other = indelible.open(tmp_path / "other.pmo", 16 * MIB)
    swapped = whole.replace(pool.id, other.id)
    with pytest.raises(indelible.Mismatch, match="is another one"):
        pickle.loads(swapped)
    other.close()
    with pytest.raises(TypeError, match="closed pool"):
        pickle.dumps(other)


def store_one(w: Any, run: Any) -> None:
    w[0] = 1
    run["by"] = os.getpid()
    indelible.psync(w, run)


def test_a_writer_is_handed_on(open_pool: Open) -> None:
    pool = open_pool()
    w, run = prepared(pool)
    given = pickle.dumps((w.by_name(), run.by_name()))
    assert "w" in repr(w.by_name()) and "r+" in repr(w.by_name())
    del w
    run.close()
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as workers:
        workers.submit(load_and_store, given).result(timeout=60)
    assert (pool.array("w")[0] == 1).all() and pool.dict("run")["by"] != os.getpid()


def load_and_store(given: bytes) -> None:
    store_one(*pickle.loads(given))


def test_a_slice_beyond_its_object_is_an_error(pool: indelible.Pool) -> None:
    w, _ = prepared(pool)
    again, (of, name, created, psyncs, mode, lock, (at, shape, strides, dtype)) = w.__reduce_ex__(2)
    for place in [(at, (10**6, 50), strides, dtype), (at, shape, (10**6, 4), dtype), (-1, shape, strides, dtype)]:
        with pytest.raises((ValueError, TypeError)):
            again(of, name, created, psyncs, mode, lock, place)
    assert io.BytesIO(pickle.dumps(w)).getbuffer().nbytes < 1000
