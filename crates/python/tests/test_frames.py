"""Data frames in objects of their own: kept exactly, replaced as one step, read without a copy."""

from __future__ import annotations

import datetime as dt
import decimal
import gc
import os
import subprocess
import sys
from typing import Any
from zoneinfo import ZoneInfo

import indelible
import numpy as np
import pytest
from conftest import MIB, Open, not_tested, python

pandas: Any
polars: Any
pyarrow: Any
try:
    import pyarrow
except ImportError:
    not_tested("data frames: pyarrow is not installed")
    pytest.skip("no pyarrow", allow_module_level=True)
try:
    import pandas
except ImportError:
    pandas = None
try:
    import polars
except ImportError:
    polars = None


def pandas_frame() -> Any:
    frame = pandas.DataFrame(
        {
            "i": np.arange(5),
            "f": [1.5, np.nan, np.inf, -0.0, 2.0],
            "nullable": pandas.array([1, None, 3, 4, 5], dtype="Int64"),
            "flag": pandas.array([True, None, False, True, True], dtype="boolean"),
            "text": ["a", None, "ü", "", "e"],
            "kind": pandas.Categorical(["x", "y", None, "x", "y"], categories=["y", "x", "z"], ordered=True),
            "when": pandas.date_range("2024-03-30", periods=5, freq="h", tz="Europe/Berlin"),
            "delta": pandas.to_timedelta([1, 2, None, 4, 5], unit="ns"),
        },
        index=pandas.MultiIndex.from_tuples([("a", i) for i in range(5)], names=["k", "n"]),
    )
    frame.attrs = {"source": "tests", "version": 3}
    return frame


def polars_frame() -> Any:
    zone = ZoneInfo("Europe/Berlin")
    return polars.DataFrame(
        {
            "i": [1, None, 3],
            "f": [1.5, float("inf"), None],
            "text": ["a", None, "ü"],
            "kind": polars.Series(["x", None, "y"], dtype=polars.Categorical),
            "level": polars.Series(["lo", "hi", None], dtype=polars.Enum(["lo", "hi"])),
            "when": [dt.datetime(2024, 3, 31, 1, tzinfo=zone), None, dt.datetime(2024, 1, 1, tzinfo=zone)],
            "list": [[1, 2], None, []],
            "struct": [{"a": 1}, {"a": None}, {"a": 3}],
        }
    )


def arrow_table() -> Any:
    return pyarrow.table(
        {
            "i": pyarrow.array([1, None, 3], pyarrow.int16()),
            "kind": pyarrow.array(["x", "y", "x"]).dictionary_encode(),
            "when": pyarrow.array([1, None, 3], pyarrow.timestamp("ns", "Asia/Tokyo")),
            "price": pyarrow.array([1, 2, None], pyarrow.decimal128(20, 3)),
        }
    ).replace_schema_metadata({"source": "tests"})


def expect_same(one: Any, other: Any) -> None:
    assert type(one) is type(other)
    if pandas is not None and isinstance(one, pandas.DataFrame):
        pandas.testing.assert_frame_equal(one, other, check_exact=True, check_freq=True)
        assert one.attrs == other.attrs
    elif polars is not None and isinstance(one, polars.DataFrame):
        assert one.schema == other.schema and one.equals(other)
    else:
        assert one.equals(other, check_metadata=True)


def frames() -> dict[str, Any]:
    made = {"pyarrow": arrow_table(), "batch": arrow_table().to_batches()[0], "none": arrow_table()[:0]}
    made |= {"empty batch": arrow_table().to_batches()[0].slice(0, 0)}
    if pandas is not None:
        made |= {"pandas": pandas_frame(), "empty": pandas.DataFrame(), "plain": pandas.DataFrame({"a": [1.0, 2.0]}),
                 "numbered": pandas.DataFrame(np.zeros((2, 3)))}
    if polars is not None:
        made |= {"polars": polars_frame(), "no rows": polars_frame()[:0]}
    return made


