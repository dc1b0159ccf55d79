"""Records whose struct has changed since they were made: refused by field, extended, converted or reset, and nothing in between."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import indelible
import numpy as np
import pytest
from conftest import MIB, Open
from indelible import Field, Struct
from test_record import tool

Value = np.ndarray[Any, Any]

FIRST = {"a": "u4", "b": "f4", "c": ("i2", 3)}
VALUE = (7, 1.5, [1, -2, 3])
# Each kind of change: the fields afterwards, and how the error for it ends.
CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "append": ({**FIRST, "d": "u8"}, "S.d is there only"),
    "remove": ({"a": "u4", "b": "f4"}, "S.c is here only"),
    "reorder": ({"b": "f4", "a": "u4", "c": ("i2", 3)}, "S.a here, S.b there"),
    "rename": ({"a": "u4", "bee": "f4", "c": ("i2", 3)}, "S.b here, S.bee there"),
    "widen": ({**FIRST, "a": "u8"}, "S.a: u32 here, u64 there"),
    "shrink": ({**FIRST, "a": "u1"}, "S.a: u32 here, u8 there"),
    "retype": ({**FIRST, "b": "i4"}, "S.b: f32 here, i32 there"),
    "longer": ({**FIRST, "c": ("i2", 4)}, "S.c: [i16; 3] here, [i16; 4] there"),
    "nest": ({**FIRST, "b": Struct("Inner", {"b": "f4"})}, "S.b: f32 here, Inner there"),
}


def made(pool: indelible.Pool, struct: Struct | None = None, value: Any = VALUE) -> Struct:
    """A record `s`, psynced; returns its struct."""
    struct = struct or Struct("S", FIRST)
    with pool.dict("d") as d:
        d.record("s", struct)[()] = tuple(value)
    return struct


def values(record: Value) -> Any:
    """The fields as values of Python; those of arrays are lists."""
    return tuple(record[field].tolist() for field in record.dtype.names or ())


def stored(d: indelible.Dict, struct: Struct) -> Any:
    return values(d.record("s", struct))


@pytest.mark.parametrize("kind", CHANGES)
def test_each_change_is_refused_by_field_unless_a_model_is_stated(pool: indelible.Pool, kind: str) -> None:
    fields, difference = CHANGES[kind]
    one, two = made(pool), Struct("S", fields)
    told: list[str] = []

    def convert(old: Value) -> dict[str, Any]:
        # Numbers are not cut in silence: the program says how.
        b = {"nest": (old["b"],), "retype": int(old["b"])}.get(kind, old["b"])
        given = {"a": old["a"], "b": b, "bee": b, "c": [*old["c"], 4] if kind == "longer" else old["c"]}
        return {field: given[field] for field in fields if field in given}

    with pool.dict("d") as d:
        before = stored(d, one)
        with pytest.raises(indelible.Error) as found:
            d.record("s", two)
        assert found.value.kind == "RootType" and difference in str(found.value)
        assert stored(d, one) == before
        converted = d.record("s", two, before=[(one, convert)])
        expected: dict[str, Any] = {"a": 7, "b": 1.5, "bee": 1.5, "c": VALUE[2], "d": 0}
        expected |= {"retype": {"b": 1}, "longer": {"c": [*VALUE[2], 4]}, "nest": {"b": (1.5,)}}.get(kind, {})
        assert values(converted) == tuple(expected[field] for field in fields)
        del converted
        assert stored(d, two) == tuple(expected[field] for field in fields)
        assert values(d.record("s", one, reset=told.append)) == (0, 0, [0, 0, 0])
        assert len(told) == 1 and "is of another type" in told[0]
    with pool.dict("d") as d:
        assert stored(d, one) == (0, 0, [0, 0, 0]) and d._check() == []


def test_appended_fields_without_defaults_are_no_extension(pool: indelible.Pool) -> None:
    one = made(pool)
    two = Struct("S", {**FIRST, "d": "u8", "e": Field("u8", 1)})
    with pool.dict("d") as d:
        with pytest.raises(indelible.Error, match=r"S\.d is there only"):
            d.record("s", two)
        assert stored(d, one) == (7, 1.5, [1, -2, 3])


def test_a_version_before_the_converters_gets_its_defaults_first(pool: indelible.Pool) -> None:
    made(pool, Struct("S", {"a": "u4"}), [3])
    two = Struct("S", {"a": "u4", "b": Field("u4", 10)})
    three = Struct("S", {"sum": "u8"})
    with pool.dict("d") as d:
        assert d.record("s", three, before=[(two, lambda old: {"sum": old["a"] + old["b"]})])["sum"] == 13


def test_what_lies_between_fields_is_no_obstacle(pool: indelible.Pool) -> None:
    one = Struct("S", {"a": "u1", "b": "u8"})
    with pool.dict("d") as d:
        memory = memoryview(d._record("s", *_described(one), bytes(16)))
        memory[:] = bytes([9] * 16)
        memory.release()
    two = Struct("S", {"a": "u1", "b": "u8", "c": Field("u8", 5)})
    with pool.dict("d") as d:
        assert stored(d, two) == (9, 0x0909090909090909, 5)


def _described(struct: Struct) -> tuple[str, str]:
    from indelible._record import _Type

    return _Type(struct).described


def test_a_chain_with_a_gap_is_an_error(pool: indelible.Pool) -> None:
    one, two, three = (Struct("S", {field: "u4"}) for field in ("a", "b", "c"))
    made(pool, one, [3])
    with pool.dict("d") as d:
        with pytest.raises(indelible.Error, match=r"S\.a here, S\.c there"):
            d.record("s", three, before=[(two, lambda old: {"c": old["b"]})])
        assert stored(d, one) == (3,)


def test_a_version_that_is_there_twice_is_an_error(pool: indelible.Pool) -> None:
    one = made(pool)
    again, two = Struct("S", FIRST), Struct("S", {"a": "u8"})
    with pool.dict("d") as d:
        for chain in [[(one, dict), (again, dict)], [(one, dict), (two, dict)]]:
            with pytest.raises(ValueError, match="'S' is among the versions twice"):
                d.record("s", two, before=chain)
        assert stored(d, one) == (7, 1.5, [1, -2, 3])


@pytest.mark.parametrize(
    ("given", "error", "what"),
    [
        # numpy 1 warns before the value is compared.
        ({"a": 1 << 40}, (ValueError, OverflowError, DeprecationWarning), ""),
        ({"a": np.uint64(1 << 40)}, ValueError, "'a', of type uint32, cannot have the value"),
        ({"a": 1.5}, ValueError, "'a', of type uint32, cannot have the value"),
        ({"n": b"long"}, ValueError, "'n', of type |S3, cannot have the value b'long'"),
        ({"b": 2}, ValueError, "'b', of type bool, cannot have the value 2"),
        ({"z": 2}, ValueError, "no field of name 'z'"),
        (None, TypeError, "a record of 'S' is made of a mapping"),
        (7, TypeError, "a record of 'S' is made of a mapping"),
        (np.zeros(3), TypeError, "a record of 'S' is made of a mapping"),
    ],
)
def test_values_that_do_not_fit_are_refused(pool: indelible.Pool, given: Any, error: Any, what: str) -> None:
    one, two = made(pool), Struct("S", {"a": "u4", "n": "S3", "b": "?"})
    with pool.dict("d") as d:
        before = d._blocks()
        with pytest.raises(error) as found:
            d.record("s", two, before=[(one, lambda _: given)])
        assert what in str(found.value)
        assert stored(d, one) == (7, 1.5, [1, -2, 3]) and d._blocks() == before


def test_a_converter_that_comes_back_to_its_record_changes_nothing(pool: indelible.Pool) -> None:
    one, two = made(pool), Struct("S", {"a": "u8"})
    with pool.dict("d") as d:

        def loops(old: Value) -> Value:
            return d.record("s", two, before=[(one, loops)])

        with pytest.raises(RecursionError):
            d.record("s", two, before=[(one, loops)])
        assert stored(d, one) == (7, 1.5, [1, -2, 3])
        calls = []

        def stores(old: Value) -> dict[str, Any]:
            calls.append(1)
            record = d.record("s", one)
            record["a"] = record["a"] + 1
            return {"a": old["a"]}

        with pytest.raises(indelible.Error, match="stored to during each of 10 conversions") as found:
            d.record("s", two, before=[(one, stores)])
        assert found.value.kind == "Busy" and len(calls) == 10
        assert stored(d, one) == (17, 1.5, [1, -2, 3])


def test_a_converter_that_runs_out_of_memory_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "small.pmo"
    with indelible.open(path, 8 * MIB) as pool:
        one, large = made(pool), Struct("S", {"all": ("u1", 16 * MIB)})
        two = Struct("S", {"a": "u8"})
        with pool.dict("d") as d:
            before = d._blocks()[0]

            def allocates(old: Value) -> dict[str, Any]:
                d["beside"] = np.zeros(16 * MIB, "u1")
                return {"a": old["a"]}

            with pytest.raises(indelible.NoRoom):
                d.record("s", large, before=[(one, lambda _: {})])
            with pytest.raises(indelible.NoRoom):
                d.record("s", large, reset=lambda _: None)
            assert d._blocks()[0] == before
            with pytest.raises(indelible.NoRoom):
                d.record("s", two, before=[(one, allocates)])
            assert stored(d, one) == (7, 1.5, [1, -2, 3]) and "beside" not in d
            assert d.record("s", two, before=[(one, lambda old: {"a": old["a"]})])["a"] == 7
    done = tool("heap", "leaks", path, "d")
    assert done.returncode == 0, done.stdout


def test_a_record_in_use_is_not_converted(pool: indelible.Pool) -> None:
    one, two = made(pool), Struct("S", {"a": "u8"})
    with pool.dict("d") as d:
        record = d.record("s", one)
        for model in [{"before": [(one, lambda old: {"a": old["a"]})]}, {"reset": lambda _: None}]:
            with pytest.raises(BufferError, match="in use"):
                d.record("s", two, **model)
        assert record["a"] == 7
        del record
        assert d.record("s", two, before=[(one, lambda old: {"a": old["a"]})])["a"] == 7


def dies(work: Callable[[], None]) -> None:
    """Runs `work` in a fork, which has to kill itself."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("model", ["convert", "extend", "reset"])
