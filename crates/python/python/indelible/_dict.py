"""A dict in the heap of an object.

Invariants:
1. `_items` says what the table in the object says, unless `_stale`.
2. A change makes what it needs first, takes effect by one store, and frees what is not needed any more
   last. Whatever interrupts it leaves a whole dict, and blocks that nothing refers to: those are freed
   when the dict is read again.
3. A block whose array is in use is not freed before the array is gone; until then it is in `_waiting`.
4. All of it is under `_lock`, psync included: a psync never sees half a change.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

import numpy as np

from . import _items
from ._errors import Damaged, HeapFull, NotAHeap, ReadOnly
from ._indelible import Heap
from ._items import Item, Table
from ._layout import MAX_HEADER, layout, unpack
from ._room import grow_to

_FLOAT = struct.Struct("<d")
_ALIGN = 64


class Dict(MutableMapping[str, Any]):
    """A persistent dict: str to int, float, bool, str, bytes, None or a numpy array. Made by `Pool.dict`.

    An array is stored as a copy, and what comes out is a view: storing to its elements stores to the
    object. What changed becomes durable with `psync`, as one step.
    """

    def __init__(self, heap: Heap) -> None:
        self._heap = heap
        self._lock = threading.RLock()
        self._table = Table(0, 0, 0, 0)
        self._items: dict[str, Item] = {}
        self._waiting: list[int] = []
        self._stale = True
        try:
            with self._still():
                pass
        except BaseException:
            # A traceback that somebody keeps would keep the object attached.
            heap.close()
            raise

    @property
    def name(self) -> str:
        """Name of the object."""
        return self._heap.name

    @property
    def readonly(self) -> bool:
        """Whether it is attached for reading only."""
        return self._heap.readonly

    @property
    def closed(self) -> bool:
        """Whether it was closed, or belongs to another process."""
        return self._heap.closed

    def psync(self, *, cut: bool = False) -> None:
        """Makes everything stored since the last psync durable, as one step: keys, values, and elements of
        arrays.

        Other threads run meanwhile. They must not store to elements, unless `cut` asks for a consistent
        cut; other changes of the dict wait by themselves.
        """
        with self._still() as heap:
            heap.psync(cut=cut)

    def close(self) -> None:
        """Detaches; what was not psynced is forgotten. BufferError while arrays of it are in use."""
        if self._heap.closed:
            self._heap.close()
            return
        with self._lock:
            self._heap.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exception: type[BaseException] | None,
        _value: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        if exception is None:
            self.close()
        else:
            # Its traceback may keep arrays: no second error on top of it.
            self._heap.close_with_the_last_view()

    def __len__(self) -> int:
        with self._still():
            return len(self._items)

    def __iter__(self) -> Iterator[str]:
        with self._still():
            return iter(tuple(self._items))

    def __contains__(self, key: object) -> bool:
        with self._still():
            return key in self._items

    def __getitem__(self, key: str) -> Any:
        with self._still():
            return self._value(self._items[key])

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(key, str):
            raise TypeError(f"keys are str, not {type(key).__name__}")
        name = key.encode()
        if len(name) > _items.KEY_MAX:
            raise ValueError(f"a key of {len(name)} bytes; at most {_items.KEY_MAX} can be kept")
        kind, number, data = _encode(value)
        with self._change() as heap:
            old = self._items.get(key)
            if kind == _items.ARRAY and old is not None and self._is_same(old, value):
                return
            length = 0
            if kind == _items.ARRAY:
                number, length = self._store_array(value)
            elif data:
                number, length = self._malloc(len(data)), len(data)
                heap.write(number, data)
            fixed = _items.pack_item(kind, len(name), number, length)
            if old is not None:
                heap.write(old.offset, fixed)
                self._items[key] = Item(old.slot, old.offset, kind, number, length)
                self._free(old.block)
            else:
                offset = self._malloc(len(fixed) + len(name))
                heap.write(offset, fixed + name)
                slot = self._append(offset)
                self._items[key] = Item(slot, offset, kind, number, length)

    def __delitem__(self, key: str) -> None:
        with self._change() as heap:
            item = self._items[key]
            heap.write(self._table.offset + 8 * item.slot, bytes(8))
            del self._items[key]
            self._free(item.offset)
            self._free(item.block)

    def clear(self) -> None:
        """Removes everything."""
        for key in self:
            del self[key]

    def __repr__(self) -> str:
        about = "closed" if self.closed else f"{len(self)} items"
        return f"<indelible.Dict {self.name!r}, {about}>"

    @contextmanager
    def _still(self) -> Iterator[Heap]:
        """The heap, while nothing changes what the dict consists of."""
        if self._heap.closed:
            # Raises what it is. In a fork, a thread that is not here may have the lock.
            _ = self._heap.size
        with self._lock:
            if self._stale:
                self._load()
            yield self._heap

    @contextmanager
    def _change(self) -> Iterator[Heap]:
        """As `_still`, to change it. Whatever interrupts the change has the object read again (2)."""
        with self._still() as heap:
            if heap.readonly:
                raise ReadOnly(f"cannot change the dict in object {self.name!r}: it is attached for reading")
            self._stale = True
            waiting, self._waiting = self._waiting, []
            for offset in waiting:
                self._free(offset)
            yield heap
            self._stale = False

    def _load(self) -> None:
        heap = self._heap
        root = heap.root()
        if root is None:
            if heap.readonly:
                raise NotAHeap(f"there is no dict in object {self.name!r}")
            self._table, self._items, used = _items.create(heap), {}, set[int]()
        else:
            self._table, self._items, used = _items.load(heap, *root)
        if not heap.readonly:
            self._waiting = []
            for offset in set(heap.blocks()) - used - {self._table.header}:
                self._free(offset)
        self._stale = False

    def _malloc(self, size: int, align: int = 16) -> int:
        """Offset of a new block, of an object that grows if it has to."""
        try:
            return self._heap.malloc(size, align)
        except HeapFull:
            # What a chunk of the heap needs for itself comes on top.
            grow_to(self._heap, self._heap.size + size + align + (4 << 20))
            return self._heap.malloc(size, align)

    def _free(self, offset: int | None) -> None:
        """Frees a block, or has it wait while an array in it is in use (3)."""
        if offset is not None:
            try:
                self._heap.free(offset)
            except BufferError:
                self._waiting.append(offset)

    def _append(self, item: int) -> int:
        """Gives an item the next slot, making room if there is none."""
        heap, (header, table, slots, used) = self._heap, self._table
        if used < slots:
            heap.write(table + 8 * used, struct.pack("<Q", item))
            heap.write(header + _items.TABLE_AT, struct.pack("<QQQ", table, slots, used + 1))
            self._table = Table(header, table, slots, used + 1)
            return used
        # Deleted slots are left out of the new one.
        offsets = [each.offset for each in self._items.values()] + [item]
        count = max(16, 2 * len(offsets))
        new = self._malloc(8 * count)
        heap.write(new, struct.pack(f"<{len(offsets)}Q", *offsets))
        heap.write(header + _items.TABLE_AT, struct.pack("<QQQ", new, count, len(offsets)))
        self._table = Table(header, new, count, len(offsets))
        for slot, (key, old) in enumerate(self._items.items()):
            self._items[key] = old._replace(slot=slot)
        self._free(table if slots > 0 else None)
        return len(offsets) - 1

    def _store_array(self, value: Any) -> tuple[int, int]:
        """Offset and length of a new block with an array in it."""
        heap, array = self._heap, np.asarray(value)
        found = layout(array.shape, array.dtype, _order(array))
        header = found.pack(_ALIGN)
        length = len(header) + found.nbytes
        offset = self._malloc(length, _ALIGN)
        heap.write(offset, header)
        self._elements(offset, length)[...] = array
        return offset, length

    def _elements(self, offset: int, length: int) -> np.ndarray[Any, Any]:
        """The array in a block, as a view."""
        memory = np.frombuffer(memoryview(self._heap.block(offset, length)), np.uint8)
        what = f"the dict in object {self.name!r}"
        found, at = unpack(memory[:MAX_HEADER].tobytes(), what)
        if at + found.nbytes != length:
            raise Damaged(f"{what}: its array of {found} does not lie in {length} bytes")
        return np.ndarray(found.shape, found.dtype, memory, at, order=found.order)

    def _is_same(self, old: Item, value: Any) -> bool:
        """Whether `value` is the very memory that the item has: `d["w"] += 1` assigns it to itself."""
        if old.kind != _items.ARRAY or not isinstance(value, np.ndarray):
            return False
        new, here = value.__array_interface__, self._elements(old.value, old.length).__array_interface__
        return all(new.get(part) == here.get(part) for part in ("data", "shape", "strides", "descr"))

    def _value(self, item: Item) -> Any:
        kind, number = item.kind, item.value
        if kind == _items.ARRAY:
            return self._elements(item.value, item.length)
        if kind in _items.WITH_BLOCK:
            data = self._heap.read(number, item.length) if item.length else b""
            if kind == _items.BYTES:
                return data
            return data.decode() if kind == _items.STR else int.from_bytes(data, "little", signed=True)
        if kind == _items.FLOAT:
            return float(_FLOAT.unpack(struct.pack("<Q", number))[0])
        if kind == _items.INT:
            return int(struct.unpack("<q", struct.pack("<Q", number))[0])
        return None if kind == _items.NONE else bool(number)


def _order(array: np.ndarray[Any, Any]) -> str:
    return "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"


def _encode(value: Any) -> tuple[int, int, bytes]:
    """Kind, value and data of an item; TypeError for what a dict cannot hold."""
    if isinstance(value, np.generic):
        # A scalar of numpy is kept as Python's, if it has one.
        value = value.item()
    match value:
        case None:
            return _items.NONE, 0, b""
        case bool():
            return _items.BOOL, int(value), b""
        case int() if -(1 << 63) <= value < 1 << 63:
            return _items.INT, value % (1 << 64), b""
        case int():
            return _items.LONG, 0, value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
        case float():
            return _items.FLOAT, int(struct.unpack("<Q", _FLOAT.pack(value))[0]), b""
        case str():
            return _items.STR, 0, value.encode()
        case bytes():
            return _items.BYTES, 0, value
        case np.ndarray():
            layout(value.shape, value.dtype, "C").pack(_ALIGN)
            return _items.ARRAY, 0, b""
        case _:
            raise TypeError(
                f"a dict holds int, float, bool, str, bytes, None and numpy arrays, not {type(value).__name__}"
            )
