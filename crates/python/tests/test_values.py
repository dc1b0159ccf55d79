"""Values of a dict that have no kind of their own: what goes in comes out, and no store to a copy is lost silently."""

from __future__ import annotations

import copy
import datetime as dt
import enum
import json
import pickle
from collections import Counter, defaultdict
from pathlib import Path, PurePosixPath
from typing import Any
from zoneinfo import ZoneInfo

import indelible
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from indelible import _tree

VALUES: list[Any] = [
    [], [1, "two", [3.0, None]], (1, (2, b"x")), {"lr": 0.1, "betas": (0.9, 0.999)}, {1: {"deep": [True]}},
    1 + 2j, dt.datetime(2026, 1, 2, 3, 4, 5, 6), dt.datetime(2026, 1, 2, tzinfo=dt.UTC),
    dt.datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin")), dt.date(2026, 1, 2), dt.time(3, 4),
    dt.timedelta(days=-3, microseconds=7), Path("/data/x"), PurePosixPath("a/b"), 2**200, -(2**70),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_nested_and_other_values_come_back(pool: indelible.Pool, value: Any) -> None:
    with pool.dict("run") as values:
        values["v"] = value
    back = pool.dict("run", "r")["v"]
    assert back == value and (type(back) is type(value) or isinstance(value, list | dict))
    assert getattr(back, "tzinfo", None) == getattr(value, "tzinfo", None)


def test_bytes_like_values_become_bytes(pool: indelible.Pool) -> None:
    values = pool.dict("run")
    values.update(a=bytearray(b"abc"), b=memoryview(b"abcd")[1:])
    assert dict(values) == {"a": b"abc", "b": b"bcd"}


def test_a_change_of_a_copy_is_refused_and_not_lost(pool: indelible.Pool) -> None:
    """`d["history"].append(x)` could not be stored: it says so, and what to do."""
    values = pool.dict("run")
    values["history"] = [1, {"a": np.zeros(2)}]
    history = values["history"]
    inner = history[1]
    for change in (
        lambda: history.append(2), lambda: history.__setitem__(0, 5), lambda: history.__iadd__([1]), history.clear,
        lambda: inner.update(a=1), lambda: inner.__setitem__("b", 1), lambda: inner.setdefault("c", 1), inner.popitem,
    ):  # fmt: skip
        with pytest.raises(TypeError, match="would not be stored"):
            change()
    with pytest.raises(ValueError, match="read-only"):
        inner["a"][0] = 1
    values["history"] = [*history, 3]
    assert values["history"][2] == 3
    mine = copy.copy(values["history"])
    mine.append(4)
    assert type(mine) is list and type(copy.deepcopy(history)) is list and json.dumps(history[:1]) == "[1]"
    assert type(pickle.loads(pickle.dumps(inner))) is dict and pickle.loads(pickle.dumps(mine[:1])) == [1]


@pytest.mark.parametrize("kind", ["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"])
def test_generators_go_on_where_they_were(pool: indelible.Pool, kind: str) -> None:
    generator = np.random.Generator(getattr(np.random, kind)(7))
    generator.normal(size=5)
    with pool.dict("run") as values:
        values["generator"] = generator
        values["state"] = generator.bit_generator.state
        values["bits"] = generator.bit_generator
    expected = generator.normal(size=10)
    values = pool.dict("run", "r")
    assert (values["generator"].normal(size=10) == expected).all()
    assert (np.random.Generator(values["bits"]).normal(size=10) == expected).all()
    other = np.random.Generator(getattr(np.random, kind)(0))
    other.bit_generator.state = values["state"]
    assert (other.normal(size=10) == expected).all()


@pytest.mark.parametrize("nested", [False, True])
def test_a_masked_array_is_refused_and_does_not_lose_its_mask(pool: indelible.Pool, nested: bool) -> None:
    values = pool.dict("run")
    masked = np.ma.masked_array([1.0, 2.0], [False, True])
    with pytest.raises(TypeError, match="mask"):
        values["v"] = [masked] if nested else masked
    assert "v" not in values


class Precise(dt.datetime):
    """As pandas.Timestamp: it has more than its base."""

    nanosecond = 7


class Missing(dt.datetime):
    """As pandas.NaT: no time at all."""

    def isoformat(self, *_arguments: Any, **_options: Any) -> str:
        return "NaT"


class Longer(dt.timedelta):
    """As pandas.Timedelta."""

    nanoseconds = 7


@pytest.mark.parametrize("value", [Precise(2024, 1, 1), Missing(2024, 1, 1), Longer(1)])
def test_a_subclass_of_a_time_is_refused_and_changes_nothing(pool: indelible.Pool, value: Any) -> None:
    with pool.dict("run") as values:
        values["kept"] = 1
        for each in (value, [value], {"when": value}):
            with pytest.raises(TypeError, match="subclass"):
                values["when"] = each
            with pytest.raises(TypeError, match="subclass"):
                values.update(kept=2, when=each)
    assert dict(pool.dict("run", "r")) == {"kept": 1}


class Text(str):
    """More than its letters."""


class Number(int):
    pass


class Real(float):
    pass


class Data(bytes):
    pass


class Kind(enum.StrEnum):
    A = "a"


class Labelled(np.ndarray[Any, Any]):
    pass


class Table(dict[str, Any]):
    pass


@pytest.mark.parametrize(
    "value",
    [Text("a"), Number(1), Number(1 << 80), Real(1.5), Data(b"a"), Table(a=1), Counter("a"), defaultdict(int), indelible.Far(3), np.arange(3).view(Labelled), np.rec.array([1])],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_a_subclass_of_a_value_is_refused_and_changes_nothing(pool: indelible.Pool, value: Any) -> None:
    with pool.dict("run") as values:
        values["kept"] = 1
        for each in (value, [value], {"in": (value,)}):
            for change in (lambda: values.__setitem__("new", each), lambda: values.update(kept=2, new=each), lambda: values.setdefault("new", each)):
                with pytest.raises(TypeError, match="subclass"):
                    change()
        # Scalars of numpy are numbers and text: as those of Python.
        values["numpy"] = [np.float64(1.5), np.int8(3), np.str_("x"), np.bool_(True)]
        values["float"] = np.float64(2.5)
    assert dict(pool.dict("run", "r")) == {"kept": 1, "numpy": [1.5, 3, "x", True], "float": 2.5}


@pytest.mark.parametrize("key", [Text("a"), Kind.A], ids=lambda key: type(key).__name__)
def test_a_key_of_a_subclass_is_refused_when_it_is_set(pool: indelible.Pool, key: Any) -> None:
    values = pool.dict("run")
    for change in (lambda: values.__setitem__(key, 1), lambda: values.update({key: 1}), lambda: values.setdefault(key, 1)):
        with pytest.raises(TypeError, match="subclass"):
            change()
    values["a"] = 1
    # As in any dict an equal key finds it.
    assert values[key] == 1 and key in values and values.get(key) == 1 and values.pop(key) == 1
    values[np.str_("a")] = 2
    assert list(values) == ["a"]


def test_types_of_ml_dtypes_come_back(pool: indelible.Pool) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        dtype = np.dtype(getattr(ml_dtypes, name))
        array = pool.array(name, 5, dtype)
        array[:] = 1.5
        with pool.dict("run") as values:
            values[name] = np.full(3, 2.0, dtype)
        array.psync()
        del array
        assert pool.array(name).dtype == dtype and (pool.array(name).astype("f4") == 1.5).all()
        assert pool.dict("run")[name].dtype == dtype and (pool.dict("run")[name].astype("f4") == 2).all()


def test_a_value_that_contains_itself_is_refused(pool: indelible.Pool) -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(ValueError, match="nested"):
        pool.dict("run")["v"] = endless


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5), st.binary(max_size=5),
    st.complex_numbers(allow_nan=False), st.datetimes(), st.dates(), st.timedeltas(),
)  # fmt: skip
TREES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=3), inner, max_size=4),
        st.lists(inner, max_size=3).map(tuple),
    ),
    max_leaves=15,
)  # fmt: skip


