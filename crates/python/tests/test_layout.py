"""Headers that no program of ours wrote, and that FORMAT.md says what the code does."""

from __future__ import annotations

import gzip
import re
import struct
import zlib
from pathlib import Path
from typing import Any

import indelible
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from indelible import _layout, _pytree, _tree

FORMAT = (Path(__file__).parent.parent / "FORMAT.md").read_text()


def sealed(header: bytes) -> bytes:
    """With a checksum that fits."""
    changed = bytearray(header)
    changed[20:24] = bytes(4)
    size = struct.unpack_from("<I", changed, 16)[0]
    changed[20:24] = struct.pack("<I", zlib.crc32(bytes(changed[:size])))
    return bytes(changed)


GOOD = _layout.layout((3, 4), [("a", "<f8"), ("b", "S3")], "C").pack(64)


def test_headers_come_back() -> None:
    layout, at = _layout.unpack(GOOD, "x")
    assert layout == _layout.layout((3, 4), [("a", "<f8"), ("b", "S3")], "C") and at == len(GOOD) == 128
    assert sealed(GOOD) == GOOD


def test_every_byte_of_a_header_may_be_wrong() -> None:
    for at in range(len(GOOD)):
        for bit in range(8):
            wrong = bytearray(GOOD)
            wrong[at] ^= 1 << bit
            with pytest.raises((indelible.Damaged, indelible.Version)):
                _layout.unpack(bytes(wrong), "x")


def test_every_byte_of_a_header_may_be_wrong_with_a_checksum_that_fits() -> None:
    for at in range(len(GOOD)):
        for value in (0, 1, 2, 34, 91, 127, 128, 255):
            wrong = bytearray(GOOD)
            wrong[at] = value
            try:
                layout, begin = _layout.unpack(sealed(bytes(wrong)), "x")
            except (indelible.Damaged, indelible.Version):
                continue
            assert layout.nbytes >= 0 and 32 <= begin <= len(GOOD) and not layout.dtype.hasobject


def header(text: bytes, shape: tuple[int, ...] = (1,)) -> bytes:
    fixed = struct.pack("<8sIIIIB1sHI", b"PMO-NDAR", 1, 0, 4096, 0, len(shape), b"C", 0, len(text))
    return sealed((fixed + struct.pack(f"<{len(shape)}Q", *shape) + text).ljust(4096, b"\0"))


@pytest.mark.parametrize(
    "text",
    [
        b'"|O"', b'[["a","|O"]]', b'"nonsense"', b"", b"{", b"[]", b"[[]]", b'[["a"]]', b"5", b"null", b"true",
        b'[["a","<f8"],["a","<f8"]]', b'[["a","<f8",[-1]]]', b'[["a","<f8",["x"]]]', b'[["a","<f8",5]]',
        b'[["a","<f8",[99999999999,99999999999]]]', b"[" * 3000, b'[["a",' * 400, b'"V99999999999999999999"',
        b'"V-1"',
        b'{"names":["a"],"formats":["O"]}', b'"<f8,O"', b"\xff\xfe", b'[["a","<f8",[1],2]]', b'"' + b"," * 50 + b'"',
    ],
    ids=repr,
)  # fmt: skip
def test_descriptions_of_no_type_are_damage(text: bytes) -> None:
    with pytest.raises(indelible.Damaged):
        _layout.unpack(header(text), "x")


@given(st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=4), st.sampled_from(["<f8", "|O", "S3", "a"])),
    lambda inner: st.lists(inner, max_size=4), max_leaves=12,
))  # fmt: skip
def test_any_description_is_a_type_or_damage(value: Any) -> None:
    import json

    text = json.dumps(value).encode()[:3072]
    try:
        layout, _ = _layout.unpack(header(text), "x")
    except indelible.Damaged:
        return
    assert not layout.dtype.hasobject


@pytest.mark.parametrize("shape", [(2**63,), (2**40, 2**40), (2**64 - 1, 0), (1,) * 33], ids=str)
def test_shapes_no_memory_has_are_damage(shape: tuple[int, ...]) -> None:
    with pytest.raises(indelible.Damaged):
        _layout.unpack(header(b'"<f8"', shape), "x")


