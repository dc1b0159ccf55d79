"""Far pointers: structs in several objects and pools that lead to each other."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import indelible
import numpy as np
import pytest
from conftest import python
from indelible import Far, Reference, Space, Struct

CITY = Struct("City", {"name": "S16", "next": Far("City"), "population": "u8"})
NAMES = ["Oslo", "Hamburg", "Paris", "Lyon", "Basel"]


def pools(folder: Path) -> list[indelible.Pool]:
    return [indelible.open(folder / name, size=16 << 20) for name in ("one.pmo", "two.pmo")]


def tool(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "indelible", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def made(folder: Path) -> list[indelible.Pool]:
    """A list that goes from pool to pool."""
    both = pools(folder)
    with Space(both) as space:
        ids = []
        for number, pool in enumerate(both):
            pool.create(f"country {number}", 1 << 20, position_independent=True)
            ids.append(space.attach(pool, f"country {number}"))
        assert [pool.stat(f"country {number}").id for number, pool in enumerate(both)] == ids == space.objects()
        after: Reference | None = None
        for number, name in reversed(list(enumerate(NAMES))):
            home = ids[number % 2]
            city = (
                space.root(home, "start", CITY, {"name": name.encode()})
                if number == 0
                else space.create(home, CITY, {"name": name.encode(), "population": number})
            )
            city.point("next", after)
            assert city.follow("next") == after
            after = city
    return both


def walk(space: Space, start: bytes) -> list[str]:
    names, at = [], space.root(start, "start", CITY)
    while True:
        names.append(at.get()["name"].item().decode())
        following = at.follow("next")
        if following is None:
            return names
        at = following


def test_a_list_goes_through_objects_of_two_pools(tmp_path: Path) -> None:
    both = made(tmp_path)
    with Space(both) as space:
        start = space.attach_read(both[0], "country 0")
        assert walk(space, start) == NAMES
        assert len(space.objects()) == 2, "the other one was attached on the way"
        value = space.root(start, "start", CITY).get()
        with pytest.raises(ValueError, match="read-only"):
            value["population"] = 1
        with pytest.raises(indelible.ReadOnly):
            space.root(start, "start", CITY).set(population=1)
    # By its description alone, as the tool sees it.
    path, other = (os.fspath(pool.path) for pool in both)
    found = tool("check", path, "--references", "--with", other)
    assert found.returncode == 0, found.stdout + found.stderr
    alone = tool("check", path, "--references")
    assert alone.returncode == 3 and "is in none of the 1 pools" in alone.stdout


def test_structs_change_and_pointers_lead_elsewhere(tmp_path: Path) -> None:
    both = made(tmp_path)
    with Space(both) as space:
        one, two = space.attach(both[0], "country 0"), space.attach(both[1], "country 1")
        start = space.root(one, "start", CITY)
        new = space.create(two, CITY, {"name": b"Bergen"})
        after = start.follow("next")
        new.point("next", after)
        start.point("next", new, write=True)
        start.set(population=700_000)
        assert walk(space, one) == ["Oslo", "Bergen", *NAMES[1:]]
        assert start.get()["population"] == 700_000 and start != new and hash(start) != hash(new)
        with pytest.raises(ValueError):
            start.set(name=b"much too long for sixteen")
        with pytest.raises(ValueError, match="no field"):
            start.set(nothing=1)
        with pytest.raises(ValueError, match="no far pointer 'name'"):
            start.follow("name")
        with pytest.raises(ValueError, match="another space"):
            start.point("next", Reference(Space(), one, 4096, CITY))
        assert after is not None
        last = after
        while (following := last.follow("next")) is not None:
            before, last = last, following
        before.point("next", None)
        last.free()
        assert walk(space, one) == ["Oslo", "Bergen", *NAMES[1:-1]]
    with Space(both) as space:
        assert walk(space, space.attach_read(both[0], "country 0")) == ["Oslo", "Bergen", *NAMES[1:-1]]


def test_what_was_not_psynced_is_forgotten(tmp_path: Path) -> None:
    both = made(tmp_path)
    with pytest.raises(RuntimeError, match="stop"), Space(both) as space:
        space.root(space.attach(both[0], "country 0"), "start", CITY).set(population=5)
        raise RuntimeError("stop")
    space = Space(both)
    start = space.attach(both[0], "country 0")
    assert space.root(start, "start", CITY).get()["population"] == 0
    space.root(start, "start", CITY).set(population=6)
    assert space.remove(start) and not space.remove(start)
    start = space.attach(both[0], "country 0")
    assert space.root(start, "start", CITY).get()["population"] == 0
    space.close()
    with pytest.raises(indelible.Closed):
        space.objects()


def test_pointers_that_lead_nowhere_are_errors(tmp_path: Path) -> None:
    both = made(tmp_path)
    with Space() as space:
        space.add(both[0])
        start = space.attach_read(both[0], "country 0")
        root = space.root(start, "start", CITY)
        with pytest.raises(indelible.Dangling, match="none of the 1 pools") as caught:
            root.follow("next")
        assert isinstance(caught.value, LookupError) and caught.value.object == "country 0"
        space.add(both[1])
        assert root.follow("next") is not None
        for place in (0, 77 << 40 | 8, (1 << 20) - 4):
            with pytest.raises(indelible.Dangling):
                Reference(space, start, place, CITY).get()
        with pytest.raises(indelible.Error, match="not in the space"):
            Reference(space, bytes(16), 4096, CITY).get()
        with pytest.raises(ValueError, match="16 bytes"):
            Reference(space, b"short", 4096, CITY).get()
        with pytest.raises(indelible.RootType, match="population"):
            space.root(start, "start", Struct("City", {"name": "S16", "next": Far("City"), "population": "i8"}))
        with pytest.raises(indelible.RootType):
            space.root(start, "start", Struct("City", {"name": "S16", "next": "u8", "population": "u8"}))
        with pytest.raises(indelible.Error) as missing:
            space.root(start, "nothing", CITY)
        assert missing.value.kind == "RootMissing"


def test_a_child_has_no_space(tmp_path: Path) -> None:
    both = made(tmp_path)
    program = f"""
