"""Values of a dict that have no kind of their own, as bytes: crates/python/FORMAT.md, "Trees".

A node is a tag, then what the tag says. Reading believes nothing: what is no tree is Damaged.
"""

from __future__ import annotations

import datetime as dt
import enum
import os
import struct
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, NoReturn
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from . import _classes
from ._array import Array
from ._errors import Damaged, Error
from ._layout import MAX_HEADER, fill, is_padded, layout, unpack

DEPTH = 64
_COUNT = struct.Struct("<Q")
_FLOAT = struct.Struct("<d")
_COMPLEX = struct.Struct("<dd")
_DELTA = struct.Struct("<qqq")
_TIMES = (dt.datetime, dt.date, dt.time, dt.timedelta)
# Exactly these are kept; of their bases, subclasses are refused.
_BASES = (int, float, complex, str, bytes, bytearray, dict, set, frozenset)
_EXACT = {bool, OrderedDict, *_BASES}
_GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")


class FrozenList(list[Any]):
    """A list as a dict holds it. It is a copy: a change would not be stored, so that it is an error."""

    def _refuse(self, *_arguments: Any, **_options: Any) -> NoReturn:
        raise TypeError(
            "this list is a copy of what the object holds, and a change of it would not be stored: change list(x), and"
            " assign that to the key"
        )

    __setitem__ = __delitem__ = __iadd__ = __imul__ = append = extend = insert = _refuse
    pop = remove = clear = sort = reverse = _refuse

    def __reduce_ex__(self, _protocol: Any) -> Any:
        return list, (), None, iter(self)

    def __copy__(self) -> list[Any]:
        return list(self)

    copy = __copy__


class FrozenDict(dict[Any, Any]):
    """A dict within a value, as `FrozenList`."""

    def _refuse(self, *_arguments: Any, **_options: Any) -> NoReturn:
        raise TypeError(
            "this dict is a copy of what the object holds, and a change of it would not be stored: change dict(x), and"
            " assign that to the key"
        )

    __setitem__ = __delitem__ = __ior__ = update = setdefault = _refuse
    pop = popitem = clear = _refuse

    def __reduce_ex__(self, _protocol: Any) -> Any:
        return dict, (), None, None, iter(self.items())

    def __copy__(self) -> dict[Any, Any]:
        return dict(self)

    copy = __copy__


class FrozenSet(set[Any]):
    """A set as a dict holds it, as `FrozenList`."""

    def _refuse(self, *_arguments: Any, **_options: Any) -> NoReturn:
        raise TypeError(
            "this set is a copy of the object's value, and a change of it would not be stored: change set(x), and"
            " assign that to the key"
        )

    __ior__ = __iand__ = __isub__ = __ixor__ = add = discard = remove = pop = clear = _refuse
    update = intersection_update = difference_update = symmetric_difference_update = _refuse

    def __reduce_ex__(self, _protocol: Any) -> Any:
        return set, (list(self),)

    def __copy__(self) -> set[Any]:
        return set(self)

    copy = __copy__


_EXACT.update((FrozenList, FrozenDict, FrozenSet))


def encode(value: Any) -> bytes:
    """The bytes of a value; TypeError for one that cannot be kept."""
    out = bytearray()
    _put(out, value, DEPTH)
    return bytes(out)


def refuse(value: Any) -> NoReturn:
    raise TypeError(
        f"a value of type {type(value).__name__} cannot be kept: kept are None, bool, int, float, complex, str, bytes, dates and"
        " times, paths, members of enums, numpy arrays and generators, and lists, tuples, named tuples, sets, dicts and"
        " dataclasses of these"
    )


def scalar(value: np.generic) -> Any:
    """A scalar of numpy as one of Python's, if that has one."""
    found = value.item() if value.dtype.kind in "biufcSU" else value
    if isinstance(found, np.generic):
        refuse(value)
    return found


def put_exact(out: bytearray, value: Any) -> None:
    """A value that comes back with its own type."""
    for base in (Mapping, list, tuple):
        if isinstance(value, base) and type(value) not in (FrozenList, FrozenDict):
            refuse_subclass(value, "dict" if base is Mapping else base.__name__)
    _put(out, value, DEPTH)


def expect_exact(value: Any) -> None:
    """TypeError of a value of a subclass: it would come back as one of the base, without its rest."""
    kind = type(value)
    if kind in _EXACT or isinstance(value, np.generic | enum.Enum):
        return
    for base in _BASES:
        if isinstance(value, base):
            refuse_subclass(value, base.__name__)


def refuse_subclass(value: Any, base: str) -> NoReturn:
    kind = type(value)
    raise TypeError(
        f"{kind.__module__}.{kind.__qualname__} cannot be kept: it is a subclass and would come back as"
        f" {base} (store {base}(x), or its parts)"
    )


def sized(out: bytearray, tag: bytes, data: bytes | bytearray | memoryview) -> None:
    out += tag + _COUNT.pack(len(data))
    out += data