def test_a_header_of_a_newer_version_is_refused() -> None:
    with pytest.raises(indelible.Version, match="version 2"):
        _layout.unpack(sealed(GOOD[:8] + struct.pack("<I", 2) + GOOD[12:]), "x")
    with pytest.raises(indelible.Version, match="0x4"):
        _layout.unpack(sealed(GOOD[:12] + struct.pack("<I", 4) + GOOD[16:]), "x")


@pytest.mark.parametrize("shape", [(4097 * 2,), (1 << 40,)], ids=str)
def test_a_shape_beyond_the_object_is_damage(pool: indelible.Pool, shape: tuple[int, ...]) -> None:
    del_me = pool.array("w", 16, "u1")
    del del_me
    with pool.attach("w") as obj:
        memoryview(obj)[:4096] = header(b'"|u1"', shape)
        obj.psync()
    with pytest.raises(indelible.Damaged, match="does not lie in"):
        pool.array("w")
    assert pool.stat("w").state == "D"


def edited(pool: indelible.Pool, at: int, data: bytes) -> None:
    with pool.attach("run") as obj:
        memoryview(obj)[at : at + len(data)] = data
        obj.psync()


def test_every_byte_of_a_dict_may_be_wrong(pool: indelible.Pool) -> None:
    """Whatever it is, opening and reading everything gives values or an error, and writing stays inside."""
    values = pool.dict("run")
    values.update(a=1, b="text", c=np.arange(3), d=2.5, e=10**30, f=True, g=[1, None], h=b"bytes")
    values.psync()
    base = pool.stat("run").address
    blocks, size = values._blocks()
    places = sorted({at for block in blocks for at in range(block - base, min(block - base + 104, size))})
    values.close()
    with pool.attach("run") as obj:
        whole = bytes(obj)
    refused = 0
    for number, at in enumerate(places):
        value = (whole[at] ^ 1, whole[at] ^ 0x80, 255 - whole[at])[number % 3]
        edited(pool, at, bytes([value]))
        found = None
        try:
            found = pool.dict("run")
            for key in found:
                repr(found[key])
            found["new"] = np.zeros(10)
            found["a"] = "other"
            found.pop("b", None)
            list(found.items())
        except (indelible.Error, KeyError, UnicodeDecodeError):
            # A key is in another chain than its hash says: it is seen, and not found.
            refused += 1
        if found is not None:
            found.close()
        del found
        # The changes of the attempt are not psynced; put the byte back.
        edited(pool, at, whole[at : at + 1])
    assert refused > len(places) // 20
    found = pool.dict("run")
    assert found["b"] == "text" and found._check() == []


def test_a_dict_of_the_first_format_is_refused(pool: indelible.Pool) -> None:
    """`data/dict-1.bin` is the object of a dict that the first format made: {"a": 1, "w": arange(3)}."""
    whole = gzip.decompress((Path(__file__).parent / "data" / "dict-1.bin.gz").read_bytes())
    # Its heap has absolute addresses nowhere but in its root, which is not followed.
    pool.create("run", len(whole))
    with pool.attach("run") as obj:
        memoryview(obj)[:] = whole
    for mode in ("r", "r+"):
        with pytest.raises(indelible.Version, match="version 1, this software knows version 2"):
            pool.dict("run", mode)
    assert pool.stat("run").state == "D"


def root_of(whole: bytes, base: int, live: int) -> int:
    """Where the root of a dict with so many keys is: version, seed, number of keys, address of the entries."""
    places = [
        at
        for at in range(4096, len(whole) - 64, 16)
        if struct.unpack_from("<Q8xQ", whole, at) == (2, live)
        and base <= struct.unpack_from("<Q", whole, at + 24)[0] < base + len(whole)
    ]
    assert len(places) == 1, places
    return places[0]


def test_a_dict_of_a_newer_version_is_refused(pool: indelible.Pool) -> None:
    with pool.dict("run") as values:
        values["a"] = 1
    with pool.attach("run", "r") as obj:
        at = root_of(bytes(obj), obj.address, 1)
    edited(pool, at, struct.pack("<Q", 3))
    with pytest.raises(indelible.Version, match="version 3"):
        pool.dict("run")


