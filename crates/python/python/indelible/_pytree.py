"""States of checkpoints: trees of containers, arrays of numpy, torch and jax, frames and plain
values, as bytes: crates/python/FORMAT.md, "A checkpoint".

The structure is a tree of nodes as in `_tree`, with further tags. Arrays lie behind it, and are
written from the memory that they have, piece by piece.
"""

from __future__ import annotations

import dataclasses
import functools
import struct
import sys
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np

from . import _arrays, _frames, _tree
from ._errors import Damaged, Error, Mismatch, Version
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

    def __init__(self, name: str, score: float | None, state: Any) -> None:
        writer = _Writer()
        writer.put((name, score, state), _tree.DEPTH, "")
        structure = bytes(writer.out)
        self._arrays = writer.arrays
        self._data = -(-(_HEADER.size + len(structure)) // _PAGE) * _PAGE
        self.size = self._data + writer.end
        header = bytearray(
            _HEADER.pack(MAGIC, VERSION, 0, len(structure), self._data, self.size, 0)
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
        elif isinstance(value, tuple) and hasattr(kind, "_fields"):
            self._fields(b"n", kind, kind._fields, tuple(value), depth, where)
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            names = [field.name for field in dataclasses.fields(value)]
            _expect_fields_alone(value, names, where)
            self._fields(b"C", kind, names, [getattr(value, name) for name in names], depth, where)
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

    def _fields(
        self, tag: bytes, kind: type, names: Any, values: Any, depth: int, where: str
    ) -> None:
        if _class(kind.__module__, kind.__qualname__) is not kind:
            raise TypeError(
                f"{kind.__module__}.{kind.__qualname__} cannot be kept: no module has it by that name"
                f" (define it at the top of one){_at(where)}"
            )
        self.out += tag
        for part in (kind.__module__, kind.__qualname__, tuple(names)):
            self.put(part, depth - 1, where)
        for name, value in zip(names, values, strict=True):
            self.put(value, depth - 1, f"{where}.{name}")

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


def _expect_fields_alone(value: Any, names: list[str], where: str) -> None:
    cached = {
        name
        for kind in type(value).__mro__
        for name, of in vars(kind).items()
        if isinstance(of, functools.cached_property)
    }
    more = set(getattr(value, "__dict__", ())) - set(names) - cached
    if more:
        raise TypeError(
            f"{type(value).__qualname__} has {', '.join(sorted(more))} beside its fields, which cannot"
            f" be kept{_at(where)}"
        )


def _class(module: str, name: str) -> Any:
    """A class of a module that the program has imported; None if there is none. Names in an object
    import nothing.
    """
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


class _Reader(_tree.Reader):
    """The value of a structure; its arrays are copies."""

    data_of_arrays: np.ndarray[Any, Any]

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

    def class_of(self, depth: int) -> tuple[Any, tuple[str, ...], list[Any], str]:
        module, name, fields = (self.value(depth) for _ in range(3))
        values = [self.value(depth) for _ in fields]
        found = _class(str(module), str(name))
        if found is None:
            raise Mismatch(
                f"{self.what}: it has a {module}.{name}, which this program does not have (import {module}"
                " before you load it)"
            )
        return found, fields, values, f"{module}.{name}"

    def named_tuple(self, depth: int) -> Any:
        found, fields, values, name = self.class_of(depth)
        if not (
            isinstance(found, type)
            and issubclass(found, tuple)
            and getattr(found, "_fields", None) == fields
        ):
            self.differ(name, fields)
        return tuple.__new__(found, values)

    def data_class(self, depth: int) -> Any:
        found, fields, values, name = self.class_of(depth)
        if not (isinstance(found, type) and dataclasses.is_dataclass(found)):
            self.differ(name, fields)
        if tuple(field.name for field in dataclasses.fields(found)) != fields:
            self.differ(name, fields)
        made = object.__new__(found)
        for field, value in zip(fields, values, strict=True):
            object.__setattr__(made, field, value)
        return made

    def differ(self, name: str, fields: Any) -> NoReturn:
        raise Mismatch(
            f"{self.what}: its {name} has the fields {', '.join(map(str, fields))}, and that of this"
            " program others (load it with the program that saved it)"
        )

    def frame(self, depth: int) -> Any:
        about = self.value(depth)
        return _frames.load(about, self.bytes_of().tobytes(), self.what)

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
    b"n": _Reader.named_tuple,
    b"C": _Reader.data_class,
    b"f": _Reader.frame,
    **{tag: _reads(tag) for tag in _arrays.ABOUT},
}


def load(memory: np.ndarray[Any, Any], what: str) -> tuple[str, float | None, Any]:
    """Name, score and state of the bytes that `Packed` made."""
    if len(memory) < _HEADER.size:
        raise Damaged(f"{what}: {len(memory)} bytes are too few for a checkpoint")
    header = bytearray(memory[: _HEADER.size].tobytes())
    magic, version, features, length, data, size, crc = _HEADER.unpack(header)
    if magic != MAGIC:
        raise Damaged(f"{what} holds no checkpoint: it begins with {magic!r}")
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
    reader.data_of_arrays = memory[data:size]
    try:
        name, score, state = reader.value(_tree.DEPTH)
    except Error:
        raise
    except (ArithmeticError, LookupError, TypeError, ValueError, struct.error) as error:
        raise Damaged(f"{what}: its checkpoint is none: {error}") from error
    return name, score, state
