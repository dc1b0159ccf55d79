"""Pointers from object to object: made, stored as numbers, followed, by ID and by name, across pools and processes."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import indelible
import numpy as np
import pytest
from conftest import MIB, python
from indelible import Far, Space

CITY = np.dtype([("name", "S16"), ("next", "u8")])


def city(name: str, following: int) -> np.ndarray:
    return np.array((name, following), CITY)


def line(space: Space, homes: list[str]) -> None:
    """A list of cities, each in the next object: the last first."""
    following, target = Far(0), homes[0]
    for name, home in reversed(list(zip(["Oslo", "Hamburg", "Paris", "Bergen"], [homes[0], homes[1], homes[2], homes[0]], strict=True))):
        here = space.far(home, target, following) if following else Far(0)
        following, target = space.create(home, city(name, here)), home
    space.set_root(homes[0], "start", following)


def walk(space: Space, home: str) -> list[str]:
    names, pointer = [], space.root(home, "start")
    while pointer:
        found = np.frombuffer(space.read(home, pointer, CITY.itemsize), CITY)[0]
        names.append(found["name"].decode())
        home, pointer = space.follow(home, pointer).object, Far(found["next"])
    return names


def objects(pool: indelible.Pool, *names: str) -> None:
    for name in names:
        pool.create(name, MIB, position_independent=True)


def test_a_pointer_is_a_number() -> None:
    pointer = Far(3 << 40 | 0x1234)
    assert (pointer.index, pointer.offset, repr(pointer)) == (3, 0x1234, "Far(3:0x1234)")
    assert np.array(pointer, "u8") == pointer == 3 << 40 | 0x1234 and not Far(0)


def test_a_list_goes_through_objects_of_two_pools(pool: indelible.Pool, tmp_path: Path) -> None:
    other = indelible.open(tmp_path / "other.pmo", 16 * MIB)
    objects(pool, "north", "west")
    objects(other, "middle")
    with Space() as space:
        homes = [space.attach(pool, "north"), space.attach(other, "middle"), space.attach(pool, "west")]
        assert space.objects == homes and repr(space) == "<indelible.Space, 3 objects>"
        line(space, homes)
    assert space.closed and repr(space) == "<indelible.Space, closed>"
    program = """
import sys, indelible
sys.path.insert(0, sys.argv[4])
from test_far import walk
with indelible.Space(*map(indelible.open, sys.argv[1:3])) as space:
    space.attach_read(sys.argv[3])
    print(*walk(space, sys.argv[3]))
    assert len(space.objects) == 3
