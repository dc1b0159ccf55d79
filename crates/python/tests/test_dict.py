"""The persistent dict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import indelible
import numpy as np
import pytest
from conftest import MIB, Open

SCALARS: list[Any] = [
    None, True, False, 0, -1, 2**63 - 1, -(2**63), 2**63, -(2**63) - 1, 10**40, -(10**40),
    0.0, -0.0, 1.5, float("inf"), 5e-324, "", "x", "naïve \0 text 🙂", b"", b"\0\1\2" * 1000,
]  # fmt: skip


@pytest.mark.parametrize("value", SCALARS, ids=repr)
def test_scalars_come_back_as_they_went_in(pool: indelible.Pool, value: Any) -> None:
    values = pool.dict("run")
    values["v"] = "something else"
    values["v"] = value
    assert values["v"] == value and type(values["v"]) is type(value)
    values.psync()
    values.close()
    back = pool.dict("run", "r")["v"]
    assert type(back) is type(value) and repr(back) == repr(value)


def test_nan_keeps_its_bits(pool: indelible.Pool) -> None:
    values = pool.dict("run")
    values["v"] = np.uint64(0x7FF8_0000_DEAD_BEEF).view(np.float64)
    assert np.float64(values["v"]).view(np.uint64) == 0x7FF8_0000_DEAD_BEEF


def test_it_is_a_mutable_mapping(open_pool: Open) -> None:
    values = open_pool().dict("run")
    values.update(a=1, b="two", c=3.0)
    values["a"] = 10
    assert list(values) == ["a", "b", "c"] and len(values) == 3 and "b" in values and 5 not in values
    assert dict(values) == {"a": 10, "b": "two", "c": 3.0} == values
    del values["b"]
    values["b"] = 2
    assert list(values.items()) == [("a", 10), ("c", 3.0), ("b", 2)]
    assert values.pop("a") == 10 and values.setdefault("d", 4) == 4 and values.get("x") is None
    with pytest.raises(KeyError):
        values["x"]
    with pytest.raises(KeyError):
        del values["x"]
    values.clear()
    assert dict(values) == {} and values._check() == []


def test_numpy_scalars_become_pythons(pool: indelible.Pool) -> None:
    values = pool.dict("run")
    values.update(i=np.int32(5), f=np.float32(0.5), b=np.bool_(True), s=np.str_("x"))
    assert [(type(v), v) for v in values.values()] == [(int, 5), (float, 0.5), (bool, True), (str, "x")]


@pytest.mark.parametrize(
    "value",
    [object(), np.array([object()]), np.datetime64("2020-01-01"), [object()], {("a", object()): 1}, int, 1j.__class__],
    ids=repr,
)
def test_what_it_cannot_hold_is_refused(pool: indelible.Pool, value: Any) -> None:
    values = pool.dict("run")
    values["v"] = 1
    with pytest.raises(TypeError):
        values["v"] = value
    assert dict(values) == {"v": 1}
    with pytest.raises(TypeError):
        values[5] = 1  # type: ignore[index]
    with pytest.raises(ValueError, match="key"):
        values["k" * 70_000] = 1
    with pytest.raises(UnicodeEncodeError):
        values["\ud800"] = 1
    assert dict(values) == {"v": 1}


def test_arrays_are_views_of_the_object(open_pool: Open) -> None:
    pool = open_pool()
    values = pool.dict("run")
    source = np.arange(12.0).reshape(3, 4)
    values["w"] = source
    source[:] = -1
    array = values["w"]
    assert (array == np.arange(12.0).reshape(3, 4)).all() and array.ctypes.data % 64 == 0
    array[1] = 5
    values["w"] += 1
    assert (array[1] == 6).all() and values["w"].ctypes.data == array.ctypes.data
    values["structured"] = np.zeros(3, [("a", "u1"), ("b", "f8")])
    values["structured"]["b"][2] = 4
    values["fortran"] = np.asfortranarray(np.arange(6).reshape(2, 3))
    values["scalar"], values["empty"] = np.array(7), np.zeros((0, 3))
    values.psync()
    array[0] = 99
    del array
    values.close()
    values = pool.dict("run")
    assert (values["w"][1] == 6).all() and values["w"][0, 0] == 1
    assert values["structured"]["b"][2] == 4 and values["fortran"].flags.f_contiguous
    assert values["scalar"] == 7 and values["scalar"].shape == () and values["empty"].shape == (0, 3)
    values.close()
    array = pool.dict("run", "r")["w"]
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1


def test_an_array_that_was_replaced_stays_what_it_was(pool: indelible.Pool) -> None:
    values = pool.dict("run")
    values["w"] = np.full(1000, 1.0)
    old = values["w"]
    values["w"] = np.full(1000, 2.0)
    older = old[10:20]
    del old
    for fill in range(50):  # would use the block if it were free
        values["x"] = np.full(1000, float(fill))
    assert (older == 1).all()
    del values["w"]
    assert (older == 1).all()
    blocks = len(values._blocks()[0])
    del older
    values["y"] = 1  # frees what waited
    assert len(values._blocks()[0]) == blocks  # one less, one more
    assert values._check() == []


def test_unreferenced_blocks_are_freed_at_the_next_open(pool: indelible.Pool) -> None:
    values = pool.dict("run")
    values["w"] = np.zeros(100_000)
    array = values["w"]
    values["w"] = 1
    values.psync()  # the block is still in use, by `array` alone
    before = len(values._blocks()[0])
    del array
    values.close()
    values = pool.dict("run")
    assert len(values._blocks()[0]) == before - 1 and dict(values) == {"w": 1}


def test_assigning_one_entry_to_another_copies(pool: indelible.Pool) -> None:
    values = pool.dict("run")
    values["a"] = np.arange(5)
    values["b"] = values["a"]
    values["b"][0] = 9
    values["a"] = values["a"][::-1]
    assert values["a"].tolist() == [4, 3, 2, 1, 0] and values["b"].tolist() == [9, 1, 2, 3, 4]
    values["m"] = np.zeros((3, 3))
    values["m"] = values["m"].T  # the same bytes in another order
    assert values["m"].flags.f_contiguous


def test_it_grows(open_pool: Open) -> None:
    pool = open_pool()
    values = pool.dict("run", size=64 << 10)
    pool.create("in the way", 4096)
    values["first"] = np.arange(10)
    first = values["first"]
    for index in range(40):
        values[f"array {index}"] = np.full(50_000, index, "f4")
        values[f"number {index}"] = index
    first[0] = 5
    values.psync()
    del first
    values.close()
    assert pool.stat("run").size > 4 * MIB
    values = pool.dict("run")
    assert values["first"][0] == 5 and values._check() == []
    assert all((values[f"array {index}"] == index).all() for index in range(40))


def test_many_keys(pool: indelible.Pool) -> None:
    values = pool.dict("run")
    for index in range(2000):
        values[f"k{index}"] = index
    for index in range(0, 2000, 2):
        del values[f"k{index}"]
    for index in range(0, 2000, 4):
        values[f"k{index}"] = -index
    expected = {f"k{index}": index for index in range(1, 2000, 2)}
    expected |= {f"k{index}": -index for index in range(0, 2000, 4)}
    assert dict(values) == expected and list(values) == list(expected)
    values.psync()
    values.close()
    values = pool.dict("run")
    assert dict(values) == expected and list(values) == list(expected)


def test_modes(open_pool: Open) -> None:
    pool = open_pool()
    with pytest.raises(indelible.NotFound):
        pool.dict("run", "r")
    with pool.dict("run") as values:
        values["a"] = 1
    with pytest.raises(indelible.Closed):
        values["a"]
    assert repr(values) == "<indelible.Dict 'run', closed>"
    with pool.dict("run", "r") as values:
        assert values.readonly and dict(values) == {"a": 1}
        for change in (lambda: values.update(a=2), lambda: values.pop("a"), lambda: values.update(b=1)):
            with pytest.raises(indelible.ReadOnly):
                change()
        with pytest.raises(indelible.Held):
            pool.dict("run")
    assert dict(pool.dict("run", "w+")) == {}
    with pytest.raises(ValueError, match="mode"):
        pool.dict("run", "c")


def test_a_dict_where_something_else_is(pool: indelible.Pool) -> None:
    pool.array("w", 10)
    with pytest.raises(indelible.Error) as caught:
        pool.dict("w")
    assert caught.value.kind == "NotAHeap" and caught.value.object == "w"
    # Nothing is left attached.
    assert pool.array("w").shape == (10,)


def test_arrays_of_different_pools_are_no_step(pool: indelible.Pool, tmp_path: Path) -> None:
    with indelible.open(tmp_path / "other.pmo", 8 * MIB) as other:
        with pytest.raises(ValueError, match="different pools") as caught:
            indelible.psync(pool.array("w", 10), other.array("w", 10))
        assert isinstance(caught.value, indelible.Error) and caught.value.kind == "DifferentPools"


def test_dict_and_arrays_are_one_step(open_pool: Open) -> None:
    pool = open_pool()
    array, values, more = pool.array("w", 1000), pool.dict("run"), pool.dict("more")
    array[:], values["step"], more["x"] = 3, 1, np.ones(5)
    indelible.psync(array, values, more)
    array[:], values["step"] = 4, 2
    del array
    values.close()
    more.close()
    assert (
        (pool.array("w") == 3).all() and pool.dict("run")["step"] == 1 and (pool.dict("more")["x"] == 1).all()
    )
    with pytest.raises(TypeError):
        indelible.psync()
    with pytest.raises(ValueError, match="one object"):
        indelible.psync(pool.array("w"), pool.dict("run"), cut=True)
    indelible.psync(pool.dict("run"), cut=True)