@given(TREES)
def test_any_tree_comes_back(value: Any) -> None:
    assert _tree.decode(_tree.encode(value), "x") == value


@given(TREES, st.integers(0), st.integers(0, 255))
def test_any_byte_of_a_tree_may_be_wrong(value: Any, at: int, byte: int) -> None:
    wrong = bytearray(_tree.encode([value, np.arange(3), Path("x")]))
    wrong[at % len(wrong)] = byte
    for data in (bytes(wrong), bytes(wrong[: at % len(wrong)])):
        try:
            _tree.decode(data, "x")
        except (indelible.Damaged, indelible.Version):
            pass


def test_bytes_between_the_fields_of_a_record_stay_in_the_process(pool: indelible.Pool) -> None:
    inner = np.dtype([("x", "u1"), ("y", "<u4")], align=True)
    dtype = np.dtype([("a", "u1"), ("b", "<f8"), ("s", inner, (2,)), ("c", "<u2")], align=True)

    def dirty(*shape: int) -> np.ndarray[Any, Any]:
        value = np.full(int(np.prod(shape)) * dtype.itemsize, 0xA7, np.uint8).view(dtype).reshape(shape)
        value["a"], value["b"], value["c"], value["s"]["x"], value["s"]["y"] = 1, 2, 3, 4, 5
        return value

    with pool.dict("records") as values:
        values["array"] = dirty(100)
        values["every second"] = dirty(50)[::2]
        values["columns"] = np.asfortranarray(dirty(10, 7))
        values["deep"] = {"in": [dirty(20), dirty()]}
        assert np.array_equal(values["columns"]["s"]["y"], dirty(10, 7)["s"]["y"])
        assert values["every second"]["b"].sum() == 50 and values["deep"]["in"][1]["a"] == 1
    assert b"\xa7\xa7\xa7" not in Path(pool.path).read_bytes()