@pytest.mark.parametrize("when", ["within", "behind", "psynced"])
def test_killed_at_any_point_the_record_is_old_or_new(open_pool: Open, path: Path, model: str, when: str) -> None:
    if (model, when) == ("extend", "within"):
        # No code of the program runs there.
        return
    with open_pool(16 * MIB) as pool:
        one = made(pool)
    two = Struct("S", {**FIRST, "d": Field("u8", 5)} if model == "extend" else {"d": Field("u8", 5)})

    def convert(old: Value) -> dict[str, Any]:
        if when == "within":
            kill()
        return {"d": old["a"]}

    def work() -> None:
        with open_pool(None) as pool, pool.dict("d") as d:
            if model == "reset":
                d.record("s", two, reset=lambda _: kill() if when == "within" else None)
            else:
                d.record("s", two, before=[(one, convert)] if model == "convert" else ())
            if when == "psynced":
                d.psync()
            kill()

    dies(work)
    new = {"convert": (7,), "extend": (7, 1.5, [1, -2, 3], 5), "reset": (5,)}[model]
    with open_pool(None) as pool, pool.dict("d") as d:
        if when == "psynced":
            assert stored(d, two) == new
        else:
            assert stored(d, one) == (7, 1.5, [1, -2, 3])
        assert d._check() == []
    done = tool("heap", "leaks", path, "d")
    assert done.returncode == 0, done.stdout
