"""How a dict lies in the heap of an object, version 1: crates/python/FORMAT.md.

Nothing here believes what it reads: whatever is not as it should be is Damaged.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from ._errors import Damaged, Error, Version
from ._indelible import Heap

MAGIC = b"PMO-DICT"
VERSION = 1
ITEM_MAGIC = 0x4D455449

# magic, version, features, offset of the table, slots it has, slots used
HEADER = struct.Struct("<8sIIQQQ")
HEADER_SIZE = 64
TABLE_AT = 16
# magic, kind, zero, bytes of the key, value, bytes of the block it refers to
ITEM = struct.Struct("<IBBHQQ")
KEY_MAX = 65535

NONE, BOOL, INT, LONG, FLOAT, STR, BYTES, ARRAY = range(8)
# Kinds whose value is the offset of a block.
WITH_BLOCK = frozenset((LONG, STR, BYTES, ARRAY))


class Item(NamedTuple):
    """An item: where it is, and what it says."""

    slot: int
    offset: int
    kind: int
    value: int
    length: int

    @property
    def block(self) -> int | None:
        """The block that it refers to."""
        return self.value if self.kind in WITH_BLOCK and self.length > 0 else None


class Table(NamedTuple):
    """The slots: offsets of items, in the order of their keys' first assignment; 0 where one was deleted."""

    header: int
    offset: int
    slots: int
    used: int


def create(heap: Heap) -> Table:
    """Makes an empty dict of a heap."""
    header = heap.malloc(HEADER_SIZE, 64)
    heap.write(header, HEADER.pack(MAGIC, VERSION, 0, 0, 0, 0).ljust(HEADER_SIZE, b"\0"))
    heap.create_root(header, HEADER_SIZE)
    return Table(header, 0, 0, 0)


def load(heap: Heap, header: int, size: int) -> tuple[Table, dict[str, Item], set[int]]:
    """The table, the items by key, and every block they consist of."""
    what = f"the dict in object {heap.name!r}"
    try:
        return _load(heap, header, size, what)
    except (Version, Damaged):
        raise
    except (Error, IndexError, ValueError) as error:
        raise Damaged(f"{what}: {error}", object=heap.name) from error


def _load(heap: Heap, header: int, size: int, what: str) -> tuple[Table, dict[str, Item], set[int]]:
    blocks: set[int] = set()

    def claim(offset: int, needed: int, of: str) -> None:
        if heap.usable_size(offset) < needed:
            raise Damaged(f"{what}: the block at {offset:#x}, of {of}, has less than {needed} bytes")
        if offset in blocks:
            raise Damaged(f"{what}: the block at {offset:#x}, of {of}, has another use, too")
        blocks.add(offset)

    if size != HEADER_SIZE:
        raise Damaged(f"{what}: a header of {size} bytes")
    claim(header, HEADER_SIZE, "the header")
    magic, version, features, table, slots, used = HEADER.unpack(heap.read(header, HEADER.size))
    if magic != MAGIC:
        raise Damaged(f"{what} begins with {magic!r}, not {MAGIC!r}")
    if version != VERSION or features != 0:
        raise Version(
            f"{what} is of version {version} with features {features:#x}, this software knows version"
            f" {VERSION} (use the version that wrote it, or a newer one)",
            object=heap.name,
        )
    if used > slots or slots > heap.size // 8:
        raise Damaged(f"{what}: {used} of {slots} slots are used")
    items: dict[str, Item] = {}
    if slots > 0:
        claim(table, 8 * slots, "the table")
        for slot, offset in enumerate(struct.unpack(f"<{used}Q", heap.read(table, 8 * used))):
            if offset != 0:
                key, item = _read_item(heap, slot, offset, what)
                claim(offset, ITEM.size + len(key.encode()), f"item {key!r}")
                if item.block is not None:
                    claim(item.block, item.length, f"the value of {key!r}")
                if key in items:
                    raise Damaged(f"{what}: the key {key!r} is there twice")
                items[key] = item
    return Table(header, table, slots, used), items, blocks


def _read_item(heap: Heap, slot: int, offset: int, what: str) -> tuple[str, Item]:
    magic, kind, zero, key_len, value, length = ITEM.unpack(heap.read(offset, ITEM.size))
    if magic != ITEM_MAGIC or zero != 0 or kind > ARRAY:
        raise Damaged(f"{what}: what slot {slot} refers to, at {offset:#x}, is no item")
    if (
        (kind not in WITH_BLOCK and length != 0)
        or (kind == BOOL and value > 1)
        or (kind == NONE and value != 0)
    ):
        raise Damaged(f"{what}: the value of item {slot} is none of its kind")
    return heap.read(offset + ITEM.size, key_len).decode(), Item(slot, offset, kind, value, length)


def pack_item(kind: int, key_len: int, value: int, length: int) -> bytes:
    """The fixed part of an item."""
    return ITEM.pack(ITEM_MAGIC, kind, 0, key_len, value, length)