@pytest.mark.parametrize("name", frames())
def test_a_frame_comes_back_as_it_was(open_pool: Open, name: str) -> None:
    pool, frame = open_pool(), frames()[name]
    pool["df"] = frame
    expect_same(pool["df"], frame)
    assert list(pool.keys()) == ["df"] and pool.stat("df").holder is None
    # Of another size, and of another library.
    for other in [*frames().values(), frame]:
        pool["df"] = other
        expect_same(pool.frame("df"), other)
    pool.close()
    expect_same(open_pool()["df"], frame)


def test_columns_are_the_memory_of_the_object(pool: indelible.Pool) -> None:
    column = np.arange(100_000, dtype="f8")
    given: list[Any] = [pyarrow.table({"a": column})]
    given += [pandas.DataFrame({"a": column, "b": column > 5})] if pandas is not None else []
    given += [polars.DataFrame({"a": column})] if polars is not None else []
    for frame in given:
        pool["df"] = frame
        one, other = pool["df"], pool["df"]
        numbers = [each["a"].to_numpy() for each in (one, other)]
        # The same process has the object once.
        assert numbers[0].__array_interface__["data"][0] == numbers[1].__array_interface__["data"][0]
        assert not numbers[0].flags.writeable and (numbers[0] == column).all()
        del one, other, numbers
        gc.collect()


def test_a_frame_in_use_stays_while_another_replaces_it(open_pool: Open) -> None:
    pool = open_pool()
    pool["df"] = pyarrow.table({"a": np.arange(100_000)})
    old = pool["df"]
    replace = """
import sys, indelible, numpy as np, pyarrow
pool = indelible.open(sys.argv[1])
pool["df"] = pyarrow.table({"a": np.arange(150_000) + 1})
"""
    subprocess.run(python(replace, pool.path), check=True)
    new = pool["df"]
    assert old["a"].to_numpy().sum() == sum(range(100_000)) and len(new) == 150_000
    pool["df"] = pyarrow.table({"b": [1]})
    assert new["a"][0].as_py() == 1 and pool["df"].to_pydict() == {"b": [1]}
    free = pool.info()["free"]
    for _ in range(20):
        pool["df"] = pyarrow.table({"a": np.arange(100_000)})
        assert len(pool["df"]) == 100_000
    del old, new
    gc.collect()
    pool.collect()
    assert pool.info()["free"] >= free - MIB


def test_what_is_no_frame_is_refused_and_nothing_changes(pool: indelible.Pool) -> None:
    w = pool.array("w", 10)
    w[:] = 3
    w.psync()
    pool["df"] = arrow_table()
    for value in (1, {"a": 1}, np.zeros(3), None, [1]):
        with pytest.raises(TypeError, match="data frames"):
            pool["df"] = value
    run = pool.dict("run")
    run["a"] = 1
    for name in ("w", "run"):
        with pytest.raises(indelible.Exists, match="holds no data frame"):
            pool[name] = arrow_table()
    if pandas is not None:
        with pytest.raises(TypeError, match="cannot be kept"):
            pool["df"] = pandas.DataFrame({"a": [object(), {1}]})
    expect_same(pool["df"], arrow_table())
    assert (w == 3).all() and run["a"] == 1
    run.psync()
    with pytest.raises(indelible.Damaged, match="holds no frame"):
        pool.frame("w")
    with pytest.raises(indelible.NotFound):
        pool.frame("none")


def test_damage_is_an_error(pool: indelible.Pool) -> None:
    pool["df"] = arrow_table()
    for at in (8, 16, 24, 32, 40, 70):
        with pool.attach("df") as raw:
            memory = memoryview(raw)
            kept = memory[at]
            memory[at] ^= 0x55
            del memory
        with pytest.raises((indelible.Damaged, indelible.Version)):
            pool.frame("df")
        with pool.attach("df") as raw:
            memoryview(raw)[at] = kept
    expect_same(pool["df"], arrow_table())


