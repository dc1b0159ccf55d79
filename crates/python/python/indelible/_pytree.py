"""States of checkpoints: trees of containers, arrays of numpy, torch and jax, frames and plain
values, as bytes: crates/python/FORMAT.md, "A checkpoint".

The structure is a tree of nodes as in `_tree`, with further tags. Arrays lie behind it, and are
written from the memory that they have, piece by piece.
"""

from __future__ import annotations

import enum
import struct
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import _arrays, _classes, _frames, _tree
from ._errors import Damaged, Error, Version
from ._layout import layout, unpack

MAGIC = b"PMO-CKPT"
VERSION = 1
# magic, version, features, bytes of the structure, where the arrays begin, bytes of all, CRC
_HEADER = struct.Struct("<8sIIQQQI20x")
_CRC = struct.Struct("<I")
_CRC_AT = 40
_PAGE = 4096
_LINE = 64
# From here on an array begins on a page, so that it is written without a copy.
_LARGE = 1 << 20
_OFFSET = struct.Struct("<Q")


class Packed:
    """A state, ready to be written: its size, and its bytes in pieces."""

    def __init__(
        self, name: str, score: float | None, state: Any, magic: bytes = MAGIC
    ) -> None:
        writer = _Writer()
        writer.put((name, score, state), _tree.DEPTH, "")
        structure = bytes(writer.out)
        self._arrays = writer.arrays
        self._data = -(-(_HEADER.size + len(structure)) // _PAGE) * _PAGE
        self.size = self._data + writer.end
        header = bytearray(
            _HEADER.pack(magic, VERSION, 0, len(structure), self._data, self.size, 0)
        )
        _CRC.pack_into(header, _CRC_AT, zlib.crc32(structure, zlib.crc32(header)))
        self._head = bytes(header) + structure

    def pieces(self) -> Iterator[memoryview]:
        """All bytes, in their order."""
        yield from _cut(memoryview(self._head))
        at = len(self._head) - self._data
        for offset, pieces in self._arrays:
            yield memoryview(bytes(offset - at))
            at = offset
            for piece in pieces:
                yield from _cut(piece)
                at += len(piece)


def _cut(piece: memoryview) -> Iterator[memoryview]:
    for at in range(0, len(piece), _arrays.PIECE):
        yield piece[at : at + _arrays.PIECE]


class _Writer:
    """The structure, and the arrays behind it: offset of each, and its bytes in pieces."""

    def __init__(self) -> None:
        self.out = bytearray()
        self.arrays: list[tuple[int, Iterator[memoryview]]] = []
        self.end = 0

    def put(self, value: Any, depth: int, where: str) -> None:
        if depth == 0:
            raise ValueError(
                f"a state nested more than {_tree.DEPTH} deep, or in itself, cannot be kept"
            )
        kind = type(value)
        if kind in (list, tuple):
            self.out += (b"l" if kind is list else b"t") + _OFFSET.pack(len(value))
            for at, item in enumerate(value):
                self.put(item, depth - 1, f"{where}[{at}]")
        elif kind is dict:
            self._items(b"m", value, depth, where)
        elif kind is OrderedDict:
            self._items(b"O", value, depth, where)
            self.put(dict(vars(value)), depth - 1, f"vars of {where}")
        elif not isinstance(value, enum.Enum) and (found := self._parts(value, where)) is not None:
            self.out += found.tag
            for part in (*_named(found.kind, where), found.names):
                self.put(part, depth - 1, where)
            for name, item in zip(found.names, found.values, strict=True):
                self.put(item, depth - 1, f"{where}.{name}")
        else:
            try:
                self._leaf(value)
            except (TypeError, ValueError) as error:
                raise type(error)(f"{error}{_at(where)}") from None

    def _items(self, tag: bytes, value: dict[Any, Any], depth: int, where: str) -> None:
        items = list(value.items())
        self.out += tag + _OFFSET.pack(len(items))
        for key, item in items:
            self.put(key, depth - 1, f"a key of {where}")
            self.put(item, depth - 1, f"{where}[{key!r}]")

    def _parts(self, value: Any, where: str) -> _classes.Parts | None:
        try:
            return _classes.parts(value)
        except TypeError as error:
            raise TypeError(f"{error}{_at(where)}") from None

    def _leaf(self, value: Any) -> None:
        if isinstance(value, np.generic):
            array = np.asarray(value)
            element = bytes(_arrays.numpy_bytes(array))
            _tree.sized(self.out, b"S", layout((), array.dtype, "C").pack(_LINE) + element)
        elif type(value) is bytearray:
            _tree.sized(self.out, b"w", value)
        elif (found := _arrays.of(value)) is not None:
            self.out += found.tag
            for about in found.about:
                self.put(about, _tree.DEPTH, "")
            self._place(found.nbytes, found.pieces())
        elif (frame := _frames.of(value)) is not None:
            self.out += b"f"
            self.put(frame.about, _tree.DEPTH, "attrs")
            self._place(len(frame.data), iter([frame.data]))
        else:
            _tree.put_exact(self.out, value)

    def _place(self, nbytes: int, pieces: Iterator[memoryview]) -> None:
        unit = _PAGE if nbytes >= _LARGE else _LINE
        offset = -(-self.end // unit) * unit
        self.out += _OFFSET.pack(offset) + _OFFSET.pack(nbytes)
        self.arrays.append((offset, pieces))
        self.end = offset + nbytes


def _at(where: str) -> str:
    return f" (at {where.removeprefix('[2]')} of the state)" if where.removeprefix("[2]") else ""


def _named(kind: type, where: str) -> tuple[str, str]:
    try:
        return _classes.name(kind)
    except TypeError as error:
        raise TypeError(f"{error}{_at(where)}") from None


class _Reader(_tree.Reader):
    """The value of a structure; its arrays are copies."""

    data_of_arrays: np.ndarray[Any, Any]
    # Frames are copies, too.
    copies: bool
    frozen = False

    def bytes_of(self) -> np.ndarray[Any, Any]:
        """The bytes of an array, as they lie in the object."""
        at, count = (_OFFSET.unpack(self.take(_OFFSET.size))[0] for _ in range(2))
        if at + count > len(self.data_of_arrays):
            raise ValueError("an array lies behind the end")
        return self.data_of_arrays[at : at + count]

    def scalar(self, depth: int) -> Any:
        return self.array(depth)[()]

    def items_of(self, depth: int) -> list[tuple[Any, Any]]:
        return [(self.value(depth), self.value(depth)) for _ in range(self.count())]

    def ordered(self, depth: int) -> Any:
        found: OrderedDict[Any, Any] = OrderedDict(self.items_of(depth))
        vars(found).update(self.value(depth))
        return found

    def frame(self, depth: int) -> Any:
        about = self.value(depth)
        data = self.bytes_of()
        return _frames.load(about, data.tobytes() if self.copies else data, self.what)

    def array_of(self, tag: bytes, depth: int) -> Any:
        about = [self.value(_tree.DEPTH) for _ in range(_arrays.ABOUT[tag])]
        return _arrays.load(tag, about, self.bytes_of(), self.what)

    def header(self, data: bytes) -> Any:
        return unpack(data, self.what)


def _reads(tag: bytes) -> Callable[[Any, int], Any]:
    return lambda reader, depth: reader.array_of(tag, depth)


_Reader.table = {
    **_tree.Reader.table,
    b"S": _Reader.scalar,
    b"w": lambda reader, _depth: bytearray(reader.sized()),
    b"l": lambda reader, depth: list(reader.items(depth)),
    b"m": lambda reader, depth: dict(reader.items_of(depth)),
    b"O": _Reader.ordered,
    b"h": lambda reader, depth: set(reader.items(depth)),
    b"f": _Reader.frame,
    **{tag: _reads(tag) for tag in _arrays.ABOUT},
}


def load(
    memory: np.ndarray[Any, Any], what: str, of: bytes = MAGIC, copies: bool = True
) -> tuple[str, float | None, Any]:
    """Name, score and state of the bytes that `Packed` made."""
    if len(memory) < _HEADER.size:
        raise Damaged(f"{what}: {len(memory)} bytes are too few for a checkpoint")
    header = bytearray(memory[: _HEADER.size].tobytes())
    magic, version, features, length, data, size, crc = _HEADER.unpack(header)
    if magic != of:
        kind = "checkpoint" if of == MAGIC else "frame"
        raise Damaged(f"{what} holds no {kind}: it begins with {magic!r}")
    if version != VERSION or features:
        raise Version(
            f"{what}: its checkpoint is of version {version} with features {features:#x}, this software"
            f" knows version {VERSION} (use the version that wrote it, or a newer one)"
        )
    if size > len(memory) or not _HEADER.size + length <= data <= size:
        raise Damaged(f"{what}: the sizes of its checkpoint contradict each other")
    structure = memory[_HEADER.size : _HEADER.size + length].tobytes()
    _CRC.pack_into(header, _CRC_AT, 0)
    if zlib.crc32(structure, zlib.crc32(header)) != crc:
        raise Damaged(f"{what}: the checksum of its checkpoint is wrong")
    reader = _Reader(structure, what)
    reader.data_of_arrays, reader.copies = memory[data:size], copies
    try:
        name, score, state = reader.value(_tree.DEPTH)
    except Error:
        raise
    except (ArithmeticError, LookupError, TypeError, ValueError, struct.error) as error:
        raise Damaged(f"{what}: its checkpoint is none: {error}") from error
    return name, score, state