import os, indelible
from indelible import Space
pool = indelible.open({os.fspath(both[0].path)!r})
space = Space([pool])
space.attach(pool, "country 0")
if os.fork() == 0:
    try:
        space.objects()
    except indelible.Forked:
        os._exit(7)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 7
assert len(space.objects()) == 1
"""
    for pool in both:
        pool.close()
    done = subprocess.run(python(program), capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_far_pointers_are_fields_of_records(tmp_path: Path) -> None:
    point = Struct("Point", {"x": "f8", "y": "f8"})
    line = Struct("Line", {"ends": (Far(point), 2), "other": Far(), "more": Far("Line")})
    assert line.dtype.itemsize == 32 and repr(Far(point)) == "<indelible.Far to 'Point'>"
    with pytest.raises(ValueError, match="no name"):
        Far("two words")
    with indelible.open(tmp_path / "p.pmo", size=16 << 20) as pool, pool.dict("d") as run:
        record = run.record("line", line)
        record["other"] = 4096
        assert np.all(record["ends"] == 0)
        del record
        run.psync()
        with pytest.raises(indelible.RootType):
            run.record("line", Struct("Line", {"ends": ("u8", 2), "other": "u8", "more": "u8"}))
    pool = indelible.open(tmp_path / "p.pmo")
    layout = tool("types", pool.path, "d").stdout
    assert "far Point" in layout and "far Line" in layout, layout


def test_the_same_content_is_one_object(tmp_path: Path) -> None:
    both = pools(tmp_path)
    content = bytes(range(256)) * 40
    made = [pool.create_by_content("data", content) for pool in both]
    assert made == 2 * [hashlib.sha256(content).digest()[:16]]
    assert both[0].create_by_content("again", content) == made[0] and "again" not in list(both[0])
    stat = both[0].stat("data")
    assert stat.by_content and stat.read_only and stat.position_independent and stat.id == made[0]
    with pytest.raises(indelible.ObjectReadOnly):
        both[0].attach("data")
    with pytest.raises(indelible.Exists):
        both[0].create_by_content("data", b"other bytes")
    with both[0].attach("id:" + made[0].hex(), "r") as found:
        assert bytes(found) == content