def test_a_replacement_that_fails_leaves_the_frame(pool: indelible.Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    pool["df"] = arrow_table()
    pieces = indelible._pytree.Packed.pieces

    def interrupted(self: Any) -> Any:
        for number, piece in enumerate(pieces(self)):
            if number == 1:
                raise KeyboardInterrupt
            yield piece

    monkeypatch.setattr(indelible._pytree.Packed, "pieces", interrupted)
    for name in ("df", "new"):
        with pytest.raises(KeyboardInterrupt):
            pool[name] = pyarrow.table({"a": np.arange(500_000)})
    monkeypatch.undo()
    assert "new" not in pool
    expect_same(pool["df"], arrow_table())
    pool["df"] = pyarrow.table({"a": [1]})
    assert len(pool["df"]) == 1


KILLED = """
import os, sys, indelible, numpy as np, pyarrow
pool = indelible.open(sys.argv[1])
at, pieces = int(sys.argv[2]), indelible._pytree.Packed.pieces

def dying(self):
    for number, piece in enumerate(pieces(self)):
        if number == at:
            os.kill(os.getpid(), 9)
        yield piece

indelible._pytree.Packed.pieces = dying
pool[sys.argv[3]] = pyarrow.table({"a": np.arange(500_000) + 1})
"""


def test_a_writer_that_is_killed_leaves_the_frame_before(pool: indelible.Pool) -> None:
    before = pyarrow.table({"a": np.arange(400_000)})
    pool["df"] = before
    for at, name in [(1, "df"), (3, "df"), (2, "new")]:
        died = subprocess.run([sys.executable, "-c", KILLED, os.fspath(pool.path), str(at), name], capture_output=True)
        assert died.returncode == -9, died.stderr
        expect_same(pool["df"], before)
    with pytest.raises(indelible.NotFound, match="nothing was psynced"):
        pool.frame("new")
    for name in ("df", "new"):
        pool[name] = pyarrow.table({"b": [1]})
        assert pool[name].to_pydict() == {"b": [1]}


@pytest.mark.skipif(pandas is None, reason="no pandas")
@pytest.mark.parametrize(
    "item",
    [
        np.array([1, None], dtype=object),
        decimal.Decimal("-0.0"),
        np.array([1], dtype=np.int32),
        {"a": 1, "b": 1.5},
    ],
    ids=["missing", "zero", "width", "mapping"],
)
def test_objects_in_columns_are_kept_exactly_or_refused(pool: indelible.Pool, item: Any) -> None:
    items = np.empty(2, dtype=object)
    items[0], items[1] = item, decimal.Decimal("1.00") if isinstance(item, decimal.Decimal) else item
    frame = pandas.DataFrame({"o": items})
    try:
        pool["df"] = frame
    except TypeError as refused:
        assert "exactly" in str(refused)
        assert "df" not in pool
    else:
        got = pool["df"]["o"][0]
        assert type(got) is type(item) and repr(got) == repr(item)


@pytest.mark.skipif(pandas is None, reason="no pandas")
@pytest.mark.parametrize(
    "labels",
    [
        [1, 2],
        [np.int64(1), 2],
        [np.float32(1), np.float32(2)],
        [dt.datetime(2024, 1, 1), dt.datetime(2025, 1, 1)],
        [True, 2],
        [("a", 1), ("b", 2)],
        ["a", np.str_("b")],
        [b"a", b"b"],
        [decimal.Decimal("1.0"), decimal.Decimal("2.00")],
    ],
    ids=repr,
)
def test_objects_that_label_are_kept_exactly_or_refused(pool: indelible.Pool, labels: Any) -> None:
    items = np.empty(2, dtype=object)
    items[:] = labels
    index = pandas.Index(items, dtype=object)
    named = pandas.Index([1, 2], name=items[1])
    for number, frame in enumerate(
        [
            pandas.DataFrame({"a": [1, 2]}, index=index),
            pandas.DataFrame([[1, 2]], columns=index),
            pandas.DataFrame({"a": [1, 2]}, index=named),
            pandas.DataFrame([["x", "y"]], columns=named),
        ]
    ):
        name = f"frame {number}"
        try:
            pool[name] = frame
        except TypeError as error:
            assert "cannot be kept" in str(error)
            assert name not in pool
        else:
            back = pool.frame(name)
            for one, other in ((frame.index, back.index), (frame.columns, back.columns)):
                held = [*one, *one.names]
                assert repr(held) == repr([*other, *other.names])
                assert list(map(type, held)) == list(map(type, [*other, *other.names]))
