"""Addresses that mean nothing in the next run are found, with the place where they lie."""

from __future__ import annotations

import ctypes
import mmap
import pickle

import indelible
import numpy as np
import pytest

# Kept: addresses of it are addresses of this process's memory.
LOCAL = ctypes.create_string_buffer(1 << 20)
ADDRESS = ctypes.addressof(LOCAL)


def places(value: object) -> list[str]:
    return [found.place for found in indelible.audit(value)]


def test_addresses_in_arrays_are_found_with_element_and_field(pool: indelible.Pool) -> None:
    plain = pool.array("plain", (10, 20), "i8")
    plain[:] = np.arange(200).reshape(10, 20)
    assert indelible.audit(plain) == []
    plain[3, 4] = ADDRESS
    (found,) = indelible.audit(plain)
    assert (found.target, found.place) == (ADDRESS, "plain[3, 4]")
    assert found.offset == 4096 + 8 * (3 * 20 + 4) and found.into.startswith("memory of the process")
    assert str(found) == f"plain[3, 4] at byte {found.offset} leads into {found.into}"
    assert pickle.loads(pickle.dumps(found)) == found
    # By whatever leads to the object.
    assert places(plain[:2]) == places(memoryview(plain)) == places(indelible._array.owner(plain)) == ["plain[3, 4]"]
    plain.revert()

    order = pool.array("order", (10, 20), "i8", order="F")
    order[3, 4] = ADDRESS
    assert places(order) == ["order[3, 4]"]

    inner = np.dtype([("count", "u4"), ("next", "u8", (2, 3))], align=True)
    node = np.dtype([("id", "u8"), ("inner", inner)], align=True)
    nodes = pool.array("nodes", 5, node)
    nodes[2]["inner"]["next"][1, 2] = id(None)
    nodes[4]["id"] = ADDRESS
    (first, second) = indelible.audit(nodes)
    assert (first.place, second.place) == ("nodes[2]['inner']['next'][1, 2]", "nodes[4]['id']")
    # None is a static object of the interpreter.
    assert first.into.startswith(("the program (", "a library ("))
    # Single numbers have no index.
    alone = pool.array("alone", (), "u8")
    alone[()] = ADDRESS
    assert places(alone) == ["alone"]


def test_addresses_of_other_objects_are_found_and_those_of_its_own_are_not(pool: indelible.Pool) -> None:
    one, other = pool.array("one", 10, "u8"), pool.array("other", 10, "u8")
    one[0] = one.ctypes.data
    assert indelible.audit(one) == []
    one[1] = other.ctypes.data
    (found,) = indelible.audit(one)
    assert (found.place, found.into) == ("one[1]", 'object "other"')


def test_addresses_in_a_dict_are_found_with_their_keys(pool: indelible.Pool) -> None:
    run = pool.dict("run")
    for n in range(2000):
        run[f"key {n}"] = [None, n, float(n), str(n) * 9, bytes(n % 70), (n, n), np.full(3, n)][n % 7]
        if n % 3 == 0:
            del run[f"key {n}"]
    assert indelible.audit(run) == []
    word = ADDRESS.to_bytes(8, "little")
    run["number"] = ADDRESS
    run["bytes"] = bytes(24) + word
    run["array"] = np.array([(1, ADDRESS)], [("a", "u8"), ("p", "u8")])
    found = {each.place: each for each in indelible.audit(run)}
    assert {"run['number']", "run['bytes']", "run['array'][0]['p']"} <= found.keys()
    assert all(each.target == ADDRESS for each in found.values())
    for key in ["number", "bytes", "array"]:
        del run[key]
    run.record("settings", indelible.Struct("Settings", {"rate": "f8", "at": "u8"}))["at"] = ADDRESS
    assert [place for place in places(run) if "settings" in place] == ["settings.at (u64)"]


def test_letters_are_no_addresses(pool: indelible.Pool) -> None:
    """Text may lead into the memory of a program at a fixed place: that is an accident of one run."""
    page = mmap.PAGESIZE
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + 3 * [ctypes.c_int] + [ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    fixed_noreplace = 0x100000
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | fixed_noreplace
    where = int.from_bytes(b"111111", "little") // page * page
    assert libc.mmap(where, page, mmap.PROT_READ, flags, -1, 0) == where
    try:
        run = pool.dict("run")
        run["text"], run["list"] = "111111\0\0" * 8, ["111111\0\0" * 8 + "1" * n for n in range(8)]
        assert indelible.audit(run) == []
        run["bytes"] = b"111111\0\0" * 8
        assert places(run) == 8 * ["run['bytes']"]
    finally:
        libc.munmap(where, page)


def test_memory_of_a_dict_that_no_value_has_is_not_looked_at(pool: indelible.Pool) -> None:
    word, marker = ADDRESS.to_bytes(8, "little"), 0x1122334455667788
    with pool.dict("run") as run:
        for n in range(20):
            run[f"key {n}"] = n
        run["key 7"] = marker
        run["bytes"] = bytes(3)
        run["array"] = np.zeros(1, "u8")
    with pool.attach("run") as raw:
        memory = memoryview(raw)
        at = bytes(memory).index(marker.to_bytes(8, "little"))
        memory[at + 8 : at + 16] = word  # not defined for an int
        last = at + 64 * (21 - 7)
        memory[last + 64 - 40 : last + 128 - 40] = word * 8  # room for another entry
        del memory
    run = pool.dict("run")
    assert dict(run) == {f"key {n}": n for n in range(20)} | {"key 7": marker, "bytes": bytes(3), "array": np.zeros(1, "u8")}
    assert indelible.audit(run) == []
    run["key 7"] = ADDRESS
    assert places(run) == ["run['key 7']"]
    # Numbers of the index that look like addresses are none.
    run.update({f"many {n}": None for n in range(40_000)})
    assert places(run) == ["run['key 7']"]


def test_bytes_that_are_neither(pool: indelible.Pool) -> None:
    pool.create("raw", 8192)
    with pool.attach("raw") as raw:
        memory = memoryview(raw)
        memory[4096:4104] = ADDRESS.to_bytes(8, "little")
        memory[5001:5009] = ADDRESS.to_bytes(8, "little")
        # At an odd place it is not seen.
        (found,) = indelible.audit(memory)
        assert found.offset == 4096 and found.place == "the object of 8192 bytes"
        del memory


def test_only_objects_attached_to_store_are_audited(pool: indelible.Pool) -> None:
    for value in (np.zeros(3), 5, None, "text"):
        with pytest.raises(indelible.Error, match="does not lie in the memory of an attached object"):
            indelible.audit(value)
    w = pool.array("w", 10)
    w.psync()
    with pytest.raises(indelible.ReadOnly, match='cannot audit object "w": it is attached for reading'):
        del w
        indelible.audit(pool.array("w", mode="r"))
    run = pool.dict("run")
    run["w"] = np.zeros(3)
    with pytest.raises(indelible.Error, match="use what it was taken from"):
        indelible.audit(run["w"])
    run.close()
    with pytest.raises(indelible.Closed):
        indelible.audit(run)