def _put(out: bytearray, value: Any, depth: int) -> None:
    if depth == 0:
        raise ValueError(f"a value nested more than {DEPTH} deep, or in itself, cannot be kept")
    if isinstance(value, np.generic):
        value = scalar(value)
    expect_exact(value)
    if isinstance(value, enum.Enum):
        out += b"x"
        for part in (*_classes.name(type(value)), _classes.member(value)):
            _put(out, part, depth - 1)
        return
    if (found := _classes.parts(value)) is not None:
        _put_parts(out, found, depth)
        return
    match value:
        case None:
            out += b"N"
        case bool():
            out += b"T" if value else b"F"
        case int():
            sized(out, b"i", value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True))
        case float():
            out += b"d" + _FLOAT.pack(value)
        case complex():
            out += b"c" + _COMPLEX.pack(value.real, value.imag)
        case str():
            sized(out, b"s", value.encode())
        case bytes() | bytearray() | memoryview():
            sized(out, b"b", bytes(value))
        case dt.date() | dt.time() | dt.timedelta() if type(value) not in _TIMES:
            raise TypeError(
                f"{type(value).__module__}.{type(value).__qualname__} cannot be kept: a subclass of a time has more than the"
                " time, such as nanoseconds or NaT (store its parts: a number, a text, an array of datetime64)"
            )
        case dt.datetime() | dt.time():
            _put_time(out, value, depth)
        case dt.date():
            sized(out, b"D", value.isoformat().encode())
        case dt.timedelta():
            out += b"e" + _DELTA.pack(value.days, value.seconds, value.microseconds)
        case PurePosixPath():
            sized(out, b"p" if isinstance(value, Path) else b"P", os.fsencode(value))
        case np.ndarray():
            _put_array(out, value)
        case np.random.Generator():
            _put_generator(out, value.bit_generator, b"g", depth)
        case np.random.BitGenerator():
            _put_generator(out, value, b"G", depth)
        case list() | tuple():
            if type(value) not in (list, tuple, FrozenList):
                refuse(value)
            out += (b"t" if isinstance(value, tuple) else b"l") + _COUNT.pack(len(value))
            for item in value:
                _put(out, item, depth - 1)
        case set() | frozenset():
            out += (b"h" if isinstance(value, set) else b"H") + _COUNT.pack(len(value))
            for item in value:
                _put(out, item, depth - 1)
        case Mapping():
            items = list(value.items())
            out += b"m" + _COUNT.pack(len(items))
            for key, item in items:
                if not isinstance(key, str | int | float | bytes | tuple | None):
                    raise TypeError(f"a key of type {type(key).__name__} cannot be kept")
                _put(out, key, depth - 1)
                _put(out, item, depth - 1)
        case _:
            refuse(value)


def _put_parts(out: bytearray, found: _classes.Parts, depth: int) -> None:
    if found.tag == b"C":
        _classes.expect_frozen(found.kind)
    out += found.tag
    for part in (*_classes.name(found.kind), found.names, *found.values):
        _put(out, part, depth - 1)


def _put_time(out: bytearray, value: dt.datetime | dt.time, depth: int) -> None:
    zone = value.tzinfo
    if zone is not None and not isinstance(zone, dt.timezone) and not isinstance(zone, ZoneInfo):
        raise TypeError(f"a time in a zone of type {type(zone).__name__} cannot be kept: use datetime.timezone or ZoneInfo")
    if isinstance(zone, ZoneInfo):
        if zone.key is None:
            raise TypeError("a time in a zone without a name cannot be kept")
        name, value = zone.key, value.replace(tzinfo=None)
    else:
        name = ""
    out += b"z" + (b"\1" if value.fold else b"\0")
    _put(out, name, depth - 1)
    sized(out, b"Z" if isinstance(value, dt.datetime) else b"y", value.isoformat().encode())


def _put_array(out: bytearray, value: np.ndarray[Any, Any]) -> None:
    expect_plain_array(value)
    array = np.asarray(value)
    found = layout(array.shape, array.dtype, "C")
    stored = array.astype(found.dtype, copy=False)
    if is_padded(found.dtype):
        stored = np.zeros(array.shape, found.dtype)
        fill(stored, array)
    sized(out, b"a", found.pack(64) + stored.tobytes())


def expect_plain_array(value: np.ndarray[Any, Any]) -> None:
    """TypeError of an array that has more than its elements."""
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError("a masked array cannot be kept as one: store its .data and its .mask under two keys")
    if type(value) not in (np.ndarray, np.memmap, Array):
        refuse_subclass(value, "numpy.asarray")


def _put_generator(out: bytearray, value: Any, tag: bytes, depth: int) -> None:
    state = value.state
    if state.get("bit_generator") not in _GENERATORS:
        raise TypeError(f"a generator of type {type(value).__name__} cannot be kept")
    out += tag
    _put(out, state, depth - 1)