def rows(title: str) -> list[list[str]]:
    """The table under a heading of FORMAT.md, without its head."""
    section = FORMAT.split(f"### {title}\n")[1].split("\n#")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines[2:]]


@pytest.mark.parametrize(
    ("title", "struct_format"),
    [
        ("Header of an array", _layout._FIXED.format),
        ("Header of a checkpoint", _pytree._HEADER.format.replace("20x", "")),
    ],
)
def test_format_md_has_the_offsets_of_the_code(title: str, struct_format: str) -> None:
    at, expected = 0, []
    for piece in re.findall(r"\d*[a-zA-Z]", struct_format):
        expected.append((at, struct.calcsize("<" + piece)))
        at += expected[-1][1]
    assert [(int(row[0]), int(row[1])) for row in rows(title)][: len(expected)] == expected


def test_format_md_has_the_constants_of_the_code() -> None:
    constants = {row[0]: row[1] for row in rows("Constants")}
    assert constants == {
        "array magic": _layout.MAGIC.decode(),
        "array version": str(_layout.VERSION),
        "longest array header": str(_layout.MAX_HEADER),
        "most dimensions": str(_layout._MAX_DIMENSIONS),
        "longest description": str(_layout._MAX_TYPE),
        "dict version": "2",
        "longest key": "65535",
        "deepest tree": str(_tree.DEPTH),
        "checkpoint magic": _pytree.MAGIC.decode(),
        "checkpoint version": str(_pytree.VERSION),
    }
    trees = {row[0].encode() for row in rows("Trees")}
    assert trees == set(_tree.Reader.table)
    more = {row[0].encode() for row in rows("Tags of a checkpoint")}
    assert more == set(_pytree._Reader.table) - trees


def test_format_md_has_the_layout_of_a_dict(pool: indelible.Pool) -> None:
    """The offsets of the fields are seen in the bytes of a small dict."""
    with pool.dict("run") as values:
        values.update(key="value")
        values["second"] = 7
    with pool.attach("run", "r") as obj:
        whole, base = bytes(obj), obj.address
    table = {row[2]: (int(row[0]), int(row[1])) for row in rows("The root")}
    at = root_of(whole, base, 2)

    def field(name: str, start: int, where: dict[str, tuple[int, int]]) -> int:
        offset, size = where[name]
        return int.from_bytes(whole[start + offset : start + offset + size], "little")

    assert field("version", at, table) == 2 and field("live", at, table) == 2
    first = field("entries", at, table) & (1 << 64) - 1
    entry = {row[2]: (int(row[0]), int(row[1])) for row in rows("Entry")}
    for number, (key, kind) in enumerate([("key", 5), ("second", 3)]):
        start = first - base + 64 * number
        words = struct.unpack_from("<QQQ", whole, start + entry["key"][0])
        assert whole[words[0] - base :][: words[2]] == key.encode()
        assert field("kind", start, entry) == kind
    assert field("value", first - base + 64, entry) & (1 << 64) - 1 == 7
    kinds = {row[1]: int(row[0]) for row in rows("Kinds")}
    assert kinds == {
        "removed": 0, "None": 1, "bool": 2, "int": 3, "float": 4, "str": 5, "bytes": 6, "tree": 7, "array": 8,
    }  # fmt: skip


def test_a_dict_whose_bytes_were_shown_is_verified_before_it_is_used(pool: indelible.Pool) -> None:
    def added() -> int:
        (new,) = set(d._blocks()[0]) - known
        known.add(new)
        return new

    with pool.dict("d") as d:
        d["a"] = d["b"] = None
        known = set(d._blocks()[0])
        d["a"] = "x" * 100
        one = added()
        d["b"] = "y" * 100
        two = added()
    with pool.attach("d") as raw:
        memory = memoryview(raw)
        at = bytes(memory).index(two.to_bytes(8, "little"))
        memory[at : at + 8] = one.to_bytes(8, "little")
        del memory
    with pytest.raises(indelible.Damaged, match="a block has two owners"):
        pool.dict("d")