"""
    command = python(program, pool.path, other.path, homes[0], Path(__file__).parent)
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "Oslo Hamburg Paris Bergen\n", "")
    # Elsewhere the pointers mean the same: an object goes to another pool, at other addresses.
    other.move_to("middle", pool)
    with Space(pool) as space:
        space.attach_read(homes[0])
        assert walk(space, homes[0]) == ["Oslo", "Hamburg", "Paris", "Bergen"]


def test_targets_are_stored_to_as_they_allow(pool: indelible.Pool) -> None:
    objects(pool, "a", "b")
    with Space(pool) as space:
        a, b = space.attach(pool, "a"), space.attach(pool, "b")
        there = space.create(b, b"hello")
        reads, stores = space.far(a, b, there), space.far(a, b, there, "rw")
        assert there.index == 0 and {reads.index, stores.index} == {1, 2} and reads.offset == there.offset
        assert space.far(b, b, there) == there and space.far(a, b, there) == reads
        assert space.read(a, reads, 5) == b"hello" and space.follow(a, stores) == (b, there)
        space.write(a, stores, b"jello")
        assert space.read(b, there, 5) == b"jello"
        with pytest.raises(indelible.ReadOnly):
            space.write(a, reads, b"x")
        space.psync(b)
        # Beyond the block.
        with pytest.raises(indelible.Error):
            space.write(b, there, bytes(MIB))
        space.free(a, stores)
        with pytest.raises(indelible.Error):
            space.write(b, there, b"x")


def test_names_are_looked_up_when_a_pointer_is_followed(pool: indelible.Pool) -> None:
    objects(pool, "a", "one", "two")
    with Space(pool) as space:
        a = space.attach(pool, "a")
        ids = []
        for name in ("one", "two"):
            ids.append(space.attach(pool, name))
            place = space.create(ids[-1], name.encode())
        pointer = space.far_by_name(a, "one", place)
        assert space.read(a, pointer, 3) == b"one" and space.follow(a, pointer).object == ids[0]
        latest = space.far_by_name(a, "t", place, resolver="latest")
        assert space.read(a, latest, 3) == b"two"
        missing = space.far_by_name(a, "none", place)
        with pytest.raises(indelible.Dangling, match="none"):
            space.read(a, missing, 1)
        # Another object gets the name: by default what was looked up counts.
        space.psync()
        for id in ids:
            space.remove(id)
        pool.rename("one", "zero")
        pool.rename("two", "one")
        space.resolve_again()
        assert space.read(a, pointer, 3) == b"two"


def test_pointers_that_lead_nowhere_are_errors(pool: indelible.Pool) -> None:
    objects(pool, "a", "b")
    space = Space()
    a, b = space.attach(pool, "a"), space.attach(pool, "b")
    there = space.far(a, b, space.create(b, b"x"))
    for pointer, size in ((0, 1), (5 << 40 | 64, 1), (MIB + 1, 1), (64, 2 * MIB), (there, 2 * MIB), (2**64 - 1, 1)):
        with pytest.raises(indelible.Dangling) as dangling:
            space.read(a, pointer, size)
        assert isinstance(dangling.value, LookupError)
    for wrong in ("a", "id:", "id:" + "g" * 32, "id:" + "0" * 31):
        with pytest.raises(ValueError, match="32 hexadecimal digits"):
            space.read(wrong, there, 1)
    with pytest.raises(indelible.Error) as absent:
        space.read("id:" + "0" * 32, there, 1)
    assert absent.value.kind == "NotAttached"
    with pytest.raises(OverflowError):
        space.read(a, -1, 1)
    with pytest.raises(ValueError, match="rights is one of"):
        space.far(a, b, there, "w")  # type: ignore[arg-type]
    with pytest.raises(indelible.Error):
        space.far(a, b, there)
    with pytest.raises(TypeError):
        space.create(a, "text")  # type: ignore[arg-type]
    with pytest.raises(indelible.Error) as none:
        space.root(a, "none")
    assert none.value.kind == "RootMissing"
    with pytest.raises(indelible.Held):
        space.attach(pool, "a")
    pool.create("plain", MIB)
    plain = space.attach(pool, "plain")
    with pytest.raises(indelible.Error) as unsuitable:
        space.create(plain, b"x")
    assert unsuitable.value.kind == "Unsuitable"
    # Of no pool of the space, once it is gone from there.
    space.psync()
    space.remove(b)
    with pytest.raises(indelible.Dangling, match="none of the 0 pools"):
        space.read(a, there, 1)
    space.add(pool)
    assert space.read(a, there, 1) == b"x"
    with pytest.raises(indelible.ReadOnly):
        space.create(b, b"y")
    space.upgrade(b)
    space.create(b, b"y")
    space.close()
    space.close()
    uses: list[Callable[[], object]] = [lambda: space.read(a, there, 1), space.psync, lambda: space.attach(pool, "a"), lambda: space.objects]
    for use in uses:
        with pytest.raises(indelible.Closed, match="the space: it is closed"):
            use()


def test_pointers_are_followed_for_what_contexts_allow(pool: indelible.Pool) -> None:
    objects(pool, "a", "b", "c")
    with pool.context("staff", 4) as staff:
        staff.allow("b", "r")
    with Space(pool) as space:
        a, b, c = (space.attach(pool, name) for name in ("a", "b", "c"))
        to_b, to_c = (space.far(a, target, space.create(target, b"x"), "rw") for target in (b, c))
        space.set_contexts(pool, ["staff"])
        assert space.read(a, to_b, 1) == b"x"
        with pytest.raises(indelible.Denied):
            space.write(a, to_b, b"y")
        with pytest.raises(indelible.Denied, match="staff"):
            space.read(a, to_c, 1)
        space.set_contexts(pool, [])
        space.write(a, to_c, b"y")
        with pytest.raises(TypeError, match="several names"):
            space.set_contexts(pool, "staff")


def test_an_exception_psyncs_nothing_and_a_fork_has_nothing(pool: indelible.Pool) -> None:
    objects(pool, "a")
    with pytest.raises(KeyError), Space() as space:
        a = space.attach(pool, "a")
        space.set_root(a, "start", space.create(a, b"first"))
        space.psync()
        space.set_root(a, "start", space.create(a, b"second"))
        raise KeyError
    with Space(pool) as space:
        space.attach_read(a)
        assert space.read(a, space.root(a, "start"), 5) == b"first"
    program = """
import os, sys, warnings, indelible
warnings.simplefilter("ignore", DeprecationWarning)
pool = indelible.open(sys.argv[1])
space = indelible.Space(pool)
a = space.attach(pool, "a")
if os.fork() == 0:
    for use in (lambda: space.root(a, "start"), space.psync, space.close, lambda: space.objects):
        try:
            use()
        except indelible.Forked:
            continue
        os._exit(1)
    repr(space)
    del space
    os._exit(0)
assert os.wait()[1] == 0
space.psync()
"""
    done = subprocess.run(python(program, pool.path), capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
