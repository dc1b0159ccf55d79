"""Pools and objects as a whole."""

from __future__ import annotations

from pathlib import Path

import indelible
import pytest
from conftest import MIB, Open


def test_a_pool_is_made_once_and_opened_then(tmp_path: Path) -> None:
    path = tmp_path / "p.pmo"
    with pytest.raises(indelible.NoPool) as caught:
        indelible.open(path)
    assert isinstance(caught.value, FileNotFoundError) and caught.value.kind == "NoPool"
    assert str(path) in str(caught.value)
    with indelible.open(path, 4 * MIB) as pool:
        pool.create("a", 5000)
        assert pool.info()["length"] == 4 * MIB and pool.info()["objects"] == 1
    with indelible.open(path) as pool:
        assert [stat.name for stat in pool.list()] == ["a"]
        assert "a" in pool and "b" not in pool
        assert pool.stat("a").size == 5000 and pool.stat("a").state == "D"
    assert pool.closed
    with pytest.raises(indelible.Closed):
        pool.list()


def test_objects_are_listed_renamed_removed(open_pool: Open) -> None:
    pool = open_pool()
    for name in ("one", "two", "three"):
        pool.create(name, 4096)
    assert [stat.name for stat in pool.list()] == ["one", "three", "two"]
    pool.rename("two", "zwei")
    pool.remove("one")
    assert [stat.name for stat in pool.list()] == ["three", "zwei"]
    with pytest.raises(indelible.Exists) as exists:
        pool.create("zwei", 1)
    assert isinstance(exists.value, ValueError)
    with pytest.raises(indelible.NotFound) as missing:
        pool.stat("two")
    assert isinstance(missing.value, KeyError)
    assert missing.value.object == "two" and missing.value.operation == "inspect"
    assert str(missing.value).startswith('cannot inspect object "two" of pool')


def test_bytes_are_as_the_last_psync_left_them(open_pool: Open) -> None:
    pool = open_pool()
    pool.create("bytes", 10_000)
    with pool.attach("bytes") as obj:
        assert len(obj) == 10_000 and not obj.readonly
        memory = memoryview(obj)
        memory[:5] = b"hello"
        obj.psync()
        memory[5:9] = b"lost"
        memory.release()
    with pool.attach("bytes", "r") as obj:
        assert bytes(obj)[:10] == b"hello\0\0\0\0\0"
        with memoryview(obj) as memory, pytest.raises(TypeError):
            memory[0] = 1
        obj.psync()  # ignored


def test_several_objects_are_one_step(open_pool: Open) -> None:
    pool = open_pool()
    for name in "abc":
        pool.create(name, 4096)
    objects = [pool.attach(name) for name in "abc"]
    for obj in objects:
        memoryview(obj)[:1] = b"x"
    indelible.psync(*objects, objects[0], memoryview(objects[1])[10:])
    for obj in objects:
        obj.close()
    assert [bytes(pool.attach(name, "r"))[:1] for name in "abc"] == [b"x"] * 3


def test_objects_of_different_pools_are_refused(tmp_path: Path) -> None:
    arrays = [indelible.open(tmp_path / name, 8 * MIB).array("w", 10) for name in ("a", "b")]
    with pytest.raises(indelible.Error):
        indelible.psync(*arrays)


def test_growth_keeps_views_and_address(open_pool: Open) -> None:
    pool = open_pool()
    pool.create("grows", 4096, reach=16 * MIB)
    pool.create("in the way", 4096)
    obj = pool.attach("grows")
    old, address = memoryview(obj), obj.address
    old[4095] = 7
    obj.grow(1 * MIB)  # has to move
    new = memoryview(obj)
    assert obj.address == address and len(old) == 4096 and len(new) == MIB
    old[0] = 1
    assert new[0] == 1 and new[4095] == 7 and new[4096] == 0
    with pytest.raises(indelible.Error) as caught:
        obj.grow(1)
    assert caught.value.kind == "BadSize"
    with pytest.raises(indelible.NoRoom):  # of addresses
        obj.grow(1 << 40)
    assert new[4095] == 7  # as it was
    obj.psync()


def test_what_is_held_or_locked_is_refused(open_pool: Open) -> None:
    pool = open_pool()
    pool.create("a", 4096, key=b"secret")
    with pytest.raises(indelible.WrongKey) as wrong:
        pool.attach("a")
    assert isinstance(wrong.value, PermissionError)
    with pool.attach("a", key=b"secret"), pytest.raises(indelible.Held) as held:
        pool.attach("a", "r", key=b"secret")
    assert isinstance(held.value, BlockingIOError) and "pmo ls" in str(held.value)
    with pool.attach("a", "r", key=b"secret"), pool.attach("a", "r", key=b"secret"):
        pass


def test_a_pool_for_reading(open_pool: Open) -> None:
    pool = open_pool()
    pool.array("w", 3)[:] = 5
    with open_pool(None, read_only=True) as reader:
        with pytest.raises(indelible.Error):
            reader.create("x", 4096)
        assert [stat.name for stat in reader.list()] == ["w"]


@pytest.mark.parametrize(
    "options",
    [{"tracking": "named"}, {"tracking": "nonsense"}, {"medium": "disk"}],
    ids=lambda options: str(options),
)
def test_words_that_are_none_are_refused(tmp_path: Path, options: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="is one of"):
        indelible.open(tmp_path / "p.pmo", 4 * MIB, **options)


def test_a_file_that_is_no_pool(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(b"x" * 4096)
    with pytest.raises(indelible.Error) as caught:
        indelible.open(path, 4 * MIB)
    assert caught.value.kind == "NotAPool"
    assert path.read_bytes() == b"x" * 4096


def test_a_full_pool_is_an_error_and_loses_nothing(tmp_path: Path) -> None:
    pool = indelible.open(tmp_path / "p.pmo", 4 * MIB)
    array = pool.array("w", 1000)
    array[:] = 3
    array.psync()
    with pytest.raises(indelible.NoRoom) as caught:
        pool.array("big", 1 << 20)
    assert isinstance(caught.value, MemoryError)
    with pytest.raises(indelible.NoRoom):
        array.grow(1 << 20)
    assert (array == 3).all()
    array.psync()
    values = pool.dict("run")
    values["a"] = 1
    with pytest.raises(indelible.NoRoom):
        values["b"] = bytes(8 * MIB)
    assert dict(values) == {"a": 1}
    values["c"] = 2
    values.psync()
    assert values._heap.check() == []