def decode(data: bytes, what: str) -> Any:
    """The value of bytes that `encode` made."""
    reader = Reader(data, what)
    try:
        value = reader.value(DEPTH)
    except Error:
        raise
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError, MemoryError, struct.error) as error:
        if isinstance(error, ZoneInfoNotFoundError):
            raise
        raise Damaged(f"{what}: a value of it is none: {error}") from None
    if reader.at != len(data):
        raise Damaged(f"{what}: a value of it goes on behind its end")
    return value


class Reader:
    table: ClassVar[dict[bytes, Callable[[Any, int], Any]]] = {}
    # Dataclasses refuse changes.
    frozen = True

    def __init__(self, data: bytes, what: str) -> None:
        self.data, self.what, self.at = data, what, 0

    def take(self, count: int) -> bytes:
        found = self.data[self.at : self.at + count]
        if len(found) != count:
            raise ValueError("it ends too early")
        self.at += count
        return found

    def count(self) -> int:
        """How many; each takes a byte at least."""
        found = int(_COUNT.unpack(self.take(_COUNT.size))[0])
        if found > len(self.data):
            raise ValueError("it ends too early")
        return found

    def sized(self) -> bytes:
        return self.take(self.count())

    def value(self, depth: int) -> Any:
        if depth == 0:
            raise ValueError("it is nested too deep")
        tag = self.take(1)
        read = self.table.get(tag)
        if read is None:
            raise ValueError(f"there is no tag {tag!r}")
        return read(self, depth - 1)

    def items(self, depth: int) -> Iterator[Any]:
        return (self.value(depth) for _ in range(self.count()))

    def mapping(self, depth: int) -> FrozenDict:
        return FrozenDict([(self.value(depth), self.value(depth)) for _ in range(self.count())])

    def class_of(self, depth: int) -> tuple[Any, Any, list[Any]]:
        """A class, and names and values of its fields."""
        module, name, names = (self.value(depth) for _ in range(3))
        values = [self.value(depth) for _ in names]
        return _classes.find(str(module), str(name), self.what), names, values

    def named_tuple(self, depth: int) -> Any:
        found, names, values = self.class_of(depth)
        return _classes.named_tuple(found, names, values, self.what)

    def data_class(self, depth: int) -> Any:
        found, names, values = self.class_of(depth)
        return _classes.data_class(found, names, values, self.what, self.frozen)

    def member(self, depth: int) -> Any:
        module, name, of = (self.value(depth) for _ in range(3))
        return _classes.member_of(_classes.find(str(module), str(name), self.what), of, self.what)

    def time(self, depth: int) -> Any:
        fold = self.take(1)[0]
        zone = self.value(depth)
        tag, text = self.take(1), self.sized().decode()
        value: Any = dt.datetime.fromisoformat(text) if tag == b"Z" else dt.time.fromisoformat(text)
        return value.replace(fold=fold, tzinfo=ZoneInfo(zone) if zone else value.tzinfo)

    def array(self, _depth: int) -> np.ndarray[Any, Any]:
        data = self.sized()
        found, at = unpack(data[:MAX_HEADER], self.what)
        if at + found.nbytes != len(data):
            raise ValueError(f"its array of {found} has {len(data) - at} bytes")
        # Read-only, as `data` is: a store to a copy would be lost.
        return np.ndarray(found.shape, found.dtype, data, at, order=found.order)

    def generator(self, depth: int) -> Any:
        state = self.value(depth)
        if not isinstance(state, dict) or state.get("bit_generator") not in _GENERATORS:
            raise ValueError("its generator is none")
        made = getattr(np.random, str(state["bit_generator"]))(0)
        made.state = state
        return made


Reader.table = {
    b"N": lambda _reader, _depth: None,
    b"T": lambda _reader, _depth: True,
    b"F": lambda _reader, _depth: False,
    b"i": lambda reader, _depth: int.from_bytes(reader.sized(), "little", signed=True),
    b"d": lambda reader, _depth: _FLOAT.unpack(reader.take(8))[0],
    b"c": lambda reader, _depth: complex(*_COMPLEX.unpack(reader.take(16))),
    b"s": lambda reader, _depth: reader.sized().decode(),
    b"b": lambda reader, _depth: reader.sized(),
    b"z": Reader.time,
    b"D": lambda reader, _depth: dt.date.fromisoformat(reader.sized().decode()),
    b"e": lambda reader, _depth: dt.timedelta(*_DELTA.unpack(reader.take(24))),
    b"p": lambda reader, _depth: Path(os.fsdecode(reader.sized())),
    b"P": lambda reader, _depth: PurePosixPath(os.fsdecode(reader.sized())),
    b"a": Reader.array,
    b"g": lambda reader, depth: np.random.Generator(reader.generator(depth)),
    b"G": Reader.generator,
    b"l": lambda reader, depth: FrozenList(reader.items(depth)),
    b"t": lambda reader, depth: tuple(reader.items(depth)),
    b"m": Reader.mapping,
    b"h": lambda reader, depth: FrozenSet(reader.items(depth)),
    b"H": lambda reader, depth: frozenset(reader.items(depth)),
    b"x": Reader.member,
    b"n": Reader.named_tuple,
    b"C": Reader.data_class,
}
