"""Arrays that are an object's memory."""

from __future__ import annotations

import copy as copy_module
import pickle
from pathlib import Path
from typing import Any

import indelible
import numpy as np
import pytest
from conftest import MIB, Open
from indelible import _array

KINDS: list[Any] = [
    "?", "i1", "<i4", ">i4", "u8", "f2", "f4", ">f8", "c16", "S5", "U7", "V3", "<M8[us]", "m8[D]",
    np.dtype([("id", "<u4"), ("at", "<f8", (3,)), ("name", "S8")]),
    np.dtype([("id", "u1"), ("x", "f8")], align=True),
    np.dtype([("outer", [("a", "i2"), ("b", "f4", (2, 2))]), ("c", "?")]),
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_type_comes_back(pool: indelible.Pool, kind: Any) -> None:
    dtype = np.dtype(kind)
    bits = np.random.default_rng(7).integers(0, 2, 24 * dtype.itemsize, np.uint8)
    expected = bits.tobytes()
    array = pool.array("w", (2, 3, 4), dtype)
    assert (
        array.dtype == dtype
        and array.shape == (2, 3, 4)
        and not array.view(np.ndarray).tobytes().strip(b"\0")
    )
    array.view(np.ndarray).reshape(-1).view(np.uint8)[:] = bits
    array.psync()
    address = array.ctypes.data
    del array
    again = pool.array("w", (2, 3, 4), dtype)
    assert again.tobytes() == expected and again.dtype == dtype and again.flags.aligned
    assert again.ctypes.data == address
    assert np.array_equal(pool.array("w").tobytes(), expected)


def test_it_is_the_memory_and_not_a_copy(open_pool: Open) -> None:
    pool = open_pool()
    array = pool.array("w", (100, 10), np.float32)
    obj = _array.owner(array)
    array[3, 4] = 7.5
    whole = np.frombuffer(obj, np.float32, offset=_array.DATA)
    assert whole[34] == 7.5
    whole[35] = 2
    assert array[3, 5] == 2 and array.ctypes.data == obj.address + _array.DATA
    del whole
    part = array[5:].T
    del array
    with pytest.raises(BufferError):
        obj.close()
    del part
    obj.close()


def test_what_was_psynced_stays_and_what_was_not_goes(open_pool: Open) -> None:
    pool = open_pool()
    array = pool.array("w", (1000, 100))
    array[:] = np.arange(100)
    array.psync()
    array[500:] = -1
    del array
    assert (pool.array("w") == np.arange(100)).all()


def test_slices_psync_and_results_do_not(pool: indelible.Pool) -> None:
    array = pool.array("w", (10, 10))
    part = array[2:4].T
    part += 1
    part.psync()
    del array, part
    array = pool.array("w")
    assert array.sum() == 20
    result = array + 1
    assert type(result) is np.ndarray and type(array.sum()) is np.float64
    array += 1
    assert type(array) is indelible.Array
    copy = array.copy()
    assert type(copy) is np.ndarray and not np.shares_memory(copy, array)
    assert type(copy_module.copy(array)) is type(copy_module.deepcopy(array)) is np.ndarray
    assert type(pickle.loads(pickle.dumps(array))) is np.ndarray
    for copy in (array[[1, 2]], np.array(array, subok=True)):
        with pytest.raises(indelible.Error) as caught:
            copy.psync()
        assert caught.value.kind == "NotAttached"
    with pytest.raises(indelible.Error):
        indelible.psync(np.zeros(3))
    assert np.array_equal(pickle.loads(pickle.dumps(array)), array)


@pytest.mark.parametrize("order", ["C", "F"])
def test_order(pool: indelible.Pool, order: str) -> None:
    array = pool.array("w", (3, 5), "i4", order=order)
    array[:] = np.arange(15).reshape(3, 5)
    assert array.flags[f"{order}_CONTIGUOUS"]
    array.psync()
    del array
    again = pool.array("w")
    assert again.flags[f"{order}_CONTIGUOUS"] and (again == np.arange(15).reshape(3, 5)).all()
    with pytest.raises(indelible.Mismatch):
        pool.array("w", order="F" if order == "C" else "C")


@pytest.mark.parametrize("shape", [(), 0, (0, 3), (3, 0), 7, np.int64(7), [2, 2]], ids=str)
def test_shapes_at_the_edge(pool: indelible.Pool, shape: Any) -> None:
    array = pool.array("w", shape, "i8")
    array[...] = 5
    array.psync()
    assert array.shape == np.zeros(shape).shape
    del array
    assert (pool.array("w", shape, "i8") == 5).all()


def test_a_mismatch_shows_both(pool: indelible.Pool) -> None:
    array = pool.array("w", (2, 3), "f8")
    for shape, dtype in (((3, 2), "f8"), ((2, 3), "f4"), (6, "f8"), ((2, 3), [("a", "f8")])):
        with pytest.raises(indelible.Mismatch) as caught:
            pool.array("w", shape, dtype)
        assert "shape (2, 3), dtype float64" in str(caught.value) and caught.value.object == "w"
        assert str(np.dtype(dtype)) in str(caught.value)
        assert isinstance(caught.value, ValueError)
    assert pool.array("w", (2, 3)).shape == array.shape


@pytest.mark.parametrize("dtype", ["O", [("a", "O")], [("a", "f8"), ("b", [("c", "O")])], "S", "V0"], ids=str)
def test_types_that_cannot_lie_in_an_object(pool: indelible.Pool, dtype: Any) -> None:
    dtype = np.dtype(dtype)
    with pytest.raises(TypeError):
        pool.array("w", 3, dtype)
    assert "w" not in pool
    overlapping = np.dtype({"names": ["a", "b"], "formats": ["f8", "i4"], "offsets": [0, 4]})
    with pytest.raises(TypeError):
        pool.array("w", 3, overlapping)


def test_modes_are_those_of_memmap(open_pool: Open) -> None:
    pool = open_pool()
    with pytest.raises(indelible.NotFound):
        pool.array("w", 3, mode="r")
    with pytest.raises(indelible.NotFound):
        pool.array("w")
    array = pool.array("w", 3, "i4", "w+")
    array[:] = 1
    array.flush()
    reader = pool.array("w", mode="r")  # of the same attachment
    assert (reader == 1).all()
    with pytest.raises(ValueError, match="read-only"):
        reader[0] = 2
    with pytest.raises(indelible.Held):
        pool.array("w", 3, mode="w+")
    del array, reader
    reader = pool.array("w", mode="r")
    with pytest.raises(ValueError, match="read-only"):
        reader[0] = 2
    reader.psync()  # ignored
    with pytest.raises(indelible.ReadOnly):
        reader.grow(5)
    del reader
    assert (pool.array("w", (2, 2), "f8", "w+") == 0).all()
    for mode in ("c", "w", "a"):
        with pytest.raises(ValueError, match="mode"):
            pool.array("w", 3, mode=mode)


def test_a_second_call_shares_the_first(open_pool: Open) -> None:
    pool = open_pool()
    first = pool.array("w", 3)
    second = open_pool().array("w", 3)
    first[0] = 4
    assert second[0] == 4
    del first
    second.psync()
    del second
    assert pool.stat("w").state == "D"


def test_what_is_shared_is_of_the_same_pool_and_mode(tmp_path: Path) -> None:
    path = tmp_path / "p.pmo"
    pool = indelible.open(path, 16 * MIB)
    first = pool.array("w", 3)
    first[:] = 1
    first.psync()
    path.unlink()
    other = indelible.open(path, 16 * MIB)
    assert (other.array("w", 3) == 0).all() and (pool.array("w") == 1).all()
    second = other.array("w", 3)
    second.psync()
    del second
    reader = other.array("w", mode="r", lock=True)
    assert (other.array("w", mode="r") == reader).all()
    with pytest.raises(indelible.Held):
        other.array("w")


def test_a_kept_exception_does_not_keep_the_object(open_pool: Open) -> None:
    pool = open_pool()
    array = pool.array("w", 3)
    del array
    kept = []
    for refused in (lambda: pool.array("w", 4), lambda: pool.dict("w")):
        try:
            refused()
        except indelible.Error as error:
            kept.append(error)
        assert pool.stat("w").state == "D"
    assert len(kept) == 2


def test_growing_along_the_first_axis(open_pool: Open) -> None:
    pool = open_pool()
    log = pool.array("log", (-1, 4), "f4")
    assert log.shape == (0, 4)
    kept = log
    for length in (1, 2, 3, 500, 100_000):
        old = log
        log = log.grow(length)
        assert not log[len(old) :].any()
        log[len(old) :] = length
        old[:] += 0  # stays valid
        log.psync()
    log = log.grow(200_000)
    log[-1] = 9  # not psynced
    del log, old, kept
    log = pool.array("log", (-1, 4))
    assert log.shape == (100_000, 4)
    assert log[0, 0] == 1 and log[1, 0] == 2 and (log[3:500] == 500).all() and (log[500:] == 100_000).all()
    with pytest.raises(indelible.Mismatch):
        pool.array("log", (-1, 5))


def test_what_cannot_grow(pool: indelible.Pool) -> None:
    array = pool.array("w", (4, 4))
    with pytest.raises(ValueError, match="cannot grow to 3"):
        array.grow(3)
    for view in (array[1:], array.T[1:], array[:, 1:], array.view("i4")):
        with pytest.raises(ValueError, match="whole"):
            view.grow(10)
    with pytest.raises(ValueError, match="order 'F'"):
        pool.array("f", (4, 4), order="F").grow(5)
    with pytest.raises(ValueError, match="cannot grow"):
        pool.array("scalar", ()).grow(5)
    assert pool.array("line", 4, order="F").grow(5).shape == (5,)


def test_an_array_where_something_else_is(pool: indelible.Pool) -> None:
    pool.create("raw", 8192)
    with pool.attach("raw") as obj:
        memoryview(obj)[:4] = b"mine"
        obj.psync()
    with pytest.raises(indelible.Damaged, match="holds no array"):
        pool.array("raw", 3)
    pool.create("zero", 8192)
    with pool.attach("zero") as obj:
        memoryview(obj)[5000] = 1
        obj.psync()  # its first page is zero, but it holds another program's data
    with pytest.raises(indelible.Damaged):
        pool.array("zero", 3)
    with pool.dict("dict") as values:
        values.psync()
    with pytest.raises(indelible.Damaged, match="PMO-HEAP"):
        pool.array("dict", 3)


def test_a_process_that_died_before_its_first_psync_left_nothing(open_pool: Open) -> None:
    pool = open_pool()
    pool.create("w", 100)  # created, and nothing more
    array = pool.array("w", (MIB,), "u1")
    array[-1] = 1
    array.psync()
    del array
    assert pool.array("w").shape == (MIB,)


def test_a_sparse_array_costs_what_is_stored(tmp_path: Path) -> None:
    pool = indelible.open(tmp_path / "p.pmo", 4 << 30)
    array = pool.array("huge", (1 << 20, 1 << 10), "u1", sparse=True)
    array[123_456, 7] = 5
    array.psync()
    del array
    assert pool.array("huge")[123_456, 7] == 5 and pool.stat("huge").size > 1 << 30
    assert (tmp_path / "p.pmo").stat().st_blocks * 512 < 64 * MIB


def test_a_copy_of_mode_c_is_stored_to_and_changes_no_object(pool: indelible.Pool) -> None:
    array = pool.array("w", (4, 3), "i4", order="F")
    array[:] = 7
    array.psync()
    mine = pool.array("w", (4, 3), "i4", "c")
    mine[0] = 1
    assert mine.flags.writeable and mine.flags.f_contiguous and (array == 7).all()
    assert mine.sum() == 3 + 7 * 9 and not pool.array("w", mode="r").flags.writeable
    with pytest.raises(indelible.Error, match="does not lie in the memory of an attached object"):
        mine.flush()
    with pytest.raises(indelible.Mismatch):
        pool.array("w", 12, "i4", "c")
    with pytest.raises(indelible.NotFound):
        pool.array("none", 3, "i4", "c")
    assert "none" not in pool


def test_an_offset_is_that_of_numpy_memmap(pool: indelible.Pool, tmp_path: Path) -> None:
    array = pool.array("w", 100, "u1")
    array[:] = np.arange(100)
    array.psync()
    file = tmp_path / "w"
    file.write_bytes(array.tobytes())
    for offset, dtype, shape in [(4, "<i4", None), (3, "u1", (5, 2)), (36, "<f8", 8), (98, "<i2", ()), (100, "u1", None)]:
        for mode in ("r+", "r", "c"):
            part = pool.array("w", shape, dtype, mode, offset=offset)
            if offset < 100:
                wanted = np.memmap(file, dtype, mode, offset, shape)
                assert part.shape == wanted.shape
                assert part.tobytes() == wanted.tobytes() and part.dtype == wanted.dtype
            assert part.flags.writeable == (mode != "r") and type(part) is indelible.Array
    part = pool.array("w", 2, "<i8", offset=8)
    part[:] = -1
    part.psync()
    assert (array[8:24] == 255).all() and array[7] == 7 and array[24] == 24
    with pytest.raises(ValueError, match="a view of a part"):
        part.grow(3)
    for offset, shape, dtype in [(-1, 3, "u1"), (101, None, "u1"), (50, 51, "u1"), (1, None, "<i4")]:
        with pytest.raises(ValueError, match="does not fit the 100 bytes"):
            pool.array("w", shape, dtype, offset=offset)
    with pytest.raises(ValueError, match="cannot begin anew"):
        pool.array("w", 3, "u1", "w+", offset=1)
    with pytest.raises(indelible.NotFound):
        pool.array("none", 3, "u1", offset=1)
    assert array.sum() != 0 and list(pool) == ["w"]
