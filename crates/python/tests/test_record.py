"""Records: roots that other languages find by name and type."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import indelible
import numpy as np
import pytest
from indelible import Field, Struct
from indelible._record import _Type

MIB = 1 << 20
POINT = Struct("Point", {"x": "f8", "y": "f4"})
PLACE = Struct(
    "Place", {"id": "u4", "open": "?", "name": "S5", "spot": POINT, "corners": (POINT, (2, 3)), "raw": ("u1", 3)}
)
# crates/indelible/tests/records.rs has the same text.
PLACE_WORDS = (
    "Place:136:8 { id@0:4 u32 open@4:1 bool name@5:5 [5] u8 spot@16:16 Point:16:8 { x@0:8 f64 y@8:4 f32 } "
    "corners@32:96 [2] [3] =1 raw@128:3 [3] u8 } "
)


def tool(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "indelible", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_structs_have_the_words_of_other_languages() -> None:
    assert _Type(PLACE).described == ("Place", PLACE_WORDS)
    point = Struct("struct point", {"x": "i4", "y": ("f8", (2, 3)), "name": "S16"})
    place = Struct("struct place", {"spot": point, "n": "u1", "open": "?"})
    assert _Type(place).described == (
        "struct place",
        "place:80:8 { spot@0:72 point:72:8 { x@0:4 int32_t~ i32 y@8:48 [6] double~ f64 name@56:16 [16] char~ i8 } "
        "n@72:1 uint8_t~ u8 open@73:1 bool } ",
    )


@pytest.mark.parametrize("dtype", [[("x", "f8")], ">i4", "c16", "O", "U2", "f2", "M8[s]", "S0", "V3"])
def test_types_that_no_record_can_have_are_refused(pool: indelible.Pool, dtype: Any) -> None:
    with pool.dict("d") as d:
        with pytest.raises(TypeError, match="field 'x' of a record cannot be of type"):
            d.record("r", Struct("Any", {"x": dtype}))
        assert d._check() == []


def test_names_that_no_struct_can_have_are_refused(pool: indelible.Pool) -> None:
    for name in ["", "a b", "struct  a", "1st", "a:1"]:
        with pytest.raises(ValueError, match="no name of a struct"):
            Struct(name, {"x": "f8"})
    for name in ["a b", "a@0", "", "}"]:
        with pytest.raises(ValueError, match="no name of a field"):
            Struct("A", {name: "f8"})
    with pytest.raises(ValueError, match="could not convert"):
        Struct("A", {"x": Field("f8", "no number")})
    with pool.dict("d") as d, pytest.raises(indelible.Error, match="cannot be a record"):
        d._record("r", "PVec<u64>", "PVec u64 ", bytes(24))


def test_a_record_is_there_again(pool: indelible.Pool) -> None:
    with pool.dict("d") as d:
        d["key"] = np.arange(5)
        home = d.record("home", PLACE)
        assert home.shape == () and not home["spot"]["x"]
        home["spot"]["x"], home["id"], home["name"] = 1.5, 7, b"abc"
        assert d.record("home", PLACE)["id"] == 7 and "home" not in d and len(d) == 1
        assert d.views > 0
        del home
    with pool.dict("d", mode="r") as d:
        home = d.record("home", PLACE)
        assert (home["spot"]["x"], home["id"], home["name"]) == (1.5, 7, b"abc")
        with pytest.raises(ValueError, match="read-only"):
            home["id"] = 8
        with pytest.raises(indelible.Error) as missing:
            d.record("none", PLACE)
        assert missing.value.kind == "RootMissing"
        del home
    d = pool.dict("d")
    d.record("home", PLACE)["id"] = 9
    d.record("lost", POINT)
    # More than the object has room for.
    for number in range(8):
        d.record(f"r{number}", Struct("Large", {"all": ("u1", 100_000)}))
    assert d.record("home", PLACE)["id"] == 9
    with pytest.warns(ResourceWarning):
        d.close()
    with pool.dict("d") as d:
        assert d.record("home", PLACE)["id"] == 7


def test_a_new_record_has_defaults(pool: indelible.Pool) -> None:
    inner = Struct("Inner", {"a": Field("i4", -1), "b": "i4"})
    outer = Struct(
        "Outer",
        {"one": inner, "two": (inner, 2), "three": Field(inner, (5, 6)), "list": Field(("u1", 3), [1, 2, 3]), "n": "f8"},
    )
    with pool.dict("d") as d:
        it = d.record("it", outer)
        assert it["one"].tolist() == (-1, 0) and it["three"].tolist() == (5, 6)
        assert it["two"].tolist() == [(-1, 0), (-1, 0)]
        assert it["list"].tolist() == [1, 2, 3] and it["n"] == 0
        it["one"]["a"] = 3
        assert d.record("it", outer)["one"]["a"] == 3
        del it


def test_another_struct_is_an_error_that_names_the_field(pool: indelible.Pool) -> None:
    with pool.dict("d") as d:
        d.record("origin", POINT)["x"] = 1
        for other, what in [
            (Struct("Point", {"x": "f8", "z": "f4"}), r"Point\.y here, Point\.z there"),
            (Struct("Point", {"x": "f8", "y": "u4"}), r"Point\.y: f32 here, u32 there"),
            (Struct("Point", {"x": "f8", "y": "f4", "z": "f4"}), r"Point\.z is there only"),
            (Struct("Point", {"x": "f8"}), r"Point\.y is here only"),
        ]:
            with pytest.raises(ValueError, match=what) as found:
                d.record("origin", other)
            assert isinstance(found.value, indelible.Error) and found.value.kind == "RootType"
        with pytest.raises(ValueError, match="PythonDict"):
            d.record("dict", POINT)
        assert d.record("origin", POINT)["x"] == 1


def test_a_record_gets_fields_that_were_added_with_defaults(pool: indelible.Pool) -> None:
    # The field `c` lies where the first version has padding.
    first = Struct("S", {"a": "u8", "b": "u4"})
    third = Struct("S", {"a": "u8", "b": "u4", "c": Field("u4", 7), "d": Field("f8", 0.5)})
    with pool.dict("d") as d:
        old = d.record("s", first)
        old["a"], old["b"] = 1, 2
        with pytest.raises(BufferError, match="in use"):
            d.record("s", third)
        assert d.record("s", first)["a"] == 1
        del old
    with pool.dict("d", mode="r") as d, pytest.raises(indelible.Error, match=r"S\.c is there only"):
        d.record("s", third)
    with pool.dict("d") as d:
        assert d.record("s", third).tolist() == (1, 2, 7, 0.5)
        d.record("s", third)["c"] = 8
        assert d.record("s", third).tolist() == (1, 2, 8, 0.5)
        with pytest.raises(indelible.Error, match=r"S\.c is here only"):
            d.record("s", first)
        assert len(d._blocks()[0]) == 2, "the dict and the record: the old one's block is free"


def test_converters_make_a_chain(pool: indelible.Pool) -> None:
    one = Struct("S", {"meters": "u4"})
    two = Struct("S", {"millimeters": "u8"})
    three = Struct("S", {"length": "f8", "unit": Field("S2", b"mm")})
    before = [
        (one, lambda old: {"millimeters": old["meters"] * 1000}),
        (two, lambda old: {"length": old["millimeters"]}),
    ]
    with pool.dict("d") as d:
        for name, struct, value in [("a", one, 3), ("b", two, 4000), ("c", three, 5)]:
            d.record(name, struct)[list(struct.fields)[0]] = value
        for name, value in [("a", 3000), ("b", 4000), ("c", 5)]:
            assert d.record(name, three, before=before)["length"] == value
            assert d.record(name, three)["length"] == value
        assert d.record("a", three)["unit"] == b"mm" and d.record("c", three)["unit"] == b"mm"


def test_a_converter_that_fails_changes_nothing(pool: indelible.Pool) -> None:
    one, two = Struct("S", {"a": "u4"}), Struct("S", {"b": "u8"})

    def fails(old: np.ndarray[Any, Any]) -> dict[str, int]:
        assert old["a"] == 3
        with pytest.raises(ValueError, match="read-only"):
            old["a"] = 4
        raise RuntimeError("no")

    with pool.dict("d") as d:
        d.record("s", one)["a"] = 3
        with pytest.raises(RuntimeError, match="no"):
            d.record("s", two, before=[(one, fails)])
        with pytest.raises(ValueError, match="no field of name 'none'"):
            d.record("s", two, before=[(one, lambda _: {"none": 1})])
        assert d.record("s", one)["a"] == 3
        # A store beside the conversion is not lost: it is made anew.
        seen = []

        def stores(old: np.ndarray[Any, Any]) -> dict[str, int]:
            seen.append(int(old["a"]))
            d.record("s", one)["a"] = 9
            return {"b": old["a"]}

        assert d.record("s", two, before=[(one, stores)])["b"] == 9 and seen == [3, 9]


def test_a_reset_is_asked_for_and_told(pool: indelible.Pool) -> None:
    one, two = Struct("S", {"a": "u4"}), Struct("S", {"b": Field("u8", 5)})
    told: list[str] = []
    with pool.dict("d") as d:
        d["key"] = 1
        d.record("s", one)["a"] = 3
        with pytest.raises(indelible.Error, match=r"S\.a here, S\.b there"):
            d.record("s", two)
        blocks = len(d._blocks()[0])
        assert d.record("s", two, reset=told.append)["b"] == 5 and len(told) == 1
        assert len(d._blocks()[0]) == blocks, "the old block is free"
        assert told[0].startswith("reset record 's' of object 'd'; freed 1 blocks, ") and "S.a here, S.b there" in told[0]
        assert d.record("s", two, reset=told.append)["b"] == 5 and len(told) == 1
        with pytest.raises(ValueError, match="the dict itself"):
            d.record("dict", two, reset=told.append)
        assert d["key"] == 1 and len(d._blocks()[0]) == blocks and len(told) == 1
    with pool.dict("d", mode="r") as d, pytest.raises(indelible.Error, match=r"S\.b here, S\.a there"):
        d.record("s", one, reset=told.append)


def test_records_of_an_object_whose_bytes_were_shown(pool: indelible.Pool) -> None:
    with pool.dict("d") as d:
        d["key"] = "value"
        d.record("s", POINT)["x"] = 3
    with pool.attach("d") as raw:
        # In a page that no block has.
        memoryview(raw)[-1:] = b"x"
    with pool.dict("d") as d:
        assert d.record("s", POINT)["x"] == 3 and d["key"] == "value"
        assert d.record("t", POINT)["x"] == 0


def test_tools_find_their_way_through_what_python_made(tmp_path: Path) -> None:
    path = tmp_path / "p.pmo"
    with indelible.open(path, 16 * MIB) as pool, pool.dict("d") as d:
        d.record("home", PLACE)["id"] = 7
        d["array"], d["text"], d["tree"] = np.arange(1000.0), "a text in a block of its own", [1, {"a": 2}]
    types = tool("types", path, "d")
    assert types.returncode == 0, types.stderr
    assert "Point" in types.stdout and "corners" in types.stdout
    roots = tool("heap", "roots", path, "d", "--types")
    assert roots.returncode == 0 and "home: Place, 136 bytes" in roots.stdout
    assert "    spot: Point at 16, size 16\n" in roots.stdout
    for what in ("check", "leaks", "audit"):
        done = tool("heap", what, path, "d", "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        report = json.loads(done.stdout)
        assert report["clean"] and report["undescribed"] == [] and report["referred"] == 0
    # A bool that is none.
    with indelible.open(path) as pool, pool.dict("d") as d:
        d.record("home", PLACE)["open"][...].view("u1")[...] = 7
    done = tool("heap", "audit", path, "d")
    assert done.returncode == 3 and "home.open: this is no value of its type" in done.stdout
